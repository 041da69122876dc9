"""Operations of a model, read from lines: complete ones, or events that are put together."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, NamedTuple

from fencepost.history.models import Model
from fencepost.history.open.edn import Keyword, Tagged
from fencepost.history.open.event import (
    INT64_MAX,
    EventLine,
    EventReader,
    integer,
    refuse_unknown,
    word,
)
from fencepost.history.open.operation import Cells, OpenOperation
from fencepost.history.open.pairing import Paired, paired
from fencepost.history.open.refusal import BadLineError, at_line, shown
from fencepost.history.open.scalars import key_text
from fencepost.history.open.shapes import answered_cells, asked_cells, check_cells, steps_of
from fencepost.history.operation import Outcome

SOLE_KEY: Final = "object"
"""The key of a history that is of one object and names none."""

_COMPLETE: Final = frozenset(
    ("index", "process", "f", "key", "call_ns", "return_ns", "outcome", "error")
)
_COLUMNS: Final = ("expected", "version", "value", "values")


class Numbered(NamedTuple):
    """An operation and its place in the order of the calls."""

    number: int
    operation: OpenOperation


def events_of(
    numbered: Iterable[tuple[int, Any]], reader: EventReader, *, source: str
) -> Iterator[EventLine]:
    """Yield the clients' events of these forms, each with its line."""
    for line, form in numbered:
        with at_line(source, line):
            event = reader.event(line, _fields(form))
        if event is not None:
            yield event


def operations_of_events(
    events: Iterable[EventLine], *, model: Model, keyed_values: bool, source: str
) -> Iterator[Numbered]:
    """Yield operations in the order in which they ended.

    `keyed_values`: each value is a vector of a key and what belongs to it, as jepsen.independent
    has it; else an event may have a field `key`, and one that has none is of SOLE_KEY.
    """
    for pair in paired(events, source=source):
        with at_line(source, (pair.completed or pair.invoked).line):
            yield Numbered(pair.order, _operation(pair, model, keyed_values=keyed_values))


def complete_operations(
    numbered: Iterable[tuple[int, Mapping[str, Any]]], *, model: Model, source: str
) -> Iterator[Numbered]:
    """Yield the operations of lines that have calls and returns, in the order of the calls."""
    order = _CallOrder()
    for index, (line, fields) in enumerate(numbered):
        with at_line(source, line):
            operation = _complete(line, fields, model)
            order.note(operation, fields.get("index"))
        yield Numbered(index, operation)


def _fields(form: Any) -> Mapping[str, Any]:
    """Return an operation's map.

    Of EDN it is by the names of its keywords; of a record, without its tag.
    """
    found = form.form if isinstance(form, Tagged) else form
    if not isinstance(found, dict):
        raise BadLineError(f"expected an operation: a map; found {shown(form)}")
    return {
        name.name if isinstance(name, Keyword) else str(name): item for name, item in found.items()
    }


def _operation(pair: Paired, model: Model, *, keyed_values: bool) -> OpenOperation:
    invoked, completed = pair.invoked, pair.completed
    ok = pair.outcome is Outcome.OK
    if model is Model.LIST_APPEND:
        cells = _steps(pair)
    else:
        key, value = _keyed(invoked, keyed_values=keyed_values)
        asked = asked_cells(model, invoked.f, key, value)
        if completed is not None and ok:
            answered_key, answer = _keyed(completed, keyed_values=keyed_values)
            if answered_key != key:
                raise BadLineError(f"expected an answer of key {key}; found {answered_key}")
            asked = answered_cells(model, asked, answer)
        cells = (asked,)
    ended = completed is not None and pair.outcome is not Outcome.INFO
    return OpenOperation(
        line=invoked.line,
        process=invoked.process,
        f=invoked.f,
        call_ns=invoked.time_ns,
        return_ns=completed.time_ns if completed is not None and ended else None,
        outcome=pair.outcome,
        error=completed.error if completed is not None and not ok else None,
        cells=cells,
    )


def _keyed(event: EventLine, *, keyed_values: bool) -> tuple[str, Any]:
    if not keyed_values:
        return (SOLE_KEY if event.key is None else key_text(event.key)), event.value
    if not isinstance(event.value, tuple) or len(event.value) != 2:  # noqa: PLR2004  # key, value
        raise BadLineError(f"expected a value [key value]; found {shown(event.value)}")
    return key_text(event.value[0]), event.value[1]


