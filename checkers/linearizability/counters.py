"""The check that operations on a counter are linearizable: exact sweeps, else a search.

*Bounds* hold for adds of any sign. A read found at least the sum of the adds that had returned
before its call and of all negative ones that may have taken effect by its return, and at most the
same with all positive ones. Where no add is negative (or none positive), a read that was called
after another one returned found no less (no more). These sweeps are prefix sums, O(n log n), and
what they find is wrong.

What they let pass is right where all adds are the same number and each of them finds its place
between the reads (slots, below). It need not be right elsewhere: two adds of 2 never make 3. Which
sums a few adds can make is the subset sum problem, so in general this is NP-complete, and a search
decides (`checkers.linearizability.searched`).

*Slots.* Equal adds are jobs of unit length, with a release and a deadline each. Count in what every
add is of. The k-th add, in the order in which they take effect, is not before the latest call of
the reads that found less than k (`lower`) nor after the earliest return of those that found k or
more (`upper`). Both rise with k. An add fits the places k with call ≤ upper and return ≥ lower,
which stand side by side; so the places, up to the largest number read, are slots, and an add has a
first and a last one. The operations are linearizable exactly if each slot gets an add and each add
that must have happened gets a slot in time, or one behind the last read:

- *necessary*: the places at which the adds took effect are such a plan;
- *enough*: moments inside the slots can be put in order, as both bounds rise;
- giving each slot the waiting add with the earliest deadline finds such a plan if there is one.

Where every read keeps its bounds at least k adds were called by `upper`, so no slot stays empty
before a deadline is missed. Where one is, go back from it to the last slot that got an add with a
later deadline, or to the beginning: all adds with this deadline or an earlier one were called after
the read that closed that slot. They are more than the slots in between; so two reads prove it.

Source: linearizability, Herlihy and Wing 1990; earliest deadline first, Jackson 1955; the sweeps
and the reduction are ours, and tested against trying every order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found, found, none
from fencepost.checkers.linearizability.budget import Budget
from fencepost.checkers.linearizability.operations import (
    FS,
    Columns,
    Operation,
    columns_of,
    operations_of,
)
from fencepost.checkers.linearizability.searched import CHECK, searched
from fencepost.checkers.linearizability.words import cited
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import OPEN_NS
from fencepost.history.models import Model

_BEGINNING: Final = -OPEN_NS
_MODEL: Final = Model.COUNTER
_CITED_MAX: Final = 20
"""Adds that a proof names one by one."""
_READ: Final = FS[_MODEL].index("read")
_Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _CounterRows:
    """Parallel arrays; `read` and `add` are places in the columns."""

    columns: Columns
    read: _Numbers
    found: _Numbers
    read_call: _Numbers
    read_end: _Numbers
    add: _Numbers
    delta: _Numbers
    add_call: _Numbers
    add_end: _Numbers
    """OPEN_NS of an add that may have happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proofs:
    """Anomalies, counted, each spelled out when it is asked for."""

    count: int
    of: Callable[[int], Proof]


def counter(key: str, rows: pa.Table, budget: Budget) -> Found:
    """Find what is wrong with the operations of one counter: `KeyKernel`."""
    columns = columns_of(rows, _MODEL)
    whole = _counter_of(columns)
    proofs = _beyond(whole) or _went_back(whole) or _off_the_step(whole) or _overdue(whole)
    if proofs:
        never = np.arange(proofs.count)
        return found(CHECK, key, cases=len(whole.read), never=never, proof=proofs.of)
    if _are_alike(whole):
        return none(CHECK, key, cases=len(whole.read))
    return searched(key, columns, model=_MODEL, budget=budget)


def _beyond(whole: _CounterRows) -> _Proofs | None:
    """Find reads of less or more than the adds can sum to."""
    up, down = np.maximum(whole.delta, 0), np.minimum(whole.delta, 0)
    least = _ended(whole, up) + _called(whole, down)
    most = _ended(whole, down) + _called(whole, up)
    beyond = np.flatnonzero((whole.found < least) | (whole.found > most))

    def proof(number: int) -> Proof:
        place = int(beyond[number])
        read = _single(whole, whole.read[place])
        value = int(whole.found[place])
        is_less = value < least[place]
        bound, word = (int(least[place]), "least") if is_less else (int(most[place]), "most")
        # The bound was moved by the adds of one sign that had returned; the last ones come first.
        moved = (whole.add_end < read.call) & ((whole.delta > 0) == is_less)
        ended = np.flatnonzero(moved)[np.argsort(-whole.add_end[moved], kind="stable")]
        adds = whole.columns.index[whole.add[ended[:_CITED_MAX]]].tolist()
        return Proof.of(
            "{read} found {value}, and all that can have been added by then comes to at "
            "{bound_word} {bound}: what had returned before its call counts, and what was "
            "called by its return can",
            operations=tuple(sorted([read.index, *adds])),
            values={"value": value, "bound": bound},
            read=cited(read, _MODEL),
            bound_word=word,
        )

    return _Proofs(count=len(beyond), of=proof) if len(beyond) else None


def _ended(whole: _CounterRows, figures: _Numbers) -> _Numbers:
    """Return for each read, the sum over the adds that had returned before its call."""
    order = np.argsort(whole.add_end, kind="stable")
    sums = np.append(0, np.cumsum(figures[order]))
    return sums[np.searchsorted(whole.add_end[order], whole.read_call, side="left")]


