"""Equal adds to a counter as jobs of unit length, with a release and a deadline each.

Count in what every add is of. The k-th add, in the order in which they take effect, is not before
the latest call of the reads that found less than k (`lower`) nor after the earliest return of those
that found k or more (`upper`). Both rise with k. An add fits the places k with call ≤ upper and
return ≥ lower, which stand side by side; so the places, up to the largest number read, are slots,
and an add has a first and a last one. The operations are linearizable exactly if each slot gets an
add and each add that must have happened gets a slot in time, or one behind the last read:

- *necessary*: the places at which the adds took effect are such a plan;
- *enough*: moments inside the slots can be put in order, as both bounds rise;
- giving each slot the waiting add with the earliest deadline finds such a plan if there is one.

Where every read keeps its bounds (`checkers.linearizability.counters`) at least k adds were called
by `upper`, so no slot stays empty before a deadline is missed. Where one is, go back from it to the
last slot that got an add with a later deadline, or to the beginning: all adds with this deadline or
an earlier one were called after the read that closed that slot. They are more than the slots in
between; so two reads prove it.

Source: earliest deadline first, Jackson 1955; the reduction is ours, and tested against trying
every order.
"""

from heapq import heappop, heappush
from typing import Final

import numpy as np

from checkers.linearizability.counter_rows import (
    CITED_MAX,
    MODEL,
    CounterRows,
    Numbers,
    Proofs,
    are_alike,
    single,
)
from checkers.linearizability.words import cited
from checkers.proof import Proof
from checkers.rows import OPEN_NS

__all__ = ["overdue"]

_BEGINNING: Final = -OPEN_NS


def overdue(whole: CounterRows) -> Proofs | None:
    """Find equal adds that find no place between the reads that were before and after them.

    What is found within bounds, never goes back and is a multiple of the step is assumed.
    """
    if not are_alike(whole) or not len(whole.delta):
        return None
    counts = whole.found // whole.delta[0]
    last = int(counts.max(initial=0))
    lower, upper = np.full(last + 1, _BEGINNING), np.full(last + 1, OPEN_NS)
    np.maximum.at(lower, counts, whole.read_call)
    np.minimum.at(upper, counts, whole.read_end)
    # Of slots 1 to `last`, and the lower bound of all that is behind them.
    lower = np.maximum.accumulate(lower)
    upper = np.minimum.accumulate(upper[::-1])[::-1][1:]
    deadline = np.searchsorted(lower, whole.add_end, side="right")
    release = np.searchsorted(upper, whole.add_call, side="left") + 1
    slot = _first_missed(release, deadline, last)
    if slot is None:
        return None
    return Proofs(count=1, of=lambda _: _of_missed(whole, counts, slot))


def _first_missed(release: Numbers, deadline: Numbers, last: int) -> int | None:
    """Return the deadline, up to `last`, of a job that gets no slot in time; None without one."""
    jobs = list(zip(*(column.tolist() for column in _by(release, deadline)), strict=True))
    waiting: list[int] = []
    position = 0
    for slot in range(1, last + 1):
        while position < len(jobs) and jobs[position][0] <= slot:
            heappush(waiting, jobs[position][1])
            position += 1
        assert waiting, "within the bounds there is an add for every slot"
        due = heappop(waiting)
        if due < slot:
            return due
    missed = [due for due in (*waiting, *(due for _, due in jobs[position:])) if due <= last]
    return min(missed, default=None)


def _by(release: Numbers, deadline: Numbers) -> tuple[Numbers, Numbers]:
    order = np.argsort(release, kind="stable")
    return release[order], deadline[order]


def _of_missed(whole: CounterRows, counts: Numbers, slot: int) -> Proof:
    """Return the proof: two reads, the later after this deadline's adds, too many in between."""
    low = np.flatnonzero(counts <= slot)
    later = int(low[np.argmax(whole.read_call[low])])
    over = np.flatnonzero(whole.add_end < whole.read_call[later])
    over = over[np.argsort(whole.add_call[over], kind="stable")]
    between = len(over) - np.searchsorted(
        whole.add_call[over], np.append(_BEGINNING, whole.read_end), side="right"
    )
    spare = counts[later] - np.append(0, counts) - between
    wrong = np.flatnonzero(spare < 0)
    earlier = int(wrong[np.argmin(between[wrong])])
    adds = over[len(over) - int(between[earlier]) :]
    step = int(whole.delta[0])
    at_first = 0 if not earlier else int(whole.found[earlier - 1])
    second = single(whole, whole.read[later])
    indices = whole.columns.index[whole.add[adds[:CITED_MAX]]].tolist()
    since = "from the beginning"
    if earlier:
        first = single(whole, whole.read[earlier - 1])
        indices.append(first.index)
        since = f"after {cited(first, MODEL)} had returned at {first.end} ns"
    bound = at_first + len(adds) * step
    return Proof.of(
        "{adds_count} adds of {step} were called {since} and returned before {cited} "
        "was called at {call} ns: it cannot have found {bound_word} than {bound}",
        operations=tuple(sorted([second.index, *indices])),
        values={"found": int(whole.found[later]), "bound": bound},
        adds_count=len(adds),
        step=step,
        since=since,
        cited=cited(second, MODEL),
        call=second.call,
        bound_word="less" if step > 0 else "more",
    )
