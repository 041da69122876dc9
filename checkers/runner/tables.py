"""How sealed tables reach the kernels: the only place that reads them.

The unit of work is a file. A DataFrame of paths has a row a file; inside the task pyarrow reads
the file, so that no record goes through the JVM. A file of `records` is handed on key by key, row
group by row group: what is in memory is the largest key and one row group, never the file. A task
costs a tenth of a second whatever it does, so small files share one, one after the other.

A file is judged as it was sealed or not at all: its digest is compared with the manifest's, its
schema with `history.schema`, name by name and type by type.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Timer
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it
from pyspark.sql.pandas.types import from_arrow_schema

from checkers.runner.in_process import InProcessFrame, InProcessSession
from checkers.runner.memory import out_of_memory
from checkers.runner.storage import file_size, parquet_file, sha256
from history.failure import HarnessError
from history.manifest import Manifest
from history.models import MODEL_TABLES
from history.reader import load_table, table_files
from history.run_directory import RunDirectory
from history.schema import RECORD_BUCKET_COUNT, TABLES, with_later_columns
from history.writer import bucket_file

__all__ = [
    "JobError",
    "SealedFile",
    "byte_count",
    "cluster_file",
    "collected",
    "file_frame",
    "keys_in",
    "load_faults",
    "load_samples",
    "opened",
    "operation_files",
    "operations_in",
    "record_files",
    "row_count",
    "rows_in",
    "scanned",
    "stretches_of",
    "task_count",
]

_WORDS: Final = ("key", "f", "outcome", "error")
_REASON_LENGTH_MAX: Final = 400
_TASK_BYTES: Final = 1 << 20
"""Of Parquet: what takes much longer to judge than a task takes to start."""
_DEAD_WORKER: Final = "Python worker exited unexpectedly"


class JobError(Exception):
    """A Spark job that did not answer: why, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedFile:
    """A file of a sealed table."""

    path: str
    """Or its URI, where tasks run on machines that do not see the path."""
    digest: str
    """SHA-256 when it was sealed; empty if the manifest does not know it."""


def operation_files(run: RunDirectory, manifest: Manifest) -> tuple[SealedFile, ...]:
    """The files of `operations`. Raises HarnessError if there are none."""
    return _sealed(run, manifest, table_files(run, "operations"))


def record_files(run: RunDirectory, manifest: Manifest) -> tuple[SealedFile, ...]:
    """All buckets of `records`, missing ones too: the task that would read them says so."""
    paths = (bucket_file(run.history, bucket) for bucket in range(RECORD_BUCKET_COUNT))
    return _sealed(run, manifest, paths)


def cluster_file(
    run: RunDirectory, manifest: Manifest, name: str, *, bucket: int = 0
) -> SealedFile:
    """The file of a table, missing or not: of those that are spread by key, that of a bucket."""
    path = run.table_path(name)
    if name in ("records", "replica_records", *MODEL_TABLES.values()):
        path = path / bucket_file(run.history, bucket).name
    return _sealed(run, manifest, [path])[0]


def load_faults(run: RunDirectory) -> pa.Table:
    """The faults of the run. Raises HarnessError if the table is missing or damaged."""
    return load_table(run, "faults")


def load_samples(run: RunDirectory) -> pa.Table:
    """The samples of the run. Raises HarnessError if the table is missing or damaged."""
    return load_table(run, "samples")


def file_frame(spark: SparkSession, files: Sequence[SealedFile]) -> DataFrame:
    """One row a file: path, digest. Large files have a partition each."""
    if isinstance(spark, InProcessSession):
        return cast("DataFrame", spark.rows([asdict(file) for file in files]))
    number = F.col("id") + 1
    paths = F.array(*(F.lit(file.path) for file in files))
    digests = F.array(*(F.lit(file.digest) for file in files))
    tasks = task_count(spark, len(files), bytes_in_all=sum(map(byte_count, files)))
    return spark.range(0, len(files), 1, tasks).select(
        F.element_at(paths, number.cast("int")).alias("path"),
        F.element_at(digests, number.cast("int")).alias("digest"),
    )


