"""The journals that a run writes row by row: faults, samples, frames, reads of metadata.

One `write` a line, to a file opened for appending: a line is there whole, or it is the torn last
one of a writer that was killed, which a reader leaves out. The open file is locked (flock), so that
the seal knows when its writer lives; the lock dies with the process.

    faults.jsonl    {"event": "begin", "index": 0, "time_ns": …, "fault": …, "targets": […],
                     "kind": …}
                    {"event": "effect" | "end", "index": 0, "time_ns": …, "evidence": …}
    samples.jsonl   {"time_ns": …, "source": …, "metric": …, "value": …}
    wire.jsonl      {"frame": n, "columns": {…}, "items": [{…}, …]}, as a frame arrives, and
                    {"fate": n, "action": …, "forwarded_ns": …}, where that changes later
    describes.jsonl {"read": n, "columns": {…}, "items": [{…}, …]}, as a read ends
    metadata_writes.jsonl, partition_writes.jsonl, transactions.jsonl, group_offsets.jsonl,
    znode_operations.jsonl, model_operations.jsonl
                    {"begin": n, …} before it is done, then {"note": n, …} and {"end": n, …}
    micro_operations.jsonl
                    likewise; "steps": [{…}, …] has what is different in each step
    windows.jsonl   a row each, written anew whenever more is known of it: the last one counts
    TABLE.jsonl     any other table of `cluster_schema`: a row each, what is null left out

A numbered table (reads, writes, transactions) may have several writers, each with a journal of its
own, TABLE.WRITER.jsonl, and its own numbers from 0; sealing merges them by time.
"""

import fcntl
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final, Self

from fencepost.history.clock import TellsTime
from fencepost.history.failure import HarnessError
from fencepost.history.schema import TABLES

FAULTS_FILE: Final = "faults.jsonl"
SAMPLES_FILE: Final = "samples.jsonl"

_NEW_FOR_APPENDING: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL


class _Journal:
    """A file of lines, written until the journal is closed or its context ends."""

    def __init__(self, path: Path) -> None:
        self._lines = _Lines(path)

    def close(self) -> None:
        """Write no more, so that the journal may be sealed. Idempotent."""
        self._lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FaultJournal(_Journal):
    """The journal of faults: each as it begins, shows its effect, and ends. Thread-safe."""

    def __init__(self, directory: Path, clock: TellsTime) -> None:
        super().__init__(directory / FAULTS_FILE)
        self._clock = clock
        self._lock = Lock()
        self._count = 0
        self._effective: set[int] = set()

    @property
    def effect_count(self) -> int:
        """The number of faults that were seen to work so far."""
        return len(self._effective)

    def begin(self, fault: str, targets: Iterable[str], *, kind: str | None = None) -> int:
        """Record, before it is done, that `fault` is done to `targets`; return its index.

        `kind`: the kind of fault that was asked for; None: `fault` itself.
        """
        with self._lock:
            index = self._count
            self._count += 1
            self._write("begin", index, fault=fault, targets=list(targets), kind=kind or fault)
        return index

    def effect(self, index: int, evidence: str) -> None:
        """Record that the fault was seen to work, and what was seen. Only the first time counts."""
        with self._lock:
            self._effective.add(index)
            self._write("effect", index, evidence=evidence)

    def end(self, index: int, evidence: str) -> None:
        """Record that the heal was seen to work, and what was seen. Only the first time counts."""
        with self._lock:
            self._write("end", index, evidence=evidence)

    def past(
        self, fault: str, targets: Iterable[str], *, begin_ns: int, end_ns: int, evidence: str
    ) -> None:
        """Record a fault that nobody did, and that was known only when it was over."""
        with self._lock:
            index = self._count
            self._count += 1
            self._write("begin", index, begin_ns, fault=fault, targets=list(targets), kind=fault)
            self._write("effect", index, begin_ns, evidence=evidence)
            self._write("end", index, end_ns, evidence=evidence)

    def _write(self, event: str, index: int, time_ns: int | None = None, **content: object) -> None:
        assert 0 <= index < self._count, f"no fault {index} of {self._count}"
        time_ns = self._clock.now_ns() if time_ns is None else time_ns
        self._lines.write({"event": event, "index": index, "time_ns": time_ns} | content)


class SampleJournal(_Journal):
    """The journal of figures that were measured on the way. Thread-safe."""

    def __init__(self, directory: Path, clock: TellsTime) -> None:
        super().__init__(directory / SAMPLES_FILE)
        self._clock = clock

    def add(self, source: str, metric: str, value: float) -> None:
        """Record a figure, now: of a node, a client or "run"; the metric's suffix is its unit."""
        assert math.isfinite(value), f"{source} {metric} is {value}"
        time_ns = self._clock.now_ns()
        sample = {"time_ns": time_ns, "source": source, "metric": metric, "value": float(value)}
        self._lines.write(sample)


class RowJournal(_Journal):
    """The journal of rows of one of the cluster's tables. Thread-safe; one writer a table."""

    def __init__(self, directory: Path, table: str) -> None:
        self._columns = frozenset(TABLES[table].names)
        super().__init__(journal_path(directory, table))

    def add(self, row: Mapping[str, object]) -> None:
        """Record a row; columns that are left out are null."""
        assert row.keys() <= self._columns, row.keys() - self._columns
        self._lines.write(row)


