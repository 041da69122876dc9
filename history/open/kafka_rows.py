"""Kafka's operations between values and the tables `operations` and `records`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from history.open.kafka import ClientOperation
from history.schema import OPERATIONS, RECORDS

__all__ = ["client_tables", "operations_with_records"]

_BATCH_ROWS: Final = 1 << 14


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
