"""Sealing: the records of the clients and the harness become the tables that checkers read.

It works on any state that a kill left behind; an operation that was invoked and never completed
becomes info. The tables are built next to their place and renamed into it, and only then is the raw
recording removed, so a seal that is killed is simply done again, and one that is done has nothing
left to do. Memory holds a piece of each client at a time, not the history.

The records are sorted by key, operations come in the order of their calls: turning one into the
other takes a pass over all records. They are appended to one scratch file in runs of one key each,
and only the places of the runs are kept in memory; a key's runs, one after the other, are its
records in the order of operation and position. Nothing but a piece at a time is ever sorted.
"""

import fcntl
import logging
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import file_digest
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.history.cluster_schema import CLUSTER_TABLES
from fencepost.history.cluster_tables import (
    fault_table,
    numbered_rows,
    sample_tables,
    write_cluster_tables,
)
from fencepost.history.errors import name_of
from fencepost.history.failure import HarnessError
from fencepost.history.journal import FAULTS_FILE, SAMPLES_FILE
from fencepost.history.key_spill import KeySpill
from fencepost.history.manifest import read_manifest, write_manifest
from fencepost.history.merge import RECORD, merged_operations, operations_of, records_of
from fencepost.history.model_tables import write_keys
from fencepost.history.models import MODEL_TABLES, Model
from fencepost.history.operation import F, Outcome
from fencepost.history.polled_rows import PolledRows
from fencepost.history.raw import RawHistory, read_raw
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import (
    CUT_SEGMENTS,
    OPEN_TABLES,
    OPERATIONS,
    RECORD_BUCKET_COUNT,
    RECORDS,
    SAMPLES,
    TABLES,
)
from fencepost.history.segment_format import NO_KEY, OPEN_NS, UNKNOWN_OFFSET, SegmentKind
from fencepost.history.table_file import PartFiles, TableFile
from fencepost.history.writer import bucket_file, bucket_of, new_history

_LOG: Final = logging.getLogger(__name__)
_OWN_GROUP_ROWS: Final = 1 << 14
_BATCH_ROWS: Final = 1 << 16
_OURS: Final = ("*.segment", "*.polled", "*.new")
_JOURNALS: Final = (
    FAULTS_FILE,
    SAMPLES_FILE,
    *(
        f"{table}{writer}.jsonl"
        for table in (*CLUSTER_TABLES, *OPEN_TABLES)
        for writer in ("", ".*")
    ),
)
_SMALL_KEYS_MAX: Final = np.iinfo(np.int16).max
_F_WORDS: Final = [str(f) for f in F]
_OUTCOME_WORDS: Final = [str(outcome) for outcome in Outcome]


class _RecordSpill:
    """One scratch file of records. First `add`, then `batches`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb")
        self._row_count = 0
        # Of each key the runs (start, end) of its records.
        self._runs: dict[int, list[tuple[int, int]]] = {}

    def add(self, records: NDArray[np.void]) -> None:
        """Append a piece of RECORD whose operations are not before those of earlier pieces."""
        # Of rows, `take` is many times faster than indexing.
        ordered = records.take(_by_key(records))
        keys = ordered["key"]
        bounds = np.append(np.flatnonzero(np.diff(keys, prepend=-1)), len(keys)).tolist()
        ordered.tofile(self._file)
        for start, end in pairwise(bounds):
            run = (self._row_count + start, self._row_count + end)
            self._runs.setdefault(int(keys[start]), []).append(run)
        self._row_count += len(keys)

    def count(self, key: int) -> int:
        """Return the number of records that the key has."""
        return sum(end - start for start, end in self._runs.get(key, ()))

    def batches(self, key: int) -> Iterator[NDArray[np.void]]:
        """Yield the key's records in the order of operation and position, in bounded pieces."""
        if key not in self._runs:
            return
        self._file.flush()
        records = np.memmap(self._path, RECORD, "r")
        batch: list[NDArray[np.void]] = []
        waiting = 0
        for start, end in self._runs[key]:
            batch.append(records[start:end])
            waiting += end - start
            if waiting >= _BATCH_ROWS:
                yield np.concatenate(batch)
                batch, waiting = [], 0
        if batch:
            yield np.concatenate(batch)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._path.unlink()


