"""The reader of sealed tables for the kernels: the only place that reads them.

The unit of work is a file, which pyarrow reads inside the task, so that no record goes through a
JVM. A file of `records` is handed on key by key, row group by row group: what is in memory is the
largest key and one row group, never the file.

A file is judged as it was sealed or not at all: its digest is compared with the manifest's, its
schema with `history.schema`, name by name and type by type.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from fencepost.checkers.runner.memory import out_of_memory
from fencepost.checkers.runner.storage import file_size, parquet_file, sha256
from fencepost.checkers.runner.tasks import TaskResult, TaskSession, run_tasks
from fencepost.checkers.sources import Source
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest
from fencepost.history.models import MODEL_TABLES
from fencepost.history.reader import load_table, table_files
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import RECORD_BUCKET_COUNT, TABLES, with_later_columns
from fencepost.history.writer import bucket_file

Content = TypeVar("Content")

_BATCH_ROWS: Final = 1 << 14
_WORDS: Final = ("key", "f", "outcome", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedFile:
    """A file of a sealed table."""

    path: str
    """Or its URI, where tasks run on machines that do not see the path."""
    digest: str
    """SHA-256 when it was sealed; empty if the manifest does not know it."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets from one to before another, or to the end."""

    first: int
    end: int | None
    unplaced: bool
    """Records without an offset are wanted, too."""

    def may_be_among(self, told: Any) -> bool:
        """Return whether a row group may have any of these, by its statistics of offsets."""
        if told is None or not told.has_min_max or not told.has_null_count:
            return True
        within = told.max >= self.first and (self.end is None or told.min < self.end)
        return bool(within or (self.unplaced and told.null_count))


def operation_files(run: RunDirectory, manifest: Manifest) -> tuple[SealedFile, ...]:
    """Return the files of `operations`. Raises HarnessError if the run has no such file."""
    return _sealed(run, manifest, table_files(run, "operations"))


def record_files(run: RunDirectory, manifest: Manifest) -> tuple[SealedFile, ...]:
    """Return all buckets of `records`, missing ones too: the task that would read them says so."""
    paths = (bucket_file(run.history, bucket) for bucket in range(RECORD_BUCKET_COUNT))
    return _sealed(run, manifest, paths)


def cluster_file(
    run: RunDirectory, manifest: Manifest, name: str, *, bucket: int = 0
) -> SealedFile:
    """Return the file of a table, missing or not; of a table spread by key, a bucket's file."""
    path = run.table_path(name)
    if name in ("records", "replica_records", *MODEL_TABLES.values()):
        path = path / bucket_file(run.history, bucket).name
    return _sealed(run, manifest, [path])[0]


def load_faults(run: RunDirectory) -> pa.Table:
    """Return the faults of the run. Raises HarnessError if the table is missing or damaged."""
    return load_table(run, "faults")


def load_samples(run: RunDirectory) -> pa.Table:
    """Return the samples of the run. Raises HarnessError if the table is missing or damaged."""
    return load_table(run, "samples")


def run_files(
    session: TaskSession,
    files: Sequence[SealedFile],
    work: Callable[[SealedFile], Content],
    *,
    budget_s: float,
    apart: bool = True,
) -> list[TaskResult[SealedFile, Content]]:
    """Run the work on each file (`run_tasks`); large files have a worker each."""
    size = sum(map(byte_count, files))
    return run_tasks(session, files, work, budget_s=budget_s, bytes_in_all=size, apart=apart)


def operations_in(file: SealedFile, columns: Sequence[str]) -> pa.Table:
    """Return these columns of a file of `operations`, words dictionary-encoded.

    Raises HarnessError, naming the file, if it is missing, damaged or of another schema.
    """
    with opened(file, "operations") as parquet:
        return parquet.read(columns=list(columns))


def byte_count(file: SealedFile) -> int:
    """Return the size of a file; 0 if it is not there, which the task that would read it says."""
    try:
        return file_size(file.path)
    except (OSError, pa.ArrowException):
        return 0


def row_count(file: SealedFile) -> int | None:
    """Return the number of rows that a file's metadata states; None if it cannot be read."""
    try:
        with parquet_file(file.path, words=[]) as parquet:
            return int(parquet.metadata.num_rows)
    except (OSError, pa.ArrowException):
        return None


def rows_in(file: SealedFile, name: str) -> pa.Table:
    """Return a file of the table `name`, whole, with its schema.

    Raises HarnessError, naming the file, if it is missing, damaged or of another schema.
    """
    with opened(file, name) as parquet:
        return with_later_columns(parquet.read(), name).cast(TABLES[name])


