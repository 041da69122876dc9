"""The tables of operations on objects, on disk: of any model, key by key, at any length.

A table is spread over RECORD_BUCKET_COUNT files by the key's CRC-32, as `records` is. A key is
handed over whole and in pieces, and goes to disk as it comes: a key larger than a row group gets
row groups of its own, and smaller ones share, whole, those of their file. Memory holds a row group
a file; with callers that come bucket by bucket, one.
"""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.history.models import MODEL_TABLES, Model
from fencepost.history.schema import RECORD_BUCKET_COUNT, TABLES
from fencepost.history.table_file import TableFile
from fencepost.history.writer import bucket_of

_GROUP_ROWS: Final = 1 << 20
_WAITING_ROWS_MAX: Final = 1 << 22
"""The bound on waiting rows of all files; beyond it they are written in smaller row groups."""

Pieces = Iterable[pa.Table]


def model_bucket_file(history: Path, model: Model, bucket: int) -> Path:
    """Return the file of a bucket of the table of `model`, in a history."""
    return history / MODEL_TABLES[model] / f"bucket-{bucket:02}.parquet"


def by_bucket(keys: Iterable[str]) -> list[str]:
    """Return these keys in the order in which writing them takes the least memory."""
    return sorted(keys, key=bucket_of)


def write_keys(history: Path, model: Model, keys: Iterable[tuple[str, Pieces]]) -> int:
    """Write the table of a model into a history; return the last time that any operation names.

    keys: each once, with pieces of the table that hold its rows by index; columns of words may be
    dictionaries.
    """
    end_ns = 0
    name = MODEL_TABLES[model]
    with ExitStack() as stack:
        files = [
            stack.enter_context(TableFile(model_bucket_file(history, model, bucket), name))
            for bucket in range(RECORD_BUCKET_COUNT)
        ]
        for key, pieces in keys:
            end_ns = max(end_ns, _write_key(files[bucket_of(key)], pieces, schema=TABLES[name]))
            if sum(file.waiting_rows for file in files) > _WAITING_ROWS_MAX:
                for file in files:
                    file.end_row_group()
    return end_ns


def _write_key(file: TableFile, pieces: Pieces, *, schema: pa.Schema) -> int:
    """Add a key, so that it shares a row group whole or not at all; the last time it names."""
    end_ns = row_count = 0
    alone = False
    waiting: list[pa.Table] = []
    for piece in pieces:
        assert _plain(piece.schema).equals(schema), piece.schema
        end_ns = max(end_ns, _last_ns(piece))
        row_count += piece.num_rows
        waiting.append(piece)
        if row_count >= _GROUP_ROWS:
            if not alone:
                file.end_row_group()
            alone = True
            _add(file, waiting)
            waiting = []
    if not alone and file.waiting_rows + row_count > _GROUP_ROWS:
        file.end_row_group()
    _add(file, waiting)
    if alone:
        file.end_row_group()
    return end_ns


def _add(file: TableFile, pieces: list[pa.Table]) -> None:
    if pieces:
        file.add(pa.concat_tables(pieces).unify_dictionaries())


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return the schema with words as strings, whether or not they are dictionaries."""
    return pa.schema(
        [
            field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
            for field in schema
        ]
    )


def _last_ns(piece: pa.Table) -> int:
    times = (pc.max(piece[name]).as_py() for name in ("call_ns", "return_ns"))
    return max((time for time in times if time is not None), default=0)
