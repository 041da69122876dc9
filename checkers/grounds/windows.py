"""G9 window-strikes: The windows that the scenario demands were struck.

Of each kind of window that the scenario demands (`require: {windows: […]}`), a strike took effect
in one while it was open: after a message had met its rule, and before the rule was lifted. The
figures count the windows of every kind: laid, opened, struck, closed unused (opened, and not
struck), and struck by each kind of fault.

A *window* lies around one message, so that a fault strikes while that is under way: a rule holds
the message (or watches for it, in an ambush). The window is laid, opens when the first such message
meets its rule, and is lifted. One that closes without a strike shows nothing that a run without it
would not: what a scenario demands is that windows be struck.

The check carries the counts as figures, so that a verdict has them; code that shows the verdict
reads them back from there (`window_kinds_in`). A run that did not record its windows is not asked.

Meaning: A run whose faults never met the message that they were to meet proves nothing about it.
Case: a kind of window that the scenario demands
Source: history/cluster_schema.py, WINDOWS
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from fencepost.checkers.entry import CatalogueEntry, Kind
from fencepost.checkers.runner.tables import cluster_file, rows_in
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest
from fencepost.history.run_directory import RunDirectory

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    kind=Kind.GROUND,
    needs=("windows",),
)
_NAME: Final = ENTRY.name
_LAID: Final = "_laid_count"
_OPENED: Final = "_opened_count"
_STRUCK: Final = "_struck_count"
_UNUSED: Final = "_unused_count"
_BY: Final = "_struck_by_"
_COUNT: Final = "_count"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowKind:
    """One kind of window in one run, or in several. Counts are of windows."""

    kind: str
    """The message: `AlterPartition request`."""
    laid_count: int
    opened_count: int
    struck_count: int
    """Those that opened, and in which a strike took effect before they were lifted."""
    strikes: Mapping[str, int] = field(default_factory=dict)
    """The number of windows in which each kind of strike took effect; several may in one window."""

    @property
    def unused_count(self) -> int:
        """Those that opened and closed without a strike."""
        return self.opened_count - self.struck_count


def window_kinds(
    windows: pa.Table, *, asked: Iterable[str] = (), strikes: Sequence[str] = ()
) -> tuple[WindowKind, ...]:
    """Return the kinds of a table of WINDOWS, in the order of their names.

    `asked`: kinds that are counted though none of them was laid; `strikes`: those that are counted
    in each kind though none took effect.
    """
    by_kind: dict[str, list[Mapping[str, Any]]] = {kind: [] for kind in asked}
    for row in windows.to_pylist():
        by_kind.setdefault(row["kind"], []).append(row)
    return tuple(_kind(name, rows, strikes) for name, rows in sorted(by_kind.items()))


def summed_kinds(runs: Iterable[Sequence[WindowKind]]) -> tuple[WindowKind, ...]:
    """Return the kinds of several runs together, in the order of their names."""
    by_kind: dict[str, list[WindowKind]] = {}
    for kinds in runs:
        for one in kinds:
            by_kind.setdefault(one.kind, []).append(one)
    return tuple(
        WindowKind(
            kind=name,
            laid_count=sum(one.laid_count for one in same),
            opened_count=sum(one.opened_count for one in same),
            struck_count=sum(one.struck_count for one in same),
            strikes={
                strike: sum(one.strikes.get(strike, 0) for one in same)
                for strike in strikes_in(same)
            },
        )
        for name, same in sorted(by_kind.items())
    )


def strikes_in(kinds: Iterable[WindowKind]) -> tuple[str, ...]:
    """Return the kinds of strike of all these, in the order of their names."""
    return tuple(sorted({strike for kind in kinds for strike in kind.strikes}))


def window_strikes(run: RunDirectory, manifest: Manifest) -> CheckResult:
    """Check that a window of each demanded kind was struck; the figures count all of them.

    Without a demand there is no case, and the reason counts the windows that there were.
    """
    try:
        kinds = window_kinds(
            rows_in(cluster_file(run, manifest, "windows"), "windows"),
            asked=manifest.asked_windows,
            strikes=manifest.asked_strikes,
        )
    except HarnessError as error:
        return CheckResult(check=_NAME, validity=Validity.UNKNOWN, reason=str(error))
    missing = list(_missing(manifest.required_windows, kinds))
    return CheckResult(
        check=_NAME,
        validity=Validity.UNKNOWN if missing else Validity.VALID,
        case_count=len(manifest.required_windows),
        reason="; ".join(missing) if manifest.required_windows else _undemanded(kinds),
        figures=figures_of(kinds),
    )


def figures_of(kinds: Iterable[WindowKind]) -> dict[str, float]:
    """Return the figures of a check: `Vote request_laid_count` and so on."""
    return dict(pair for kind in kinds for pair in _figures(kind))


def window_kinds_in(verdict: Verdict) -> tuple[WindowKind, ...] | None:
    """Return the kinds that a verdict tells; None if the run did not record its windows."""
    told = next((one.figures for one in verdict.checks if one.check == _NAME), None)
    if told is None:
        return None
    return tuple(
        WindowKind(
            kind=kind,
            laid_count=int(laid),
            opened_count=int(told[kind + _OPENED]),
            struck_count=int(told[kind + _STRUCK]),
            strikes={
                name.removeprefix(kind + _BY).removesuffix(_COUNT): int(count)
                for name, count in told.items()
                if name.startswith(kind + _BY)
            },
        )
        for name, laid in told.items()
        if name.endswith(_LAID) and (kind := name.removesuffix(_LAID))
    )


def _kind(name: str, rows: Sequence[Mapping[str, Any]], tried: Sequence[str]) -> WindowKind:
    opened = [row for row in rows if row["held_ns"] is not None]
    strikes = Counter(dict.fromkeys(tried, 0))
    strikes.update(strike for row in opened for strike in dict.fromkeys(row["struck"]))
    return WindowKind(
        kind=name,
        laid_count=len(rows),
        opened_count=len(opened),
        struck_count=sum(bool(row["struck"]) for row in opened),
        strikes=dict(sorted(strikes.items())),
    )


def _missing(demanded: Iterable[str], kinds: Sequence[WindowKind]) -> Iterator[str]:
    for word in demanded:
        found = [one for one in kinds if word in (one.kind, one.kind.partition(" ")[0])]
        if not any(one.struck_count for one in found):
            opened = sum(one.opened_count for one in found)
            yield (
                f"the scenario demands that a window of {word} be struck, and none was "
                f"({opened} of {sum(one.laid_count for one in found)} opened)"
            )


def _undemanded(kinds: Sequence[WindowKind]) -> str:
    return (
        f"no window is demanded: {sum(one.laid_count for one in kinds)} laid, "
        f"{sum(one.opened_count for one in kinds)} opened, "
        f"{sum(one.struck_count for one in kinds)} struck"
    )


def _figures(kind: WindowKind) -> Iterator[tuple[str, float]]:
    yield kind.kind + _LAID, kind.laid_count
    yield kind.kind + _OPENED, kind.opened_count
    yield kind.kind + _STRUCK, kind.struck_count
    yield kind.kind + _UNUSED, kind.unused_count
    for strike, count in kind.strikes.items():
        yield f"{kind.kind}{_BY}{strike}{_COUNT}", count


CHECKS: Final = (ENTRY,)
