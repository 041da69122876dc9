"""Trials by the thousand, on every core of a machine or of a Spark cluster.

The seeds of a series go to Spark in waves of a few seconds, so that what was found is known while
the series goes on, and a series that has found enough ends early. A task is a few seeds; what comes
back is a line a seed. Some trials are carried out twice: their worlds must be the same, event by
event, or nothing that a seed shows could be shown again.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from pyspark.sql import SparkSession

from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.harness.trials.plan import TrialPlan
from fencepost.harness.trials.trial import TrialResult, run_trial

UNREPEATABLE: Final = "the same seed gave another world"
_REPEATED_EVERY: Final = 20
"""One trial of so many is carried out twice."""
_WAVE_S: Final = 3.0
_TASK_S_MAX: Final = 1.0
_FIRST_WAVE: Final = 16

Plans = Callable[[int], TrialPlan]
"""The plan of a seed; it travels to the executors."""


@dataclass(slots=True)
class TrialTally:
    """The counts of a series so far.

    `trial_count` trials of `event_count` events took `virtual_s` seconds of virtual time and
    `cpu_s` of cores, and acknowledged `acknowledged_count` records. `found` counts them by the
    first anomaly of each, `suspicious` are those with one, `crashes` those that failed, `excused`
    those that found nothing and are no evidence.
    """

    trial_count: int = 0
    event_count: int = 0
    virtual_s: float = 0.0
    cpu_s: float = 0.0
    acknowledged_count: int = 0
    found: dict[str, int] = field(default_factory=dict)
    """The counts of trials by the first anomaly that each of them found."""
    crashes: list[TrialResult] = field(default_factory=list)
    suspicious: list[TrialResult] = field(default_factory=list)
    """The trials that found something, in the order of their seeds within each wave."""
    excused: list[TrialResult] = field(default_factory=list)
    """The trials that found nothing and are no evidence."""

    def add(self, result: TrialResult) -> None:
        """Count one trial."""
        self.trial_count += 1
        self.event_count += result.event_count
        self.virtual_s += result.virtual_ns / 1e9
        self.cpu_s += result.cpu_s
        self.acknowledged_count += result.acknowledged_count
        if result.crash:
            self.crashes.append(result)
        elif result.findings:
            first = result.findings[0].anomaly
            self.found[first] = self.found.get(first, 0) + 1
            self.suspicious.append(result)
        elif result.excused:
            self.excused.append(result)

    def merge(self, other: "TrialTally") -> None:
        """Count the trials of a series that went on from this one."""
        self.trial_count += other.trial_count
        self.event_count += other.event_count
        self.virtual_s += other.virtual_s
        self.cpu_s += other.cpu_s
        self.acknowledged_count += other.acknowledged_count
        for name, count in other.found.items():
            self.found[name] = self.found.get(name, 0) + count
        self.crashes += other.crashes
        self.suspicious += other.suspicious
        self.excused += other.excused

    @property
    def clean_count(self) -> int:
        """The number of trials that found nothing and lost nothing: they are evidence."""
        others = len(self.crashes) + len(self.suspicious) + len(self.excused)
        return self.trial_count - others


@dataclass(slots=True, kw_only=True)
class TrialSeries:
    """A series of `count` seeds from `first` on, with these rules."""

    session: SparkSession
    plans: Plans
    rules: Rules
    first: int
    count: int

    def run(self, *, until: Callable[[TrialTally], bool]) -> Iterator[TrialTally]:
        """Yield the tally after each wave, the same object each time, until it is enough."""
        tally = TrialTally()
        context = self.session.sparkContext
        cores = context.defaultParallelism
        plans, rules = self.plans, self.rules
        seed, end, per_s = self.first, self.first + self.count, 0.0
        while seed < end and not until(tally):
            wanted = int(per_s * _WAVE_S) or _FIRST_WAVE
            seeds = range(seed, min(end, seed + wanted))
            tasks = max(cores, int(len(seeds) / max(1.0, per_s * _TASK_S_MAX / cores)))
            begin_s = time.monotonic()
            results = (
                context.parallelize(seeds, min(len(seeds), tasks))
                .mapPartitions(lambda some: (repeated_trial(plans(one), rules) for one in some))
                .collect()
            )
            per_s = len(seeds) / max(0.01, time.monotonic() - begin_s)
            for result in results:
                tally.add(result)
            seed = seeds.stop
            yield tally


def repeated_trial(plan: TrialPlan, rules: Rules) -> TrialResult:
    """Run a trial, of some seeds twice; a second world that differs from the first is a crash."""
    if plan.seed % _REPEATED_EVERY:
        return run_trial(plan, rules)
    first, second = (run_trial(plan, rules, digest=True) for _ in range(2))
    if first.digest == second.digest:
        return first
    return replace(first, crash=f"{UNREPEATABLE}: {first.digest} and {second.digest}")


def enough(count: int) -> Callable[[TrialTally], bool]:
    """Return a test of whether `count` trials have found something, or crashed."""
    return lambda tally: len(tally.suspicious) + len(tally.crashes) >= count
