"""What the findings of a night are called, by the nights before it.

The unit is a finding on a subject: runs of one scenario, release, host and variant are repetitions,
so a finding has a rate there. Conclusive runs count, those that are valid or invalid: in a run that
is unknown or that failed, its absence proves nothing.

- *New*: first seen in this night, in all the nights that it is held against. It is new once. Of an
  unchanged cluster a rare finding is new in whichever night first has it; the call says how rare it
  must be to have stayed unseen before.
- *Ongoing*: seen before, up or down if Fisher's exact test (two-sided, against all nights before
  together) leaves less than `TREND_ALPHA` to chance. One that comes back is ongoing.
- *Resolved*: unseen for so many runs in a row that at the lower end of its old rate
  (Clopper-Pearson, one-sided, `CONFIDENCE`) the chance of that is below `resolved_alpha`. It is
  called once. As a finding may be unseen many times in its life, its k-th absence is given
  `(1 - CONFIDENCE) / k(k+1)`: over all of them together no more than 5 % (a Bonferroni sum).
- *Not seen*: absent for fewer runs than that; the call says how many are missing.

Decision 62 has the reasons.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

from fencepost.harness.gate.nights import NightRecord, NightVerdict, RunRecord, RunSubject

CONFIDENCE: Final = 0.95
TREND_ALPHA: Final = 0.01

_CONCLUSIVE: Final = frozenset({NightVerdict.VALID, NightVerdict.INVALID})
_UNNAMED: Final = "invalid"


class FindingCall(StrEnum):
    """What a finding is called in a night."""

    NEW = "new"
    ONGOING = "ongoing"
    RESOLVED = "resolved"
    NOT_SEEN = "not seen"


class Trend(StrEnum):
    """The direction of an ongoing finding's rate."""

    UP = "up"
    DOWN = "down"
    STEADY = "steady"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRuns:
    """The number of runs that have a finding, of so many conclusive ones."""

    hits: int = 0
    runs: int = 0

    def __add__(self, other: "SeenRuns") -> "SeenRuns":
        return SeenRuns(hits=self.hits + other.hits, runs=self.runs + other.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledFinding:
    """A finding on a subject, and what it is called."""

    identity: str
    subject: RunSubject
    call: FindingCall
    tonight: SeenRuns
    before: SeenRuns
    """In all nights before, since the first one that has the subject."""
    trend: Trend = Trend.STEADY
    p_value: float | None = None
    """Of the trend; None where nothing is compared."""
    unseen_runs: int = 0
    """The conclusive runs since it was last seen, tonight's included."""
    missing_runs: int = 0
    """How many more without it there have to be until it is resolved."""
    hidden_rate_max: float | None = None
    """Of a new one: a rate up to this may have stayed unseen before; None without a run before."""
    in_valid_runs: bool = False
    """Seen in valid runs alone: the scenario reckons with it by name."""
    is_expected: bool = False
    """In each run that has it tonight, the scenario expects it of this release."""
    runs: tuple[str, ...] = ()
    """The directories of the runs that have it tonight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """The runs of a subject that say nothing."""

    subject: RunSubject
    verdict: NightVerdict
    """Unknown, or failed."""
    count: int
    runs: int
    """All runs of the subject tonight."""
    reason: str
    """Of the first one."""


@dataclass(slots=True)
class _Life:
    """What is known of a finding on a subject, night after night."""

    seen: SeenRuns = SeenRuns()
    """Up to the last night that has it."""
    unseen: int = 0
    """The runs since."""
    absences: int = 0
    """The times that it came back after a night without it."""

    def add(self, tonight: SeenRuns) -> None:
        if tonight.hits:
            self.absences += self.unseen > 0
            self.seen += SeenRuns(hits=tonight.hits, runs=tonight.runs + self.unseen)
            self.unseen = 0
        else:
            self.unseen += tonight.runs

    @property
    def needed(self) -> int:
        return runs_until_resolved(self.seen.hits, self.seen.runs, absences=self.absences)


@cache
def runs_until_resolved(hits: int, runs: int, *, absences: int) -> int:
    """Return how many runs in a row must be without a finding of that rate until it is resolved.

    `absences`: how often it has come back before.
    """
    # Half a second to import, which no other command should pay.
    from scipy.stats import beta  # noqa: PLC0415

    low = float(beta.ppf(1 - CONFIDENCE, hits, runs - hits + 1))
    alpha = (1 - CONFIDENCE) / ((absences + 1) * (absences + 2))
    return math.ceil(math.log(alpha) / math.log1p(-low)) if low < 1 else 1


def excess_p_value(seen: SeenRuns, rate: float) -> float:
    """Return the probability of so many hits or more at this rate (exact, one-sided)."""
    from scipy.stats import binom  # noqa: PLC0415

    return float(binom.sf(seen.hits - 1, seen.runs, rate))


def called(night: NightRecord, before: Iterable[NightRecord]) -> tuple[CalledFinding, ...]:
    """Return what each finding is called that this night or one before has; the worst first.

    `before`: in the order of time. A finding that was resolved by then and is not back is left out.
    """
    lives: dict[tuple[RunSubject, str], _Life] = {}
    of_subjects: dict[RunSubject, int] = defaultdict(int)
    for earlier in before:
        _live(lives, of_subjects, _seen(earlier.runs))
    found = [
        _of_tonight(subject, runs, lives, of_subjects[subject])
        for subject, runs in _by_subject(night.runs).items()
    ]
    told = [one for several in found for one in several]
    absent = {one.subject for one in night.runs}
    told += (
        _unseen(identity, subject, life, SeenRuns())
        for (subject, identity), life in lives.items()
        if subject not in absent and life.unseen < life.needed
    )
    order = list(FindingCall)
    return tuple(sorted(told, key=lambda one: (order.index(one.call), one.identity, one.subject)))


def doubts(night: NightRecord) -> tuple[Doubt, ...]:
    """Return the runs that say nothing, by subject: those that failed, and those unknown."""
    return tuple(
        Doubt(
            subject=subject,
            verdict=verdict,
            count=len(mine),
            runs=len(runs),
            reason=mine[0].reason,
        )
        for subject, runs in _by_subject(night.runs).items()
        for verdict in (NightVerdict.FAILED, NightVerdict.UNKNOWN)
        if (mine := [one for one in runs if one.verdict is verdict])
    )


def _live(
    lives: dict[tuple[RunSubject, str], _Life],
    of_subjects: dict[RunSubject, int],
    seen: Mapping[RunSubject, tuple[int, Mapping[str, int]]],
) -> None:
    for subject, (runs, hits) in seen.items():
        for identity in hits:
            if (subject, identity) not in lives:
                # The runs before its first are part of its rate.
                lives[subject, identity] = _Life(seen=SeenRuns(runs=of_subjects[subject]))
        of_subjects[subject] += runs
    for (subject, identity), life in lives.items():
        if subject in seen:
            runs, hits = seen[subject]
            life.add(SeenRuns(hits=hits.get(identity, 0), runs=runs))


def _of_tonight(
    subject: RunSubject,
    runs: Sequence[RunRecord],
    lives: Mapping[tuple[RunSubject, str], _Life],
    runs_before: int,
) -> Iterator[CalledFinding]:
    conclusive, hits = _counted(runs)
    for identity, count in hits.items():
        tonight = SeenRuns(hits=count, runs=conclusive)
        life = lives.get((subject, identity))
        having = [one for one in runs if identity in _named(one)]
        shown = CalledFinding(
            identity=identity,
            subject=subject,
            call=FindingCall.NEW,
            tonight=tonight,
            before=SeenRuns(runs=runs_before),
            hidden_rate_max=_hidden(runs_before),
            in_valid_runs=all(one.verdict is NightVerdict.VALID for one in having),
            is_expected=all(identity in one.expected for one in having),
            runs=tuple(one.run for one in having if one.run),
        )
        yield shown if life is None else _ongoing(shown, life)
    for (of, identity), life in lives.items():
        if of == subject and identity not in hits and life.unseen < life.needed:
            yield _unseen(identity, subject, life, SeenRuns(runs=conclusive))


def _ongoing(shown: CalledFinding, life: _Life) -> CalledFinding:
    from scipy.stats import fisher_exact  # noqa: PLC0415

    tonight = shown.tonight
    before = life.seen + SeenRuns(runs=life.unseen)
    table = [[one.hits, one.runs - one.hits] for one in (tonight, before)]
    p_value = float(fisher_exact(table).pvalue)
    trend = Trend.STEADY
    if p_value < TREND_ALPHA:
        risen = tonight.hits * before.runs > before.hits * tonight.runs
        trend = Trend.UP if risen else Trend.DOWN
    return CalledFinding(
        identity=shown.identity,
        subject=shown.subject,
        call=FindingCall.ONGOING,
        tonight=tonight,
        before=before,
        trend=trend,
        p_value=p_value,
        in_valid_runs=shown.in_valid_runs,
        is_expected=shown.is_expected,
        runs=shown.runs,
    )


def _unseen(identity: str, subject: RunSubject, life: _Life, tonight: SeenRuns) -> CalledFinding:
    unseen = life.unseen + tonight.runs
    missing = max(0, life.needed - unseen)
    return CalledFinding(
        identity=identity,
        subject=subject,
        call=FindingCall.NOT_SEEN if missing else FindingCall.RESOLVED,
        tonight=tonight,
        before=life.seen + SeenRuns(runs=life.unseen),
        unseen_runs=unseen,
        missing_runs=missing,
    )


def _hidden(runs_before: int) -> float | None:
    """Return the greatest rate that leaves a finding unseen in so many runs, at `CONFIDENCE`."""
    return 1 - (1 - CONFIDENCE) ** (1 / runs_before) if runs_before else None


def _seen(runs: Iterable[RunRecord]) -> dict[RunSubject, tuple[int, Mapping[str, int]]]:
    return {subject: _counted(several) for subject, several in _by_subject(runs).items()}


def _counted(runs: Sequence[RunRecord]) -> tuple[int, Mapping[str, int]]:
    """Return the number of conclusive runs, and the number of those by finding."""
    hits: dict[str, int] = defaultdict(int)
    conclusive = 0
    for one in runs:
        named = _named(one)
        conclusive += one.verdict in _CONCLUSIVE or bool(named)
        for identity in named:
            hits[identity] += 1
    return conclusive, hits


def _named(run: RunRecord) -> tuple[str, ...]:
    """Return the findings of a run; an invalid one without any has one without a name."""
    if run.verdict is NightVerdict.INVALID and not run.findings:
        return (f"{run.subject.scenario}/{_UNNAMED}",)
    return run.findings


def _by_subject(runs: Iterable[RunRecord]) -> dict[RunSubject, list[RunRecord]]:
    several: dict[RunSubject, list[RunRecord]] = defaultdict(list)
    for one in runs:
        several[one.subject].append(one)
    return several