def _called(whole: _CounterRows, figures: _Numbers) -> _Numbers:
    """Return for each read, the sum over the adds that were called by its return."""
    order = np.argsort(whole.add_call, kind="stable")
    sums = np.append(0, np.cumsum(figures[order]))
    return sums[np.searchsorted(whole.add_call[order], whole.read_end, side="right")]


def _went_back(whole: _CounterRows) -> _Proofs | None:
    """Find reads of less than one before them where no add is negative, of more where all are."""
    sign = _sign(whole)
    if not sign:
        return None
    order = np.argsort(whole.read_end, kind="stable")
    found_by_end = sign * whole.found[order]
    most = np.maximum.accumulate(found_by_end)
    by = np.maximum.accumulate(np.where(found_by_end == most, np.arange(len(most)), 0))
    before = np.searchsorted(whole.read_end[order], whole.read_call, side="left") - 1
    back = np.flatnonzero((before >= 0) & (sign * whole.found < most[before]))

    def proof(number: int) -> Proof:
        later = int(back[number])
        earlier = int(order[by[before[later]]])
        first, second = (_single(whole, whole.read[one]) for one in (earlier, later))
        return Proof.of(
            "{first} returned at {end} s, and {second} was called at {call} s; no add is "
            "{bound_word}",
            operations=tuple(sorted((first.index, second.index))),
            values={"found": int(whole.found[earlier]), "later_found": int(whole.found[later])},
            first=cited(first, _MODEL, end=first.end),
            second=cited(second, _MODEL, call=second.call),
            bound_word="negative" if sign > 0 else "positive",
        )

    return _Proofs(count=len(back), of=proof) if len(back) else None


def _sign(whole: _CounterRows) -> int:
    """Return the sign of all adds; 0 if there are both, 1 without adds."""
    if not np.any(whole.delta < 0):
        return 1
    return 0 if np.any(whole.delta > 0) else -1


def _off_the_step(whole: _CounterRows) -> _Proofs | None:
    """Find reads whose answer is no multiple of the equal adds."""
    if not _are_alike(whole) or not len(whole.delta):
        return None
    step = int(whole.delta[0])
    off = np.flatnonzero(whole.found % step)

    def proof(number: int) -> Proof:
        read = _single(whole, whole.read[off[number]])
        value = int(whole.found[off[number]])
        return Proof.of(
            "{read} found {value}, and every add is of {step}",
            values={"value": value, "step": step},
            read=cited(read, _MODEL),
        )

    return _Proofs(count=len(off), of=proof) if len(off) else None


def _overdue(whole: _CounterRows) -> _Proofs | None:
    """Find equal adds that find no place between the reads that were before and after them.

    Reads are assumed to be within bounds, never to go back, and to be multiples of the step.
    """
    if not _are_alike(whole) or not len(whole.delta):
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
    return _Proofs(count=1, of=lambda _: _of_missed(whole, counts, slot))


def _first_missed(release: _Numbers, deadline: _Numbers, last: int) -> int | None:
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


def _by(release: _Numbers, deadline: _Numbers) -> tuple[_Numbers, _Numbers]:
    order = np.argsort(release, kind="stable")
    return release[order], deadline[order]


def _of_missed(whole: _CounterRows, counts: _Numbers, slot: int) -> Proof:
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
    second = _single(whole, whole.read[later])
    indices = whole.columns.index[whole.add[adds[:_CITED_MAX]]].tolist()
    since = Proof.of("from the beginning")
    if earlier:
        first = _single(whole, whole.read[earlier - 1])
        indices.append(first.index)
        since = Proof.of(
            "after {first} had returned at {end} s", first=cited(first, _MODEL, end=first.end)
        )
    bound = at_first + len(adds) * step
    return Proof.of(
        "{adds_count} adds of {step} were called {since} and returned before {read} "
        "was called at {call} s: it cannot have found {bound_word} than {bound}",
        operations=tuple(sorted([second.index, *indices])),
        values={"found": int(whole.found[later]), "bound": bound},
        adds_count=len(adds),
        step=step,
        since=since,
        read=cited(second, _MODEL, call=second.call),
        bound_word="less" if step > 0 else "more",
    )


def _counter_of(columns: Columns) -> _CounterRows:
    """Return reads and adds of anything but 0, which changes nothing and fits everywhere."""
    read = np.flatnonzero(columns.f == _READ)
    add = np.flatnonzero((columns.f != _READ) & (columns.value != 0))
    return _CounterRows(
        columns=columns,
        read=read,
        found=columns.value[read],
        read_call=columns.call[read],
        read_end=columns.end[read],
        add=add,
        delta=columns.value[add],
        add_call=columns.call[add],
        add_end=columns.end[add],
    )


def _are_alike(whole: _CounterRows) -> bool:
    """Return whether all adds are the same number; True without adds."""
    return not len(whole.delta) or bool(np.all(whole.delta == whole.delta[0]))


def _single(whole: _CounterRows, place: np.int64) -> Operation:
    """Return the operation at a place in the columns."""
    (operation,) = operations_of(whole.columns.take(np.array([place])), _MODEL)
    return operation
