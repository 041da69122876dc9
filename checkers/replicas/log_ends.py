"""The ends of a replica's log during the run, as far as the recordings tell.

Two things tell that the log of a broker ended no further than at some offset, at some moment:

- A follower's Fetch names the offset that it fetches from, which is its log's end (KIP-101,
  KIP-595). The tape has those that tell something new, and when they had arrived at the proxy. It
  was sent after the follower had learned
  of the leader epoch that it names, and after the registration whose broker epoch it names
  (KIP-903): so not before these were written down. A Fetch that names neither says nothing.
- A leader appends at the end of its log. So a send that was acknowledged at an offset tells where
  the leader's log ended at some moment between its call and its return, if one leader epoch was in
  force all that time. Of each leader epoch two sends are looked at: the one of the lowest offset,
  and the first that is below what had been acknowledged before it was called.

A record that had been acknowledged before the earliest such moment, at that offset or a later one,
was not in that log then.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.facts import Facts
from fencepost.checkers.metadata.broker_states import BrokerHistory
from fencepost.checkers.metadata.frames import TapeRow
from fencepost.checkers.metadata.partition_states import Cause, PartitionHistory, PartitionVersion
from fencepost.checkers.metadata.remembered import remembered
from fencepost.checkers.metadata.shared_values import shared_values
from fencepost.checkers.proof import Proof
from fencepost.checkers.replicas.commitments import Commitment, commitments, in_force
from fencepost.checkers.replicas.sends import AcknowledgedSends
from fencepost.checkers.sources import Source

FETCH: Final = "Fetch"
"""The API whose requests `fetched_ends` reads."""
_NONE: Final = -1
_ROWS_AT_ONCE: Final = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEndBound:
    """A broker's log ended at this offset or before it, at some moment from `after_ns` on."""

    broker_id: int
    offset: int
    after_ns: int
    by_ns: int
    """The moment by which the log had ended there at the latest."""
    versions: tuple[PartitionVersion, ...]
    """The versions that may have been in force then."""
    clause: Callable[[], Proof]
    """The evidence as a clause of a proof; few of them are ever asked for."""
    frame: int | None = None
    """The frame of the Fetch that tells it."""
    operation: int | None = None
    """The send that tells it."""


