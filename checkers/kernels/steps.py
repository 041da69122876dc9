"""Where a reader did not go on to the very next record: what D5, D6 and D7 are made of.

A *step* leads from one record that a process was returned to the next one. Its *delta* is the
difference of their positions in the version order, and 1 is as it should be; a step from or to a
record whose offset is not known counts as 1 (= fine). Only ok reads make steps: a crashed poll may
have consumed records that nobody wrote down, so a step that leads over one is *broken*, and so is
one between two sessions (the key was given up and taken again in between). A broken step proves
nothing about the log.

A final read starts at the first offset by its definition: it has steps inside, but none leads to it
or from it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from checkers.kernels.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Steps", "steps_across", "steps_inside"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Steps whose delta is not 1, as numbers of read rows, by the order of the second one."""

    before: NDArray[np.int64]
    after: NDArray[np.int64]
    delta: NDArray[np.int64]
    unbroken: NDArray[np.bool_]

    def where(self, kept: NDArray[np.bool_]) -> "Steps":
        """The steps that are kept."""
        return Steps(
            before=self.before[kept],
            after=self.after[kept],
            delta=self.delta[kept],
            unbroken=self.unbroken[kept],
        )


def steps_inside(reads: Rows, *, position: NDArray[np.int64]) -> Steps:
    """Steps between neighbours inside one operation; broken where it saw a rebalance."""
    row = np.flatnonzero(reads.ok)
    operation = reads.operation[row]
    same = np.flatnonzero(operation[1:] == operation[:-1])
    steps = _odd(row[same], row[same + 1], position)
    return _with(steps, unbroken=_same_session(steps, reads))


def steps_across(
    reads: Rows,
    *,
    final: NDArray[np.bool_],
    position: NDArray[np.int64],
    info_polls: "Mapping[int, NDArray[np.int64]]",
) -> Steps:
    """Steps from the last record of a process's ok poll of the key to the first of its next."""
    row = np.flatnonzero(reads.ok & ~final)
    operation = reads.operation[row]
    new = np.flatnonzero(operation[1:] != operation[:-1])
    first = row[np.concatenate([np.zeros(min(len(row), 1), dtype=np.int64), new + 1])]
    last = row[np.concatenate([new, np.arange(len(row))[-1:]])]
    order = np.argsort(reads.process[first], kind="stable")
    first, last = first[order], last[order]
    process = reads.process[first]
    same = np.flatnonzero(process[1:] == process[:-1])
    steps = _odd(last[same], first[same + 1], position)
    crashed = _polls_crashed_between(steps, reads, info_polls)
    steps = _with(steps, unbroken=_same_session(steps, reads) & ~crashed)
    return _by_order_of_the_history(steps)


def _odd(before: NDArray[np.int64], after: NDArray[np.int64], position: NDArray[np.int64]) -> Steps:
    """The steps whose delta is known and is not 1."""
    start, end = position[before], position[after]
    odd = (end - start != 1) & (start >= 0) & (end >= 0)
    return Steps(
        before=before[odd],
        after=after[odd],
        delta=(end - start)[odd],
        unbroken=np.ones(int(np.count_nonzero(odd)), dtype=np.bool_),
    )


def _with(steps: Steps, *, unbroken: NDArray[np.bool_]) -> Steps:
    return Steps(before=steps.before, after=steps.after, delta=steps.delta, unbroken=unbroken)


def _by_order_of_the_history(steps: Steps) -> Steps:
    order = np.argsort(steps.after, kind="stable")
    return Steps(
        before=steps.before[order],
        after=steps.after[order],
        delta=steps.delta[order],
        unbroken=steps.unbroken[order],
    )


def _same_session(steps: Steps, reads: Rows) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = reads.session[steps.before] == reads.session[steps.after]
    return same


def _polls_crashed_between(
    steps: Steps, reads: Rows, info_polls: "Mapping[int, NDArray[np.int64]]"
) -> NDArray[np.bool_]:
    crashed = np.zeros(len(steps.delta), dtype=np.bool_)
    process = reads.process[steps.before]
    start, end = reads.operation[steps.before], reads.operation[steps.after]
    for one, polls in info_polls.items():
        mine = process == one
        crashed[mine] = np.searchsorted(polls, start[mine]) < np.searchsorted(polls, end[mine])
    return crashed
