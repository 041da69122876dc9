"""One run from scenario to verdict: prepare, record, seal, check, report.

Whatever happens, the run directory says how far it came: the manifest is written before the first
node starts and after each stage, logs lie where the nodes write them, and a failed run gets its
page too. Nothing outlives the call: the warden that owns every process ends with it.
"""

import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Final

from checkers.verdict import Verdict
from clusters.kafka.cluster import KafkaCluster
from clusters.kafka.preparation import prepare
from clusters.kafka.prepared import Prepared
from clusters.port import Cluster
from clusters.provision.cache import cache_dir
from clusters.provision.java import Java, find_java
from clusters.reference.processes import ReferenceCluster
from clusters.reference.simulated.cluster import SimulatedCluster
from clusters.reference.specs import level_of
from harness.manifest import first_manifest
from harness.prepare.abilities import There, refuse_missing_abilities
from harness.prepare.disks import with_disks
from harness.prepare.hardships import with_hardships
from harness.prepare.hosts import refuse_unplaceable, with_release_of_image
from harness.prepare.reference import fitted_to_reference, release_like, rules_without
from harness.prepare.upgrades import with_upgrades
from harness.progress import Progress
from harness.run.judge import judge
from harness.run.lock import only_run
from harness.run.outcome import RunOutcome
from harness.run.record import record
from harness.run.reports import write_page
from harness.run.simulated import prepare_simulated, record_simulated
from harness.run.spark_start import SparkStart
from harness.scenario.expectation import expectation_for, is_met
from harness.scenario.options import ClusterKind, RunOptions
from harness.scenario.scenario import Scenario
from harness.trials.plan import plan_of
from harness.trials.recorded import record_trial
from harness.trials.trial import TrialResult
from harness.virtual.evidence import ORIGIN_UTC_NS
from history.clock import Clock
from history.failure import HarnessError, UsageError
from history.manifest import RunState, read_manifest, write_manifest
from history.run_directory import RunDirectory

__all__ = ["CLUSTERS", "InterruptedRunError", "record_scenario", "run_scenario"]

CLUSTERS: Final[Mapping[ClusterKind, type[Cluster]]] = {
    ClusterKind.KAFKA: KafkaCluster,
    ClusterKind.REFERENCE: ReferenceCluster,
    ClusterKind.SIMULATED: SimulatedCluster,
}
_FREE_BYTES_MIN = 1 << 30
"""A smoke run writes about 200 MB (logs, segments, node data); below this it would not end well."""


class InterruptedRunError(KeyboardInterrupt):
    """The user ended the run (SIGINT, SIGTERM).

    No HarnessError: whoever asks a cluster again after an error would go on, and the user's wish be
    lost.
    """


def run_scenario(scenario: Scenario, options: RunOptions, progress: Progress) -> RunOutcome:
    """Run it. HarnessError if no verdict could be reached; the run directory then says why."""
    _refuse_full_disk(options.results)
    refuse_unplaceable(options)
    _refuse_what_cannot_be_done(scenario, options)
    scenario = with_disks(scenario, options, progress.say)
    if options.cluster is ClusterKind.REFERENCE:
        scenario = fitted_to_reference(scenario, options, progress)
    scenario = with_release_of_image(scenario, options, progress.say)
    scenario = with_hardships(scenario, options)
    with _interruptible(), _alone(scenario, options):
        stage = _stage(scenario, options, progress)
        run = _begun(scenario, options, stage)
        progress.say(f"recording to {run.root}")
        with _failure_written(run):
            stage.record(run)
            spark = SparkStart(stage.java, master=options.spark_master, say=progress.say)
            verdict = judge(run, spark, progress=progress)
    if not options.keep_data and verdict.exit_code == 0:
        _drop_data(run)
    return _outcome(scenario, stage, run, verdict)


def record_scenario(scenario: Scenario, options: RunOptions, progress: Progress) -> RunDirectory:
    """Record it, neither sealed nor judged: the raw history and the manifest. For measuring."""
    _refuse_what_cannot_be_done(scenario, options)
    stage = _stage(scenario, options, progress)
    run = _begun(scenario, options, stage)
    stage.record(run)
    return run


def _refuse_what_cannot_be_done(scenario: Scenario, options: RunOptions) -> None:
    there = There(cluster=CLUSTERS[options.cluster], host=options.host, wired=options.wire)
    refuse_missing_abilities(scenario, there)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """What is there before a run begins, whatever its cluster is made of."""

    java: Java
    """For the checks."""
    release: str
    """Whose expectations hold."""
    level: int | None
    """The metadata.version of a cluster of our own."""
    origin_ns: int
    origin_utc_ns: int
    record: Callable[[RunDirectory], None]