def task_count(spark: SparkSession, pieces: int, *, bytes_in_all: int) -> int:
    """How many tasks these pieces of work are worth: enough for every core, at most one each."""
    enough = max(spark.sparkContext.defaultParallelism, bytes_in_all // _TASK_BYTES)
    return max(1, min(pieces, enough))


def scanned(
    files: DataFrame, kernel: Callable[[SealedFile], Iterator[pa.Table]], *, schema: pa.Schema
) -> DataFrame:
    """What `kernel` makes of each file, as rows of `schema`.

    `kernel` is called in a task, with one file, which fits in memory as its own docstring says.
    """
    return files.mapInArrow(_Task(kernel), from_arrow_schema(schema))


def collected(frame: DataFrame, *, schema: pa.Schema, budget_s: float) -> pa.Table:
    """The rows of a small frame. Raises JobError if the job dies or outlasts its budget."""
    if isinstance(frame, InProcessFrame):
        found = frame.toArrow()
        return found.cast(schema) if found.num_columns else schema.empty_table()
    context = frame.sparkSession.sparkContext
    tag, ran_out = "fencepost-check", Event()

    def give_up() -> None:
        ran_out.set()
        context.cancelJobsWithTag(tag)

    timer = Timer(budget_s, give_up)
    context.addJobTag(tag)
    timer.start()
    try:
        return frame.toArrow().cast(schema)
    except (PySparkException, Py4JError) as error:
        if ran_out.is_set():
            raise JobError(f"it did not end within its budget of {budget_s:g} s") from error
        raise JobError(_reason(str(error))) from error
    finally:
        timer.cancel()
        context.removeJobTag(tag)


def operations_in(file: SealedFile, columns: Sequence[str]) -> pa.Table:
    """These columns of a file of `operations`, words dictionary-encoded.

    Raises HarnessError, naming the file, if it is missing, damaged or of another schema.
    """
    with opened(file, "operations") as parquet:
        return parquet.read(columns=list(columns))


def byte_count(file: SealedFile) -> int:
    """The size of a file; 0 if it is not there, which the task that would read it says."""
    try:
        return file_size(file.path)
    except (OSError, pa.ArrowException):
        return 0


def row_count(file: SealedFile) -> int | None:
    """How many rows a file says it has; None if it cannot be read."""
    try:
        with parquet_file(file.path, words=[]) as parquet:
            return int(parquet.metadata.num_rows)
    except (OSError, pa.ArrowException):
        return None


def rows_in(file: SealedFile, name: str) -> pa.Table:
    """A file of the table `name`, whole, with its schema.

    Raises HarnessError, naming the file, if it is missing, damaged or of another schema.
    """
    with opened(file, name) as parquet:
        return with_later_columns(parquet.read(), name).cast(TABLES[name])


def keys_in(file: SealedFile, columns: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """Each key of a file of `records` with all its rows of these columns, words dictionary-encoded.

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


@dataclass(frozen=True, slots=True)
class _Task:
    """A kernel of files, as `mapInArrow` calls it: batches of paths in, batches of rows out."""

    kernel: Callable[[SealedFile], Iterator[pa.Table]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                for table in self.kernel(SealedFile(**row)):
                    yield from table.to_batches()


def _runs(parquet: Any, columns: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """Stretches of equal keys, each whole, over the bounds of row groups."""
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
    """Neighbouring rows of one key, as slices of the table."""
    for chunk in table.to_batches():
        key = chunk.column("key")
        starts = np.flatnonzero(np.diff(key.indices.to_numpy(), prepend=-1))
        for start, end in zip(starts, np.append(starts[1:], chunk.num_rows), strict=True):
            rows = chunk.slice(int(start), int(end - start))
            yield key[int(start)].as_py(), pa.Table.from_batches([rows])


@contextmanager
def opened(file: SealedFile, name: str) -> Iterator[Any]:
    """The Parquet file of the table `name`, if it is the one that was sealed."""
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
        raise HarnessError(f"cannot read {file.path}: {_reason(str(error))}") from error


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


def _reason(text: str) -> str:
    """What went wrong, of an error message that goes on with stack traces."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = next((line for line in lines if _DEAD_WORKER in line), lines[0] if lines else text)
    return found[:_REASON_LENGTH_MAX]


def _sealed(run: RunDirectory, manifest: Manifest, paths: Iterable[Path]) -> tuple[SealedFile, ...]:
    return tuple(
        SealedFile(
            path=f"{run.source}/{name}" if run.source else str(run.root / name),
            digest=manifest.digests.get(name, ""),
        )
        for name in (path.relative_to(run.root).as_posix() for path in paths)
    )
