"""The tables of a page: checks, faults with their grounds, operations, errors, inputs and files."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from fencepost.checkers.entry import CatalogueEntry, Kind
from fencepost.checkers.grounds.operation_kinds import operation_kinds_in
from fencepost.checkers.grounds.windows import WindowKind, strikes_in, window_kinds_in
from fencepost.checkers.verdict import CheckResult
from fencepost.history.errors import registry
from fencepost.history.manifest import Manifest
from fencepost.history.operation import Outcome
from fencepost.history.run_directory import RunDirectory
from fencepost.report.faults import FaultSpan
from fencepost.report.head import HeadFact
from fencepost.report.notation import figure, length
from fencepost.report.proofs import known_entry
from fencepost.report.reading import Reading, RunAnswers
from fencepost.report.service import fault_latency
from fencepost.report.tally import ErrorCount, Grounds
from fencepost.report.windows import WindowSpan

_FAULTS_MAX: Final = 500
"""The bound on rows of faults; hours of them are better read from the table itself."""
_WINDOWS_MAX: Final = 500
"""The bound on rows of windows, likewise."""

_ERRORS_MAX: Final = 100

_PARTS: Final = {
    Kind.ANOMALY: "Anomalies that must not occur",
    Kind.GROUND: "Grounds: without them nothing is proven",
    Kind.ASSUMPTION: "Assumptions that the checks rest on",
}
_OTHERS: Final = "Not in this catalogue"

_REFUSED: Final = (
    "refused",
    "An answer: what it asked for did not hold at some moment between its call and its return.",
)
_UNANSWERED: Final = (
    "no answer",
    "No answer came before the recording ended or its client died.",
)
_FILES_MAX: Final = 1000
"""The bound on listed files; a run of hundreds of nodes is better searched with a shell."""
_DATA: Final = "disk"
"""The directory of a node's own files: Kafka's, thousands of them, and no evidence of ours."""
# First what people open first.
_ORDER: Final = (".", "history", "anomalies", "nodes", "clients")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """One check: its answer and what it measured."""

    result: CheckResult
    entry: CatalogueEntry | None
    figures: tuple[HeadFact, ...]
    seconds: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPart:
    """The checks of one kind, in the order of the verdict."""

    title: str
    rows: tuple[CheckRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """One fault: when, on what, the evidence for its effect and heal, what succeeded meanwhile."""

    span: FaultSpan
    effect_after: str
    """The time until its effect was seen; empty: none was."""
    lasted: str
    latency: str
    """The p99 of what waited during it; empty: not known."""
    grounds: Grounds | None
    """None if it took no effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultTable:
    """The first `_FAULTS_MAX` faults."""

    rows: tuple[FaultRow, ...]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRow:
    """One window: when it opened after it was laid, when it was struck after that, how long."""

    span: WindowSpan
    opened_after: str
    """Empty: it never opened."""
    struck_after: str
    """The time from its opening to the first strike; empty: none took effect."""
    lasted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTable:
    """The windows of a run: counts by kind, and the first `_WINDOWS_MAX` of them."""

    kinds: tuple[WindowKind, ...]
    strikes: tuple[str, ...]
    """The kinds of strike, which are the columns of the counts."""
    rows: tuple[WindowRow, ...]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow:
    """The operations of one function, by outcome."""

    f: str
    ok: int
    info: int
    fail: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.ok + self.info + self.fail


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow:
    """One error, with what the registry knows of it."""

    count: ErrorCount
    name: str
    meaning: str


def checks_of(reading: Reading) -> tuple[CheckPart, ...]:
    """Return every check of the verdict: the anomalies first, then what their answers rest on."""
    results = reading.verdict.checks if reading.verdict else ()
    parts: dict[str, list[CheckRow]] = {title: [] for title in (*_PARTS.values(), _OTHERS)}
    for result in results:
        entry = known_entry(result.check)
        parts[_PARTS[entry.kind] if entry else _OTHERS].append(_check(result, entry))
    return tuple(CheckPart(title=title, rows=tuple(rows)) for title, rows in parts.items() if rows)


def faults_of(reading: Reading) -> FaultTable:
    """Return the faults in the order of their begin."""
    return FaultTable(
        rows=tuple(
            FaultRow(
                span=span,
                effect_after=(
                    "" if span.effect_ns is None else length(span.effect_ns - span.begin_ns)
                ),
                lasted=("≥ " if span.end_ns is None else "")
                + length(span.until_ns(reading.end_ns) - span.begin_ns),
                latency=_latency(reading, span.index),
                grounds=reading.tally.grounds.get(span.index),
            )
            for span in reading.spans[:_FAULTS_MAX]
        ),
        left_out=max(0, len(reading.spans) - _FAULTS_MAX),
    )


def _latency(reading: Reading, fault: int) -> str:
    level = reading.verdict.service_level if reading.verdict else None
    found = fault_latency(level, fault)
    return "" if found is None else length(found.p99_ms * 1e6)


def windows_of(reading: Reading) -> WindowTable | None:
    """Return the windows in the order in which they were laid; None if they were not recorded."""
    if reading.windows is None:
        return None
    kinds = (reading.verdict and window_kinds_in(reading.verdict)) or ()
    return WindowTable(
        kinds=kinds,
        strikes=strikes_in(kinds),
        rows=tuple(_window(span, reading.end_ns) for span in reading.windows[:_WINDOWS_MAX]),
        left_out=max(0, len(reading.windows) - _WINDOWS_MAX),
    )


