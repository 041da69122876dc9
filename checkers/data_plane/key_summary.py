"""The facts about all rows of a key, in short, that are needed to judge a part of them.

Each of these can be told piece by piece and put together, whatever the pieces are:

- the bound, and the first operation that reached it;
- the *stretches* of unbroken ok reading, each from its lowest to its highest offset, and from them
  the offsets that a client looked over (`checkers.data_plane.missing` says what for). There are as
  many as there were sessions and crashed polls;
- the processes that gave up on a send, and when each did so first;
- how far readers that go on from each other had come, in all and when a poll of theirs crashed;
- which operations that ended info have happened, where their own row cannot tell.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.rows import INFO, OPEN_NS, UNKNOWN_OFFSET, Rows
from fencepost.history.manifest import Readers


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Ranges of offsets, ends included, in order; none touches another."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]

    def hold(self, offset: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of the offsets that lie in a range."""
        place = np.searchsorted(self.start, offset, side="right") - 1
        held: NDArray[np.bool_] = offset <= np.append(self.end, -1)[place]
        return held & (place >= 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretches:
    """Unbroken ok reading, as parallel arrays: whose it is, and from where to where it went."""

    process: NDArray[np.int64]
    final_read: NDArray[np.int64]
    """The operation; -1 of polls."""
    session: NDArray[np.int64]
    crashed: NDArray[np.int64]
    """The number of polls of the process that had crashed before."""
    lowest: NDArray[np.int64]
    highest: NDArray[np.int64]

    @property
    def owner(self) -> tuple[NDArray[np.int64], ...]:
        """The columns that are constant over a stretch."""
        return (self.process, self.final_read, self.session, self.crashed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The highest offsets that readers which go on from each other had been returned."""

    offset: int
    """By ok polls; `UNKNOWN_OFFSET` if they returned none."""
    at_crashes: NDArray[np.int64]
    """By any polls that were called before each of their polls that crashed, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySummary:
    """The facts about the rows of a whole key that are needed to judge some of them."""

    bound: int
    """The highest offset that an ok read returned; `UNKNOWN_OFFSET` if none returned any."""
    reader: int
    """The first operation that did."""
    spans: Spans
    """The offsets that ok reads looked over."""
    gave_up_ns: Mapping[int, int]
    """The first time that each process gave up on a send; those that never did are not there."""
    reaches: tuple[Reach, ...]
    """Of all readers, in the order of the setting."""
    happened: NDArray[np.int64]
    """Info operations that have happened, of those whose sends know their offset or are several."""


def bound_of(reads: Rows) -> int:
    """Return the highest offset that an ok read returned; `UNKNOWN_OFFSET` if none returned any."""
    return int(reads.offset[reads.ok].max(initial=UNKNOWN_OFFSET))


def reaches_of(
    reads: Rows,
    *,
    final: NDArray[np.bool_],
    readers: Sequence[Readers],
    info_polls: Mapping[int, NDArray[np.int64]],
) -> tuple[Reach, ...]:
    """Return how far each of these readers came; `final`: which reads are of final reads."""
    return tuple(
        _reach(reads.take(polls_of(reads, final, one)), _crashes(one, info_polls))
        for one in readers
    )


def polls_of(reads: Rows, final: NDArray[np.bool_], readers: Readers) -> NDArray[np.int64]:
    """Return the reads that polls of these readers returned, where they know their offset."""
    first = reads.process % readers.stride
    mine = np.zeros(len(reads), dtype=np.bool_)
    for process in readers.processes:
        mine |= first == process
    return np.flatnonzero(mine & ~final & (reads.offset != UNKNOWN_OFFSET))


def furthest(parts: Sequence[tuple[Reach, ...]]) -> tuple[Reach, ...]:
    """Return how far all readers came, from how far they came in each part of a key."""
    return tuple(
        Reach(
            offset=max(one.offset for one in of_parts),
            at_crashes=np.maximum.reduce([one.at_crashes for one in of_parts]),
        )
        for of_parts in zip(*parts, strict=True)
    )


def _reach(polls: Rows, crashes: NDArray[np.int64]) -> Reach:
    """`polls`: in the order of their operations."""
    so_far = np.append(UNKNOWN_OFFSET, np.maximum.accumulate(polls.offset))
    return Reach(
        offset=bound_of(polls), at_crashes=so_far[np.searchsorted(polls.operation, crashes)]
    )


def _crashes(readers: Readers, info_polls: Mapping[int, NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the polls of these readers that crashed, by operation, in order."""
    mine = [
        polls
        for process, polls in info_polls.items()
        if process % readers.stride in readers.processes
    ]
    return np.sort(np.concatenate([np.empty(0, dtype=np.int64), *mine]))


def reader_of(bound: int, reads: Rows) -> int:
    """Return the first operation among these that read up to the bound; 0 if none did."""
    at_bound = np.flatnonzero(reads.ok & (reads.offset == bound))
    return int(reads.operation[at_bound[0]]) if len(at_bound) else 0


def times_given_up(sends: Rows) -> Mapping[int, int]:
    """Return when each process first saw a send of its own end info, of those that did."""
    gave_up = (sends.outcome == INFO) & (sends.return_ns != OPEN_NS)
    process, return_ns = sends.process[gave_up], sends.return_ns[gave_up]
    order = np.lexsort((return_ns, process))
    processes, first = np.unique(process[order], return_index=True)
    return dict(zip(processes.tolist(), return_ns[order][first].tolist(), strict=True))


def stretches_read(
    reads: Rows, *, final: NDArray[np.bool_], info_polls: Mapping[int, NDArray[np.int64]]
) -> Stretches:
    """Return the stretches of these reads; `final`: which of them are of final reads."""
    row = np.flatnonzero(reads.ok & (reads.offset != UNKNOWN_OFFSET))
    new = np.diff(reads.operation[row], prepend=-1) != 0
    new |= np.diff(reads.session[row], prepend=-1) != 0
    first = np.flatnonzero(new)
    offset, head = reads.offset[row], row[first]
    is_final, operation = final[head], reads.operation[head]
    crashed = _crashed_before(reads.process[head], operation, info_polls)
    return _gathered(
        Stretches(
            process=reads.process[head].astype(np.int64),
            final_read=np.where(is_final, operation, -1),
            session=np.where(is_final, 0, reads.session[head]).astype(np.int64),
            crashed=np.where(is_final, 0, crashed),
            # reduceat wants at least one place; without rows there is nothing to reduce.
            lowest=np.minimum.reduceat(offset, first) if len(first) else offset,
            highest=np.maximum.reduceat(offset, first) if len(first) else offset,
        )
    )


def spans_of(parts: Sequence[Stretches], *, assigned: bool) -> Spans:
    """Return the offsets that the stretches of all pieces looked over.

    `assigned`: consumers assigned themselves their keys, so that the first session of each starts
    at the first offset; a final read always does.
    """
    whole = _gathered(
        Stretches(
            **{
                field.name: np.concatenate([getattr(part, field.name) for part in parts])
                for field in fields(Stretches)
            }
        )
    )
    from_start = (whole.final_read >= 0) | (assigned & (whole.session == 0) & (whole.crashed == 0))
    return _union(np.where(from_start, np.minimum(whole.lowest, 0), whole.lowest), whole.highest)


def _gathered(stretches: Stretches) -> Stretches:
    """Return one stretch per owner."""
    order = np.lexsort(stretches.owner)
    owner = [column[order] for column in stretches.owner]
    first = np.flatnonzero(_changes(owner))
    if not len(first):
        return stretches
    process, final_read, session, crashed = (column[first] for column in owner)
    return Stretches(
        process=process,
        final_read=final_read,
        session=session,
        crashed=crashed,
        lowest=np.minimum.reduceat(stretches.lowest[order], first),
        highest=np.maximum.reduceat(stretches.highest[order], first),
    )


def _union(start: NDArray[np.int64], end: NDArray[np.int64]) -> Spans:
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    first = np.flatnonzero(np.append(True, start[1:] > end[:-1] + 1)[: len(start)])
    last = np.append(first[1:], len(start))[: len(first)] - 1
    return Spans(start=start[first], end=end[last])


def _crashed_before(
    process: NDArray[np.int32],
    operation: NDArray[np.int64],
    info_polls: Mapping[int, NDArray[np.int64]],
) -> NDArray[np.int64]:
    """Return how many polls of the same process had crashed before each operation."""
    count = np.zeros(len(process), dtype=np.int64)
    for one, polls in info_polls.items():
        mine = process == one
        count[mine] = np.searchsorted(polls, operation[mine])
    return count


def _changes(columns: Iterable[NDArray[np.int64]]) -> NDArray[np.bool_]:
    """Return a mask of where a new combination starts in these sorted parallel columns."""
    parts = [np.diff(column, prepend=column[:1] - 1) != 0 for column in columns]
    changed: NDArray[np.bool_] = np.logical_or.reduce(parts)
    return changed
