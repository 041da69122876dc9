"""The tables of a page: checks, faults with their grounds, operations and errors."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from checkers.catalogue import Entry, Kind
from checkers.verdict import CheckResult
from history.errors import registry
from history.schema import F, Outcome
from report.faults import FaultSpan
from report.head import HeadFact
from report.notation import figure, length
from report.proofs import known_entry
from report.reading import Reading
from report.tally import ErrorCount, Grounds

__all__ = [
    "CheckPart",
    "CheckRow",
    "ErrorRow",
    "FaultRow",
    "FaultTable",
    "OperationRow",
    "checks_of",
    "errors_of",
    "faults_of",
    "operations_of",
]

_FAULTS_MAX: Final = 500
"""The bound on rows of faults; hours of them are better read from the table itself."""

_ERRORS_MAX: Final = 100

_PARTS: Final = {
    Kind.ANOMALY: "Anomalies that must not occur",
    Kind.GROUND: "Grounds: without them nothing is proven",
    Kind.ASSUMPTION: "Assumptions that the checks rest on",
}
_OTHERS: Final = "Not in this catalogue"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """One check: its answer and what it measured."""

    result: CheckResult
    entry: Entry | None
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
    grounds: Grounds | None
    """None if it took no effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultTable:
    """The first `_FAULTS_MAX` faults."""

    rows: tuple[FaultRow, ...]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow:
    """One kind of operation, by outcome."""

    f: F
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
                grounds=reading.tally.grounds.get(span.index),
            )
            for span in reading.spans[:_FAULTS_MAX]
        ),
        left_out=max(0, len(reading.spans) - _FAULTS_MAX),
    )


def operations_of(reading: Reading) -> tuple[OperationRow, ...]:
    """Return each kind of operation that occurred."""
    counts = reading.tally.counts
    rows = (
        OperationRow(
            f=f,
            ok=counts.get((f, Outcome.OK), 0),
            info=counts.get((f, Outcome.INFO), 0),
            fail=counts.get((f, Outcome.FAIL), 0),
        )
        for f in F
    )
    return tuple(row for row in rows if row.total)


def errors_of(reading: Reading) -> tuple[ErrorRow, ...]:
    """Return the errors, the most frequent first."""
    return tuple(_errors(reading))


def _check(result: CheckResult, entry: Entry | None) -> CheckRow:
    figures = (figure(*item) for item in result.figures.items())
    return CheckRow(
        result=result,
        entry=entry,
        figures=tuple(HeadFact(label=label, value=value) for label, value in figures),
        seconds=length(result.seconds * 1e9),
    )


def _errors(reading: Reading) -> Iterator[ErrorRow]:
    meanings = {entry.name: entry.meaning for entry in registry().values()}
    meanings[""] = "No answer came before the recording ended or its client died."
    for count in reading.tally.errors[:_ERRORS_MAX]:
        meaning = meanings.get(count.error, "Not in the registry of errors.")
        yield ErrorRow(count=count, name=count.error or "no answer", meaning=meaning)
