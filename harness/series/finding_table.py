"""How steady the findings of bugs are: whether each run of a play tells the same cause.

Series on record have the number of anomalies by check, run by run; of these the check nearest to
the cause is what a finding would be named by (`checkers.findings`). Stored runs have their findings
whole, with culprit and consequences.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from checkers.catalogue import CATALOGUE
from checkers.verdict import read_verdict
from harness.series.reproduction import Reproduction
from history.failure import HarnessError
from history.manifest import read_manifest
from history.run_directory import RunDirectory

__all__ = ["HEADS", "STEADY_MIN", "FindingRow", "of_record", "of_runs"]

HEADS: Final = ("scenario", "release", "one finding", "findings")

STEADY_MIN: Final = 0.95
"""The share of the runs with anomalies that one identity has to have."""

_WITHOUT: Final = re.compile(r"--without-rule[ =](\w+)")
_PLACES: Final = {
    entry.name: (entry.nearness, place)
    for place, entry in enumerate(CATALOGUE)
    if entry.nearness is not None
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """The findings of the runs of one scenario, on one release."""

    scenario: str
    release: str
    runs: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """The number of runs by the identities that each has; those without a finding are left out."""

    @property
    def run_count(self) -> int:
        """The runs with any finding."""
        return self.runs.total()

    @property
    def steady_count(self) -> int:
        """The runs with one finding, of the identity that most of them have."""
        return max((count for names, count in self.runs.items() if len(names) == 1), default=0)

    @property
    def steady(self) -> bool:
        """Whether that is nearly all of them."""
        return self.steady_count >= STEADY_MIN * self.run_count

    def cells(self) -> tuple[str, ...]:
        """Return the row of a table: scenario, release, runs, and the identities."""
        told = (f"{' + '.join(names)} ({count})" for names, count in self.runs.most_common())
        share = f"{self.steady_count}/{self.run_count}"
        return self.scenario, self.release, share, "; ".join(told)


def of_record(recorded: Iterable[Reproduction]) -> list[FindingRow]:
    """Return a row for each scenario and release on record, all its series together."""
    rows: dict[tuple[str, str], Counter[tuple[str, ...]]] = defaultdict(Counter)
    for reproduction in recorded:
        for series in reproduction.series:
            for run in series.runs:
                if named := _nearest(run.anomalies):
                    identity = f"{reproduction.scenario}/{named}"
                    rows[reproduction.scenario, series.release][identity,] += 1
    return _rows(rows)


def of_runs(results: Path) -> tuple[list[FindingRow], list[str]]:
    """Return a row for each scenario and release of the stored runs, and what was not readable."""
    rows: dict[tuple[str, str], Counter[tuple[str, ...]]] = defaultdict(Counter)
    troubles = []
    for path in sorted(results.glob("*/*/verdict.json")):
        if path.parent.is_symlink():
            continue  # `latest` is one of the others
        try:
            verdict = read_verdict(path)
            manifest = read_manifest(RunDirectory(path.parent).manifest_path)
        except HarnessError as error:
            troubles.append(str(error))
            continue
        names = tuple(sorted({one.identity for one in verdict.findings}))
        if names:
            off = (f"without {rule}" for rule in _WITHOUT.findall(manifest.command))
            on = filter(None, (manifest.cluster, manifest.release, *off))
            rows[manifest.scenario, " ".join(on)][names] += 1
    return _rows(rows), troubles


def _nearest(anomalies: Mapping[str, int]) -> str | None:
    known = [check for check in anomalies if check in _PLACES]
    return min(known, key=_PLACES.__getitem__, default=None)


def _rows(rows: Mapping[tuple[str, str], Counter[tuple[str, ...]]]) -> list[FindingRow]:
    return [
        FindingRow(scenario=scenario, release=release, runs=runs)
        for (scenario, release), runs in sorted(rows.items())
    ]
