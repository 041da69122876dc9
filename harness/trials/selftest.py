"""The harness put to the test: each rule switched off has to be found out, and nobody else accused.

For each rule of the reference cluster, trials go on without it until enough of them have found what
its absence shows as; then a series with all rules on, which must find nothing. A rule that hides
until the last seed fails the test, as does a clean cluster that is accused.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from pyspark.sql import SparkSession

from clusters.reference.rules import Rule, Rules
from harness.trials.plan import TrialPlan, drawn_plan
from harness.trials.series import Series, Tally
from harness.trials.trial import TrialResult

__all__ = ["Detection", "clean_series", "detect", "levels_of"]

_LEVELS: Final = (2, 3)
"""Below them KIP-903 is not there, and what it prevents happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """What came of one rule switched off."""

    rule: Rule
    trial_count: int
    hits: tuple[int, ...]
    """Seeds whose trials found what the rule prevents, in order."""
    anomalies: dict[str, int]
    """Trials by what they found, each anomaly once a trial."""
    crash_count: int
    cpu_s: float

    @property
    def detected(self) -> bool:
        """Whether it was found out at all."""
        return bool(self.hits)

    @property
    def rate(self) -> float:
        """The share of trials that found it."""
        return len(self.hits) / self.trial_count if self.trial_count else 0.0

    @property
    def seeds_to_detection(self) -> float | None:
        """The median number of seeds from one detection to the next, the first one included."""
        if not self.hits:
            return None
        ends = (0, *self.hits)
        return float(median(b - a for a, b in zip(ends, self.hits, strict=False)))


def levels_of(rule: Rule) -> tuple[int, ...]:
    """The metadata.versions at which the rule is tried."""
    there = tuple(one for one in _LEVELS if rule.level_min <= one <= rule.level_max)
    return there or (rule.level_max,)


def detect(rule: Rule, *, session: SparkSession, seeds: int, hits: int) -> Detection:
    """Switch the rule off and look, for at most so many seeds or until so many hits."""
    levels = levels_of(rule)

    def plans(seed: int) -> TrialPlan:
        return drawn_plan(seed, levels=levels)

    def enough(tally: Tally) -> bool:
        return len(_hits(rule, tally.suspicious)) >= hits

    series = Series(
        session=session,
        plans=plans,
        rules=Rules().without(rule.name, *rule.beside),
        first=1,
        count=seeds,
    )
    tally = _last(series.run(until=enough))
    return Detection(
        rule=rule,
        trial_count=tally.trial_count,
        hits=tuple(sorted(_hits(rule, tally.suspicious))),
        anomalies=dict(
            Counter(name for one in tally.suspicious for name in one.anomalies).most_common()
        ),
        crash_count=len(tally.crashes),
        cpu_s=tally.cpu_s,
    )


def clean_series(*, session: SparkSession, seeds: int, shown: Callable[[Tally], None]) -> Tally:
    """All rules on, all kinds of faults: whatever is found is an accusation without a ground."""

    def plans(seed: int) -> TrialPlan:
        return drawn_plan(seed, levels=_LEVELS)

    series = Series(session=session, plans=plans, rules=Rules(), first=1, count=seeds)
    tally = Tally()
    for tally in series.run(until=lambda now: bool(now.suspicious or now.crashes)):
        shown(tally)
    return tally


def _hits(rule: Rule, results: Sequence[TrialResult]) -> list[int]:
    return [one.seed for one in results if not set(one.anomalies).isdisjoint(rule.shows_as)]


def _last(tallies: Iterator[Tally]) -> Tally:
    tally = Tally()
    for tally in tallies:  # noqa: B007  # the last one counts
        pass
    return tally
