"""D30 watermark-ahead: A client was told a high watermark that was not one yet.

With acks=all, the answer to a client's Fetch named a high watermark, and a record that was
acknowledged below it was sent only after the answer had arrived; or the log of a member of the last
ISR ends before it. No fault had changed the disk of a replica of the partition since.

The answer to a Fetch names the high watermark of the partition: what lies below it is committed, so
that every member of the ISR has it, and consumers read up to it. The tape has some of clients'
Fetches and their answers (`checkers.metadata.watermarks`).

The record in whose place it stands would have been committed and is gone, which is worse.
Records lost with a disk may be missing on the others, too, once a leader without them is elected.

Which followers had fetched what by then is not known: of their Fetches of data the tape has those
that tell a new broker epoch or partition. So records that had been sent, and that followers lacked,
are not seen here. A follower may answer a client, too (KIP-392), and any answer may be late: what
an older answer tells is lower, so that neither is ever accused.

Meaning: Consumers are shown what may still be lost.
Case: an answer that told a client a higher high watermark of a partition than any before
Source: KIP-101, KIP-392
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found
from fencepost.checkers.disk_faults import DISK_FAULTS
from fencepost.checkers.entry import CatalogueEntry, Nearness, Strength
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.partition_states import PartitionHistory
from fencepost.checkers.metadata.view import MetadataView, by_key, spelled
from fencepost.checkers.metadata.watermarks import ToldWatermarks, told_to_clients
from fencepost.checkers.proof import Proof
from fencepost.checkers.replicas.replica_logs import UNCLEAN
from fencepost.checkers.replicas.sends import AcknowledgedSends, acknowledged, sends_by_key
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.LOG,
    strength=Strength.ALLOWED_IF,
    allowed_if=UNCLEAN,
    needs=("metadata_log", "wire", "records"),
)
NAME: Final = ENTRY.name
_LASTING: Final = frozenset({"lock_disk", "fail_disk"})
"""The faults of disks that go on; the others have changed a disk once their effect is seen."""


def watermarks_ahead(tables: Tables, seen: MetadataView) -> Judged:
    """Judge what clients were told of each key of a bucket, where it rises.

    Reads `metadata_log`, `wire`, `records`, `replicas` and `faults`.
    """
    if seen.facts.acks != "all":
        return
    first_called_ns = {key: one.first_called_ns for key, one in sends_by_key(tables).items()}
    told = {
        history.key: found
        for key in first_called_ns
        for history in seen.histories_of(key)
        if len(found := told_to_clients(streamed(tables, "wire"), history))
    }

    def judged(history: PartitionHistory) -> Found:
        mine, lost = told[history.key], _DiskFaults(history, tables, seen)
        proofs = {
            place: _sent_later(mine, place, send)
            for place, send in sorted(_later_sends(mine, history, tables, lost).items())
        }
        for place, row in _members_short(mine, history, tables, seen, lost):
            proofs.setdefault(place, _short(mine, place, row))
        return spelled(
            NAME,
            history.key,
            list(proofs.values()),
            cases=len(mine),
            allowed_count=len(proofs) if history.elected_uncleanly else 0,
        )

    called = {key: first_ns for key, first_ns in first_called_ns.items() if key in told}
    yield from by_key(NAME, called, seen, judged)


def _later_sends(
    told: ToldWatermarks, history: PartitionHistory, tables: Tables, lost: "_DiskFaults"
) -> dict[int, AcknowledgedSends]:
    """Return, of each answer that told an offset which was filled later, the first such send."""
    found: dict[int, AcknowledgedSends] = {}
    for sends in sends_by_key(tables)[history.key].stretches(tables):
        # The last answer before a send told the most.
        place = np.searchsorted(told.time_ns, sends.call_ns) - 1
        late = (place >= 0) & (sends.offset < told.high_watermark[place])
        late &= lost.ended_ns(sends.return_ns) < told.time_ns[place]
        for one in reversed(np.flatnonzero(late).tolist()):
            found[int(place[one])] = sends.take(np.array([one]))
    return found


def _members_short(
    told: ToldWatermarks,
    history: PartitionHistory,
    tables: Tables,
    seen: MetadataView,
    lost: "_DiskFaults",
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the first answer that told more than a member of the last ISR has, with its row."""
    if seen.log.doubt or seen.doubt_at_the_end():
        return
    members = {seen.facts.nodes_at_the_end().get(one) for one in history.last.isr}
    of_key = tables["replicas"].filter(pc.equal(tables["replicas"]["key"], history.key))
    since = int(np.searchsorted(told.time_ns, lost.last_ns, side="right"))
    for row in of_key.to_pylist():
        whole = row["damage"] is None and row["topic_id"] in (None, history.topic_id)
        place = int(np.searchsorted(told.high_watermark, row["log_end_offset"], side="right"))
        if row["node"] in members and whole and max(place, since) < len(told):
            yield max(place, since), row


