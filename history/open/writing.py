"""Operations of the tables to lines: complete ones in JSON, or events in EDN or JSON.

Events stand in the order of their times. At one time calls come before returns, for operations that
touch are concurrent; only a process that calls again at the moment of its return has to return
first. An info operation completes where its process is next seen, or at the end; one without an
error stays open.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa

from fencepost.history.models import Model
from fencepost.history.open.edn import Keyword, edn_text
from fencepost.history.open.lines import json_text
from fencepost.history.open.operation import Cells, OpenOperation
from fencepost.history.open.reading import SOLE_KEY
from fencepost.history.open.scalars import Originals, key_of
from fencepost.history.open.shapes import answer_value, asked_value, steps_value
from fencepost.history.operation import Outcome

_BATCH_ROWS: Final = 1 << 14
_COLUMNS: Final = ("expected", "version", "value", "values")


def operations_in(
    table: pa.Table, *, model: Model, originals: Originals
) -> Iterator[OpenOperation]:
    """Yield the rows of MODEL_OPERATIONS or MICRO_OPERATIONS, sorted by index (and position)."""
    waiting: list[dict[str, Any]] = []
    number = "transaction" if model is Model.LIST_APPEND else "index"
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        for row in batch.to_pylist():
            if waiting and waiting[0][number] != row[number]:
                yield _operation(waiting, model, originals)
                waiting = []
            waiting.append(row)
    if waiting:
        yield _operation(waiting, model, originals)


def complete_lines(operations: Iterable[OpenOperation], *, model: Model) -> Iterator[str]:
    """Yield a JSON object an operation; what is null is left out."""
    for index, operation in enumerate(operations):
        line: dict[str, Any] = {
            "index": index,
            "process": operation.process,
            "f": operation.f,
            "call_ns": operation.call_ns,
            "return_ns": operation.return_ns,
            "outcome": operation.outcome.value,
            "error": operation.error,
        }
        if model is Model.LIST_APPEND:
            line["value"] = _steps(operation.cells, ok=operation.outcome is Outcome.OK, json=True)
        else:
            (cells,) = operation.cells
            line["key"] = key_of(cells.key)
            line |= {name: getattr(cells, name) for name in _COLUMNS}
        yield json_text({name: item for name, item in line.items() if item is not None}) + "\n"


def edn_events(
    operations: Iterable[OpenOperation], *, model: Model, keyed_values: bool
) -> Iterator[str]:
    """Yield Jepsen's operations, one a line.

    `keyed_values`: values as jepsen.independent has them.
    """

    def line(index: int, told: "_Told") -> str:
        operation = told.operation
        value = _value(operation, model, answered=told.type == "ok", json=False)
        if keyed_values and model is not Model.LIST_APPEND:
            value = (key_of(operation.cells[0].key), value)
        fields: dict[Keyword, Any] = {
            Keyword("index"): index,
            Keyword("time"): told.time_ns,
            Keyword("type"): Keyword(told.type),
            Keyword("process"): operation.process,
            Keyword("f"): Keyword(operation.f),
            Keyword("value"): value,
        }
        if told.type in ("fail", "info") and operation.error is not None:
            fields[Keyword("error")] = operation.error
        return edn_text(fields) + "\n"

    return _numbered(operations, line)


def json_events(operations: Iterable[OpenOperation], *, model: Model) -> Iterator[str]:
    """Return the same in JSON, with a field for the key."""

    def line(index: int, told: "_Told") -> str:
        operation = told.operation
        fields: dict[str, Any] = {
            "index": index,
            "time": told.time_ns,
            "type": told.type,
            "process": operation.process,
            "f": operation.f,
            "value": _value(operation, model, answered=told.type == "ok", json=True),
        }
        if model is not Model.LIST_APPEND and operation.cells[0].key != SOLE_KEY:
            fields["key"] = key_of(operation.cells[0].key)
        if told.type in ("fail", "info") and operation.error is not None:
            fields["error"] = operation.error
        return json_text(fields) + "\n"

    return _numbered(operations, line)


class _Told(NamedTuple):
    """One event."""

    time_ns: int
    type: str
    operation: OpenOperation


def _numbered(
    operations: Iterable[OpenOperation], line: Callable[[int, _Told], str]
) -> Iterator[str]:
    return (line(index, told) for index, told in enumerate(_events(operations)))


def _events(operations: Iterable[OpenOperation]) -> Iterator[_Told]:
    # Returns that are still to come, by time, then by the order of the calls.
    returns: list[tuple[int, int, OpenOperation]] = []
    open_by_process: dict[int, OpenOperation] = {}
    last_ns = 0
    for number, operation in enumerate(operations):
        yield from _returned(returns, open_by_process, before_ns=operation.call_ns)
        if operation.process in open_by_process:
            yield from _ended(open_by_process.pop(operation.process), operation.call_ns)
        yield _Told(operation.call_ns, "invoke", operation)
        last_ns = max(last_ns, operation.call_ns, operation.return_ns or 0)
        open_by_process[operation.process] = operation
        if operation.return_ns is not None:
            heapq.heappush(returns, (operation.return_ns, number, operation))
    yield from _returned(returns, open_by_process, before_ns=last_ns + 1)
    for operation in open_by_process.values():
        yield from _ended(operation, last_ns)


def _returned(
    returns: list[tuple[int, int, OpenOperation]],
    open_by_process: dict[int, OpenOperation],
    *,
    before_ns: int,
) -> Iterator[_Told]:
    """Yield the returns before this time, except those that were told already."""
    while returns and returns[0][0] < before_ns:
        time_ns, _, operation = heapq.heappop(returns)
        if open_by_process.get(operation.process) is operation:
            del open_by_process[operation.process]
            yield _Told(time_ns, operation.outcome.value, operation)


def _ended(operation: OpenOperation, time_ns: int) -> Iterator[_Told]:
    """Yield the end of what is open and has to end now; an info without an error has none."""
    if operation.return_ns is not None or operation.error is not None:
        yield _Told(time_ns, operation.outcome.value, operation)


def _operation(rows: list[dict[str, Any]], model: Model, originals: Originals) -> OpenOperation:
    first = rows[0]
    return OpenOperation(
        line=0,
        process=first["process"],
        f="txn" if model is Model.LIST_APPEND else first["f"],
        call_ns=first["call_ns"],
        return_ns=first["return_ns"],
        outcome=Outcome(first["outcome"]),
        error=first["error"],
        cells=tuple(_cells(row, model, originals) for row in rows),
    )


def _cells(row: dict[str, Any], model: Model, originals: Originals) -> Cells:
    key, values = row["key"], row["values"]
    expected = row.get("expected")
    if model is not Model.VERSIONED_REGISTER:
        expected = originals.value_or_none(key, expected)
    return Cells(
        key=key,
        f=row["f"],
        expected=expected,
        version=row.get("version"),
        value=originals.value_or_none(key, row["value"]),
        values=None if values is None else tuple(originals.value(key, one) for one in values),
    )


def _value(operation: OpenOperation, model: Model, *, answered: bool, json: bool) -> Any:
    if model is Model.LIST_APPEND:
        return _steps(operation.cells, ok=answered, json=json)
    (cells,) = operation.cells
    return answer_value(model, cells) if answered else asked_value(model, cells)


def _steps(cells: tuple[Cells, ...], *, ok: bool, json: bool) -> tuple[Any, ...]:
    steps = steps_value(cells, ok=ok)
    return tuple((f.name if json else f, key_of(key), value) for f, key, value in steps)