def _steps(pair: Paired) -> tuple[Cells, ...]:
    _refuse_no_transaction(pair.invoked.f)
    asked = steps_of(pair.invoked.value, ok=False)
    if pair.completed is None or pair.outcome is not Outcome.OK:
        return asked
    answered = steps_of(pair.completed.value, ok=True)
    if [step._replace(values=None) for step in answered] != list(asked):
        raise BadLineError(
            f"expected an answer to the steps of line {pair.invoked.line}; found others: "
            f"{shown(pair.completed.value)}"
        )
    return answered


def _refuse_no_transaction(f: str) -> None:
    if f != "txn":
        raise BadLineError(f"expected f of a {Model.LIST_APPEND}: txn; found {shown(f)}")


def _complete(line: int, fields: Mapping[str, Any], model: Model) -> OpenOperation:
    transactional = model is Model.LIST_APPEND
    refuse_unknown(fields, _COMPLETE | {"value"} if transactional else _COMPLETE | {*_COLUMNS})
    f = word(fields, "f")
    outcome = _outcome(fields)
    call_ns = integer(fields, "call_ns")
    if transactional:
        _refuse_no_transaction(f)
        cells = steps_of(fields.get("value"), ok=outcome is Outcome.OK)
    else:
        key = SOLE_KEY if fields.get("key") is None else key_text(fields["key"])
        one = Cells(key, f, *(fields.get(name) for name in _COLUMNS))
        if one.values is not None and not isinstance(one.values, tuple):
            raise BadLineError(f"expected values: an array; found {shown(one.values)}")
        cells = (check_cells(model, one, ok=outcome is Outcome.OK),)
    return OpenOperation(
        line=line,
        process=integer(fields, "process", least=-INT64_MAX),
        f=f,
        call_ns=call_ns,
        return_ns=_return_ns(fields, outcome, call_ns),
        outcome=outcome,
        error=None if fields.get("error") is None else word(fields, "error"),
        cells=cells,
    )


def _outcome(fields: Mapping[str, Any]) -> Outcome:
    found = word(fields, "outcome")
    if found not in set(Outcome):
        raise BadLineError(f"expected outcome {', '.join(Outcome)}; found {shown(found)}")
    return Outcome(found)


def _return_ns(fields: Mapping[str, Any], outcome: Outcome, call_ns: int) -> int | None:
    if fields.get("return_ns") is None and outcome is Outcome.INFO:
        return None
    return_ns = integer(fields, "return_ns")
    if return_ns < call_ns:
        raise BadLineError(
            f"expected a return at or after the call, {call_ns} ns; found {return_ns} ns"
        )
    # The effect of an info operation may still come later.
    return None if outcome is Outcome.INFO else return_ns


class _CallOrder:
    """The facts of earlier lines that a line must not contradict."""

    def __init__(self) -> None:
        self._index = -1
        self._call_ns = 0
        self._busy: dict[int, tuple[int, int | None]] = {}

    def note(self, operation: OpenOperation, index: Any) -> None:
        if index is not None:
            if type(index) is not int or index <= self._index:
                raise BadLineError(f"expected an index above {self._index}; found {shown(index)}")
            self._index = index
        if operation.call_ns < self._call_ns:
            raise BadLineError(
                f"expected operations in the order of their calls, the next at {self._call_ns} ns "
                f"or later; found {operation.call_ns} ns"
            )
        self._call_ns = operation.call_ns
        line, return_ns = self._busy.get(operation.process, (0, operation.call_ns))
        if return_ns is None:
            raise BadLineError(
                f"expected no more of process {operation.process}, which ended with the info of "
                f"line {line}; found another operation: give the process that continues "
                "another number"
            )
        if operation.call_ns < return_ns:
            raise BadLineError(
                f"expected one open operation of process {operation.process}; found a second one, "
                f"while that of line {line} is open"
            )
        self._busy[operation.process] = (operation.line, operation.return_ns)


def peeked(numbered: Iterator[tuple[int, Any]]) -> tuple[Any, Iterator[tuple[int, Any]]]:
    """Return the first form, or None, and all of them."""
    first = next(numbered, None)
    if first is None:
        return None, iter(())
    return first[1], chain([first], numbered)
