"""Everything a report needs of a run directory, whatever state the run was left in.

A report is most needed when things went wrong. So whatever cannot be read becomes a *trouble*, a
sentence of its own on the page, and the rest is shown all the same.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fencepost.checkers.verdict import Verdict, read_verdict
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest, RunState, read_manifest
from fencepost.history.reader import load_table, table_files
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import FAULTS, SAMPLES
from fencepost.report.anomalies import AnomalyGroup, groups_in, groups_of
from fencepost.report.faults import FaultSpan, spans_of
from fencepost.report.functions import OF_ZNODES, Functions, functions_of
from fencepost.report.tally import RunTally, TallyFold
from fencepost.report.timeline import Timeline, TimelineFold, bins_for, block_of
from fencepost.report.windows import WindowSpan, window_spans_of

_BATCH_ROWS: Final = 1 << 18
_WORDS: Final = ("f", "outcome", "error")
_CLIENT_TABLES: Final = frozenset(("operations", "records"))
"""The tables of a run whose manifest cannot be read."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAnswers:
    """The answers of a run without its history: little to read, however long the run was."""

    manifest: Manifest | None
    verdict: Verdict | None
    troubles: tuple[str, ...]
    """The parts that could not be read, a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All that was found in the run directory. Tables that are missing are empty."""

    manifest: Manifest | None
    verdict: Verdict | None
    anomalies: tuple[AnomalyGroup, ...]
    end_ns: int
    """The time when the recording ended, or the last time that any table names."""
    spans: tuple[FaultSpan, ...]
    windows: tuple[WindowSpan, ...] | None
    """None: the run did not record them."""
    samples: pa.Table
    functions: Functions
    """The functions of the operations that the timeline and the tally count."""
    timeline: Timeline
    tally: RunTally
    operation_files: tuple[Path, ...]
    record_files: tuple[Path, ...]
    model_files: tuple[Path, ...]
    """The files of an open history on objects with keys of their own."""
    troubles: tuple[str, ...]
    """The parts that could not be read, a sentence each."""

    @property
    def has_counts(self) -> bool:
        """True if the timeline and the tally are of the operations: not of an open history."""
        return self.functions == OF_ZNODES or self.manifest is None or not self.manifest.model


def read_answers(run: RunDirectory) -> RunAnswers:
    """Return the manifest and the verdict of a run in any state."""
    attempts = Attempts()
    manifest = attempts.read(lambda: read_manifest(run.manifest_path), None)
    verdict = None
    # A run that failed has no verdict, and one that still runs none yet: that is its state, which
    # the headline tells, and no trouble.
    if run.verdict_path.exists() or (manifest is not None and manifest.state is RunState.CHECKED):
        verdict = attempts.read(lambda: read_verdict(run.verdict_path), None)
    return RunAnswers(
        manifest=manifest,
        verdict=verdict,
        troubles=tuple(attempts.troubles),
    )


def read_run(run: RunDirectory) -> Reading:
    """Read all of a run in any state, passing once over its operations in bounded memory."""
    attempts = Attempts()
    faults, samples = FAULTS.empty_table(), SAMPLES.empty_table()
    windows: tuple[WindowSpan, ...] | None = ()
    operation_files: tuple[Path, ...] = ()
    record_files: tuple[Path, ...] = ()
    model_files: tuple[Path, ...] = ()
    # A run that failed early left nothing to read, which is no trouble either.
    if run.history.is_dir() or any(run.raw.glob("*")):
        faults = attempts.read(lambda: load_table(run, "faults"), faults)
        windows = attempts.read(lambda: _windows(run), windows)
        samples = attempts.read(lambda: load_table(run, "samples"), samples)
        operation_files = _files(run, "operations", attempts)
        record_files = _files(run, "records", attempts)
        model_files = tuple(file for name in _DRAWN_TABLES for file in _files(run, name, attempts))
    answers = read_answers(run)
    spelled_out: tuple[AnomalyGroup, ...] = attempts.read(lambda: groups_in(run.anomalies), ())
    spans = spans_of(faults)
    functions = functions_of(answers.manifest)
    counted = model_files if functions == OF_ZNODES else operation_files
    end_ns = attempts.read(lambda: _end_ns(answers.manifest, counted, spans, samples), 1)
    timeline, tally = attempts.read(
        lambda: _fold(counted, functions, spans=spans, end_ns=end_ns),
        _fold((), functions, spans=spans, end_ns=end_ns),
    )
    return Reading(
        manifest=answers.manifest,
        verdict=answers.verdict,
        anomalies=groups_of(spelled_out, answers.verdict or Verdict.of(())),
        end_ns=end_ns,
        spans=spans,
        windows=windows,
        samples=samples,
        functions=functions,
        timeline=timeline,
        tally=tally,
        operation_files=operation_files,
        record_files=record_files,
        model_files=model_files,
        troubles=(*answers.troubles, *dict.fromkeys(attempts.troubles)),
    )


