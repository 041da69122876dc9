"""Sealed tables, written: from what a seal gathers, or directly from tables at hand.

`records` is spread over RECORD_BUCKET_COUNT files by the key's CRC-32, so that a key is always in
one file, whichever client wrote it; each file is sorted by key, operation, position.
"""

import os
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.history.atomic import sync
from fencepost.history.failure import HarnessError
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import RECORD_BUCKET_COUNT, RUN_TABLES
from fencepost.history.table_file import TableFile

_RECORD_ORDER: Final = [(name, "ascending") for name in ("key", "operation", "position")]
_REPLICA_ORDER: Final = [(name, "ascending") for name in ("key", "node", "offset")]


def bucket_of(key: str) -> int:
    """Return the number of the file of `records` that holds a key."""
    return zlib.crc32(key.encode()) % RECORD_BUCKET_COUNT


def bucket_file(history: Path, bucket: int) -> Path:
    """Return the file of a bucket, in a history."""
    return history / "records" / f"bucket-{bucket:02}.parquet"


def write_tables(
    run: RunDirectory,
    *,
    operations: pa.Table,
    records: pa.Table,
    faults: pa.Table | None = None,
    samples: pa.Table | None = None,
    cluster: Mapping[str, pa.Table] = MappingProxyType({}),
) -> None:
    """Make these tables the sealed history of `run`, whose directory is made if need be.

    They have the schemas of `history.schema`, rows of `records` in any order; `cluster` has tables
    of the cluster by name. For importers and for
    those who test checkers. Raises HarnessError if the run has a history, or the disk refuses.
    """
    tables: dict[str, pa.Table | None] = {
        "operations": operations,
        "records": records,
        "faults": faults,
        "samples": samples,
        **cluster,
    }
    for name, table in tables.items():
        assert table is None or table.schema.equals(RUN_TABLES[name]), f"{name}: {table.schema}"
    if run.history.exists():
        raise HarnessError(f"{run.history} exists: a sealed history is not written again")
    run.root.mkdir(parents=True, exist_ok=True)
    with new_history(run) as history:
        _write(history / "operations" / "part-0000.parquet", "operations", operations)
        for bucket, chosen in enumerate(_buckets(records, order=_RECORD_ORDER)):
            _write(bucket_file(history, bucket), "records", chosen)
        for name in RUN_TABLES:
            if name not in ("operations", "records", "replica_records"):
                _write(history / f"{name}.parquet", name, tables.get(name))
        (history / "replica_records").mkdir()
        replicas = tables.get("replica_records") or RUN_TABLES["replica_records"].empty_table()
        for bucket, chosen in enumerate(_buckets(replicas, order=_REPLICA_ORDER)):
            path = history / "replica_records" / f"bucket-{bucket:02}.parquet"
            _write(path, "replica_records", chosen)


@contextmanager
def new_history(
    run: RunDirectory, *, tables: Sequence[str] = ("operations", "records")
) -> Iterator[Path]:
    """A directory to build a history in, which takes its place at the end, whole or not at all.

    `tables` are those of many files, whose directories it makes. Raises HarnessError if the disk
    refuses; what was built of it is removed.
    """
    building = run.root / ".history.building"
    try:
        shutil.rmtree(building, ignore_errors=True)
        for name in tables:
            (building / name).mkdir(parents=True)
        yield building
        for directory in (*(building / name for name in tables), building):
            sync(directory)
        os.replace(building, run.history)  # noqa: PTH105 - Path.replace hides that it is atomic
        sync(run.root)
    except BaseException as error:
        shutil.rmtree(building, ignore_errors=True)
        if isinstance(error, OSError):
            raise HarnessError(f"cannot write the history of {run.root}: {error}") from error
        raise


def _write(path: Path, name: str, table: pa.Table | None) -> None:
    with TableFile(path, name) as file:
        if table is not None:
            file.add(table)


def _buckets(records: pa.Table, *, order: list[tuple[str, str]]) -> Sequence[pa.Table]:
    encoded = pc.dictionary_encode(records["key"].combine_chunks())
    buckets = np.array([bucket_of(key) for key in encoded.dictionary.to_pylist()], np.int64)
    bucket_of_row = buckets[encoded.indices.to_numpy(zero_copy_only=False)]
    return [
        records.filter(pa.array(bucket_of_row == bucket)).sort_by(order)
        for bucket in range(RECORD_BUCKET_COUNT)
    ]