def offset_end(file: SealedFile) -> int:
    """Return an offset above all of a file of records, by its metadata; 0 if they tell of none."""
    try:
        with parquet_file(file.path, words=[]) as parquet:
            told = [_offsets_of(parquet, group) for group in range(parquet.num_row_groups)]
    except (OSError, pa.ArrowException):
        return 0
    return max((one.max + 1 for one in told if one is not None and one.has_min_max), default=0)


def source_in(file: SealedFile, name: str, *, offsets: "OffsetRange | None" = None) -> Source:
    """Return a file of the table `name` as a stream of batches, verified here and now.

    `offsets`: only row groups are read that may have some of them. Raises HarnessError, naming the
    file, if it is missing, damaged or of another schema.
    """
    with opened(file, name):
        pass
    read = SealedFile(path=file.path, digest="")

    def batches(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([TABLES[name].field(column) for column in columns])
        with opened(read, name) as parquet:
            there = [one for one in columns if one in parquet.schema_arrow.names]
            groups = [
                group
                for group in range(parquet.num_row_groups)
                if offsets is None or offsets.may_be_among(_offsets_of(parquet, group))
            ]
            for batch in parquet.iter_batches(
                _BATCH_ROWS, row_groups=groups, columns=there, use_threads=False
            ):
                arrays = [
                    batch.column(field.name).cast(field.type)
                    if field.name in there
                    else pa.nulls(batch.num_rows, field.type)
                    for field in schema
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        # A table without rows has no batch, and so no schema to go by.
        yield pa.RecordBatch.from_pylist([], schema=schema)

    return batches


def _offsets_of(parquet: Any, group: int) -> Any:
    """Return what is known of the offsets in a row group; None if nothing is."""
    place = parquet.schema_arrow.get_field_index("offset")
    return parquet.metadata.row_group(group).column(place).statistics


def keys_in(file: SealedFile, columns: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """Yield each key of a file of `records` with all its rows, words dictionary-encoded.

    Raises HarnessError, naming the file, if it is missing, damaged, of another schema or not sorted
    by key.
    """
    done: set[str] = set()
    with opened(file, "records") as parquet:
        for key, rows in _runs(parquet, columns):
            if key in done:
                raise HarnessError(f"{file.path} is not sorted by key: {key} comes twice")
            done.add(key)
            yield key, rows


def _runs(parquet: Any, columns: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """Yield stretches of equal keys, each whole, over the bounds of row groups."""
    waiting: list[pa.Table] = []
    current: str | None = None
    for group in range(parquet.num_row_groups):
        table = parquet.read_row_group(group, columns=list(columns))
        for key, rows in stretches_of(table):
            if key != current and current is not None:
                yield current, pa.concat_tables(waiting)
                waiting = []
            current = key
            waiting.append(rows)
    if current is not None:
        yield current, pa.concat_tables(waiting)


def stretches_of(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield neighbouring rows of one key, as slices of the table."""
    for chunk in table.to_batches():
        key = chunk.column("key")
        starts = np.flatnonzero(np.diff(key.indices.to_numpy(), prepend=-1))
        for start, end in zip(starts, np.append(starts[1:], chunk.num_rows), strict=True):
            rows = chunk.slice(int(start), int(end - start))
            yield key[int(start)].as_py(), pa.Table.from_batches([rows])


@contextmanager
def opened(file: SealedFile, name: str) -> Iterator[Any]:
    """Yield the Parquet file of the table `name`, if it is the one that was sealed."""
    try:
        if file.digest and (found := sha256(file.path)) != file.digest:
            raise HarnessError(
                f"{file.path} is not what was sealed: SHA-256 {found}, expected {file.digest}"
            )
        words = [field.name for field in TABLES[name] if field.name in _WORDS]
        with parquet_file(file.path, words=words) as parquet:
            _refuse_other_schema(parquet.schema_arrow, file, name)
            yield parquet
    except MemoryError as error:
        raise HarnessError(f"cannot read {file.path}: {out_of_memory(error)}") from error
    except (OSError, pa.ArrowException) as error:
        raise HarnessError(f"cannot read {file.path}: {str(error).splitlines()[0]}") from error


def _refuse_other_schema(schema: pa.Schema, file: SealedFile, name: str) -> None:
    found = pa.schema([field.with_type(_plain(field.type)) for field in schema])
    plain = with_later_columns(found.empty_table(), name).schema
    if not plain.equals(TABLES[name]):
        raise HarnessError(
            f"{file.path} does not have the schema of {name}: expected "
            f"{', '.join(map(str, TABLES[name]))}; found {', '.join(map(str, plain))}"
        )


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _sealed(run: RunDirectory, manifest: Manifest, paths: Iterable[Path]) -> tuple[SealedFile, ...]:
    return tuple(
        SealedFile(
            path=f"{run.source}/{name}" if run.source else str(run.root / name),
            digest=manifest.digests.get(name, ""),
        )
        for name in (path.relative_to(run.root).as_posix() for path in paths)
    )
