"""Sealed tables, read back: the checking half's only door to what was recorded."""

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.history.failure import HarnessError
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import LATER_TABLES, TABLES, with_later_columns


def load_table(run: RunDirectory, name: str, *, without: Collection[str] = ()) -> pa.Table:
    """Return the whole table `name` of `history.schema.TABLES`, file after file.

    `without`: columns that are left out.

    Rows of `operations` and `faults` come in the order of their `index`; those of `records` by
    bucket, key, operation, position. A table that the run is too old for is empty. Raises
    HarnessError if a file is missing, unreadable or has another schema.
    """
    if name in LATER_TABLES and run.history.is_dir() and not run.table_path(name).exists():
        return TABLES[name].empty_table().drop_columns(list(without))
    return pa.concat_tables([_read(path, name, without) for path in table_files(run, name)])


def table_files(run: RunDirectory, name: str) -> tuple[Path, ...]:
    """Return the files of the table, in order; of `records` one a bucket, so one task a file.

    Raises HarnessError if the run is not sealed (`history.seal`), or has no such table.
    """
    if not run.history.is_dir():
        raise HarnessError(f"the run {run.root} is not sealed: `fencepost check` seals it")
    path = run.table_path(name)
    files = tuple(sorted(path.glob("*.parquet"))) if path.is_dir() else (path,)
    if not files or not files[0].is_file():
        raise HarnessError(f"the run {run.root} has no table {name}: expected {path}")
    return files


def _read(path: Path, name: str, without: Collection[str]) -> pa.Table:
    expected = pa.schema([field for field in TABLES[name] if field.name not in without])
    try:
        with pq.ParquetFile(path) as file:
            there = [one for one in file.schema_arrow.names if one not in without]
            table = with_later_columns(file.read(columns=there), name)
    except (OSError, pa.ArrowException) as error:
        raise HarnessError(f"cannot read {path}: {error}") from error
    if not table.schema.equals(expected):
        raise HarnessError(
            f"{path} does not have the schema of {name}: expected {_words(expected)}; "
            f"found {_words(table.schema)}"
        )
    return table


def _words(schema: pa.Schema) -> str:
    return ", ".join(
        str(field).removeprefix("pyarrow.Field<").removesuffix(">") for field in schema
    )
