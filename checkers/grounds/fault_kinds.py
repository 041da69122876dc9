"""The effects of each kind of fault that a run was asked for, and the clients served meanwhile.

The ground about faults carries it as figures (`fault-effects`, or that of the run's objects), so
that a verdict has it; code that shows the verdict reads it back from there (`kinds_in`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from fencepost.checkers.grounds.history_summary import HistorySummary
from fencepost.checkers.grounds.operations import during_kind
from fencepost.checkers.verdict import Verdict
from fencepost.history.beat import STALL
from fencepost.history.manifest import Manifest
from fencepost.history.operation import F, Outcome

_BEGUN: Final = "_begun_count"
_EFFECT: Final = "_effect_count"
_SENDS: Final = "_acknowledged_sends_count"
_WRITES: Final = "_writes_count"
"""Of objects, the acknowledged ones."""
_READS: Final = "_reads_count"
_OFTEN: Final = 3
"""A kind that was drawn less often may have been over each time before any client was served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultKind:
    """One kind of fault in one run. Counts are of faults, and of operations called during them."""

    kind: str
    begun_count: int
    effect_count: int
    acknowledged_sends_count: int | None = None
    """Called while a fault of this kind was in effect; None: the operations could not be read."""
    reads_count: int | None = None
    """Ok polls with records, likewise."""


def kind_of_row(row: Mapping[str, object]) -> str:
    """Return the kind of a row of FAULTS; of a run that did not record it, what was done."""
    return str(row["kind"] or row["fault"])


def kinds_of_run(
    manifest: Manifest, faults: pa.Table, summary: HistorySummary | None
) -> tuple[FaultKind, ...]:
    """Return the kinds that were asked for, in that order, then any other that the run had."""
    rows = faults.to_pylist()
    begun = Counter(map(kind_of_row, rows))
    effective = Counter(kind_of_row(row) for row in rows if row["effect_ns"] is not None)
    return tuple(
        FaultKind(
            kind=kind,
            begun_count=begun[kind],
            effect_count=effective[kind],
            acknowledged_sends_count=None if summary is None else _served(summary, F.SEND, kind),
            reads_count=None if summary is None else _served(summary, F.POLL, kind),
        )
        for kind in dict.fromkeys((*manifest.asked_faults, *begun))
    )


def to_be_served(
    manifest: Manifest, kinds: Iterable[FaultKind]
) -> Mapping[str, tuple[FaultKind, ...]]:
    """Return the kinds during which clients have to be served, some during each of the entries.

    The scenario names them. If it does not: each kind that took effect; of drawn ones each that
    the scenario demands or that took effect three times, and any of all. Nobody can be served
    during a stall of the machine.
    """
    effective = tuple(one for one in kinds if one.effect_count and one.kind != STALL)
    named = manifest.served_faults
    if named is not None or not manifest.drawn:
        return {one.kind: (one,) for one in effective if named is None or one.kind in named}
    demanded = manifest.required_faults
    owed = (one for one in effective if one.effect_count >= _OFTEN or one.kind in demanded)
    return ({"any fault": effective} if effective else {}) | {one.kind: (one,) for one in owed}


def figures_of(kinds: Iterable[FaultKind]) -> dict[str, float]:
    """Return the figures of a check: `kill_begun_count`, `kill_effect_count` and so on."""
    return dict(pair for kind in kinds for pair in _figures(kind))


def kinds_in(verdict: Verdict) -> tuple[FaultKind, ...]:
    """Return the kinds that a verdict tells; none for other versions and open histories."""
    told = (one.figures for one in verdict.checks if any(map(_is_effect, one.figures)))
    figures = next(told, {})
    return tuple(
        FaultKind(
            kind=kind,
            begun_count=int(begun),
            effect_count=int(figures[kind + _EFFECT]),
            acknowledged_sends_count=_whole(
                figures.get(kind + _SENDS, figures.get(kind + _WRITES))
            ),
            reads_count=_whole(figures.get(kind + _READS)),
        )
        for name, begun in figures.items()
        if name.endswith(_BEGUN) and (kind := name.removesuffix(_BEGUN))
    )


def _is_effect(figure: str) -> bool:
    return figure.endswith(_EFFECT)


def _served(summary: HistorySummary, f: F, kind: str) -> int:
    return sum(
        count
        for called, count in summary.counts.items()
        if (called.f, called.outcome, called.empty) == (f, Outcome.OK, False)
        and called.time == during_kind(kind)
    )


def _figures(kind: FaultKind) -> Iterator[tuple[str, float]]:
    yield kind.kind + _BEGUN, kind.begun_count
    yield kind.kind + _EFFECT, kind.effect_count
    if kind.acknowledged_sends_count is not None:
        yield kind.kind + _SENDS, kind.acknowledged_sends_count
    if kind.reads_count is not None:
        yield kind.kind + _READS, kind.reads_count


def _whole(figure: float | None) -> int | None:
    return None if figure is None else int(figure)