_DRAWN_TABLES: Final = ("model_operations", "znode_operations")
"""The tables of objects whose operations are drawn as intervals; a run has one of them at most."""


def _is_open(run: RunDirectory) -> bool:
    """Return whether it is an open history, which has no clients of Kafka."""
    manifest = Attempts().read(lambda: read_manifest(run.manifest_path), None)
    return manifest is not None and manifest.model != ""


class Attempts:
    """Reads what can be read, and keeps what stood in the way."""

    def __init__(self) -> None:
        self.troubles: list[str] = []

    def read(self, read: Callable[[], T], otherwise: T) -> T:
        """Return the result of `read`, or `otherwise` if the files are not as they should be."""
        try:
            return read()
        except (HarnessError, OSError, pa.ArrowException) as error:
            self.troubles.append(str(error))
        except RecursionError:  # nested as no writer of ours nests it
            self.troubles.append("a file of the run is nested too deeply to be read")
        return otherwise


def _files(run: RunDirectory, name: str, attempts: Attempts) -> tuple[Path, ...]:
    """Return the files of a table of clients, if the run has it: open histories have others."""
    recorded = _CLIENT_TABLES
    if run.manifest_path.exists():
        recorded = attempts.read(lambda: read_manifest(run.manifest_path).tables, recorded)
    return attempts.read(lambda: table_files(run, name), ()) if name in recorded else ()


def _windows(run: RunDirectory) -> tuple[WindowSpan, ...] | None:
    if "windows" not in read_manifest(run.manifest_path).recorded:
        return None
    return window_spans_of(load_table(run, "windows"))


def _fold(
    files: Sequence[Path], functions: Functions, *, spans: Sequence[FaultSpan], end_ns: int
) -> tuple[Timeline, RunTally]:
    timeline = TimelineFold(bins_for(end_ns), functions)
    tally = TallyFold(spans, functions, run_end_ns=end_ns)
    for batch in _batches(files, functions.columns):
        block = block_of(batch, functions)
        timeline.add(block)
        tally.add(block)
    return timeline.done(), tally.done()


def _batches(files: Sequence[Path], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for path in files:
        missing = set(columns) - set(pq.read_schema(path).names)
        if missing:
            raise HarnessError(f"{path} has no column {', '.join(sorted(missing))}")
        # Words are read as dictionaries: a row has numbers, and no string is built for it.
        with pq.ParquetFile(path, read_dictionary=list(_WORDS)) as file:
            yield from file.iter_batches(batch_size=_BATCH_ROWS, columns=list(columns))


def _end_ns(
    manifest: Manifest | None,
    operation_files: Sequence[Path],
    spans: Sequence[FaultSpan],
    samples: pa.Table,
) -> int:
    """Return the end of the run, at least 1, so that a run without any time still has a scale."""
    if manifest is not None and manifest.end_ns is not None:
        return max(1, manifest.end_ns)
    times = [1, pc.max(samples["time_ns"]).as_py() or 0]
    times += [max(span.begin_ns, span.effect_ns or 0, span.end_ns or 0) for span in spans]
    for batch in _batches(operation_files, ("call_ns", "return_ns")):
        times += [pc.max(column).as_py() or 0 for column in batch.columns]
    return max(times)