def seal(run: RunDirectory) -> None:
    """Make the recording in `run.raw` the tables in `run.history`; sealed already, do nothing.

    The manifest, if there is one, gets the digests of the sealed files, while the recording is
    still there: of one that lost its digests later, nothing shows what was sealed. Raises
    HarnessError, naming the file, if a client still records, if a file is not a recording of ours
    or is damaged, if another process seals the same run, or if the disk refuses; the recording is
    then as it was.
    """
    try:
        with _locked(run.root):
            _refuse_living(run.raw)
            if not run.history.is_dir():
                _build(run)
            if run.raw.is_dir():
                note_digests(run)
            _remove_raw(run.raw)
    except OSError as error:
        raise HarnessError(f"cannot seal {run.root}: {error}") from error


def note_digests(run: RunDirectory) -> None:
    """Note the digests of tables that have just been made, if the manifest has none."""
    if not run.manifest_path.is_file():
        return
    manifest = read_manifest(run.manifest_path)
    if not manifest.digests:
        digests = {
            str(path.relative_to(run.root)): _digest(path)
            for path in sorted(run.history.rglob("*.parquet"))
        }
        write_manifest(run.manifest_path, replace(manifest, digests=digests))


def _build(run: RunDirectory) -> None:
    if not run.raw.is_dir():
        raise HarnessError(f"nothing was recorded: {run.raw} does not exist")
    raw = read_raw(run.raw)
    model = read_manifest(run.manifest_path).model if run.manifest_path.is_file() else ""
    for path in raw.cut:
        _LOG.warning("%s was cut short: operations are missing from the history", path)
    objects = (MODEL_TABLES[Model(model)],) if model else ()
    with new_history(run, tables=("operations", "records", *objects)) as history:
        scratch = history / "scratch"
        scratch.mkdir()
        with _RecordSpill(scratch / "records") as spill:
            _write_operations(raw, history / "operations", scratch, spill)
            _write_records(raw.keys, history, spill)
        if model:
            _write_objects(run.raw, history, scratch, Model(model))
        shutil.rmtree(scratch)
        with TableFile(history / "faults.parquet", "faults") as file:
            file.add(fault_table(run.raw / FAULTS_FILE))
        _write_samples(run.raw / SAMPLES_FILE, raw, history / "samples.parquet")
        write_cluster_tables(run.raw, history)


def _write_operations(raw: RawHistory, directory: Path, scratch: Path, spill: _RecordSpill) -> None:
    keys = {name: index for index, name in enumerate(raw.keys)}
    consumers = [client for client in raw.clients if client.kind is SegmentKind.POLLS]
    polled = {
        client.process: PolledRows(client, keys=keys, scratch=scratch) for client in consumers
    }
    streams = [
        operations_of(client, keys=keys, polled=polled.get(client.process))
        for client in raw.clients
    ]
    index = 0
    with PartFiles(directory, "operations") as parts:
        for piece in merged_operations(streams):
            parts.add(_operation_table(piece, first_index=index, keys=raw.keys))
            for records in records_of(piece, first_index=index, polled=polled):
                spill.add(records)
            index += len(piece)


def _write_records(keys: Sequence[str], history: Path, spill: _RecordSpill) -> None:
    for bucket in range(RECORD_BUCKET_COUNT):
        with TableFile(bucket_file(history, bucket), "records") as file:
            for number, key in enumerate(keys):
                if bucket_of(key) == bucket:
                    _write_key(number, key, file, spill)


def _write_key(number: int, key: str, file: TableFile, spill: _RecordSpill) -> None:
    # A key worth a row group gets its own, so that it can be read alone; small ones share.
    alone = spill.count(number) >= _OWN_GROUP_ROWS
    if alone:
        file.end_row_group()
    for records in spill.batches(number):
        file.add(_record_table(records, key=key))
    if alone:
        file.end_row_group()


def _write_objects(raw: Path, history: Path, scratch: Path, model: Model) -> None:
    """Write what clients did to objects, from the journals of its table."""
    name = MODEL_TABLES[model]
    rows = numbered_rows(raw, name)
    with KeySpill(scratch / name, TABLES[name]) as spill:
        while batch := list(islice(rows, _BATCH_ROWS)):
            spill.add(pa.Table.from_pylist(batch, schema=TABLES[name]))
        write_keys(history, model, spill.keys())


