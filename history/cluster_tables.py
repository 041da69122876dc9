"""The tables of the cluster, sealed: from journals of rows, or from files that a witness wrote.

Of the harness's own journals, events of faults are put together, and samples stand as they are.

A table that was not recorded exists and is empty; the manifest's `recorded` tells the difference.
Where a node's metadata offset was told by its heartbeats, the tape has it: `metadata_offsets` is
completed from there.

Rows with numbers are in the order of their calls. Every writer numbers its own from 0 and writes
when something ends, so a journal is nearly in order; the journals of several writers are merged by
the times of the calls and numbered anew. In memory is what was begun before the oldest that is
still open. A client that was killed leaves what it had begun without an end: an event that is info,
a read that claims nothing and is left out.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.history.cluster_schema import CLUSTER_TABLES, METADATA_OFFSETS, WIRE
from fencepost.history.failure import HarnessError
from fencepost.history.journal import journal_lines, journal_path, journal_paths
from fencepost.history.schema import FAULTS, RECORD_BUCKET_COUNT, SAMPLES, TABLES
from fencepost.history.table_file import TableFile

_BATCH_ROWS: Final = 1 << 16
_NUMBERED: Final = {
    "describes": ("read", "call_ns"),
    "metadata_writes": ("index", "call_ns"),
    "partition_writes": ("index", "call_ns"),
    "transactions": ("index", "begin_ns"),
    "group_offsets": ("index", "call_ns"),
    "znode_operations": ("index", "call_ns"),
    "model_operations": ("index", "call_ns"),
    "micro_operations": ("transaction", "call_ns"),
}
"""The number's column of each table, and the column of the time that it follows."""

_EVENTS: Final = ("begin", "note", "end")
_OPEN: Final[dict[str, dict[str, Any]]] = {
    "metadata_writes": {"outcome": "info"},
    "partition_writes": {"outcome": "info"},
    "transactions": {"outcome": "info", "keys": [], "values": []},
    "group_offsets": {"outcome": "info", "keys": [], "offsets": []},
    "znode_operations": {"outcome": "info"},
    "model_operations": {"outcome": "info"},
    "micro_operations": {"outcome": "info"},
}
_STEPS: Final = "steps"
"""The key of an event that has a row a step: what is different in each, in their order."""

_Rows = list[dict[str, Any]]
_NOTED: Final = {"effect": ("effect_ns", "evidence"), "end": ("end_ns", "heal_evidence")}


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
    elif name in _NUMBERED:
        rows = numbered_rows(raw, name)
        yield from _batches(rows, CLUSTER_TABLES[name], journal_path(raw, name, writer="*"))
    else:
        rows = _rows(journal_path(raw, name), CLUSTER_TABLES[name])
        if name == "windows":
            rows = iter({row["index"]: row for row in rows}.values())
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


