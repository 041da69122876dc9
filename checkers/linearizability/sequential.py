"""The sequential behaviour of each object: one operation after the other.

A state is a hashable value, never None. `step` takes an operation as having taken effect and gives
the state after it, or None where the object would have answered otherwise. Which operations there
are, and what their columns mean, is in `history.models`.

`UNKNOWN` is a state of which nothing is known. A step from it allows whatever some state would
allow, and more: it may forget what an operation told. So what fits no order even from `UNKNOWN`
fits none from any state.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Final

from fencepost.checkers.linearizability.operations import Effect, Operation
from fencepost.checkers.linearizability.words import shown
from fencepost.checkers.proof import Proof
from fencepost.history.models import Model

State = Hashable
Step = Callable[[Any, Operation], State | None]


class _Unknown(Enum):
    UNKNOWN = "unknown"


UNKNOWN: Final = _Unknown.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequential:
    """One model."""

    initial: State
    step: Step
    shown: Callable[[Any], Proof]
    """A state as a clause of a proof."""
    answers_first: bool = False
    """The search first tries answers that fit and that a client waits for: many orders of adds lead
    to one sum, and few sums are right. (For a register, that would spend writes too early.)
    """


def _register(state: Any, operation: Operation) -> State | None:
    """A state is (value,)."""
    if operation.f == "write":
        return (operation.value,)
    if operation.f == "read":
        return state if state == (operation.value,) else _resolved(state, (operation.value,))
    if operation.effect is Effect.REFUSED:
        return None if state == (operation.expected,) else state
    return (operation.value,) if state in ((operation.expected,), UNKNOWN) else None


def _versioned_register(state: Any, operation: Operation) -> State | None:
    """A state is (version, value)."""
    if state is UNKNOWN:
        return _of_unknown_version(operation)
    version, value = state
    if operation.f == "read":
        fits = operation.version in (None, version) and operation.value == value
        return state if fits else None
    if operation.effect is Effect.REFUSED:
        return None if operation.expected == version else state
    if operation.f == "cas" and operation.expected != version:
        return None
    made = operation.version in (None, version + 1)
    return (version + 1, operation.value) if made else None


def _of_unknown_version(operation: Operation) -> State | None:
    if operation.effect is Effect.REFUSED:
        return UNKNOWN
    if operation.f == "cas":
        assert operation.expected is not None, operation
        made = operation.expected + 1
        return (made, operation.value) if operation.version in (None, made) else None
    known = operation.version is not None
    return (operation.version, operation.value) if known else UNKNOWN


def _log(state: tuple[int | None, ...] | _Unknown, operation: Operation) -> State | None:
    """A state is the values from offset 0 on."""
    if state is UNKNOWN:
        return UNKNOWN
    if operation.f == "append":
        fits = operation.version in (None, len(state))
        return (*state, operation.value) if fits else None
    assert operation.version is not None, operation
    there = state[operation.version] if 0 <= operation.version < len(state) else None
    return state if there == operation.value else None


def _set(state: frozenset[int | None] | _Unknown, operation: Operation) -> State | None:
    """A state is the frozenset of the elements."""
    if operation.f == "read":
        return state if state == operation.values else _resolved(state, operation.values)
    return UNKNOWN if state is UNKNOWN else state | {operation.value}


def _counter(state: int | _Unknown, operation: Operation) -> State | None:
    """A state is the sum."""
    if operation.f == "read":
        return state if state == operation.value else _resolved(state, operation.value)
    assert operation.value is not None, operation
    return UNKNOWN if state is UNKNOWN else state + operation.value


def _resolved(state: Any, found: State) -> State | None:
    return found if state is UNKNOWN else None


def _of_register(state: Any) -> Proof:
    return shown("state", state[0])


def _of_versioned(state: Any) -> Proof:
    return Proof.of(
        "version {version} with {state}", version=state[0], state=_of_register(state[1:])
    )


def _counted(noun: str) -> Callable[[Any], Proof]:
    return lambda state: Proof.of(f"{{count}} {noun}", count=len(state))


SEQUENTIAL: Final[Mapping[Model, Sequential]] = {
    Model.REGISTER: Sequential(initial=(None,), step=_register, shown=_of_register),
    Model.VERSIONED_REGISTER: Sequential(
        initial=(0, None), step=_versioned_register, shown=_of_versioned
    ),
    Model.LOG: Sequential(initial=(), step=_log, shown=_counted("values")),
    Model.SET: Sequential(initial=frozenset(), step=_set, shown=_counted("elements")),
    Model.COUNTER: Sequential(
        initial=0, step=_counter, shown=partial(shown, "state"), answers_first=True
    ),
}
"""Every model of objects with keys of their own; lists are judged across keys."""