def _write_samples(journal: Path, raw: RawHistory, path: Path) -> None:
    cut = Counter(path.name.rpartition("-")[0] for path in raw.cut)
    lost = [
        {"time_ns": 0, "source": client, "metric": CUT_SEGMENTS, "value": float(count)}
        for client, count in sorted(cut.items())
    ]
    with TableFile(path, "samples") as file:
        file.add(pa.Table.from_pylist(lost, schema=SAMPLES))
        for samples in sample_tables(journal):
            file.add(samples)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _remove_raw(raw: Path) -> None:
    """Remove what was recorded; what others put there stays, and so does the directory then."""
    if not raw.is_dir():
        return
    for pattern in (*_OURS, *_JOURNALS, *(f"{table}.parquet" for table in CLUSTER_TABLES)):
        for path in raw.glob(pattern):
            path.unlink()
    shutil.rmtree(raw / "replica_records", ignore_errors=True)
    if not any(raw.iterdir()):
        raw.rmdir()


def _refuse_living(raw: Path) -> None:
    for pattern in ("*-000000.segment", "*-000000.polled", *_JOURNALS):
        for path in raw.glob(pattern):
            with path.open("rb") as file:
                if not _lock(file.fileno()):
                    raise HarnessError(f"{path} is still being written: stop its client first")


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not _lock(descriptor):
            raise HarnessError(f"another process is sealing {root}")
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _by_key(records: NDArray[np.void]) -> NDArray[np.int64]:
    """Return the order by key, then operation, then position in the file."""
    by_operation = np.argsort(records["operation"], kind="stable")
    keys = records["key"]
    if len(keys) and keys.max() <= _SMALL_KEYS_MAX:
        keys = keys.astype(np.int16)  # Sorted by radix: much faster.
    order: NDArray[np.int64] = by_operation[np.argsort(keys[by_operation], kind="stable")]
    return order


def _operation_table(
    operations: NDArray[np.void], *, first_index: int, keys: Sequence[str]
) -> pa.Table:
    """Return pieces of `merge.OPERATION`, numbered from `first_index`, as rows of OPERATIONS."""
    index = np.arange(first_index, first_index + len(operations))
    return _table(
        OPERATIONS,
        index=pa.array(index),
        process=_numbers(operations["process"]),
        f=_words(operations["f"], _F_WORDS),
        key=_words(operations["key"], keys, null=NO_KEY),
        call_ns=_numbers(operations["call_ns"]),
        return_ns=_numbers(operations["return_ns"], null=OPEN_NS),
        outcome=_words(operations["outcome"], _OUTCOME_WORDS),
        error=_errors(operations),
        record_count=_numbers(operations["record_count"].astype(np.int32)),
    )


def _record_table(records: NDArray[np.void], *, key: str) -> pa.Table:
    """Return a piece of `records.RECORD`, all of one key, as rows of RECORDS."""
    return _table(
        RECORDS,
        key=_words(np.zeros(len(records), np.int32), [key]),
        offset=_numbers(records["offset"], null=UNKNOWN_OFFSET),
        value=_numbers(records["value"]),
        operation=_numbers(records["operation"]),
        position=_numbers(records["position"]),
        process=_numbers(records["process"]),
        f=_words(records["f"], _F_WORDS),
        outcome=_words(records["outcome"], _OUTCOME_WORDS),
        call_ns=_numbers(records["call_ns"]),
        return_ns=_numbers(records["return_ns"], null=OPEN_NS),
        session=_numbers(records["session"]),
    )


def _table(schema: pa.Schema, **columns: pa.Array) -> pa.Table:
    assert list(columns) == schema.names, f"{list(columns)} is not {schema.names}"
    fields = [field.with_type(columns[field.name].type) for field in schema]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


def _numbers(values: NDArray[Any], *, null: int | None = None) -> pa.Array:
    contiguous = np.ascontiguousarray(values)
    return pa.array(contiguous, mask=None if null is None else contiguous == null)


def _words(codes: NDArray[Any], words: Sequence[str], *, null: int | None = None) -> pa.Array:
    indices = _numbers(codes.astype(np.int32), null=null)
    return pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.string()))


def _errors(operations: NDArray[np.void]) -> pa.Array:
    """Return the errors' names of what did not end well; null for the rest, or if none is known."""
    codes = np.where(operations["outcome"] == Outcome.OK.code, 0, operations["error"])
    known, indices = np.unique(codes, return_inverse=True)
    words = [name_of(code) for code in known.tolist()]
    none = np.searchsorted(known, 0) if 0 in known else NO_KEY
    return _words(indices, words, null=int(none))
