"""D24 passed-over: A group passed a record over for good.

A complete final read returned a record, an ok poll of readers that go on from each other (a
consumer group, a consumer that assigns itself its keys, the intakes of a transactional id) returned
a later one, and no poll of theirs returned anything at its offset, before or afterwards.

A rebalance may give a key to another member of a group, which resumes at the committed offset; so a
step between two sessions may lead anywhere (D5, D6). But a group commits an offset once the records
before it are on record, and where nothing is committed it begins at the first offset. So its
members together are returned everything from the first offset on: a session may go back, never
ahead of all that was polled. The same holds for a consumer that assigns itself its keys, which goes
on from where it had been or before, and for the intakes of one transactional id (`Readers`).

Records beyond the last one that these readers were returned are not judged.

A poll that crashed may have taken records that are not on record, and the client may have committed
behind them. A client stands behind the last record of its kind at most, so these follow the
furthest offset of the readers before the poll was called, as many as all polls can return that
crashed from there on; twice as many offsets, for markers of transactions between them. A record
there is allowed.

Sound because
- a record is judged by its offset: a log that was cut and written anew under a group may have other
  records where the group had been already, and these are not missed;
- what a final read returned was not deleted before; so a first offset that moved explains nothing;
- a group whose clients reset to the end, by a setting of theirs, is not among `Readers`.

Meaning: A group that was rebalanced, or whose member was replaced, never handles a record that was
there for it.
Allowed if: a poll of these readers crashed, which may have taken it: it follows the furthest offset
of theirs before, by no more than the crashed polls can have returned
Case: a record that a complete final read returned, below the highest offset of such readers, each
of them
Source: KIP-62, KIP-429 (rebalances); `org.apache.kafka.clients.consumer.KafkaConsumer`, "Offsets
and Consumer Position"
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found, found, none
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.key_log import KeyLog
from fencepost.checkers.data_plane.key_summary import Reach, polls_of, reaches_of
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.membership import is_among
from fencepost.checkers.proof import Proof
from fencepost.history.manifest import Readers

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.CLIENT,
    rests_on=("dense-indices", "one-poll-at-a-time", "whole-records"),
    needs=("operations", "records"),
)
NAME: Final = ENTRY.name

_OFFSETS_A_RECORD: Final = 2
"""Of each record of a transaction, at most one marker."""

_Numbers = NDArray[np.int64]


def passed_over(log: KeyLog) -> Found:
    """Find records that readers which go on from each other left out."""
    readers, last = log.setting.readers, _last_read(log)
    if not readers or not len(last):
        return none(NAME, log.key, cases=0)
    reaches = log.around.reaches if log.around else _reaches(log)
    parts = [
        _of_readers(log, last, one, reach) for one, reach in zip(readers, reaches, strict=True)
    ]
    cases = sum(count for _, _, count in parts)
    row = np.concatenate([rows for rows, _, _ in parts])
    allowed = np.concatenate([excused for _, excused, _ in parts])
    whose = np.repeat(np.arange(len(parts)), [len(rows) for rows, _, _ in parts])
    order = np.lexsort((whose, log.reads.offset[row]))
    row, allowed, whose = row[order], allowed[order], whose[order]

    def proof(number: int) -> Proof:
        one, reads = int(row[number]), log.reads
        return Proof.of(
            "final read {final_read} returned value {value} at offset {offset}, and no poll of "
            "{readers} ever did, which were returned records up to offset {reach}",
            operations={"final_read": int(reads.operation[one])},
            offsets={"offset": int(reads.offset[one]), "reach": reaches[whose[number]].offset},
            values={"value": int(reads.value[one])},
            sources={"value": "final_read", "offset": "final_read"},
            readers=readers[whose[number]].name,
        )

    return found(
        NAME,
        log.key,
        cases=cases,
        never=np.flatnonzero(~allowed),
        allowed=np.flatnonzero(allowed),
        proof=proof,
        order=log.reads.offset[row] * len(readers) + whose,
    )


def _last_read(log: KeyLog) -> _Numbers:
    """Return the reads of complete final reads, the first one of each offset, by offset."""
    final = np.flatnonzero(log.final & log.reads.ok & (log.read_entry >= 0))
    _, first = np.unique(log.reads.offset[final], return_index=True)
    rows: _Numbers = final[first]
    return rows


def _reaches(log: KeyLog) -> tuple[Reach, ...]:
    setting = log.setting
    return reaches_of(
        log.reads, final=log.final, readers=setting.readers, info_polls=setting.info_polls
    )


def _of_readers(
    log: KeyLog, last: _Numbers, readers: Readers, reach: Reach
) -> tuple[_Numbers, NDArray[np.bool_], int]:
    """Return the reads that these were not returned, which of them are allowed, and the cases."""
    last = last[log.reads.offset[last] < reach.offset]
    polled = log.reads.offset[polls_of(log.reads, log.final, readers)]
    missed = last[~is_among(log.reads.offset[last], polled)]
    return missed, _may_be_lost(log.reads.offset[missed], readers, reach), len(last)


def _may_be_lost(offset: _Numbers, readers: Readers, reach: Reach) -> NDArray[np.bool_]:
    """Return which offsets polls that crashed may have taken (module docstring)."""
    allowed = np.zeros(len(offset), dtype=np.bool_)
    if not len(offset):
        return allowed
    for start, crash_count in zip(*np.unique(reach.at_crashes, return_counts=True), strict=True):
        end = start + crash_count * readers.poll_max * _OFFSETS_A_RECORD
        allowed |= (offset > start) & (offset <= end)
    return allowed


CHECKS: Final = (
    KeyCheck(
        entry=ENTRY,
        kernel=passed_over,
        by_place=True,
    ),
)