def _stage(scenario: Scenario, options: RunOptions, progress: Progress) -> _Stage:
    if options.without_rules and options.cluster is ClusterKind.KAFKA:
        raise UsageError(
            "--without-rule is for our own nodes: pass --cluster reference, or simulated"
        )
    if options.cluster is ClusterKind.KAFKA:
        prepared = _prepared(scenario, progress)
        clock = Clock.start()
        return _Stage(
            java=prepared.java,
            release=prepared.release.version,
            level=None,
            origin_ns=clock.origin_ns,
            origin_utc_ns=time.time_ns() - clock.now_ns(),
            record=lambda run: record(
                scenario, options, prepared, run=run, clock=clock, progress=progress
            ),
        )
    if scenario.trial is not None:
        return _trial_stage(scenario, options, progress)
    if options.cluster is ClusterKind.SIMULATED:
        cluster = prepare_simulated(scenario, options)
        return _virtual_stage(
            scenario,
            lambda run: record_simulated(scenario, options, cluster, run=run, progress=progress),
        )
    clock = Clock.start()
    return _Stage(
        java=find_java(),
        release=release_like(scenario),
        level=level_of(scenario.cluster),
        origin_ns=clock.origin_ns,
        origin_utc_ns=time.time_ns() - clock.now_ns(),
        record=lambda run: record(scenario, options, None, run=run, clock=clock, progress=progress),
    )


def _trial_stage(scenario: Scenario, options: RunOptions, progress: Progress) -> _Stage:
    if options.cluster is not ClusterKind.SIMULATED:
        raise UsageError(f"{scenario.name} is a trial: pass --cluster simulated")
    plan, rules = plan_of(scenario, options.seed), rules_without(options.without_rules)
    return _virtual_stage(scenario, lambda run: _said(record_trial(plan, rules, run=run), progress))


def _virtual_stage(scenario: Scenario, record: Callable[[RunDirectory], None]) -> _Stage:
    return _Stage(
        java=find_java(),
        release=release_like(scenario),
        level=level_of(scenario.cluster),
        origin_ns=0,
        origin_utc_ns=ORIGIN_UTC_NS,
        record=record,
    )


def _said(result: TrialResult, progress: Progress) -> None:
    for finding in result.findings[:1]:
        progress.say(f"the oracle: {finding}")


def _begun(scenario: Scenario, options: RunOptions, stage: _Stage) -> RunDirectory:
    """The directory of a run that begins now, with what is known of it."""
    run = RunDirectory.create(options.results, scenario.name, datetime.now(UTC))
    run.scenario_path.write_text(scenario.document.resolved(), encoding="utf-8")
    manifest = first_manifest(
        scenario, options, run, origin_ns=stage.origin_ns, origin_utc_ns=stage.origin_utc_ns
    )
    write_manifest(run.manifest_path, manifest)
    return run


def _prepared(scenario: Scenario, progress: Progress) -> Prepared:
    try:
        return with_upgrades(scenario, prepare(scenario.cluster, progress.say), progress.say)
    except UsageError:
        raise
    except HarnessError as error:
        raise HarnessError(f"{error}\n(--cluster reference needs no release of Kafka)") from error


def _alone(scenario: Scenario, options: RunOptions) -> AbstractContextManager[object]:
    """Nobody else's run takes the machine's time from processes; virtual time is nobody's."""
    if options.cluster is ClusterKind.SIMULATED:
        return nullcontext()
    kafka = options.cluster is ClusterKind.KAFKA
    named = f"Kafka {scenario.cluster.release}" if kafka else "the reference cluster"
    where = f"{scenario.name} on {named}"
    return only_run(cache_dir(), what=where, alongside=options.alongside)


def _outcome(scenario: Scenario, stage: _Stage, run: RunDirectory, verdict: Verdict) -> RunOutcome:
    expectation = expectation_for(scenario.expect, release=stage.release, level=stage.level)
    return RunOutcome(
        run=run,
        verdict=verdict,
        as_expected=None if expectation is None else is_met(expectation, verdict),
    )


def _refuse_full_disk(results: Path) -> None:
    try:
        results.mkdir(parents=True, exist_ok=True)
        free_bytes = shutil.disk_usage(results).free
    except OSError as error:
        raise HarnessError(f"{results}: cannot write results there: {error.strerror}") from None
    if free_bytes < _FREE_BYTES_MIN:
        raise HarnessError(
            f"{results}: {free_bytes / 2**20:,.0f} MiB free, a run needs "
            f"{_FREE_BYTES_MIN / 2**20:,.0f}; make room or pass --results DIR on another disk"
        )


@contextmanager
def _failure_written(run: RunDirectory) -> Iterator[None]:
    """A run that fails says so in its manifest and gets its page; the first error goes on."""
    try:
        yield
    except BaseException as error:
        message = str(error) or type(error).__name__
        try:
            manifest = read_manifest(run.manifest_path)
            failed = replace(manifest, state=RunState.FAILED, failure=message, harness_pid=None)
            write_manifest(run.manifest_path, failed)
            write_page(run)
        except (HarnessError, OSError) as second:
            error.add_note(f"and its page could not be written: {second}")
        if isinstance(error, HarnessError):
            raise type(error)(f"{message} (see {run.root})") from error
        if isinstance(error, OSError):
            raise HarnessError(f"{message} (see {run.root})") from error
        raise


def _drop_data(run: RunDirectory) -> None:
    for copies in ("disk", "followed", "snapshots"):
        for directory in run.nodes.glob(f"*/{copies}"):
            shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGINT or SIGTERM raises InterruptedRunError, once: a second one cannot disturb clean-up."""

    def interrupt(number: int, _frame: FrameType | None) -> None:
        for each in previous:
            signal.signal(each, signal.SIG_IGN)
        raise InterruptedRunError(f"interrupted by {signal.Signals(number).name}")

    numbers = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
