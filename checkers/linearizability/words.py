"""Operations as clauses of proofs: `read() -> 3`, `cas(1, 2) -> refused`, `append(7) -> offset 2`.

The numbers in them are facts that come from the operation.
"""

from typing import Any, Final

from fencepost.checkers.linearizability.operations import Effect, Operation
from fencepost.checkers.proof import Proof
from fencepost.history.models import Model

_ELEMENTS_MAX: Final = 6
_GIVEN: Final = {"write": "written", "cas": "written", "add": "added", "append": "appended"}
"""The name of the value that an operation was called with."""


def shown(name: str, value: int | None) -> Proof:
    """Return a value that is compared, as a clause; null is "nothing"."""
    return Proof.of(_slot(name, value), values={name: value})


def cited(operation: Operation, model: Model, **moments: int) -> Proof:
    """Return the clause of an operation: its index, its call, and its answer if that is known.

    `moments`: its call or return, by the name that the proof has for it.
    """
    told = _told(operation, model)
    return Proof.of(
        "operation {operation}, {told},",
        operations={"operation": operation.index},
        moments=moments,
        sources=dict.fromkeys([*moments, *(fact.name for fact in told.facts)], "operation"),
        told=told,
    )


def numbered(name: str, operation: Operation, **moments: int) -> Proof:
    """Return the clause of an operation of which only the index is said, under this name."""
    return Proof.of(
        f"operation {{{name}}}",
        operations={name: operation.index},
        moments=moments,
        sources=dict.fromkeys(moments, name),
    )


def in_words(operation: Operation, model: Model) -> str:
    """Return the call in words, with its answer if that is known."""
    return _told(operation, model).sentence


def _told(operation: Operation, model: Model) -> Proof:
    answer = _answer(operation, model)
    call = f"{operation.f}({_arguments(operation, model)})"
    elements = ", ".join(map(str, sorted(operation.values)[:_ELEMENTS_MAX]))
    numbers: dict[str, Any] = {
        _GIVEN.get(operation.f, "answer"): operation.value,
        "expected": operation.expected,
        _place(model): operation.version,
        "elements": elements or None,
    }
    rule = f"{call} -> {answer}" if answer else call
    said = {name: one for name, one in numbers.items() if f"{{{name}}}" in rule}
    return Proof.of(rule, **said)


def _arguments(operation: Operation, model: Model) -> str:
    if operation.f == "read":
        return "{offset}" if model is Model.LOG else ""
    given = _slot(_GIVEN[operation.f], operation.value)
    return f"{_slot('expected', operation.expected)}, {given}" if operation.f == "cas" else given


def _answer(operation: Operation, model: Model) -> str:
    if operation.effect is Effect.MAY:
        return "?"
    if operation.effect is Effect.REFUSED:
        return "refused"
    if operation.f != "read":
        place = _place(model)
        return "" if operation.version is None else f"{place} {{{place}}}"
    if model is Model.SET:
        return _elements(operation.values)
    answer = _slot("answer", operation.value)
    if model is Model.VERSIONED_REGISTER and operation.version is not None:
        return f"{answer} at version {{version}}"
    return answer


def _elements(values: frozenset[int]) -> str:
    more = ", …" if len(values) > _ELEMENTS_MAX else ""
    return f"{{{{{{elements}}{more}}}}}" if values else "{{}}"


def _place(model: Model) -> str:
    return "offset" if model is Model.LOG else "version"


def _slot(name: str, value: int | None) -> str:
    return "nothing" if value is None else f"{{{name}}}"
