"""The tables of the cluster, sealed: from journals of rows, or from files that a witness wrote.

A table that was not recorded exists and is empty; the manifest's `recorded` tells the difference.
Where a node's metadata offset was told by its heartbeats, the tape has it: `metadata_offsets` is
completed from there.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from history.cluster_schema import CLUSTER_TABLES, METADATA_OFFSETS, WIRE
from history.failure import HarnessError
from history.journal import journal_lines, journal_path
from history.numbered_rows import NUMBERED, numbered_rows
from history.schema import RECORD_BUCKET_COUNT
from history.table_file import TableFile

__all__ = ["write_cluster_tables"]

_BATCH_ROWS: Final = 1 << 16


def write_cluster_tables(raw: Path, history: Path) -> None:
    """Write every table of CLUSTER_TABLES, from `raw` into `history`.

    Raises HarnessError, naming file and line, for a row that does not fit its table.
    """
    for name in CLUSTER_TABLES:
        if name == "replica_records":
            _write_replica_records(raw / name, history / name)
        else:
            with TableFile(history / f"{name}.parquet", name) as file:
                for table in _tables(raw, name):
                    file.add(table)


def _tables(raw: Path, name: str) -> Iterator[pa.Table]:
    written = raw / f"{name}.parquet"
    if written.exists():
        yield from _of_file(written, name)
    if name == "wire":
        yield from _batches(_frames(raw), WIRE, journal_path(raw, name))
    elif name in NUMBERED:
        rows = numbered_rows(raw, name)
        yield from _batches(rows, CLUSTER_TABLES[name], journal_path(raw, name, writer="*"))
    else:
        rows = _rows(journal_path(raw, name), CLUSTER_TABLES[name])
        yield from _batches(rows, CLUSTER_TABLES[name], journal_path(raw, name))
    if name == "metadata_offsets":
        yield from _batches(_heartbeats(raw), METADATA_OFFSETS, journal_path(raw, "wire"))


def _write_replica_records(raw: Path, directory: Path) -> None:
    directory.mkdir()
    for bucket in range(RECORD_BUCKET_COUNT):
        name = f"bucket-{bucket:02}.parquet"
        with TableFile(directory / name, "replica_records") as file:
            if (raw / name).exists():
                for table in _of_file(raw / name, "replica_records"):
                    file.add(table)


def _of_file(path: Path, name: str) -> Iterator[pa.Table]:
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                table = pa.Table.from_batches([batch])
                if not table.schema.equals(CLUSTER_TABLES[name]):
                    raise HarnessError(f"{path} does not have the schema of {name}")
                yield table
    except (OSError, pa.ArrowException) as error:
        raise HarnessError(f"cannot read {path}: {error}") from error


def _batches(
    rows: Iterator[dict[str, Any]], schema: pa.Schema, journal: Path
) -> Iterator[pa.Table]:
    while batch := list(islice(rows, _BATCH_ROWS)):
        try:
            yield pa.Table.from_pylist(batch, schema=schema)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise HarnessError(f"{journal} has a row that does not fit: {error}") from error


def _rows(journal: Path, schema: pa.Schema) -> Iterator[dict[str, Any]]:
    known = set(schema.names)
    required = {field.name for field in schema if not field.nullable}
    for number, line in enumerate(journal_lines(journal), start=1):
        if not required <= line.keys() <= known:
            raise HarnessError(f"{journal}:{number} is not a row of its table: {line}")
        yield line


def _frames(raw: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of `wire`, each with its last known fate."""
    journal = journal_path(raw, "wire")
    # Few frames have a fate of their own: rules make them, and a run has few rules.
    fates = {line["fate"]: line for line in journal_lines(journal) if "fate" in line}
    for line in journal_lines(journal):
        if "frame" not in line:
            continue
        fate: Mapping[str, Any] = fates.get(line["frame"], {})
        later = {name: fate[name] for name in ("action", "forwarded_ns") if name in fate}
        for place, item in enumerate(line["items"] or ({},)):
            yield {**line["columns"], **item, **later, "frame": line["frame"], "item": place}


def _heartbeats(raw: Path) -> Iterator[dict[str, Any]]:
    for row in _frames(raw):
        # One of a version that could not be decoded says nothing of the offset.
        told = "fetch_offset" in row
        if told and row["api"] == "BrokerHeartbeat" and row["direction"] == "request":
            yield {
                "time_ns": row["time_ns"],
                "node": row["source"],
                "metadata_offset": row["fetch_offset"],
                "source": "heartbeat",
            }
