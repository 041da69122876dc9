"""Operations in words: `read() -> 3`, `cas(1, 2) -> refused`, `append(7) -> offset 2`."""

from typing import Final

from checkers.linearizability.operations import Effect, Operation
from history.models import Model

__all__ = ["cited", "in_words", "shown"]

_ELEMENTS_MAX: Final = 6


def shown(value: int | None) -> str:
    """Return a value as text; null is "nothing"."""
    return "nothing" if value is None else str(value)


def cited(operation: Operation, model: Model) -> str:
    """Return an operation by its index, and in words."""
    return f"operation {operation.index}, {in_words(operation, model)},"


def in_words(operation: Operation, model: Model) -> str:
    """Return the call in words, with its answer if that is known."""
    answer = _answer(operation, model)
    call = f"{operation.f}({_arguments(operation, model)})"
    return f"{call} -> {answer}" if answer else call


def _arguments(operation: Operation, model: Model) -> str:
    if operation.f == "read":
        return str(operation.version) if model is Model.LOG else ""
    if operation.f == "cas":
        return f"{shown(operation.expected)}, {shown(operation.value)}"
    return shown(operation.value)


def _answer(operation: Operation, model: Model) -> str:
    if operation.effect is Effect.MAY:
        return "?"
    if operation.effect is Effect.REFUSED:
        return "refused"
    if operation.f != "read":
        word = "offset" if model is Model.LOG else "version"
        return "" if operation.version is None else f"{word} {operation.version}"
    if model is Model.SET:
        return _elements(operation.values)
    if model is Model.VERSIONED_REGISTER and operation.version is not None:
        return f"{shown(operation.value)} at version {operation.version}"
    return shown(operation.value)


def _elements(values: frozenset[int]) -> str:
    first = ", ".join(map(str, sorted(values)[:_ELEMENTS_MAX]))
    return f"{{{first}{', …' if len(values) > _ELEMENTS_MAX else ''}}}"
