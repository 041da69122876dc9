"""Parquet in and out: one file of MODEL_OPERATIONS or MICRO_OPERATIONS, rows in any order.

The rules for each row and across rows are in `parquet_rules`. Values that were no integers stand in
the metadata of the file.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from history.models import MODEL_TABLES, Model
from history.open.parquet_rules import overview_of, refuse_order, refuse_rows
from history.open.refusal import MalformedHistoryError
from history.open.scalars import ORIGINALS
from history.operation import Outcome
from history.schema import TABLES

__all__ = ["originals_in", "parquet_tables", "table_pieces", "write_parquet"]

_ORIGINALS_KEY: Final = b"fencepost.originals"
_BATCH_ROWS: Final = 1 << 17


def originals_in(file: BinaryIO, *, source: str) -> pa.Table:
    """Return ORIGINALS of a file, which may have none.

    Raise MalformedHistoryError if it is none.
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
                refuse_rows(table, model, first=first, source=source)
                overview.append(overview_of(table))
                first += table.num_rows
                yield _without_info_returns(table).cast(schema)
    except pa.ArrowException as error:
        raise MalformedHistoryError(source, 1, f"expected Parquet; found: {error}") from None
    if overview:
        refuse_order(np.concatenate(overview, axis=1), model, number=schema.names[0], source=source)


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
