"""What the web page asks of the results, as values, and the port through which it asks.

Runs and nights are named as they lie on disk: `scenario/time` and `name/time`. Whoever implements
the port answers for anything that lies in the results: what is torn, of another version or not
there yet is a value that says so in `trouble`, never an error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """One stored run, as a list shows it."""

    scenario: str
    time: str
    """The name of its directory."""
    verdict: str
    """`valid`, `invalid`, `unknown`, `failed`, `not checked`, `running` or `not readable`."""
    subject: str = ""
    """What it ran on: cluster, release, host."""
    seed: int | None = None
    started_at: str = ""
    """UTC, ISO 8601; empty: not known."""
    findings: tuple[str, ...] = ()
    """Their identities."""
    trouble: str = ""
    """Why it is unknown or failed, or cannot be read."""
    kept_until: str = ""
    """UTC, ISO 8601: until then its cluster is kept running; empty: it is down."""

    @property
    def name(self) -> str:
        """`scenario/time`, by which commands and pages find it."""
        return f"{self.scenario}/{self.time}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedNight:
    """One night, as a list shows it."""

    name: str
    time: str
    started_at: str = ""
    ended: bool = False
    is_under_way: bool = False
    """True if a run of it is running, or was until a moment ago."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """The number of runs by verdict: valid, invalid, unknown, failed."""
    sum_line: str = ""
    gate: str = ""
    """What the gate says of it, in one line; empty: it was not asked."""
    gate_code: int | None = None
    """The exit code of the gate."""
    trouble: str = ""

    @property
    def gate_word(self) -> str:
        """`passes`, `gated`, `not enough`, or nothing."""
        return {None: "", 0: "passes", 1: "gated"}.get(self.gate_code, "not enough")


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRunLine:
    """One run of a night."""

    number: int
    scenario: str
    subject: str
    seed: int | None
    verdict: str
    seconds: float
    found: tuple[str, ...]
    reason: str
    run: str | None
    """`scenario/time`, if it is still stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightDetail:
    """A night whole."""

    listed: ListedNight
    command: str
    progress: str
    """`run 7 of 40, 2 findings, about 1 h 10 min left`; empty once it has ended."""
    runs: tuple[NightRunLine, ...]
    left_out: tuple[str, ...]
    gate_lines: tuple[str, ...]
    """What `fencepost gate` prints of it."""
    files: tuple[str, ...]
    """The names of its files for people and build servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendCell:
    """A finding in one night."""

    call: str
    """`new`, `ongoing`, `resolved` or `not seen`; empty: the gate does not speak of it."""
    words: str
    hits: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingTrend:
    """A finding through the nights of one name."""

    identity: str
    subject: str
    cells: tuple[TrendCell | None, ...]
    """One a night, in the order of `Archive.trend`'s nights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectRate:
    """How often runs of a scenario on one subject have a finding."""

    subject: str
    finding: str
    """Its identity; empty: any violation."""
    hits: int
    runs: int
    """Those that are conclusive: valid, or invalid."""
    low: float
    high: float
    """Wilson's interval at 95 %."""
    others: int = 0
    """The runs without an answer."""


class Archive(Protocol):
    """The results. Every answer is of the files as they are now."""

    def runs(self) -> Sequence[ListedRun]:
        """Return all stored runs, the newest first."""

    def nights(self, name: str | None = None) -> Sequence[ListedNight]:
        """Return the nights, all or of one name, the newest first; the gate is not asked."""

    def gated(self, listed: ListedNight) -> ListedNight:
        """Return the night with what the gate says of it."""

    def night(self, name: str, time: str) -> NightDetail | None:
        """Return a night; None if there is none."""

    def night_stamp(self, name: str, time: str) -> str:
        """Return a word that changes with the files of a night; empty if there is none."""

    def trend(self, name: str) -> tuple[Sequence[ListedNight], Sequence[FindingTrend]]:
        """Return the newest nights of a name, the oldest first, and their findings."""

    def rates(self, scenario: str) -> Sequence[SubjectRate]:
        """Return the rates of a scenario by subject: any violation first, then each finding."""

    def reproductions(self, scenario: str) -> Sequence[tuple[str, str]]:
        """Return the stored reproductions of a scenario, newest first: when, and the sentence."""
