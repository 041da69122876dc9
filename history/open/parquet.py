"""Parquet in and out: one file of MODEL_OPERATIONS or MICRO_OPERATIONS, rows in any order.

Each batch is judged by its columns at once. Rules that cross batches (numbers dense from 0, calls
in their order, one open operation a process) are judged at the end, from four numbers a row in
memory. Values that were no integers stand in the metadata of the file.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fencepost.history.models import MODEL_TABLES, Model
from fencepost.history.open.refusal import MalformedHistoryError, shown
from fencepost.history.open.scalars import ORIGINALS
from fencepost.history.open.shapes import SHAPES
from fencepost.history.operation import Outcome
from fencepost.history.schema import TABLES

_ORIGINALS_KEY: Final = b"fencepost.originals"
_BATCH_ROWS: Final = 1 << 17
_NEVER_NS: Final = np.iinfo(np.int64).max
_COLUMNS: Final = ("expected", "version", "value", "values")
_STEPS: Final = ("append", "read")

_Wrong = Iterator[tuple[Any, str]]
"""The rows that break each rule, as a column of booleans, and what was expected."""


def originals_in(file: BinaryIO, *, source: str) -> pa.Table:
    """Return ORIGINALS of a file, which may have none.

    Raise MalformedHistoryError if it is not Parquet.
    """
    try:
        found = (pq.read_schema(file).metadata or {}).get(_ORIGINALS_KEY, b"[]")
        return pa.Table.from_pylist(json.loads(found), schema=ORIGINALS)
    except (pa.ArrowException, ValueError) as error:
        raise MalformedHistoryError(source, 1, f"expected Parquet; found: {error}") from None


def table_pieces(path: Path, name: str) -> Iterator[pa.Table]:
    """Yield a sealed file of the table `name`, in batches."""
    with pq.ParquetFile(path) as parquet:
        for batch in parquet.iter_batches(batch_size=_BATCH_ROWS):
            yield pa.Table.from_batches([batch]).cast(TABLES[name])


def parquet_tables(file: BinaryIO, *, model: Model, source: str) -> Iterator[pa.Table]:
    """Yield the rows of a file, in batches, words as strings; an info without its return.

    Raises MalformedHistoryError, naming the row, for what is no history of this model; after the
    last batch for what contradicts the rows before it.
    """
    schema = TABLES[MODEL_TABLES[model]]
    try:
        with pq.ParquetFile(file) as parquet:
            _refuse_other_schema(parquet.schema_arrow, schema, source)
            overview: list[NDArray[np.int64]] = []
            first = 0
            for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, columns=schema.names):
                table = pa.Table.from_batches([batch]).cast(_nullable(schema))
                _refuse_rows(table, model, first=first, source=source)
                overview.append(_overview_of(table))
                first += table.num_rows
                yield _without_info_returns(table).cast(schema)
    except pa.ArrowException as error:
        raise MalformedHistoryError(source, 1, f"expected Parquet; found: {error}") from None
    if overview:
        _refuse_order(
            np.concatenate(overview, axis=1), model, number=schema.names[0], source=source
        )


def write_parquet(
    tables: Iterator[pa.Table], file: BinaryIO, *, model: Model, originals: pa.Table
) -> None:
    """Write these rows as one file."""
    schema = TABLES[MODEL_TABLES[model]]
    if originals.num_rows:
        schema = schema.with_metadata({_ORIGINALS_KEY: json.dumps(originals.to_pylist())})
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table.replace_schema_metadata(schema.metadata))


def _refuse_other_schema(found: pa.Schema, expected: pa.Schema, source: str) -> None:
    for field in expected:
        if found.names.count(field.name) > 1:
            raise MalformedHistoryError(
                source,
                1,
                f"expected one column {field.name}; found {found.names.count(field.name)}",
            )
        if field.name not in found.names:
            raise MalformedHistoryError(source, 1, f"expected a column {field.name}; found none")
        kind = found.field(field.name).type
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        texts = pa.types.is_string(field.type) and pa.types.is_large_string(plain)
        lists = pa.types.is_list(field.type) and pa.types.is_list(plain)
        same = plain.equals(field.type) or texts or (lists and plain.value_type == pa.int64())
        if not same and not pa.types.is_null(plain):
            raise MalformedHistoryError(
                source, 1, f"expected column {field.name} of type {field.type}; found {kind}"
            )
    unknown = sorted(set(found.names) - set(expected.names))
    if unknown:
        raise MalformedHistoryError(
            source, 1, f"expected the columns {', '.join(expected.names)}; found {unknown[0]}, too"
        )


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])  # its only one


def _without_info_returns(table: pa.Table) -> pa.Table:
    place = table.column_names.index("return_ns")
    info = pc.equal(table["outcome"], Outcome.INFO.value)
    returns = pc.if_else(info, pa.scalar(None, pa.int64()), table["return_ns"])
    return table.set_column(place, table.schema.field(place), returns)


def _refuse_rows(table: pa.Table, model: Model, *, first: int, source: str) -> None:
    """Raise MalformedHistoryError for the first row that is wrong on its own.

    `first`: the number of rows before this batch.
    """
    for wrong, message in _wrong_rows(table, model):
        places = pc.indices_nonzero(wrong)
        if len(places):
            row = places[0].as_py()
            found = shown(table.slice(row, 1).to_pylist()[0])
            raise MalformedHistoryError(
                source, first + row + 1, f"expected {message}; found {found}"
            )


def _overview_of(table: pa.Table) -> NDArray[np.int64]:
    """Return number, process, call and return (of an info a time after all) of each row."""
    info = pc.equal(table["outcome"], Outcome.INFO.value)
    returns = pc.if_else(info, pa.scalar(_NEVER_NS, pa.int64()), table["return_ns"])
    columns: list[Any] = [table[0], table["process"], table["call_ns"], returns]
    return np.stack([column.to_numpy() for column in columns])


def _refuse_order(overview: NDArray[np.int64], model: Model, *, number: str, source: str) -> None:
    """Raise MalformedHistoryError for rows that contradict each other.

    `number`: the name of the column that counts operations.
    """
    order = np.argsort(overview[0], kind="stable")
    rows = overview[:, order]
    starts = np.diff(rows[0], prepend=-1) != 0

    def refuse(wrong: NDArray[np.bool_], places: NDArray[np.int64], message: str) -> None:
        if wrong.any():
            row = int(places[np.argmax(wrong)]) + 1
            raise MalformedHistoryError(source, row, f"expected {message}; this row breaks it")

    if model is Model.LIST_APPEND:
        for column, name in ((1, "process"), (2, "call_ns"), (3, "return_ns")):
            changed = np.diff(rows[column]) != 0
            refuse(~starts[1:] & changed, order[1:], f"one {name} for all rows of a {number}")
        order, rows = order[starts], rows[:, starts]
    refuse(rows[0] != np.arange(len(order)), order, f"each {number} from 0 on, once")
    refuse(np.diff(rows[2]) < 0, order[1:], f"{number} to follow the order of the calls")
    by_process = np.argsort(rows[1], kind="stable")
    _, process, call_ns, return_ns = rows[:, by_process]
    busy = (np.diff(process) == 0) & (call_ns[1:] < return_ns[:-1])
    refuse(busy, order[by_process][1:], "one open operation of a process at a time")


def _wrong_rows(table: pa.Table, model: Model) -> _Wrong:
    for name in ("process", "key", "f", "call_ns", "outcome", table.column_names[0]):
        yield pc.is_null(table[name]), f"a {name}"
    elements = table["values"].combine_chunks()
    lacking = pc.list_parent_indices(elements).filter(pc.is_null(elements.flatten()))
    yield _marked(lacking, table.num_rows), "values without null"
    for name in (table.column_names[0], "call_ns"):
        yield pc.less(table[name], 0), f"{name} from 0 on"
    yield _not_in(table["outcome"], [str(outcome) for outcome in Outcome]), "an outcome"
    ended = pc.not_equal(table["outcome"], Outcome.INFO.value)
    yield pc.and_(ended, pc.is_null(table["return_ns"])), "a return_ns of what is not info"
    early = pc.less(table["return_ns"], table["call_ns"])
    yield pc.fill_null(early, fill_value=False), "a return at or after the call"
    fs = list(_STEPS) if model is Model.LIST_APPEND else list(SHAPES[model])
    yield _not_in(table["f"], fs), f"f {', '.join(fs)}"
    for f in fs:
        for name in _COLUMNS:
            if name in table.column_names:
                yield from _wrong_column(table, model, f, name)


def _wrong_column(table: pa.Table, model: Model, f: str, name: str) -> _Wrong:
    """Yield masks of rows where a column is missing or superfluous, with what was expected."""
    mine = pc.equal(table["f"], f)
    there = pc.and_(mine, pc.is_valid(table[name]))
    lacking = pc.and_(mine, pc.is_null(table[name]))
    ok = pc.equal(table["outcome"], Outcome.OK.value)
    asked, answered, optional = _columns(model, f)
    if name in asked:
        if name not in optional:
            yield lacking, f"{name} of this {f}"
    elif name in answered:
        yield pc.and_not(there, ok), f"no {name} of this {f}, which is not ok"
        if name not in optional:
            yield pc.and_(lacking, ok), f"{name} of this {f}, which is ok"
    else:
        yield there, f"no {name} of this {f}"


def _columns(model: Model, f: str) -> tuple[tuple[str, ...], tuple[str, ...], frozenset[str]]:
    """Return the columns of the invocation, those of the answer, and those that may be missing."""
    if model is Model.LIST_APPEND:
        steps = {"append": (("value",), ()), "read": ((), ("values",))}
        return (*steps[f], frozenset())
    shape = SHAPES[model][f]
    return shape.asked, shape.answered, shape.optional


def _marked(rows: pa.Array, count: int) -> pa.Array:
    marked = np.zeros(count, bool)
    marked[rows.to_numpy(zero_copy_only=False)] = True
    return pa.array(marked)


def _not_in(column: pa.ChunkedArray, words: list[str]) -> Any:
    return pc.invert(pc.is_in(column, pa.array(words)))
