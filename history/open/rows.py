"""Operations to rows of the tables, in batches."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from history.models import MODEL_TABLES, Model
from history.open.operation import Cells, OpenOperation
from history.open.reading import Numbered
from history.open.refusal import RefusedError, at_line
from history.open.scalars import Numbering
from history.operation import Outcome
from history.schema import TABLES

__all__ = ["row_tables"]

_BATCH_OPERATIONS: Final = 1 << 15


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
        raise RefusedError("expected the steps of a transaction; found none")
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
