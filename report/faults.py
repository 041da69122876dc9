"""The faults of a run as a report sees them: spans of time on lanes of nodes.

A fault's *effective* span runs from the moment its effect was seen to the moment its heal was seen
to work, or to the end of the recording. A fault without effect has none: it broke nothing, so
nothing may be claimed to have survived it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

RUN_LANE = "run"
"""The lane of a fault that names no target."""


class _Spanning(Protocol):
    """Anything that lasts: a fault, a window."""

    @property
    def index(self) -> int: ...

    @property
    def begin_ns(self) -> int: ...

    def until_ns(self, run_end_ns: int) -> int: ...


S = TypeVar("S", bound=_Spanning)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSpan:
    """One row of `faults`."""

    index: int
    kind: str
    targets: tuple[str, ...]
    begin_ns: int
    effect_ns: int | None
    end_ns: int | None
    evidence: str
    heal_evidence: str
    asked_as: str = ""
    """The kind that was asked for, if this was done for another one: the kill of a wipe."""

    def until_ns(self, run_end_ns: int) -> int:
        """Return the time when it was over; the end of the run if it was never seen to heal."""
        return max(self.begin_ns, run_end_ns if self.end_ns is None else self.end_ns)

    @property
    def label(self) -> str:
        """The label: `kill broker-1, broker-2`."""
        return " ".join(filter(None, (self.kind, ", ".join(self.targets))))


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultLane:
    """The place of a fault on the lane of one target: row `row` of `rows` that overlap there."""

    target: str
    span: FaultSpan
    row: int
    rows: int


def spans_of(faults: pa.Table) -> tuple[FaultSpan, ...]:
    """Return the rows of a `faults` table (schema `history.schema.FAULTS`), ordered by `index`."""
    spans = (
        FaultSpan(
            index=row["index"],
            kind=row["fault"],
            targets=tuple(row["targets"]),
            begin_ns=row["begin_ns"],
            effect_ns=row["effect_ns"],
            end_ns=row["end_ns"],
            evidence=row["evidence"] or "",
            heal_evidence=row["heal_evidence"] or "",
            asked_as="" if row["kind"] == row["fault"] else row["kind"] or "",
        )
        for row in faults.to_pylist()
    )
    return tuple(sorted(spans, key=lambda span: span.index))


def faults_open(
    spans: Sequence[FaultSpan], *, from_ns: int, to_ns: int, run_end_ns: int
) -> tuple[FaultSpan, ...]:
    """Return the faults that had begun and were not over at some time in the closed interval."""
    return tuple(
        span for span in spans if span.begin_ns <= to_ns and span.until_ns(run_end_ns) >= from_ns
    )


def lanes_of(spans: Sequence[FaultSpan], *, run_end_ns: int) -> tuple[FaultLane, ...]:
    """Return each fault on the lane of each of its targets.

    Faults that overlap get rows of their own.
    """
    by_target: dict[str, list[FaultSpan]] = {}
    for span in spans:
        for target in dict.fromkeys(span.targets or (RUN_LANE,)):
            by_target.setdefault(target, []).append(span)
    return tuple(
        FaultLane(target=target, span=span, row=row, rows=rows)
        for target in sorted(by_target, key=_natural)
        for span, row, rows in first_fit(by_target[target], run_end_ns=run_end_ns)
    )


def first_fit(spans: Iterable[S], *, run_end_ns: int) -> list[tuple[S, int, int]]:
    """Return each span with its row and the number of rows, by first fit.

    A span takes the first row whose last span is over when it begins.
    """
    free_from: list[int] = []
    placed: list[tuple[S, int]] = []
    for span in sorted(spans, key=lambda span: (span.begin_ns, span.index)):
        row = next((r for r, free in enumerate(free_from) if free <= span.begin_ns), len(free_from))
        free_from[row : row + 1] = [span.until_ns(run_end_ns)]
        placed.append((span, row))
    return [(span, row, len(free_from)) for span, row in placed]


def _natural(target: str) -> tuple[int, str, int, str]:
    """Return the sort key: controllers, brokers, then the rest; `broker-10` after `broker-9`."""
    role, _, number = target.rpartition("-")
    place = {"controller": 0, "broker": 1}.get(role, 2)
    return (place, role, int(number) if number.isdecimal() else 0, target)
