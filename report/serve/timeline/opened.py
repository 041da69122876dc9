"""Runs that a browser looks at: what was read of them is kept while their files stay the same."""

import threading
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pyarrow.dataset as ds
import pyarrow.parquet as pq

from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest, read_manifest
from fencepost.history.reader import load_table
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import FAULTS
from fencepost.report.faults import FaultSpan, spans_of
from fencepost.report.frames import DISTURBING
from fencepost.report.palette import fault_colours
from fencepost.report.reading import Attempts
from fencepost.report.sequence import RULE_KINDS
from fencepost.report.serve.timeline.events import (
    BUCKETS,
    TIMES,
    RunCounts,
    TimelineReader,
    files_of,
)
from fencepost.report.serve.timeline.payload import body, columns_of
from fencepost.report.serve.timeline.pins import Pin, pins_of

EVENTS_MAX: Final = 1_200_000
"""The events that one answer has at most: of more, a browser is shown counts."""
_RUNS_KEPT: Final = 4
_SPANS_KEPT: Final = 2
_ROWS: Final = {
    "request": (("wire", "frame"),),
    "response": (("wire", "frame"),),
    "operation": (
        ("operations", "index"),
        ("model_operations", "index"),
        ("znode_operations", "index"),
        ("micro_operations", "transaction"),
    ),
    "record": (("metadata_log", "metadata_offset"),),
}
_ROWS_MAX: Final = 8