class EventJournal(_Journal):
    """The journal of what clients do, before they do it and again when it has ended. Thread-safe.

    For the tables with an `index` and an `outcome`. An event that was begun and not ended is info,
    so that a client may be killed at any moment. A client that begins from several threads takes
    the time and begins under one lock: the numbers must follow the times. Of a table with a row a
    step (`position`), `steps` has the columns that differ.
    """

    def __init__(self, directory: Path, table: str, *, writer: str = "") -> None:
        columns = {*TABLES[table].names} - {"index"}
        self._columns = columns | {"steps"} if "position" in columns else columns
        super().__init__(journal_path(directory, table, writer=writer))
        self._lock = Lock()
        self._count = 0

    def begin(self, columns: Mapping[str, object]) -> int:
        """Record what is about to be done, before it is; return its number in this journal."""
        with self._lock:
            number = self._count
            self._count += 1
            self._write("begin", number, columns)
        return number

    def note(self, number: int, columns: Mapping[str, object]) -> None:
        """Record more of what was begun; later columns win over earlier ones."""
        self._write("note", number, columns)

    def end(self, number: int, columns: Mapping[str, object]) -> None:
        """Record how it ended: `outcome` and whatever else is known now. Once."""
        assert "outcome" in columns, f"event {number} ends without an outcome"
        self._write("end", number, columns)

    def _write(self, event: str, number: int, columns: Mapping[str, object]) -> None:
        assert 0 <= number < self._count, f"no event {number} of {self._count}"
        assert columns.keys() <= self._columns, columns.keys() - self._columns
        self._lines.write({event: number, **columns})


class ReadJournal(_Journal):
    """The journal of reads of `describes`, numbered in the order of their calls. Thread-safe."""

    def __init__(self, directory: Path, clock: TellsTime, *, writer: str = "") -> None:
        self._columns = frozenset(TABLES["describes"].names) - {"read", "call_ns"}
        super().__init__(journal_path(directory, "describes", writer=writer))
        self._clock = clock
        self._lock = Lock()
        self._count = 0

    def begin(self) -> tuple[int, int]:
        """Begin a read that is about to be called; return its number and the time."""
        with self._lock:
            number = self._count
            self._count += 1
            return number, self._clock.now_ns()

    def end(
        self,
        number: int,
        *,
        call_ns: int,
        columns: Mapping[str, object],
        items: Sequence[Mapping[str, object]],
    ) -> None:
        """Record what a read returned, now: what all of it shares, and a row an item."""
        assert 0 <= number < self._count, f"no read {number} of {self._count}"
        assert columns.keys() <= self._columns, columns.keys() - self._columns
        shared = {"call_ns": call_ns, "return_ns": self._clock.now_ns(), **columns}
        self._lines.write({"read": number, "columns": shared, "items": items})

    def drop(self, number: int) -> None:
        """Leave out a read that need not be kept; others need not wait for its end."""
        self._lines.write({"read": number, "columns": {}, "items": ()})


class TapeJournal(_Journal):
    """The journal of frames of the wire: each as it arrives, and again if its fate changes."""

    def __init__(self, directory: Path) -> None:
        self._columns = frozenset(TABLES["wire"].names) - {"frame", "item"}
        super().__init__(journal_path(directory, "wire"))
        self._count = 0

    def frame(
        self, columns: Mapping[str, object], items: Sequence[Mapping[str, object]] = ()
    ) -> int:
        """Record a frame: shared columns, and what items add or override; return its number."""
        assert columns.keys() <= self._columns, columns.keys() - self._columns
        number = self._count
        self._count += 1
        self._lines.write({"frame": number, "columns": columns, "items": items})
        return number

    def fate(self, frame: int, *, action: str, forwarded_ns: int | None) -> None:
        """Record what became of a frame, over what was said when it arrived."""
        assert 0 <= frame < self._count, f"no frame {frame} of {self._count}"
        self._lines.write({"fate": frame, "action": action, "forwarded_ns": forwarded_ns})


def journal_path(directory: Path, table: str, *, writer: str = "") -> Path:
    """Return the path of the journal of a cluster table, or that of one of its several writers."""
    return directory / (f"{table}.{writer}.jsonl" if writer else f"{table}.jsonl")


def journal_paths(directory: Path, table: str) -> tuple[Path, ...]:
    """Return the existing journals of a table, of all its writers."""
    return tuple(sorted([*directory.glob(f"{table}.jsonl"), *directory.glob(f"{table}.*.jsonl")]))


def journal_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a journal, if it is there; a torn last one is left out.

    Raises HarnessError, naming file and line, for anything else that is not a JSON object.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            yield _parsed(line, path, number)


class _Lines:
    """A locked file that takes whole lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._descriptor = os.open(path, _NEW_FOR_APPENDING, 0o644)
        except OSError as error:
            raise HarnessError(f"cannot create the journal {path}: {error.strerror}") from error
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        self._lock = Lock()

    def write(self, content: Mapping[str, object]) -> None:
        """Append one line. Raises HarnessError, naming the file, if the disk refuses."""
        line = json.dumps(content).encode() + b"\n"
        try:
            with self._lock:
                end = os.fstat(self._descriptor).st_size
                whole = os.write(self._descriptor, line) == len(line)
                if not whole:
                    os.ftruncate(self._descriptor, end)  # Half a line would spoil the next one.
        except OSError as error:
            raise HarnessError(f"cannot write to {self._path}: {error.strerror}") from error
        if not whole:
            raise HarnessError(f"cannot write to {self._path}: the disk is full")

    def close(self) -> None:
        """Close the file and give up its lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _parsed(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise HarnessError(f"{path}:{number} is not a line of a journal: {line[:80]!r}")
    return content
