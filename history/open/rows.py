"""Operations to rows of the tables, in batches, and Kafka's operations back again."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from fencepost.history.models import MODEL_TABLES, Model
from fencepost.history.open.kafka import ClientOperation
from fencepost.history.open.operation import Cells, OpenOperation
from fencepost.history.open.reading import Numbered
from fencepost.history.open.refusal import BadLineError, at_line
from fencepost.history.open.scalars import Numbering
from fencepost.history.operation import Outcome
from fencepost.history.schema import OPERATIONS, RECORDS, TABLES

_BATCH_OPERATIONS: Final = 1 << 15
_BATCH_ROWS: Final = 1 << 14


def row_tables(
    operations: Iterable[Numbered], *, model: Model, numbering: Numbering, source: str
) -> Iterator[pa.Table]:
    """Yield MODEL_OPERATIONS or MICRO_OPERATIONS of these operations, in their order.

    Raises MalformedHistoryError for a value that cannot be one.
    """
    schema = TABLES[MODEL_TABLES[model]]
    row_of = _step_rows if model is Model.LIST_APPEND else _operation_rows
    remaining = iter(operations)
    while batch := list(islice(remaining, _BATCH_OPERATIONS)):
        rows: list[tuple[Any, ...]] = []
        for index, operation in batch:
            with at_line(source, operation.line):
                rows += row_of(index, operation, _Numbers(numbering, model))
        columns = zip(*rows, strict=True)
        arrays = [
            pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)
        ]
        yield pa.Table.from_arrays(arrays, schema=schema)


class _Numbers:
    """The numbers of what the cells have."""

    def __init__(self, numbering: Numbering, model: Model) -> None:
        self._numbering = numbering
        self._versioned = model is Model.VERSIONED_REGISTER

    def expected(self, cells: Cells) -> int | None:
        if self._versioned or cells.expected is None:
            return cells.expected  # type: ignore[no-any-return]  # a version is an integer
        return self._numbering.number(cells.key, cells.expected)

    def value(self, cells: Cells) -> int | None:
        return None if cells.value is None else self._numbering.number(cells.key, cells.value)

    def values(self, cells: Cells) -> list[int] | None:
        if cells.values is None:
            return None
        return [self._numbering.number(cells.key, value) for value in cells.values]


def _operation_rows(
    index: int, operation: OpenOperation, numbers: _Numbers
) -> Iterator[tuple[Any, ...]]:
    (cells,) = operation.cells
    yield (
        index,
        operation.process,
        cells.key,
        cells.f,
        operation.call_ns,
        operation.return_ns,
        operation.outcome.value,
        _error(operation),
        numbers.expected(cells),
        cells.version,
        numbers.value(cells),
        numbers.values(cells),
    )


def _step_rows(
    index: int, operation: OpenOperation, numbers: _Numbers
) -> Iterator[tuple[Any, ...]]:
    if not operation.cells:
        raise BadLineError("expected the steps of a transaction; found none")
    for position, cells in enumerate(operation.cells):
        yield (
            index,
            position,
            operation.process,
            cells.key,
            cells.f,
            operation.call_ns,
            operation.return_ns,
            operation.outcome.value,
            _error(operation),
            numbers.value(cells),
            numbers.values(cells),
        )


def _error(operation: OpenOperation) -> str | None:
    return None if operation.outcome is Outcome.OK else operation.error


def client_tables(operations: Iterable[ClientOperation]) -> tuple[pa.Table, pa.Table]:
    """Return OPERATIONS, numbered by their calls, and RECORDS. Both are in memory."""
    ordered = sorted(operations, key=lambda operation: operation.order)
    rows = [
        (
            index,
            one.process,
            one.f.value,
            one.key,
            one.call_ns,
            one.return_ns,
            one.outcome.value,
            one.error,
            len(one.records),
        )
        for index, one in enumerate(ordered)
    ]
    records = [
        (
            record.key,
            record.offset,
            record.value,
            index,
            position,
            one.process,
            one.f.value,
            one.outcome.value,
            one.call_ns,
            one.return_ns,
            record.session,
        )
        for index, one in enumerate(ordered)
        for position, record in enumerate(one.records)
    ]
    return _table(rows, OPERATIONS), _table(records, RECORDS)


def operations_with_records(
    operations: pa.Table, records: pa.Table
) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield each row of OPERATIONS, by index, with its rows of RECORDS by position."""
    sorted_records = records.sort_by([("operation", "ascending"), ("position", "ascending")])
    rows = _rows(sorted_records)
    row = next(rows, None)
    for operation in _rows(operations):
        mine = []
        while row is not None and row["operation"] == operation["index"]:
            mine.append(row)
            row = next(rows, None)
        yield operation, mine


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        yield from batch.to_pylist()


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    if not rows:
        return schema.empty_table()
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