class _DiskFaults:
    """The faults that changed what lay on a disk of a partition's replicas."""

    def __init__(self, history: PartitionHistory, tables: Tables, seen: MetadataView) -> None:
        replicas = {one for version in history.versions for one in version.replicas}
        nodes = {node for node, id_ in seen.facts.node_ids.items() if id_ in replicas | {-1}}
        spans = sorted(
            (row["begin_ns"], _over_ns(row))
            for row in tables["faults"].to_pylist()
            if row["fault"] in DISK_FAULTS and nodes & {*row["targets"]}
        )
        self._begin_ns = np.array([begin for begin, _ in spans], dtype=np.int64)
        ends = np.array([-1, *(end for _, end in spans)], dtype=np.int64)
        self._end_ns = np.maximum.accumulate(ends)

    @property
    def last_ns(self) -> int:
        """The time when the last one was over; -1 without one."""
        return int(self._end_ns[-1])

    def ended_ns(self, by_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return when the last of those was over that had begun by each time."""
        ended: NDArray[np.int64] = self._end_ns[np.searchsorted(self._begin_ns, by_ns)]
        return ended


def _over_ns(fault: dict[str, Any]) -> int:
    """Return when a fault surely had changed all that it changed; OPEN_NS: perhaps never."""
    over = fault["end_ns"] if fault["fault"] in _LASTING else fault["effect_ns"]
    return OPEN_NS if over is None else int(over)


def _named(told: ToldWatermarks, place: int) -> dict[str, Any]:
    return {
        "frames": {"frame": int(told.frame[place])},
        "times": {"told": int(told.time_ns[place])},
        "node": told.node[place],
    }


_TOLD: Final = (
    "{node} told a client at {told} (frame {frame}) that the high watermark is {high_watermark}"
)


def _sent_later(told: ToldWatermarks, place: int, send: AcknowledgedSends) -> Proof:
    named = _named(told, place)
    named["times"] |= {"called": int(send.call_ns[0])}
    return Proof.of(
        f"{_TOLD}; value {{value}}, which was acknowledged at offset {{offset}} (operation "
        "{operation}), was sent only at {called}",
        operations={"operation": int(send.operation[0])},
        offsets={"high_watermark": int(told.high_watermark[place]), "offset": int(send.offset[0])},
        values={"value": int(send.value[0])},
        sources=dict.fromkeys(("high_watermark", "told"), "frame")
        | dict.fromkeys(("offset", "value", "called"), "operation"),
        **named,
    )


def _short(told: ToldWatermarks, place: int, row: dict[str, Any]) -> Proof:
    return Proof.of(
        f"{_TOLD}; the log of {{member}}, which is in the ISR to the end, ends at "
        "{log_end_offset}",
        offsets={
            "high_watermark": int(told.high_watermark[place]),
            "log_end_offset": row["log_end_offset"],
        },
        sources=dict.fromkeys(("high_watermark", "told"), "frame"),
        member=row["node"],
        **_named(told, place),
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=watermarks_ahead,
        tables=("metadata_log", "wire", "records", "replicas", "faults"),
        split=Split.RECORDS,
        records=acknowledged,
    ),
)
