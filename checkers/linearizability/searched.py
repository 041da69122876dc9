"""The kernel of any model: search; where nothing fits, the smallest part that still fits no order.

A part of a history can prove something about the whole: what is left out is not taken for undone.

- what comes first and had returned is summed up as a state of which nothing is known
  (`checkers.linearizability.sequential.UNKNOWN`);
- what was called after the return that no order gets past has no part in it, and what was still
  open then may have taken effect or not;
- of the others, reads and refusals are dropped, and a change that is left out may have taken effect
  at any moment, once, or never.

Each of these allows more than the history does. So a part that fits no order even so proves the
whole not linearizable; and the part alone, read as a history of its own, is none either.

The part is the shortest run of operations back from that return (their number doubled until it is
wrong), made 1-minimal by delta debugging: pieces are left out, halves first and single operations
last, for as long as what is kept is still wrong. Without any one of its operations it is not wrong.
It is seldom the smallest of all, which would take trying every subset.

Source: Zeller and Hildebrandt 2002, "Simplifying and isolating failure-inducing input", ddmin.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found, found, none
from fencepost.checkers.linearizability.budget import Budget, Meter, OverBudgetError
from fencepost.checkers.linearizability.operations import (
    Columns,
    Effect,
    Operation,
    answer_count,
    operations_of,
)
from fencepost.checkers.linearizability.search import Stuck, stuck
from fencepost.checkers.linearizability.sequential import SEQUENTIAL, UNKNOWN, Sequential, State
from fencepost.checkers.linearizability.words import cited, shown
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import OPEN_NS
from fencepost.history.models import Model

CHECK: Final = "nonlinearizable"
_OPERATION_BYTES: Final = 700
"""The memory of an operation, its place in the list and its record: measured, rounded up."""
_ALWAYS: Final = -OPEN_NS
_WINDOW_FIRST: Final = 4
_PROOF_SECONDS: Final = 20.0
"""For making a proof small; what is wrong is known by then."""
_TRIAL_SHARE: Final = 20
"""The divisor of the proof's time that gives the budget of one trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Operations that are kept, and what is known of the others."""

    kept: tuple[Operation, ...]
    optional: tuple[Operation, ...]
    """Changes that are left out and may have taken effect."""
    start: State


def searched(key: str, columns: Columns, *, model: Model, budget: Budget) -> Found:
    """Search the operations of one key: the answer is one contradiction, none, or a doubt."""
    if len(columns) * _OPERATION_BYTES > budget.bytes:
        doubt = f"a search of the {len(columns)} operations of {key} needs more than "
        doubt += f"{budget.bytes >> 20} MiB"
        return none(CHECK, key, cases=0, doubt=doubt)
    meter = Meter.started(budget)
    operations = operations_of(columns, model)
    try:
        why = _contradiction(_whole(operations, SEQUENTIAL[model]), model=model, meter=meter)
    except OverBudgetError as error:
        doubt = f"{error} on the {len(columns)} operations of {key}"
        return none(CHECK, key, cases=0, doubt=doubt)
    cases = answer_count(columns, model)
    if why is None:
        return none(CHECK, key, cases=cases)
    part = _narrowed(operations, why.operation.end, model=model, budget=meter.rest)
    proof = _proof(part, why, model=model)
    never = np.zeros(1, dtype=np.int64)
    return found(CHECK, key, cases=cases, never=never, proof=lambda _: proof)


def _whole(operations: Sequence[Operation], sequential: Sequential) -> _Part:
    return _Part(kept=tuple(operations), optional=(), start=sequential.initial)


def _contradiction(part: _Part, *, model: Model, meter: Meter) -> Stuck | None:
    operations = sorted([*part.kept, *part.optional], key=lambda one: (one.call, one.index))
    return stuck(_useful(operations, model), model=SEQUENTIAL[model], start=part.start, meter=meter)


def _useful(operations: Sequence[Operation], model: Model) -> Sequence[Operation]:
    """Return the operations without those that may have happened but could not help.

    In a register, a value that is never read nor expected only stands in the way, except of a
    refusal; of a counter, 0 changes nothing.
    """
    if model is Model.COUNTER:
        return [one for one in operations if one.effect is not Effect.MAY or one.value != 0]
    is_plain = all(one.effect is not Effect.REFUSED for one in operations)
    if model is not Model.REGISTER or not is_plain:
        return operations
    wanted = {one.value for one in operations if one.f == "read"}
    wanted |= {one.expected for one in operations if one.f == "cas"}
    return [one for one in operations if one.effect is not Effect.MAY or one.value in wanted]


def _narrowed(
    operations: Sequence[Operation], latest: int, *, model: Model, budget: Budget
) -> _Part:
    """Return the smallest part found to fit no order; `latest`: a return that none gets past."""
    spare = Meter.started(replace(budget, seconds=min(budget.seconds, _PROOF_SECONDS)))
    part = _window(_until(operations, latest), model=model, meter=spare)
    by_index = {one.index: one for one in part.kept}

    def kept_of(rows: pa.Table) -> _Part:
        return _without(part, [by_index[index] for index in rows.column("index").to_pylist()])

    def is_wrong(rows: pa.Table) -> bool:
        meter = Meter.started(_trial(spare.rest))
        return _contradiction(kept_of(rows), model=model, meter=meter) is not None

    rows = pa.table({"index": pa.array(list(by_index), type=pa.int64())})
    return kept_of(minimal(rows, is_wrong=is_wrong, budget=spare.rest))


