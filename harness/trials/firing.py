"""Plays that show a bug in virtual time, carried out with many seeds, and what the checks tell.

A play shows the bug of a rule that is switched off (`harness.trials.generations`), or that of a
metadata.version at which its scenario expects to be invalid. What a trial found is judged by the
checks, and named by the finding's identity (`checkers.findings`).
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pyspark.sql import SparkSession

from checkers.check import check_run
from checkers.runner.tasks import InProcessTasks
from checkers.verdict import Validity
from clusters.kafka_port import KafkaSpec
from harness.prepare.reference import level_of, release_like
from harness.scenario.expectation import expectation_for
from harness.scenario.scenario import Scenario, load_scenario
from harness.scenario.sources import find_scenario, library
from harness.trials.generations import GENERATIONS
from harness.trials.plan import plan_of
from harness.trials.store import store_trial
from history.failure import UsageError

__all__ = ["FiringPlay", "ToldTrial", "firing_plays", "told_trials"]

_LEVELS: Final = ("1", "2", "3")
"""The metadata.versions of the reference cluster, in the order in which they are tried."""
_FIRST: Final = 4
"""The seeds after which a play that showed nothing is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringPlay:
    """A scenario of the library, and what makes it show a bug in virtual time."""

    play: str
    bug: str
    """The rule whose absence is the bug, the scenario's issue, or the scenario itself."""
    without_rules: tuple[str, ...] = ()
    level: str | None = None
    """The metadata.version of its cluster; None: the scenario's own."""

    @property
    def made_by(self) -> str:
        """The condition under which the bug shows: `without one_vote`, or `metadata.version 1`."""
        return f"metadata.version {self.level}" if self.level else f"without {self.bug}"

    def scenario(self) -> Scenario:
        """Load the scenario. Raises UsageError if it has no metadata.version."""
        place, flag = ("cluster", "metadata_version"), "--metadata-version"
        laid = [(place, self.level, flag)] if self.level else []
        return load_scenario(find_scenario(self.play), laid)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldTrial:
    """The findings of one trial."""

    seed: int
    identities: tuple[str, ...]
    """Of its findings, in order; none: the bug did not show."""


def firing_plays() -> Iterator[FiringPlay]:
    """Yield the plays, those of the library's bugs first."""
    for name in library():
        if (play := _at_a_level(name)) is not None:
            yield play
    for one in GENERATIONS.values():
        beside = {rule.name: rule.beside for rule in one.tried}
        for rule, name in one.plays.items():
            yield FiringPlay(play=name, bug=rule, without_rules=(rule, *beside[rule]))


def _at_a_level(name: str) -> FiringPlay | None:
    """Return the scenario at the lowest metadata.version at which it expects to be invalid."""
    for level in _LEVELS:
        play = FiringPlay(play=name, bug=name, level=level)
        try:
            scenario = play.scenario()
            plan_of(scenario, seed=1)
        except UsageError:
            return None  # it has no such level, or nothing in virtual time can do it
        spec = scenario.cluster
        if not isinstance(spec, KafkaSpec) or scenario.play is None:
            return None  # a mix shows a bug by chance
        entry = expectation_for(scenario.expect, release=release_like(spec), level=level_of(spec))
        if entry is not None and entry.validity is Validity.INVALID:
            return FiringPlay(play=name, bug=scenario.issue or name, level=level)
    return None


def told_trials(
    play: FiringPlay,
    seeds: Sequence[int],
    *,
    session: SparkSession,
    kept_in: Path | None = None,
) -> list[ToldTrial]:
    """Carry the play out with each seed, a Spark task each; return what the checks told, in order.

    A play that showed nothing in its first four is given up. `kept_in`: the directory that keeps
    the runs; None: they are not kept.
    """
    told: list[ToldTrial] = []
    for part in (seeds[:_FIRST], seeds[_FIRST:]):
        if part and (not told or any(one.identities for one in told)):
            tasks = session.sparkContext.parallelize(part, len(part))
            told += tasks.map(partial(_told, play, kept_in=kept_in)).collect()
    return told


def _told(play: FiringPlay, seed: int, *, kept_in: Path | None) -> ToldTrial:
    plan = plan_of(play.scenario(), seed)
    with TemporaryDirectory(prefix=f"fencepost-trial-{os.getpid()}-") as scratch:
        root = (kept_in or Path(scratch)) / f"{play.play}-{play.made_by.replace(' ', '-')}-{seed}"
        stored = store_trial(plan, without_rules=play.without_rules, root=root, name=play.play)
        verdict = check_run(stored.run, session=InProcessTasks())
    return ToldTrial(seed=seed, identities=tuple(one.identity for one in verdict.findings))
