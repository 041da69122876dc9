"""One run from scenario to verdict: prepare, record, seal, check, report.

Whatever happens, the run directory says how far it came: the manifest is written before the first
node starts and after each stage, logs lie where the nodes write them, and a failed run gets its
page too. Nothing outlives the call: the warden that owns every process ends with it.
"""

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from fencepost.checkers.verdict import Validity, Verdict
from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.releases import UnfetchedError
from fencepost.clusters.system import Prepared, Wanted
from fencepost.harness.manifest import first_manifest
from fencepost.harness.prepare.hosts import with_release_of_image
from fencepost.harness.prepare.reference import rules_of, rules_without
from fencepost.harness.prepare.releases import wanted_by, way_out
from fencepost.harness.prepare.settings import refuse_unknown_of
from fencepost.harness.progress import Progress
from fencepost.harness.run.ending import InterruptedRunError, interruptible
from fencepost.harness.run.judge import advance, judge
from fencepost.harness.run.lock import alone
from fencepost.harness.run.outcome import RunOutcome
from fencepost.harness.run.plan import RunPlan, planned
from fencepost.harness.run.record import record
from fencepost.harness.run.reports import write_reports
from fencepost.harness.run.simulated import prepare_simulated, record_simulated
from fencepost.harness.run.spark_start import SparkStart
from fencepost.harness.scenario.expectation import Expectation, expectation_for, is_met, known_to
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import Scenario
from fencepost.harness.trials.plan import plan_of
from fencepost.harness.trials.recorded import record_trial
from fencepost.harness.trials.trial import TrialResult
from fencepost.harness.virtual.evidence import ORIGIN_UTC_NS
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError, SpecError, UsageError, why_full
from fencepost.history.manifest import RunState, read_manifest, write_manifest
from fencepost.history.run_directory import RunDirectory

_RESERVE_BYTES: Final = 4 << 20
"""A run that fails writes its manifest and its page: 1 to 2 MB."""


def run_scenario(scenario: Scenario, options: RunOptions, progress: Progress) -> RunOutcome:
    """Plan the scenario and run it."""
    return run_planned(planned(scenario, options, progress.say), progress)


def run_planned(plan: RunPlan, progress: Progress) -> RunOutcome:
    """Run the plan; raise HarnessError without a verdict, with the reason in the run directory."""
    options = plan.options
    scenario = with_release_of_image(plan.scenario, options, progress.say)
    with interruptible(), alone(scenario, options):
        stage = _stage(scenario, options, progress)
        run = _begun(scenario, options, stage)
        progress.say(f"recording to {run.root}")
        with _failure_written(run):
            stage.record(run)
            advance(run, RunState.RECORDED)
            spark = SparkStart(stage.java, master=options.spark_master, say=progress.say)
            verdict = judge(run, spark, progress=progress)
    if not options.keep_data and verdict.exit_code == 0:
        _drop_data(run)
    return _outcome(scenario, stage, run, verdict)


def record_scenario(scenario: Scenario, options: RunOptions, progress: Progress) -> RunDirectory:
    """Record it, neither sealed nor judged: the raw history and the manifest. For measuring."""
    scenario = planned(scenario, options, progress.say).scenario
    stage = _stage(scenario, options, progress)
    run = _begun(scenario, options, stage)
    stage.record(run)
    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """The requirements of a run, gathered before it begins, whatever its cluster is made of."""

    java: Java
    """The Java of the checks."""
    release: str
    """The release whose expectations hold."""
    level: int | None
    """The metadata.version of a cluster of our own."""
    origin_ns: int
    origin_utc_ns: int
    record: Callable[[RunDirectory], None]

    def expectation(self, scenario: Scenario) -> Expectation | None:
        """Return what the scenario expects of it."""
        return expectation_for(scenario.expect, release=self.release, level=self.level)


def _stage(scenario: Scenario, options: RunOptions, progress: Progress) -> _Stage:
    make = options.cluster
    if scenario.trial is not None:
        return _trial_stage(scenario, options, progress)
    simulated = prepare_simulated(scenario, options) if make.in_virtual_time else None
    try:
        wanted = wanted_by(scenario.play, portable=not options.host.shares_files)
        prepared = make.driver.prepare(scenario.cluster, wanted, progress.say)
    except SpecError as error:
        raise scenario.document.error(error) from error
    except UnfetchedError as error:
        raise way_out(scenario, error) from error
    if not make.of_our_own:
        refuse_unknown_of(scenario, prepared, progress.say)
    if simulated is not None:
        return _in_virtual_time(
            prepared,
            lambda run: record_simulated(scenario, options, simulated, run=run, progress=progress),
        )
    clock = Clock.start()
    return _Stage(
        java=prepared.java,
        release=prepared.version,
        level=prepared.level,
        origin_ns=clock.origin_ns,
        origin_utc_ns=time.time_ns() - clock.now_ns(),
        record=lambda run: record(
            scenario, options, prepared, run=run, clock=clock, progress=progress
        ),
    )