class HighestAcknowledged:
    """The highest offset of a key that had been acknowledged by a moment."""

    def __init__(self, sends: AcknowledgedSends) -> None:
        order = np.argsort(sends.return_ns, kind="stable")
        self._return_ns = sends.return_ns[order]
        highest = sends.offset[order]
        np.maximum.accumulate(highest, out=highest)
        new = np.append(True, highest[1:] > highest[:-1])[: len(order)]
        del highest  # a night's sends have many megabytes
        # The place of each new highest one, carried on until the next.
        place = np.arange(len(order))
        place[~new] = 0
        self._place = order[np.maximum.accumulate(place, out=place)]

    def before(self, moments_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the place of its send before each moment; -1 without one."""
        if not len(self._place):
            return np.full(len(moments_ns), _NONE)
        count = np.searchsorted(self._return_ns, moments_ns, side="left")
        found: NDArray[np.int64] = np.where(count > 0, self._place[np.maximum(count, 1) - 1], _NONE)
        return found


def first_acknowledged(
    sends: AcknowledgedSends, other: AcknowledgedSends | None
) -> AcknowledgedSends | None:
    """Return the send, alone, that was acknowledged first of these and of another one."""
    if not len(sends):
        return other
    first = sends.take(np.array([np.argmin(sends.return_ns)]))
    return first if other is None or first.return_ns[0] < other.return_ns[0] else other


def appended_ends(
    stretches: Iterable[AcknowledgedSends], versions: Sequence[PartitionVersion], facts: Facts
) -> Iterator[LogEndBound]:
    """Yield the log ends of each leader epoch with acknowledged sends.

    `stretches`: all of the key, by offset, the highest ones first.
    """
    lowest: dict[int, LogEndBound] = {}
    below: dict[int, tuple[tuple[int, int], LogEndBound]] = {}
    """With the first version that may have been in force, and the call."""
    beyond: AcknowledgedSends | None = None
    for stretch in stretches:
        highest = HighestAcknowledged(stretch)
        for group in commitments(stretch, versions, facts):
            epoch, sends = group.versions[0].leader_epoch, group.sends
            place = int(np.argmin(sends.offset))
            if epoch not in lowest or sends.offset[place] < lowest[epoch].offset:
                lowest[epoch] = _appended(group, sends, place)
            place = _first_below(sends, stretch, highest, beyond)
            order = (group.place, int(sends.call_ns[place]))
            if place != _NONE and (epoch not in below or order <= below[epoch][0]):
                below[epoch] = order, _appended(group, sends, place)
        beyond = first_acknowledged(stretch, beyond)
    for epoch, end in sorted(lowest.items()):
        yield end
        if epoch in below and below[epoch][1].operation != end.operation:
            yield below[epoch][1]


def fetched_ends(
    wire: Source,
    history: PartitionHistory,
    brokers: Mapping[int, BrokerHistory],
    facts: Facts,
) -> Iterator[LogEndBound]:
    """Yield the log end told by each Fetch of the partition by a follower on the tape."""
    known = _Known(history, brokers)
    timed = ((row, known.sent_after_ns(row, facts)) for row in _fetches(wire, history))
    kept = [(row, after) for row, after in timed if after is not None and after <= row.time_ns]
    firsts, lasts = in_force(
        history.versions,
        facts,
        from_ns=np.array([after for _, after in kept], dtype=np.int64),
        until_ns=np.array([row.time_ns for row, _ in kept], dtype=np.int64),
    )
    for (row, after_ns), first, last in zip(kept, firsts.tolist(), lasts.tolist(), strict=True):
        yield LogEndBound(
            broker_id=row.broker_id,
            offset=row.fetch_offset,
            after_ns=after_ns,
            by_ns=row.time_ns,
            versions=tuple(history.versions[first : last + 1]) if first >= 0 else (),
            clause=partial(_fetched, row),
            frame=row.frame,
        )


def _first_below(
    sends: AcknowledgedSends,
    stretch: AcknowledgedSends,
    highest: HighestAcknowledged,
    beyond: AcknowledgedSends | None,
) -> int:
    """Return the first send at or below what was acknowledged before its call; -1 without one."""
    before = highest.before(sends.call_ns)
    is_below = (before >= 0) & (sends.offset <= stretch.offset[before])
    if beyond is not None:
        is_below |= sends.call_ns > beyond.return_ns[0]
    below = np.flatnonzero(is_below)
    return int(below[np.argmin(sends.call_ns[below])]) if len(below) else _NONE


def _appended(group: Commitment, sends: AcknowledgedSends, place: int) -> LogEndBound:
    version = group.versions[0]
    offset, operation = int(sends.offset[place]), int(sends.operation[place])
    return LogEndBound(
        broker_id=version.leader,
        offset=offset,
        after_ns=int(sends.call_ns[place]),
        by_ns=int(sends.return_ns[place]),
        versions=group.versions,
        clause=partial(
            Proof.of,
            "leader {leader} took value {taken} at offset {end} in leader epoch {leader_epoch} "
            "(operation {taking})",
            operations={"taking": operation},
            offsets={"end": offset},
            sources={"taken": "taking", "end": "taking"},
            leader=version.leader,
            taken=int(sends.value[place]),
            leader_epoch=version.leader_epoch,
        ),
        operation=operation,
    )


class _Fetch(NamedTuple):
    """A row of WIRE by which a follower asks for a partition. A night has a million."""

    frame: int
    source: str
    time_ns: int
    broker_id: int
    broker_epoch: int | None
    leader_epoch: int | None
    fetch_offset: int


def _fetched(row: _Fetch) -> Proof:
    epoch: dict[str, Any] = {"leader_epoch": row.leader_epoch} if row.leader_epoch else {}
    in_epoch = ", in leader epoch {leader_epoch}" if epoch else ""
    return Proof.of(
        f"{{source}} fetched from offset {{end}} (frame {{frame}}{in_epoch})",
        offsets={"end": row.fetch_offset},
        frames={"frame": row.frame},
        sources=dict.fromkeys(("source", "end", "leader_epoch"), "frame"),
        source=row.source,
        **epoch,
    )


def _fetches(wire: Source, history: PartitionHistory) -> Iterator[_Fetch]:
    """Yield the Fetches by which followers ask for this partition, of this very topic."""
    told = _fetches_by_partition(wire)
    named = ((history.topic_id, None), (None, history.topic))
    places = [told.places.get((*one, history.partition), _NOWHERE) for one in named]
    rows = told.rows.take(pa.array(np.sort(np.concatenate([_NOWHERE, *places]))))
    for batch in rows.select(_Fetch._fields).to_batches(max_chunksize=_ROWS_AT_ONCE):
        yield from map(_Fetch, *(shared_values(column) for column in batch.columns))


class _Fetches(NamedTuple):
    """The Fetches of followers, and by partition their places."""

    rows: pa.Table
    places: Mapping[tuple[str | None, str | None, int], NDArray[np.int64]]
    """By (topic id, None, partition), or by (None, topic, partition) of those without an id."""


@remembered
def _fetches_by_partition(wire: Source) -> _Fetches:
    """Return the Fetches of a tape: it is read once, however many partitions there are."""
    kept = []
    for batch in wire((*TapeRow._fields, "session_epoch")):  # as a slice of the tape is kept
        asked = pc.and_(
            pc.equal(batch.column("api"), FETCH), pc.equal(batch.column("direction"), "request")
        )
        of_follower = pc.greater_equal(batch.column("broker_id"), 0)
        mine = batch.filter(pc.and_(asked, of_follower)).select(list(_COLUMNS))
        kept.append(pa.Table.from_batches([mine]))
    rows = pa.concat_tables(kept).combine_chunks()
    ids, topics = (shared_values(rows[name].combine_chunks()) for name in ("topic_id", "topic"))
    places: dict[tuple[str | None, str | None, int], list[int]] = {}
    for place, (topic_id, topic, partition) in enumerate(
        zip(ids, topics, rows["partition"].to_pylist(), strict=True)
    ):
        named = (topic_id, None) if topic_id is not None else (None, topic)
        places.setdefault((*named, partition), []).append(place)
    return _Fetches(rows, {one: np.array(several) for one, several in places.items()})


_NOWHERE: Final = np.empty(0, np.int64)
_COLUMNS: Final = (
    *("frame", "source", "time_ns", "topic", "topic_id", "partition"),
    *("broker_id", "broker_epoch", "leader_epoch", "fetch_offset"),
)


class _Known:
    """The times before which a follower cannot have known a leader epoch, or its own epoch."""

    def __init__(self, history: PartitionHistory, brokers: Mapping[int, BrokerHistory]) -> None:
        self._led_ms: dict[int | None, int] = {}
        for one in history.versions:
            if one.cause is not Cause.SNAPSHOT:
                self._led_ms.setdefault(one.leader_epoch, one.timestamp_ms)
        self._registered_ms: dict[tuple[int, int | None], int] = {}
        for broker_id, broker in brokers.items():
            for version in broker.registrations():
                if not version.snapshot:
                    place = (broker_id, version.broker_epoch)
                    self._registered_ms.setdefault(place, version.timestamp_ms)

    def sent_after_ns(self, row: _Fetch, facts: Facts) -> int | None:
        """Return a time no later than the Fetch was sent, by what its sender must have known."""
        known_ms = (
            self._led_ms.get(row.leader_epoch),
            self._registered_ms.get((row.broker_id, row.broker_epoch)),
        )
        return max((facts.earliest_ns(one) for one in known_ms if one is not None), default=None)