class OpenRun:
    """One run, and what was read of it."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run
        self.manifest: Manifest = read_manifest(run.manifest_path)
        attempts = Attempts()
        faults = attempts.read(lambda: load_table(run, "faults"), FAULTS.empty_table())
        self.spans: tuple[FaultSpan, ...] = spans_of(faults)
        self._troubles = tuple(attempts.troubles)
        self._lock = threading.Lock()
        self.reader = TimelineReader(
            run=run, manifest=self.manifest, end_ns=_end_ns(run, self.manifest, self.spans)
        )
        self._overview: RunCounts | None = None
        self._body: bytes = b""
        self._answers: OrderedDict[tuple[int, int], bytes] = OrderedDict()

    def overview(self) -> bytes:
        """Return the whole run by counts, its lanes, faults and pins."""
        with self._lock:
            if not self._body:
                overview = self._counted()
                pins, remarks = self.pins()
                header = {
                    **self._words(),
                    "title": self.manifest.title,
                    "events": overview.event_count,
                    "eventsMax": EVENTS_MAX,
                    "buckets": BUCKETS,
                    "faults": self._faults(),
                    "pins": [
                        {"kind": one.kind, "t": one.time_ns, "text": one.text, "row": one.row}
                        for one in pins
                    ],
                    "remarks": [*self._troubles, *remarks],
                }
                columns = columns_of(overview.bars)
                columns |= {"counts": overview.counts.ravel(), "odd": overview.odd_counts.ravel()}
                self._body = body(header, columns)
            return self._body

    @property
    def event_count(self) -> int:
        """The number of events of the run."""
        with self._lock:
            return self._counted().event_count

    def events(self, from_ns: int, to_ns: int) -> bytes:
        """Return the single events of a span; none, and `many`, if there are too many."""
        with self._lock:
            key = (from_ns, to_ns)
            if key not in self._answers:
                self._counted()
                block = self.reader.events(from_ns, to_ns, at_most=EVENTS_MAX)
                span = {"from": from_ns, "to": to_ns}
                if block is None:
                    answer = body({**span, "many": True}, {})
                else:
                    answer = body({**self._words(), **span, "many": False}, columns_of(block))
                self._answers[key] = answer
                while len(self._answers) > _SPANS_KEPT:
                    self._answers.popitem(last=False)
            return self._answers[key]

    def pins(self) -> tuple[tuple[Pin, ...], tuple[str, ...]]:
        """Return the pins, and a sentence for each that could not be read."""
        return pins_of(self.run, self.spans)

    def rows(self, kind: str, row: int) -> list[dict[str, Any]]:
        """Return the fields of an event, by the rows of its table, without nulls."""
        for table, column in _ROWS.get(kind, ()):
            path = self.run.table_path(table)
            if path.exists():
                found = ds.dataset(path).head(_ROWS_MAX, filter=ds.field(column) == row)
                if len(found):
                    return [
                        {"table": table}
                        | {name: _plain(value) for name, value in one.items() if value is not None}
                        for one in found.to_pylist()
                    ]
        return []

    def log_node(self) -> str:
        """Return the node whose metadata log is shown; empty if there is none."""
        with self._lock:
            return self.reader.log_node()

    def _counted(self) -> RunCounts:
        if self._overview is None:
            self._overview = self.reader.overview()
        return self._overview

    def _words(self) -> dict[str, Any]:
        reader = self.reader
        return {
            "end": reader.end_ns,
            "lanes": [{"kind": one.kind, "name": one.name} for one in reader.lane_list()],
            "whats": reader.whats.words,
            "keys": reader.keys.words,
            "fates": reader.fates.words,
            "errors": reader.errors.words,
            "brokerEpochs": reader.broker_epochs.words,
            "disturbing": sorted(DISTURBING),
        }

    def _faults(self) -> list[dict[str, Any]]:
        colours = fault_colours(span.kind for span in self.spans)
        return [
            {
                "kind": span.kind,
                "targets": span.targets,
                "begin": span.begin_ns,
                "effect": span.effect_ns,
                "rule": span.kind in RULE_KINDS,
                "end": span.until_ns(self.reader.end_ns),
                "light": colours[span.kind].light,
                "dark": colours[span.kind].dark,
                "evidence": span.evidence,
            }
            for span in self.spans
        ]


_kept: OrderedDict[Path, tuple[tuple[int, ...], OpenRun]] = OrderedDict()
_kept_lock = threading.Lock()


def opened(root: Path) -> OpenRun:
    """Return the run at `root`, read anew if its files have changed.

    Raises HarnessError if it is no run.
    """
    run = RunDirectory(root)
    stamps = tuple(
        path.stat().st_mtime_ns if path.exists() else 0
        for path in (run.manifest_path, run.history, run.verdict_path, run.forensics_path)
    )
    with _kept_lock:
        found = _kept.get(root)
        if found is None or found[0] != stamps:
            if not run.manifest_path.is_file():
                raise HarnessError(f"{root} is not a run: it has no manifest.json")
            found = (stamps, OpenRun(run))
            _kept[root] = found
        _kept.move_to_end(root)
        while len(_kept) > _RUNS_KEPT:
            _kept.popitem(last=False)
        return found[1]


def _end_ns(run: RunDirectory, manifest: Manifest, spans: Iterable[FaultSpan]) -> int:
    """Return the last time that the run's tables tell, by their statistics."""
    ends = [1, manifest.end_ns or 0]
    ends += [max(one.begin_ns, one.end_ns or 0) for one in spans]
    for table, times in TIMES.items():
        for path in files_of(run, table):
            metadata = pq.read_metadata(path)
            for group in map(metadata.row_group, range(metadata.num_row_groups)):
                for column in map(group.column, range(group.num_columns)):
                    told = column.statistics
                    if column.path_in_schema in times and told is not None and told.has_min_max:
                        is_stamp = column.path_in_schema == "timestamp_ms"
                        ends.append(
                            told.max * 1_000_000 - manifest.origin_utc_ns if is_stamp else told.max
                        )
    return int(max(ends))


def _plain(value: Any) -> Any:
    """Return a value as JSON keeps it: whole numbers beyond 2^53 as text."""
    if isinstance(value, bool) or not isinstance(value, int | bytes):
        return value
    if isinstance(value, bytes):
        return value.hex()
    return value if abs(value) < 1 << 53 else str(value)