def _trial_stage(scenario: Scenario, options: RunOptions, progress: Progress) -> _Stage:
    plan = plan_of(scenario, options.seed)
    rules = rules_without(options.without_rules, rules_of(plan.cluster))
    return _in_virtual_time(
        options.cluster.driver.prepare(scenario.cluster, Wanted(), progress.say),
        lambda run: _said(record_trial(plan, rules, run=run), progress),
    )


def _in_virtual_time(prepared: Prepared, record: Callable[[RunDirectory], None]) -> _Stage:
    return _Stage(
        java=prepared.java,
        release=prepared.version,
        level=prepared.level,
        origin_ns=0,
        origin_utc_ns=ORIGIN_UTC_NS,
        record=record,
    )


def _said(result: TrialResult, progress: Progress) -> None:
    for finding in result.findings[:1]:
        progress.say(f"the oracle: {finding}")


def _begun(scenario: Scenario, options: RunOptions, stage: _Stage) -> RunDirectory:
    """Create the directory of a run that begins now, with its first manifest, and return it.

    Raises HarnessError if the disk refuses; nothing is left of it then.
    """
    run = RunDirectory.create(options.results, scenario.name, datetime.now(UTC))
    expectation = stage.expectation(scenario)
    manifest = first_manifest(
        scenario,
        options,
        run,
        origin_ns=stage.origin_ns,
        origin_utc_ns=stage.origin_utc_ns,
        known=known_to(expectation, level=stage.level),
        expected=() if expectation is None else expectation.anomalies,
    )
    try:
        run.scenario_path.write_text(scenario.document.resolved(), encoding="utf-8")
        write_manifest(run.manifest_path, manifest)
    except (HarnessError, OSError) as error:
        why = why_full(run.root) or f"cannot begin a run in {run.root}: {error}"
        run.discard()
        raise HarnessError(why) from error
    return run


def _outcome(scenario: Scenario, stage: _Stage, run: RunDirectory, verdict: Verdict) -> RunOutcome:
    expectation = stage.expectation(scenario)
    ended_early = read_manifest(run.manifest_path).ended_early
    if ended_early or (scenario.waived and verdict.validity is Validity.VALID):
        # What a scenario expects of a release is expected of whole runs that meet its demands.
        expectation = None
    return RunOutcome(
        run=run,
        verdict=verdict,
        as_expected=None if expectation is None else is_met(expectation, verdict),
        ended_early=ended_early,
    )


@contextmanager
def _failure_written(run: RunDirectory) -> Iterator[None]:
    """A run that fails says so in its manifest and gets its page; the first error goes on.

    One that was recorded to its end is whole, whatever becomes of its judgement.
    One that is refused before anything has written into its directory leaves none. What the
    manifest and the page need is set aside, for the end of a run that filled its disk.
    """
    try:
        with run.reserve.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, _RESERVE_BYTES)
        yield
    except BaseException as raised:
        error = _interrupt_behind(raised) or raised
        if isinstance(error, UsageError) and run.is_blank:
            run.discard()
            raise
        message = str(error) or type(error).__name__
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            message = why_full(run.root) or f"the disk of {run.root} is full: {message}"
        run.reserve.unlink(missing_ok=True)
        try:
            manifest = read_manifest(run.manifest_path)
            if manifest.state is RunState.RUNNING:
                failed = replace(manifest, state=RunState.FAILED, failure=message)
                write_manifest(run.manifest_path, failed)
            write_reports(run)
        except (HarnessError, OSError) as second:
            error.add_note(f"and its reports could not be written: {second}")
        if isinstance(error, InterruptedRunError):
            again = f"fencepost check {run.root} judges what it recorded"
            raise InterruptedRunError(f"{message} (see {run.root}; {again})") from error
        if isinstance(error, HarnessError):
            raise type(error)(f"{message} (see {run.root})") from error
        if isinstance(error, OSError):
            raise HarnessError(f"{message} (see {run.root})") from error
        raise
    finally:
        run.reserve.unlink(missing_ok=True)


def _interrupt_behind(error: BaseException) -> InterruptedRunError | None:
    """Return the interrupt that an error hides: what it breaks off fails after it."""
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, InterruptedRunError):
        behind = behind.__context__
    return behind


def _drop_data(run: RunDirectory) -> None:
    for copies in ("disk", "followed", "kept", "snapshots"):
        for directory in run.nodes.glob(f"*/{copies}"):
            shutil.rmtree(directory, ignore_errors=True)
