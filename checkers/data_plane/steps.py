"""Steps from one record that a process was returned, or sent, to its next: the base of D5 to D8.

A *step* leads from one record that a process was returned to the next one. Its *delta* is the
difference of their positions in the version order, and 1 is as it should be; a step from or to a
record whose offset is not known counts as 1 (= fine). Only ok reads make steps: a crashed poll may
have consumed records that were not recorded, so a step that leads over one is *broken*, and so is
one between two sessions (the key was given up and taken again in between). A broken step proves
nothing about the log.

A final read starts at the first offset by its definition: it has steps inside, but none leads to it
or from it.

A step from one offset to the next higher one has the delta 1, whatever else is in the log, so that
steps can be told by their order alone, before there is a log; those few that are left are *odd*,
and the log tells their deltas. All steps between known offsets that are not broken are judged, odd
or not (`StepCounts`).

The rows of a key may come in pieces, one after the other: the last row of each *chain* (the sends,
the polls or the final reads of a process) is then carried from one piece to the next.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.rows import UNKNOWN_OFFSET, Rows, joined, no_rows

FAR: Final = 1 << 62
"""The size of a delta of which only the sign is known: the step leads to another segment."""

_OPERATION_BITS: Final = 40
"""A history has at most 2 ** 40 operations."""

Range = tuple[int, int]
"""Of offsets: the first one, and the one behind the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Two rows each, by the order of the second one."""

    before: Rows
    after: Rows

    def __len__(self) -> int:
        return len(self.after)

    def where(self, kept: NDArray[np.bool_] | NDArray[np.int64]) -> "Pairs":
        """Return the pairs that are kept."""
        return Pairs(before=self.before.take(kept), after=self.after.take(kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The last rows of the chains before a piece; at most one a process each."""

    polls: Rows
    """Of ok polls."""
    finals: Rows
    """Of ok final reads."""
    sends: Rows
    """Of sends that are ok and know their offset."""

    @staticmethod
    def nothing() -> "Carried":
        """Return the rows carried into the first piece: none."""
        return Carried(polls=no_rows(), finals=no_rows(), sends=no_rows())