def operations_of(reading: Reading) -> tuple[OperationRow, ...]:
    """Return each function whose operations occurred, then each kind that clients were to do."""
    counts = reading.tally.counts
    rows = (
        OperationRow(
            f=f,
            ok=counts.get((f, Outcome.OK), 0),
            info=counts.get((f, Outcome.INFO), 0),
            fail=counts.get((f, Outcome.FAIL), 0),
        )
        for f in reading.functions.names
    )
    kinds = operation_kinds_in(reading.verdict) if reading.verdict else ()
    besides = (
        OperationRow(f=one.kind, ok=one.ok_count, info=one.info_count, fail=one.fail_count)
        for one in kinds
    )
    return (*(row for row in rows if row.total), *besides)


def errors_of(reading: Reading) -> tuple[ErrorRow, ...]:
    """Return the errors, the most frequent first."""
    return tuple(_errors(reading))


def _window(span: WindowSpan, run_end_ns: int) -> WindowRow:
    held_ns = span.held_ns
    return WindowRow(
        span=span,
        opened_after="" if held_ns is None else length(held_ns - span.begin_ns),
        struck_after=(
            "" if held_ns is None or span.strike_ns is None else length(span.strike_ns - held_ns)
        ),
        lasted=("≥ " if span.end_ns is None else "")
        + length(span.until_ns(run_end_ns) - (span.begin_ns if held_ns is None else held_ns)),
    )


def _check(result: CheckResult, entry: CatalogueEntry | None) -> CheckRow:
    figures = (figure(*item) for item in result.figures.items())
    return CheckRow(
        result=result,
        entry=entry,
        figures=tuple(HeadFact(label=label, value=value) for label, value in figures),
        seconds=length(result.seconds * 1e9),
    )


def _errors(reading: Reading) -> Iterator[ErrorRow]:
    meanings = {entry.name: entry.meaning for entry in registry().values()}
    for count in reading.tally.errors[:_ERRORS_MAX]:
        if count.error:
            name = count.error
            meaning = meanings.get(name, "Not in the registry of errors.")
        elif reading.functions.have_refusals and count.outcome is Outcome.FAIL:
            name, meaning = _REFUSED
        else:
            name, meaning = _UNANSWERED
        yield ErrorRow(count=count, name=name, meaning=meaning)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """One file of the run directory."""

    name: str
    link: str
    """The link to it, relative to the page."""
    byte_count: int | None
    """The size; None: the manifest has its digest, but the file is not there."""
    digest: str
    """The SHA-256 from the manifest, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """The files of one directory."""

    name: str
    files: tuple[FileRow, ...]

    @property
    def of_logs(self) -> bool:
        """True if these are the logs of a node or of the clients."""
        return self.name.split("/", 1)[0] in ("nodes", "clients")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """All of it."""

    versions: tuple[HeadFact, ...]
    machine: tuple[HeadFact, ...]
    promises: tuple[HeadFact, ...]
    folders: tuple[Folder, ...]
    complete: bool
    """False if there are more than `_FILES_MAX` files."""


def provenance_of(run: RunDirectory, reading: Reading | RunAnswers) -> Provenance:
    """Look at the run directory as it is now."""
    manifest = reading.manifest
    digests = manifest.digests if manifest else {}
    found = _sizes(run.root, leave_out=run.report_path)
    missing = sorted(name for name in digests if not (run.root / name).exists())
    return Provenance(
        versions=tuple(_versions(manifest)) if manifest else (),
        machine=_facts(manifest.machine) if manifest else (),
        promises=tuple(_promises(manifest)) if manifest else (),
        folders=_folders(
            {**dict(list(found.items())[:_FILES_MAX]), **{Path(name): None for name in missing}},
            digests=digests,
        ),
        complete=len(found) <= _FILES_MAX,
    )


def _versions(manifest: Manifest) -> Iterator[HeadFact]:
    yield HeadFact(label="fencepost", value=manifest.fencepost_version)
    yield from _facts(manifest.versions)
    for change in manifest.changes:
        yield HeadFact(
            label=f"{change.subject}, from {length(change.time_ns)}", value=change.version
        )


def _promises(manifest: Manifest) -> Iterator[HeadFact]:
    promises = manifest.promises
    yield HeadFact(label="acks", value=promises.acks)
    yield HeadFact(label="idempotence", value="on" if promises.idempotent else "off")
    yield HeadFact(label="consumers", value=promises.consume)
    yield HeadFact(label="keys", value=", ".join(manifest.keys) or "none")


def _facts(mapping: Mapping[str, str]) -> tuple[HeadFact, ...]:
    return tuple(HeadFact(label=label, value=str(value)) for label, value in mapping.items())


def _sizes(root: Path, *, leave_out: Path) -> dict[Path, int | None]:
    """Return sizes by relative path, a few more than are listed at most. Links are not followed."""
    found: dict[Path, int | None] = {}
    for directory, below, names in os.walk(root):
        below[:] = sorted(name for name in below if name != _DATA)
        for path in (Path(directory, name) for name in sorted(names)):
            # A node that still runs may rotate its logs meanwhile.
            if path != leave_out and path.is_file():
                found[path.relative_to(root)] = path.stat().st_size
        if len(found) > _FILES_MAX:
            break
    return found


def _folders(sizes: Mapping[Path, int | None], *, digests: Mapping[str, str]) -> tuple[Folder, ...]:
    by_folder: dict[str, list[FileRow]] = {}
    for path, byte_count in sizes.items():
        row = FileRow(
            name=path.name,
            link="./" + quote(os.fsencode(path)),
            byte_count=byte_count,
            digest=digests.get(str(path), ""),
        )
        by_folder.setdefault(str(path.parent), []).append(row)
    return tuple(
        Folder(name=name, files=tuple(sorted(by_folder[name], key=lambda row: row.name)))
        for name in sorted(by_folder, key=_place)
    )


def _place(folder: str) -> tuple[int, str]:
    top = folder.split("/", 1)[0]
    return (_ORDER.index(top) if top in _ORDER else len(_ORDER), folder)
