"""D18 vanished: A record that was read is not in the final read.

A value that an ok read returned, and that a complete final read of its key which was called
afterwards did not return.

This is the consumers' side of a lost write: it asks for no acknowledgement. A broker shows a
consumer only what is below the high watermark, which survives every election that is not unclean.

Sound because
- returned and called are compared strictly: at equal times the two were concurrent;
- values are compared, not offsets: a value that moved is a duplicate or an inconsistent offset;
- it needs no word of the sender: a value that was shown has happened.

Records must not be removed by retention or compaction.

Meaning: A consumer has acted on a record that the cluster no longer has. The consumers' side of a
lost write: it asks for no acknowledgement.
Case: a record that was read and has a complete final read after it
Source: Apache Kafka's documentation, Replication: only committed records are given to consumers,
and they are not lost; KIP-101, KIP-966
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found, found
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.key_log import KeyLog
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.membership import is_among
from fencepost.checkers.proof import Proof
from fencepost.checkers.setting import FinalRead


def vanished(log: KeyLog) -> Found:
    """Find values that an ok read returned and that a later complete final read did not."""
    # One anomaly a value, proven by the first final read that lacks it.
    first: dict[int, tuple[int, FinalRead]] = {}
    for final_read in log.final_reads:
        for row in vanished_before(final_read, log).tolist():
            first.setdefault(int(log.reads.value[row]), (row, final_read))
    proven = sorted(first.values(), key=lambda pair: pair[0])

    def proof(number: int) -> Proof:
        row, final_read = proven[number]
        value, offset = int(log.reads.value[row]), int(log.reads.offset[row])
        reading, final = int(log.reads.operation[row]), final_read.operation
        return Proof.of(
            "operation {reading} returned value {value} at offset {offset}, and the "
            "complete final read that was called afterwards (operation {final}) did not",
            operations={"reading": reading, "final": final},
            offsets={"offset": offset},
            values={"value": value},
            sources={"value": "reading", "offset": "reading"},
        )

    return found(
        "vanished",
        log.key,
        cases=_shown_before(log),
        never=np.arange(len(proven)),
        proof=proof,
        order=log.reads.row[np.array([row for row, _ in proven], dtype=np.int64)],
    )


def _shown_before(log: KeyLog) -> int:
    """Count records that an ok read had returned before the last complete final read.

    Of those whose offset no read knows, values.
    """
    if not log.final_reads:
        return 0
    earlier = log.reads.ok & (log.reads.return_ns < log.final_reads[-1].call_ns)
    shown = np.zeros(len(log.log) + 1, dtype=np.bool_)
    shown[log.read_entry[earlier]] = True
    shown[-1] = False
    count = int(np.count_nonzero(shown))
    if log.unlocated:
        values = np.unique(log.reads.value[earlier & (log.read_entry < 0)])
        count += int(np.count_nonzero(~is_among(values, log.log.value[shown[:-1]])))
    return count


def vanished_before(final_read: FinalRead, log: KeyLog) -> NDArray[np.int64]:
    """Return a read row of each value returned before `final_read` was called and not by it."""
    reads = log.reads
    first, end = np.searchsorted(reads.operation, [final_read.operation, final_read.operation + 1])
    suspect = np.append(log.entry_returned, log.unlocated)
    suspect[log.read_entry[first:end]] = False
    suspect[-1] = log.unlocated
    if not np.any(suspect):
        return np.empty(0, dtype=np.int64)
    earlier = reads.ok & (reads.return_ns < final_read.call_ns)
    row = np.flatnonzero(earlier & suspect[log.read_entry])
    row = row[~is_among(reads.value[row], reads.value[first:end])]
    _, first_row = np.unique(reads.value[row], return_index=True)
    return row[first_row]


CHECKS: Final = (
    KeyCheck(
        entry=CatalogueEntry.of(
            __doc__,
            nearness=Nearness.RECORD,
            rests_on=("unique-values", "whole-records"),
            needs=("operations", "records"),
        ),
        kernel=vanished,
    ),
)