@dataclass(frozen=True, slots=True, kw_only=True)
class OddSteps:
    """Steps whose delta is not 1."""

    pairs: Pairs
    delta: NDArray[np.int64]
    unbroken: NDArray[np.bool_]

    def where(self, kept: NDArray[np.bool_]) -> "OddSteps":
        """Return the steps that are kept."""
        return OddSteps(
            pairs=self.pairs.where(kept), delta=self.delta[kept], unbroken=self.unbroken[kept]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCounts:
    """The counts of judged steps, those whose delta is 1 included."""

    inside: int
    across: int
    sends: int

    @staticmethod
    def summed(parts: Iterable["StepCounts"]) -> "StepCounts":
        """Return the sum of these parts, which share no step."""
        all_parts = list(parts)
        return StepCounts(
            inside=sum(part.inside for part in all_parts),
            across=sum(part.across for part in all_parts),
            sends=sum(part.sends for part in all_parts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSteps:
    """The odd steps of a piece, and the last rows of its chains."""

    inside: Pairs
    """Between neighbours inside one operation."""
    across: Pairs
    """The steps from the last record of a process's ok poll to the first of its next."""
    inside_count: int
    """Of the judged steps inside an operation …"""
    across_count: int
    """… and of those between polls, odd or not."""
    polls: Rows
    finals: Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class SendSteps:
    """The steps from a process's send to its next."""

    back: Pairs
    """The pairs whose offsets go back."""
    count: int
    """The number of all pairs."""
    last: Rows
    """The last send of each process."""


def read_steps(
    reads: Rows,
    *,
    final: NDArray[np.bool_],
    carried: Carried,
    info_polls: Mapping[int, NDArray[np.int64]],
    counted: Range | None = None,
) -> ReadSteps:
    """Return the odd steps whose second record is among these reads, and how many are judged.

    `final`: which of them are of final reads; `carried`: of the reads before; `counted`: the
    offsets to which those steps lead that are counted, None for all.
    """
    ok = _numbers(reads.ok)
    operation, offset, session = reads.operation[ok], reads.offset[ok], reads.session[ok]
    new = np.diff(operation, prepend=operation[:1] - 1) != 0
    stays = ~new[1:]
    step = np.flatnonzero(stays & (np.diff(offset) != 1))
    stays &= session[1:] == session[:-1]
    known = offset != UNKNOWN_OFFSET
    inside_count = _count(stays & known[1:] & known[:-1], to=offset[1:], counted=counted)
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(ok))[: len(first)] - 1
    before = (carried.polls, carried.finals)
    starts = joined([*before, reads.take(ok[first])])
    ends = joined([*before, reads.take(ok[last])])
    is_final = np.zeros(len(starts), dtype=np.bool_)
    is_final[len(carried.polls) : len(carried.polls) + len(carried.finals)] = True
    is_final[len(starts) - len(first) :] = final[ok[first]]
    order = by_process(starts.process)
    order = order[np.argsort(is_final[order], kind="stable")]
    chain = np.stack([is_final[order], starts.process[order]])
    same = np.flatnonzero(np.all(chain[:, 1:] == chain[:, :-1], axis=0))
    linked = Pairs(before=ends.take(order[same]), after=starts.take(order[same + 1]))
    goes_on = linked.before.operation == linked.after.operation
    to_poll = ~goes_on & ~is_final[order[same + 1]]
    inside = Pairs(before=reads.take(ok[step]), after=reads.take(ok[step + 1]))
    carried_on, across = linked.where(goes_on), linked.where(to_poll)
    turns = np.flatnonzero(np.any(chain[:, 1:] != chain[:, :-1], axis=0))
    ending = order[np.append(turns, len(order) - 1)[: len(order)]]
    return ReadSteps(
        inside=_odd(_together(inside, carried_on)),
        across=_odd(across),
        inside_count=inside_count + _judged_count(carried_on, info_polls={}, counted=counted),
        across_count=_judged_count(across, info_polls=info_polls, counted=counted),
        polls=ends.take(ending[~is_final[ending]]),
        finals=ends.take(ending[is_final[ending]]),
    )


def send_steps(sends: Rows, *, carried: Carried, counted: Range | None = None) -> SendSteps:
    """Return the steps to these sends. Only sends that are ok and know their offset count.

    `counted`: the offsets to which those steps lead that are counted, None for all.
    """
    located = sends.take(_numbers(sends.ok & (sends.offset != UNKNOWN_OFFSET)))
    chained = joined([carried.sends, located]) if len(carried.sends) else located
    order = by_process(chained.process)
    process, offset = chained.process[order], chained.offset[order]
    same = process[1:] == process[:-1]
    back = np.flatnonzero(same & (offset[1:] < offset[:-1]))
    back = back[np.argsort(chained.row[order[back + 1]])]
    pairs = Pairs(before=chained.take(order[back]), after=chained.take(order[back + 1]))
    last = order[np.append(np.flatnonzero(~same), len(order) - 1)[: len(order)]]
    count = _count(same, to=offset[1:], counted=counted)
    return SendSteps(back=pairs, count=count, last=chained.take(last))


def steps_with(
    pairs: Pairs, *, delta: NDArray[np.int64], info_polls: Mapping[int, NDArray[np.int64]]
) -> OddSteps:
    """Return steps whose delta is not 1; broken: over a crashed poll or between sessions."""
    odd = delta != 1
    kept = pairs.where(odd)
    return OddSteps(pairs=kept, delta=delta[odd], unbroken=_unbroken(kept, info_polls))


def by_process(process: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return indices that sort rows by process and keep their order otherwise."""
    small = len(process) and process.min() >= 0 and process.max() <= np.iinfo(np.int16).max
    # numpy sorts sixteen bits by radix, which is many times quicker.
    return np.argsort(process.astype(np.int16) if small else process, kind="stable")


def _numbers(kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.flatnonzero(kept)


def _odd(pairs: Pairs) -> Pairs:
    """Return pairs whose offsets are known and not neighbours, by the order of the second row."""
    start, end = pairs.before.offset, pairs.after.offset
    odd = np.flatnonzero((end - start != 1) & (start != UNKNOWN_OFFSET) & (end != UNKNOWN_OFFSET))
    return pairs.where(odd[np.argsort(pairs.after.row[odd], kind="stable")])


def _together(some: Pairs, others: Pairs) -> Pairs:
    if not len(others):
        return some
    return Pairs(
        before=joined([some.before, others.before]), after=joined([some.after, others.after])
    )


def _judged_count(
    pairs: Pairs, *, info_polls: Mapping[int, NDArray[np.int64]], counted: Range | None
) -> int:
    """Return how many of the steps prove something: the unbroken ones between known offsets."""
    start, end = pairs.before.offset, pairs.after.offset
    known = (start != UNKNOWN_OFFSET) & (end != UNKNOWN_OFFSET)
    return _count(known & _unbroken(pairs, info_polls), to=end, counted=counted)


def _count(steps: NDArray[np.bool_], *, to: NDArray[np.int64], counted: Range | None) -> int:
    if counted is not None:
        steps &= (to >= counted[0]) & (to < counted[1])
    return int(np.count_nonzero(steps))


def _unbroken(pairs: Pairs, info_polls: Mapping[int, NDArray[np.int64]]) -> NDArray[np.bool_]:
    same_session: NDArray[np.bool_] = pairs.before.session == pairs.after.session
    return same_session & ~_polls_crashed_between(pairs, info_polls)


def _polls_crashed_between(
    pairs: Pairs, info_polls: Mapping[int, NDArray[np.int64]]
) -> NDArray[np.bool_]:
    if not info_polls or not len(pairs):
        return np.zeros(len(pairs), dtype=np.bool_)
    processes = np.array(sorted(info_polls), dtype=np.int64)
    # One search for all processes: numbers in the order of processes, and then of operations.
    crashed = np.concatenate(
        [
            (place << _OPERATION_BITS) | info_polls[one]
            for place, one in enumerate(processes.tolist())
        ]
    )
    place = np.searchsorted(processes, pairs.before.process)
    place[place == len(processes)] = 0
    mine = processes[place] == pairs.before.process
    before, after = (
        np.searchsorted(crashed, (place << _OPERATION_BITS) | rows.operation)
        for rows in (pairs.before, pairs.after)
    )
    crashed_between: NDArray[np.bool_] = mine & (before < after)
    return crashed_between
