"""Plays that show a bug in virtual time, carried out with many seeds, and what the checks tell.

A play shows the bug of a rule that is switched off (`harness.trials.generations`), or the one for
which its scenario expects to be invalid: at the newest metadata.version of which it does, as older
bugs may be what it shows at an older one. It is carried out as a trial, or, if trials cannot do one
of its steps, as a run in virtual time. The findings are those of the checks (`checkers.findings`).
Plays of bugs that have no nodes, steps or clients in virtual time are told with the reason.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pyspark.sql import SparkSession
from rich.console import Console

from fencepost.checkers.check import check_run
from fencepost.checkers.runner.tasks import InProcessTasks
from fencepost.checkers.verdict import Validity
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.systems import system_of
from fencepost.harness.prepare.reference import level_of, release_like, rules_of
from fencepost.harness.progress import RunProgress, TerminalProgress
from fencepost.harness.run.judge import advance
from fencepost.harness.run.plan import planned
from fencepost.harness.run.run import record_scenario
from fencepost.harness.scenario.expectation import Expectation, expectation_for
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import Scenario, load_scenario
from fencepost.harness.scenario.sources import find_scenario, library
from fencepost.harness.trials.generations import GENERATIONS
from fencepost.harness.trials.plan import plan_of
from fencepost.harness.trials.store import store_trial
from fencepost.history.failure import UsageError
from fencepost.history.manifest import RunState
from fencepost.history.run_directory import RunDirectory
from fencepost.history.seal import seal

_LEVELS: Final = ("3", "2", "1")
"""The metadata.versions of the reference cluster, in the order in which they are tried."""
_FIRST: Final = 4
"""The seeds after which a play that showed nothing is given up."""
_QUIET: Final = RunProgress(TerminalProgress(Console(stderr=True), None), None, "")
_PLACE: Final = re.compile(r"^\S+\.yaml(:\d+)?: ")


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
        """The condition of the bug: `without one_vote`, `metadata.version 1`, `as it stands`."""
        if self.level:
            return f"metadata.version {self.level}"
        return f"without {self.bug}" if self.without_rules else "as it stands"

    def scenario(self) -> Scenario:
        """Load the scenario. Raises UsageError if it has no metadata.version."""
        place, flag = ("cluster", "metadata_version"), "--metadata-version"
        laid = [(place, self.level, flag)] if self.level else []
        return load_scenario(find_scenario(self.play), laid)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfiredPlay:
    """A scenario of the library that shows a bug, and cannot be carried out in virtual time."""

    play: str
    reason: str
    """The line with which a run of it in virtual time is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldTrial:
    """The findings of one trial."""

    seed: int
    identities: tuple[str, ...]
    """Of its findings, in order; none: the bug did not show."""


def firing_plays() -> Iterator[FiringPlay]:
    """Yield the plays, those of the library's bugs first."""
    yield from (one for one in _of_library() if isinstance(one, FiringPlay))
    for one in GENERATIONS.values():
        beside = {rule.name: rule.beside for rule in one.tried}
        for rule, name in one.plays.items():
            yield FiringPlay(play=name, bug=rule, without_rules=(rule, *beside[rule]))


def unfired_plays() -> Iterator[UnfiredPlay]:
    """Yield the plays of bugs that cannot be carried out in virtual time."""
    yield from (one for one in _of_library() if isinstance(one, UnfiredPlay))


@cache
def _of_library() -> tuple[FiringPlay | UnfiredPlay, ...]:
    """Return the plays that expect to be invalid: mixes show a bug by chance."""
    scenarios = (load_scenario(find_scenario(name), []) for name in library())
    return tuple(
        _expecting(one)
        for one in scenarios
        if one.play is not None and any(map(_is_invalid, one.expect))
    )


def _expecting(scenario: Scenario) -> FiringPlay | UnfiredPlay:
    """Return the play where it expects to be invalid, at the newest level if it has levels."""
    name, is_kafka = scenario.name, isinstance(scenario.cluster, KafkaSpec)
    for level in _LEVELS if is_kafka else (None,):
        play = FiringPlay(play=name, bug=_bug(scenario), level=level)
        try:
            laid = play.scenario()
            planned(laid, _options(laid, Path(), seed=1), _QUIET.say)
        except UsageError as error:
            reason = _PLACE.sub("", str(error).splitlines()[0]).removeprefix(f"{name}: ")
            return UnfiredPlay(play=name, reason=reason)
        spec = laid.cluster
        if _is_invalid(
            expectation_for(laid.expect, release=release_like(spec), level=level_of(spec))
        ):
            return play
    where = " or ".join(str(one.releases) for one in scenario.expect if _is_invalid(one))
    return UnfiredPlay(play=name, reason=f"no metadata.version stands for a Kafka {where}")


def _options(scenario: Scenario, results: Path, *, seed: int) -> RunOptions:
    """Return the options of a run in virtual time; raise UsageError if there is no such cluster."""
    system = system_of(scenario.cluster)
    if system.in_virtual_time is None:
        raise UsageError(f"a cluster of {system.name} has no nodes in virtual time")
    words = ["fencepost", "run", scenario.name, "--cluster", str(system.in_virtual_time)]
    command = " ".join((*words, "--seed", str(seed)))
    return RunOptions(results=results, seed=seed, command=command, cluster=system.in_virtual_time)


def _is_invalid(entry: Expectation | None) -> bool:
    return entry is not None and entry.validity is Validity.INVALID


def _bug(scenario: Scenario) -> str:
    """Return the rule that the scenario's own settings switch off, its issue, or its name."""
    rules = rules_of(scenario.cluster)
    of_default = asdict(type(rules)())
    off = [name for name, kept in asdict(rules).items() if of_default[name] and not kept]
    return next(iter(off), scenario.issue or scenario.name)


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
    with TemporaryDirectory(prefix=f"fencepost-trial-{os.getpid()}-") as scratch:
        root = (kept_in or Path(scratch)) / f"{play.play}-{play.made_by.replace(' ', '-')}-{seed}"
        verdict = check_run(_carried_out(play, seed, root), session=InProcessTasks())
    return ToldTrial(seed=seed, identities=tuple(one.identity for one in verdict.findings))


def _carried_out(play: FiringPlay, seed: int, root: Path) -> RunDirectory:
    """Return the sealed run of a play: a trial, or a run if trials cannot do one of its steps."""
    scenario = play.scenario()
    try:
        plan = plan_of(scenario, seed)
    except UsageError:
        run = record_scenario(scenario, _options(scenario, root, seed=seed), _QUIET)
        seal(run)
        advance(run, RunState.RECORDED)
        return run
    return store_trial(plan, without_rules=play.without_rules, root=root, name=play.play).run
