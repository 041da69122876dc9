"""The storage of a table in Parquet: encodings, row groups, and what a reader then finds.

Integers that grow are stored as packed differences, words by dictionary, and all is compressed
lightly (zstd 1): about 11 bytes an operation, and quick to read. Columns of words may be given
dictionary-encoded; a reader finds strings, as the schema says.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.history.atomic import sync
from fencepost.history.schema import TABLES

_ROW_GROUP_ROWS: Final = 1 << 20
_WIDE_GROUP_ROWS: Final[Mapping[str, int]] = {"metadata_log": 1 << 16}
"""Of a table whose rows are many times larger than others': what one who writes or reads it by the
row group holds is to stay small, however long the run."""
_PART_ROWS: Final = 1 << 21
"""The operations in a file: a task that sums one up holds it, in some 100 bytes a row."""

_GROWING: Final[Mapping[str, tuple[str, ...]]] = {
    "operations": ("index", "call_ns", "return_ns"),
    "records": ("offset", "value", "operation", "position", "call_ns", "return_ns"),
    "faults": ("index", "begin_ns", "effect_ns", "end_ns"),
    "samples": ("time_ns",),
    "replica_records": ("offset", "value", "timestamp_ms"),
    "transaction_log": ("zxid", "timestamp_ms"),
    "model_operations": ("index", "call_ns", "return_ns", "expected", "version", "value"),
    "znode_operations": ("index", "call_ns", "return_ns"),
    "micro_operations": ("transaction", "position", "call_ns", "return_ns", "value"),
}


class TableFile:
    """One Parquet file of the table `name`, written row group by row group, synced when closed."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._schema = TABLES[name]
        self._growing = _GROWING.get(name, ())
        self._group_rows = _WIDE_GROUP_ROWS.get(name, _ROW_GROUP_ROWS)
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self.waiting_rows = 0

    def add(self, table: pa.Table) -> None:
        """Append rows; written once a row group is full."""
        assert table.column_names == self._schema.names, table.column_names
        while self.waiting_rows + table.num_rows >= self._group_rows:
            taken = self._group_rows - self.waiting_rows
            self._wait(table.slice(0, taken))
            self.end_row_group()
            table = table.slice(taken)
        self._wait(table)

    def end_row_group(self) -> None:
        """Write what waits as a row group of its own."""
        if self.waiting_rows:
            table = pa.concat_tables(self._waiting).unify_dictionaries()
            self._open(table.schema).write_table(table, row_group_size=self._group_rows)
            self._waiting, self.waiting_rows = [], 0

    def close(self) -> None:
        """Write what waits, end the file and force it to disk."""
        self.end_row_group()
        self._open(self._schema).close()
        sync(self._path)

    def abandon(self) -> None:
        """Close the file as it is; it will be removed."""
        if self._writer is not None:
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()

    def _wait(self, table: pa.Table) -> None:
        self._waiting.append(table)
        self.waiting_rows += table.num_rows

    def _open(self, found: pa.Schema) -> pq.ParquetWriter:
        if self._writer is None:
            words = [
                field.name
                for field in self._schema
                if field.name not in self._growing and not pa.types.is_nested(field.type)
            ]
            # Without the Arrow schema in the file, dictionaries read back as plain strings.
            self._writer = pq.ParquetWriter(
                self._path,
                pa.schema([_of_type(field, found) for field in self._schema]),
                compression="zstd",
                compression_level=1,
                use_dictionary=words,
                column_encoding=dict.fromkeys(self._growing, "DELTA_BINARY_PACKED"),
                store_schema=False,
            )
        return self._writer


def _of_type(field: pa.Field, found: pa.Schema) -> pa.Field:
    return field.with_type(found.field(field.name).type)


@contextmanager
def whole_table_file(path: Path, name: str) -> Iterator[TableFile]:
    """Write a file that is there whole or not at all: a seal would stumble over half of one.

    Raises OSError if the disk refuses.
    """
    beside = path.with_name(f".{path.name}")
    try:
        with TableFile(beside, name) as file:
            yield file
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


class PartFiles:
    """A table in several files, `part-0000.parquet` and so on: one task each for a reader."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = name
        self._number = 0
        self._file = self._next()
        self._row_count = 0

    def add(self, table: pa.Table) -> None:
        """Append rows."""
        self._file.add(table)
        self._row_count += table.num_rows
        if self._row_count >= _PART_ROWS:
            self._file.close()
            self._file = self._next()
            self._row_count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.__exit__(kind, error, trace)

    def _next(self) -> TableFile:
        path = self._directory / f"part-{self._number:04}.parquet"
        self._number += 1
        return TableFile(path, self._name)
