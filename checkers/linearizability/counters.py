"""The check that operations on a counter are linearizable: exact sweeps, else a search.

*Bounds* hold for adds of any sign. A read found at least the sum of the adds that had returned
before its call and of all negative ones that may have taken effect by its return, and at most the
same with all positive ones. Where no add is negative (or none positive), a read that was called
after another one returned found no less (no more). These sweeps are prefix sums, O(n log n), and
what they find is wrong.

What they let pass is right where all adds are the same number and each of them finds its place
between the reads (`checkers.linearizability.counter_slots`). It need not be right elsewhere: two
adds of 2 never make 3. Which sums a few adds can make is the subset sum problem, so in general this
is NP-complete, and a search decides (`checkers.linearizability.searched`).

Source: linearizability, Herlihy and Wing 1990; the sweeps are ours, and tested against trying every
order.
"""

import numpy as np
import pyarrow as pa

from checkers.anomaly import Found, found, none
from checkers.linearizability.budget import Budget
from checkers.linearizability.counter_rows import (
    CITED_MAX,
    MODEL,
    CounterRows,
    Numbers,
    Proofs,
    are_alike,
    counter_of,
    single,
)
from checkers.linearizability.counter_slots import overdue
from checkers.linearizability.operations import columns_of
from checkers.linearizability.searched import CHECK, searched
from checkers.linearizability.words import cited
from checkers.proof import Proof

__all__ = ["counter"]


def counter(key: str, rows: pa.Table, budget: Budget) -> Found:
    """Find what is wrong with the operations of one counter: `KeyKernel`."""
    columns = columns_of(rows, MODEL)
    whole = counter_of(columns)
    proofs = _beyond(whole) or _went_back(whole) or _off_the_step(whole) or overdue(whole)
    if proofs:
        never = np.arange(proofs.count)
        return found(CHECK, key, cases=len(whole.read), never=never, proof=proofs.of)
    if are_alike(whole):
        return none(CHECK, key, cases=len(whole.read))
    return searched(key, columns, model=MODEL, budget=budget)


def _beyond(whole: CounterRows) -> Proofs | None:
    """Find reads of less or more than the adds can sum to."""
    up, down = np.maximum(whole.delta, 0), np.minimum(whole.delta, 0)
    least = _ended(whole, up) + _called(whole, down)
    most = _ended(whole, down) + _called(whole, up)
    beyond = np.flatnonzero((whole.found < least) | (whole.found > most))

    def proof(number: int) -> Proof:
        place = int(beyond[number])
        read = single(whole, whole.read[place])
        value = int(whole.found[place])
        is_less = value < least[place]
        bound, word = (int(least[place]), "least") if is_less else (int(most[place]), "most")
        # What moved the bound: adds of one sign that had returned, the last ones first.
        moved = (whole.add_end < read.call) & ((whole.delta > 0) == is_less)
        ended = np.flatnonzero(moved)[np.argsort(-whole.add_end[moved], kind="stable")]
        adds = whole.columns.index[whole.add[ended[:CITED_MAX]]].tolist()
        return Proof.of(
            "{cited} found {value}, and all that can have been added by then comes to at "
            "{bound_word} {bound}: what had returned before its call counts, and what was "
            "called by its return can",
            operations=tuple(sorted([read.index, *adds])),
            values={"value": value, "bound": bound},
            cited=cited(read, MODEL),
            bound_word=word,
        )

    return Proofs(count=len(beyond), of=proof) if len(beyond) else None


def _ended(whole: CounterRows, figures: Numbers) -> Numbers:
    """Return for each read, the sum over the adds that had returned before its call."""
    order = np.argsort(whole.add_end, kind="stable")
    sums = np.append(0, np.cumsum(figures[order]))
    return sums[np.searchsorted(whole.add_end[order], whole.read_call, side="left")]


def _called(whole: CounterRows, figures: Numbers) -> Numbers:
    """Return for each read, the sum over the adds that were called by its return."""
    order = np.argsort(whole.add_call, kind="stable")
    sums = np.append(0, np.cumsum(figures[order]))
    return sums[np.searchsorted(whole.add_call[order], whole.read_end, side="right")]


def _went_back(whole: CounterRows) -> Proofs | None:
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
        first, second = (single(whole, whole.read[one]) for one in (earlier, later))
        return Proof.of(
            "{cited} returned at {end} ns, and {second} was called at {call} ns; no add is "
            "{bound_word}",
            operations=tuple(sorted((first.index, second.index))),
            values={"found": int(whole.found[earlier]), "whole_found": int(whole.found[later])},
            cited=cited(first, MODEL),
            end=first.end,
            second=cited(second, MODEL),
            call=second.call,
            bound_word="negative" if sign > 0 else "positive",
        )

    return Proofs(count=len(back), of=proof) if len(back) else None


def _sign(whole: CounterRows) -> int:
    """Return the sign of all adds; 0 if there are both, 1 without adds."""
    if not np.any(whole.delta < 0):
        return 1
    return 0 if np.any(whole.delta > 0) else -1


def _off_the_step(whole: CounterRows) -> Proofs | None:
    """Find reads whose answer is no multiple of the equal adds."""
    if not are_alike(whole) or not len(whole.delta):
        return None
    step = int(whole.delta[0])
    off = np.flatnonzero(whole.found % step)

    def proof(number: int) -> Proof:
        read = single(whole, whole.read[off[number]])
        value = int(whole.found[off[number]])
        return Proof.of(
            "{cited} found {value}, and every add is of {step}",
            operations={"index": read.index},
            values={"value": value, "step": step},
            cited=cited(read, MODEL),
        )

    return Proofs(count=len(off), of=proof) if len(off) else None
