"""The replicas that must have held an acknowledged record, by the metadata log.

A leader acknowledges a record under acks=all once its high watermark is above it, and the high
watermark rises only when every member of the ISR has the record; the leader's own view of the ISR
is never smaller than the committed one while that stands (KIP-497, the maximal ISR). So a broker
that was in the ISR in every version that may have been in force between the call and the return of
a send had the record when it was acknowledged.

Which versions those are is known up to what the clocks may differ, so the span is widened at both
ends. Sends whose span has a change of the leader epoch are left out: an old leader may have
acknowledged by its own view.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from checkers.facts import Facts
from checkers.metadata.partition_states import PartitionVersion
from checkers.rows import taken

__all__ = [
    "AcknowledgedSends",
    "Commitment",
    "acknowledged",
    "acknowledged_sends",
    "commitments",
    "in_force",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgedSends:
    """Acknowledged sends of a key, as parallel arrays, by offset."""

    offset: NDArray[np.int64]
    value: NDArray[np.int64]
    operation: NDArray[np.int64]
    call_ns: NDArray[np.int64]
    return_ns: NDArray[np.int64]

    def take(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> "AcknowledgedSends":
        """Return these, by place or by mask."""
        return taken(self, places)

    def __len__(self) -> int:
        return len(self.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """Sends that were acknowledged under the same versions of their partition."""

    versions: tuple[PartitionVersion, ...]
    """The versions that may have been in force, in order; all of one leader epoch."""
    place: int
    """The place of the first of them in the history of the partition."""
    holders: frozenset[int]
    """Brokers that were in the ISR of each of them: they had these records."""
    sends: AcknowledgedSends


def acknowledged(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the acknowledged sends of rows of RECORDS, and of each key the row first called."""
    wanted = _is_acknowledged(rows).to_numpy(zero_copy_only=False).copy()
    call_ns = rows.column("call_ns").to_numpy()
    for key in pc.unique(rows.column("key")).to_pylist():
        mine = np.flatnonzero(pc.equal(rows.column("key"), key).to_numpy(zero_copy_only=False))
        wanted[mine[np.argmin(call_ns[mine])]] = True
    return rows.filter(pa.array(wanted))


def acknowledged_sends(key: str, records: pa.Table) -> AcknowledgedSends:
    """Return the ok sends of a key whose offsets are known, out of RECORDS."""
    mine = records.filter(pc.and_(pc.equal(records["key"], key), _is_acknowledged(records)))
    mine = mine.sort_by("offset")
    return AcknowledgedSends(
        **{
            name: mine[name].to_numpy()
            for name in ("offset", "value", "operation", "call_ns", "return_ns")
        }
    )


def _is_acknowledged(rows: pa.Table | pa.RecordBatch) -> pa.ChunkedArray:
    return pc.and_(
        pc.equal(rows.column("f"), "send"),
        pc.and_(pc.equal(rows.column("outcome"), "ok"), pc.is_valid(rows.column("offset"))),
    )


def commitments(
    sends: AcknowledgedSends, versions: Sequence[PartitionVersion], facts: Facts
) -> Iterator[Commitment]:
    """Yield the sends, by the versions that may have been in force from call to return.

    Ascending by the first version of each.
    """
    if not len(sends) or not versions:
        return
    first, last = in_force(versions, facts, from_ns=sends.call_ns, until_ns=sends.return_ns)
    spans, span = np.unique(np.stack([first, last], axis=1), axis=0, return_inverse=True)
    # The sends of a span together, and in their order: a night has thousands of spans.
    order = np.argsort(span.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(span.ravel(), minlength=len(spans)))
    for (start, end), places in zip(spans.tolist(), np.split(order, ends[:-1]), strict=True):
        mine = tuple(versions[start : end + 1]) if start >= 0 else ()
        if mine and len({one.leader_epoch for one in mine}) == 1:
            yield Commitment(
                versions=mine,
                place=start,
                holders=frozenset.intersection(*(frozenset(one.isr) for one in mine)),
                sends=sends.take(places),
            )


def in_force(
    versions: Sequence[PartitionVersion],
    facts: Facts,
    *,
    from_ns: NDArray[np.int64],
    until_ns: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the first and the last version that may have been in force in each span.

    -1 where a span began before any version surely was.
    """
    surely_ns = np.array([facts.latest_ns(one.timestamp_ms) for one in versions])
    perhaps_ns = np.array([facts.earliest_ns(one.timestamp_ms) for one in versions])
    # Clocks of several controllers may differ: a version is in force after all earlier ones.
    surely_ns = np.maximum.accumulate(surely_ns)
    perhaps_ns = np.minimum.accumulate(perhaps_ns[::-1])[::-1]
    first = np.searchsorted(surely_ns, from_ns, side="right") - 1
    last = np.searchsorted(perhaps_ns, until_ns, side="right") - 1
    return first, last