def _trial(budget: Budget) -> Budget:
    return replace(budget, seconds=budget.seconds / _TRIAL_SHARE)


def _until(operations: Sequence[Operation], latest: int) -> list[Operation]:
    """Return the operations called by then; those open then may or may not have taken effect."""
    called = [one for one in operations if one.call <= latest]
    over = [one for one in called if one.end <= latest or one.effect is Effect.MAY]
    is_open = [one for one in called if one.end > latest and one.effect is Effect.MUST]
    changes = [_left_out(one, call=one.call) for one in is_open if not one.passive]
    return sorted([*over, *changes], key=lambda one: (one.call, one.index))


def _window(operations: Sequence[Operation], *, model: Model, meter: Meter) -> _Part:
    """Return the last few operations that fit no order, whatever was there before."""
    must = [one for one in operations if one.effect is not Effect.MAY]
    may = tuple(one for one in operations if one.effect is Effect.MAY)
    count = _WINDOW_FIRST
    while count < len(must):
        kept, before = must[-count:], must[:-count]
        across = [one for one in before if one.end >= kept[0].call and not one.passive]
        part = _Part(
            kept=tuple(kept),
            optional=(*may, *(_left_out(one, call=_ALWAYS) for one in across)),
            start=UNKNOWN,
        )
        if _is_wrong_in_time(part, model=model, meter=meter):
            return part
        count *= 2
    return _Part(kept=tuple(must), optional=may, start=SEQUENTIAL[model].initial)


def _is_wrong_in_time(part: _Part, *, model: Model, meter: Meter) -> bool:
    try:
        trial = Meter.started(_trial(meter.rest))
        return _contradiction(part, model=model, meter=trial) is not None
    except OverBudgetError:
        return False


def _without(part: _Part, kept: Sequence[Operation]) -> _Part:
    """Return a part of a part."""
    rest = set(part.kept).difference(kept)
    others = [_left_out(one, call=_ALWAYS) for one in part.kept if one in rest and not one.passive]
    return replace(part, kept=tuple(kept), optional=(*part.optional, *others))


def _left_out(operation: Operation, *, call: int) -> Operation:
    return replace(operation, effect=Effect.MAY, call=call, end=OPEN_NS)


def _proof(part: _Part, why: Stuck, *, model: Model) -> Proof:
    """Return the operations of a part, and the answer that fits no state there can have been.

    The states are those of the whole history; the part alone would allow others.
    """
    wrong = why.operation
    return Proof.of(
        "{wrong} fits no order of all that took effect: at its return, {end} s, "
        "there was {states}, and at no moment since its call {required}",
        operations=tuple(sorted({one.index for one in part.kept} | {wrong.index})),
        values={"wanted": wrong.expected if wrong.f == "cas" else wrong.value},
        wrong=cited(wrong, model, end=wrong.end),
        states=_states(why, model),
        required=_required(wrong, model),
    )


def _states(why: Stuck, model: Model) -> Proof:
    states = Proof.joined(" or ", map(SEQUENTIAL[model].shown, why.states))
    more = why.state_count - len(why.states)
    return states.further(" or one of {more} other states", more=more) if more else states


def _required(operation: Operation, model: Model) -> Proof:
    """Return the clause of the state that the answer requires."""
    if operation.effect is Effect.REFUSED:
        return Proof.of("anything else")
    if model is Model.REGISTER:
        return shown("wanted", operation.value if operation.f == "read" else operation.expected)
    if model is Model.COUNTER:
        return shown("wanted", operation.value)
    return Proof.of("what it answers")


def minimal(rows: pa.Table, *, is_wrong: Callable[[pa.Table], bool], budget: Budget) -> pa.Table:
    """Return a part of `rows`, in their order, for which `is_wrong` holds, as it does for `rows`.

    1-minimal unless the budget ran out before; then the smallest part found until then. `is_wrong`
    may raise OverBudgetError itself, which counts as not wrong: what is kept is always proven.

    Whether less is still a proof is the caller's to say. To leave a write out and keep what read it
    makes any history wrong, so `is_wrong` has to take what is left out for something that may have
    happened at any time, or to keep what belongs together.
    """
    meter = Meter.started(budget)
    kept = np.arange(rows.num_rows, dtype=np.int64)
    piece_count = 2
    try:
        while len(kept) > 1:
            smaller = _without_a_piece(rows, kept, piece_count, is_wrong=is_wrong, meter=meter)
            if smaller is not None:
                kept = smaller
                piece_count = max(min(piece_count - 1, len(kept)), 2)
            elif piece_count >= len(kept):
                break
            else:
                piece_count = min(2 * piece_count, len(kept))
    except OverBudgetError:
        pass  # The rows that were kept last are wrong, but may not be the fewest.
    return rows.take(pa.array(kept))


def _without_a_piece(
    rows: pa.Table,
    kept: NDArray[np.int64],
    piece_count: int,
    *,
    is_wrong: Callable[[pa.Table], bool],
    meter: Meter,
) -> NDArray[np.int64] | None:
    """Return the rest without the last of these pieces that can be spared; None if none can."""
    for piece in reversed(np.array_split(kept, piece_count)):
        meter.check()
        rest = np.setdiff1d(kept, piece, assume_unique=True)
        if len(rest) and _still(is_wrong, rows.take(pa.array(rest))):
            return rest
    return None


def _still(is_wrong: Callable[[pa.Table], bool], rows: pa.Table) -> bool:
    try:
        return is_wrong(rows)
    except OverBudgetError:
        return False