def numbered_rows(raw: Path, table: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a numbered table, in order, from all its journals in `raw`.

    Raises HarnessError, naming file and line, for a line that makes no sense.
    """
    number_column, time_column = _NUMBERED[table]
    streams = [_in_order(_ended(path, table)) for path in journal_paths(raw, table)]
    merged = heapq.merge(*streams, key=lambda rows: rows[0][time_column])
    for number, rows in enumerate(merged):
        for row in rows:
            yield {**row, number_column: number}


def _in_order(ended: Iterable[tuple[int, _Rows]]) -> Iterator[_Rows]:
    """Yield rows by their numbers. A number that never comes is one whose writer died meanwhile."""
    waiting: list[tuple[int, _Rows]] = []
    following = 0
    for number, rows in ended:
        heapq.heappush(waiting, (number, rows))
        while waiting and waiting[0][0] == following:
            following += 1
            yield from _any(heapq.heappop(waiting)[1])
    while waiting:
        yield from _any(heapq.heappop(waiting)[1])


def _any(rows: _Rows) -> list[_Rows]:
    """Return the rows as a list; a read that was left out has a number, and no rows."""
    return [rows] if rows else []


def _ended(path: Path, table: str) -> Iterator[tuple[int, _Rows]]:
    """Yield each number once, with its rows, in the order of their ends; then what is open."""
    known, required = _columns(table)
    open_rows: dict[int, dict[str, Any]] = {}
    for place, line in enumerate(journal_lines(path), start=1):
        try:
            if "read" in line:
                number, rows = _read(line)
            else:
                number, rows = _event(line, open_rows, _OPEN[table])
        except (KeyError, TypeError, ValueError) as error:
            raise HarnessError(f"{path}:{place} is not a line of {table}: {line}") from error
        if rows is None:
            continue
        if not all(required <= row.keys() <= known for row in rows):
            raise HarnessError(f"{path}:{place} does not have the columns of {table}: {line}")
        yield number, rows
    for number, row in open_rows.items():
        rows = _by_step(row)
        if not all(required <= one.keys() <= known for one in rows):
            raise HarnessError(f"{path} begins a {table} {number} without its columns: {row}")
        yield number, rows


def _read(line: dict[str, Any]) -> tuple[int, _Rows | None]:
    return line["read"], [line["columns"] | item for item in line["items"]]


def _event(
    line: dict[str, Any], open_rows: dict[int, dict[str, Any]], unended: dict[str, Any]
) -> tuple[int, _Rows | None]:
    (event,) = line.keys() & set(_EVENTS)
    number = line.pop(event)
    if event == "begin":
        open_rows[number] = unended | line
        return number, None
    open_rows[number] |= line
    return number, _by_step(open_rows.pop(number)) if event == "end" else None


def _by_step(row: dict[str, Any]) -> _Rows:
    steps = row.pop(_STEPS, None)
    if steps is None:
        return [row]
    return [row | step | {"position": place} for place, step in enumerate(steps)]


def _columns(table: str) -> tuple[set[str], set[str]]:
    """Return the columns that a row may have, and must have, before it is numbered."""
    schema = TABLES[table]
    numbered = {_NUMBERED[table][0]}
    required = {field.name for field in schema if not field.nullable}
    return set(schema.names) - numbered, required - numbered


def fault_table(journal: Path) -> pa.Table:
    """Return the faults, in the order in which they began; of an absent journal, none.

    Raises HarnessError, naming file and line, for an event that makes no sense.
    """
    faults: list[dict[str, Any]] = []
    for number, line in enumerate(journal_lines(journal), start=1):
        try:
            _apply(line, faults)
        except (KeyError, IndexError, TypeError) as error:
            raise HarnessError(f"{journal}:{number} is not an event of a fault: {line}") from error
    # One that was known only when it was over stands behind those that began meanwhile.
    faults.sort(key=lambda fault: int(fault["begin_ns"]))
    in_order = [fault | {"index": index} for index, fault in enumerate(faults)]
    return pa.Table.from_pylist(in_order, schema=FAULTS)


def sample_tables(journal: Path) -> Iterator[pa.Table]:
    """Yield the samples in the order in which they were taken, a bounded number at a time.

    Raises HarnessError, naming file and line, for a line that is no sample.
    """
    rows = _samples(journal)
    while batch := list(islice(rows, _BATCH_ROWS)):
        yield pa.Table.from_pylist(batch, schema=SAMPLES)


def _apply(line: dict[str, Any], faults: list[dict[str, Any]]) -> None:
    if line["event"] == "begin":
        begun = {"begin_ns": line["time_ns"], "index": len(faults)}
        said = {name: line[name] for name in ("fault", "targets")}
        faults.append(begun | said | {"kind": line.get("kind")})
        return
    time_name, words_name = _NOTED[line["event"]]
    fault = faults[line["index"]]
    # The first time counts.
    fault.setdefault(time_name, line["time_ns"])
    fault.setdefault(words_name, line["evidence"])


def _samples(journal: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(journal_lines(journal), start=1):
        if set(line) != set(SAMPLES.names):
            raise HarnessError(f"{journal}:{number} is not a sample: {line}")
        yield line
