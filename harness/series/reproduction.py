"""A series of runs of one scenario on several releases: seeds, results, times, and their sums.

Runs are data; all that people are told of them (rates, intervals, medians, whether it is as
expected) is computed from them, never stored beside them.

A *hit* is a run whose verdict is invalid with every anomaly of one of the sets that are `sought`; a
*miss* is a conclusive run without them. A run that failed, or whose verdict leaves open whether the
anomalies were there, is *inconclusive*: it is counted and told, and never taken for a miss.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

from pydantic import ConfigDict

from fencepost.checkers.grounds.windows import WindowKind
from fencepost.checkers.verdict import Validity
from fencepost.harness.series.rate import Rate
from fencepost.harness.series.window_grid import WindowGrid, window_grid

FORMAT_VERSION = 1
_STRICT = ConfigDict(extra="forbid")


class RunResult(StrEnum):
    """The result of one run with regard to the anomalies that are sought."""

    HIT = "hit"
    MISS = "miss"
    UNKNOWN = "unknown"
    """The run has a verdict that leaves it open."""
    FAILED = "failed"
    """The run reached no verdict."""


class Expected(StrEnum):
    """The expectation that the scenario states of a release."""

    FIRES = "fires"
    HOLDS = "holds"
    UNSTATED = "unstated"


class SeriesStanding(StrEnum):
    """The result of a series, against what was expected."""

    AS_EXPECTED = "as expected"
    NOT_AS_EXPECTED = "NOT as expected"
    INCONCLUSIVE = "inconclusive"
    UNSTATED = "nothing expected"


class SeriesState(StrEnum):
    """The stage that a reproduction reached."""

    RUNNING = "running"
    """The reproduction is under way, or was killed on the way."""
    INTERRUPTED = "interrupted"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRun:
    """One run of a series."""

    __pydantic_config__ = _STRICT

    seed: int
    result: RunResult
    validity: Validity | None
    """The validity of its verdict; None without a verdict."""
    seconds: float
    """The wall time from the start of the run to its verdict: cluster, faults, checks and all."""
    proof_seconds: float | None
    """Time of the run, since its clock began, at which the operations that prove the first of the
    sought anomalies had ended; None where no proof names operations."""
    anomalies: Mapping[str, int]
    """The number of illegal cases that each check found."""
    run: str | None
    """The run's directory, if it has one that is known."""
    command: str
    """The command line that repeats it."""
    reason: str = ""
    """The reason why it is inconclusive."""
    windows: tuple[WindowKind, ...] | None = None
    """The windows of the run by kind; None: it did not record them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The runs on one release."""

    __pydantic_config__ = _STRICT

    release: str
    """The release, as it was asked for."""
    metadata_version: str | None
    """The scenario's or the user's; None: the release's own."""
    expected: Expected
    sought: tuple[tuple[str, ...], ...]
    """The sets of anomalies, one of which must be there whole; without any set, any illegal one."""
    runs: tuple[SeriesRun, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    """The versions under test, as the clusters told them."""

    @property
    def label(self) -> str:
        """`4.3.1`, or `4.3.1 at metadata.version 3.3`, or `4.3.1, docker`."""
        at = f" at metadata.version {self.metadata_version}" if self.metadata_version else ""
        on = f", {self.host}" if self.host else ""
        return f"{self.release}{at}{on}"

    @property
    def host(self) -> str:
        """The kind of host that the nodes ran on; empty: processes of this machine."""
        return self.versions.get("host", "")

    @property
    def rate(self) -> Rate:
        """The rate of hits among the conclusive runs."""
        hits, misses = self.count(RunResult.HIT), self.count(RunResult.MISS)
        return Rate(hit_count=hits, run_count=hits + misses)

    @property
    def inconclusive_count(self) -> int:
        """The number of runs that are no hit and no miss."""
        return self.count(RunResult.UNKNOWN) + self.count(RunResult.FAILED)

    def count(self, result: RunResult) -> int:
        """Return the number of runs with this result."""
        return sum(run.result is result for run in self.runs)

    @property
    def standing(self) -> SeriesStanding:
        """The result of the series against what the scenario expects.

        One hit proves that a bug fires. That it does not takes every run: valid, not just without
        these anomalies. An inconclusive run decides nothing, so where its result could have
        decided, the answer is open.
        """
        left_open = self.inconclusive_count > 0 or not self.runs
        otherwise = SeriesStanding.INCONCLUSIVE if left_open else None
        match self.expected:
            case Expected.FIRES:
                fired = self.count(RunResult.HIT) > 0
                return (
                    SeriesStanding.AS_EXPECTED
                    if fired
                    else otherwise or SeriesStanding.NOT_AS_EXPECTED
                )
            case Expected.HOLDS:
                broke = any(run.validity == Validity.INVALID for run in self.runs)
                return (
                    SeriesStanding.NOT_AS_EXPECTED
                    if broke
                    else otherwise or SeriesStanding.AS_EXPECTED
                )
            case Expected.UNSTATED:
                return (
                    SeriesStanding.UNSTATED if self.rate.run_count else SeriesStanding.INCONCLUSIVE
                )

    @property
    def median_seconds(self) -> float | None:
        """The median of the hits, or of the misses if there are no hits; None without either."""
        by_result = {
            result: [run.seconds for run in self.runs if run.result is result]
            for result in (RunResult.HIT, RunResult.MISS)
        }
        seconds = by_result[RunResult.HIT] or by_result[RunResult.MISS]
        return median(seconds) if seconds else None

    @property
    def median_proof_seconds(self) -> float | None:
        """The median of the runs where it is known."""
        seconds = [run.proof_seconds for run in self.runs if run.proof_seconds is not None]
        return median(seconds) if seconds else None

    @property
    def found(self) -> Mapping[str, int]:
        """The number of runs in which each anomaly was found, the most frequent first."""
        counts: dict[str, int] = {}
        for run in self.runs:
            for name in run.anomalies:
                counts[name] = counts.get(name, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    @property
    def windows(self) -> WindowGrid:
        """The windows of the runs that reached a verdict."""
        return window_grid(run.windows for run in self.runs if run.validity is not None)

    def sentence(self) -> str:
        """Return `20/20 on 3.4.1` or `0/20 on 4.3.1 (at most 16 % at 95 % confidence)`."""
        if not self.rate.run_count:
            return f"no conclusive run on {self.label}"
        fraction, blank, bound = self.rate.text().partition(" ")
        more = f", {self.inconclusive_count} inconclusive" if self.inconclusive_count else ""
        return f"{fraction} on {self.label}{blank}{bound}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """All series of one call of `fencepost reproduce`."""

    __pydantic_config__ = _STRICT

    format_version: int = FORMAT_VERSION
    scenario: str
    title: str
    issue: str | None
    state: SeriesState
    started_at: str
    """The time of its start: UTC, ISO 8601."""
    command: str
    """The command line that repeats the whole, its first seed included."""
    fencepost_version: str
    machine: Mapping[str, str] = field(default_factory=dict)
    runs_a_release: int
    first_seed: int
    series: tuple[Series, ...]

    def sentence(self) -> str:
        """Return the sentence to quote."""
        return f"{self.scenario}: " + ", ".join(one.sentence() for one in self.series)

    @property
    def exit_code(self) -> int:
        """The exit code: 1 if a release is not as expected, else 2 if one is inconclusive, or 0."""
        standings = {one.standing for one in self.series}
        if SeriesStanding.NOT_AS_EXPECTED in standings:
            return 1
        return 2 if SeriesStanding.INCONCLUSIVE in standings else 0
