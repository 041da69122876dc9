"""Runs in series: whether a scenario reproduces its bug, how often, and on which releases not.

Release by release, and on each the same seeds, one run a seed. A run that fails is a result of its
own and does not end the series; wrong use does (a second run on the machine, a release that does
not exist), and so does the user, and either way what was done is stored.

Of a run that found something the first proof is told: the earliest time at which all that a proof
names had happened. No checker runs while a cluster does, so this is no time of detection: it says
how early in the run an observer with the same operations and frames could have known.
"""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from fencepost.checkers.anomaly import Anomaly
from fencepost.checkers.verdict import Validity, Verdict
from fencepost.harness.prepare.reference import level_of, release_like
from fencepost.harness.progress import Progress
from fencepost.harness.run.outcome import RunOutcome
from fencepost.harness.scenario.expectation import Expectation, expectation_for
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import Scenario
from fencepost.harness.series.reproduction import (
    Expected,
    Reproduction,
    RunResult,
    Series,
    SeriesRun,
    SeriesState,
)
from fencepost.harness.series.reproduction_file import write_reproduction
from fencepost.harness.series.window_grid import windows_of_run
from fencepost.history.failure import HarnessError, UsageError
from fencepost.history.manifest import read_manifest
from fencepost.history.reader import table_files
from fencepost.history.run_directory import RunDirectory

Runner = Callable[[Scenario, RunOptions, Progress], RunOutcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One release to run the scenario on."""

    release: str
    metadata_version: str | None
    """Another level than the scenario's, which then states no expectation; None: its own."""
    scenario: Scenario
    """The scenario, fitted to this release."""
    options: Sequence[RunOptions]
    """One run each, in order."""


Ended = Callable[[Subject, RunOptions, RunOutcome | HarnessError, float], None]


def planned(subjects: Sequence[Subject], *, command: str) -> Reproduction:
    """Return the reproduction before its first run."""
    scenario, options = subjects[0].scenario, subjects[0].options
    return Reproduction(
        scenario=scenario.name,
        title=scenario.title,
        issue=scenario.issue,
        state=SeriesState.RUNNING,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        command=command,
        fencepost_version=version("fencepost"),
        runs_a_release=len(options),
        first_seed=options[0].seed,
        series=tuple(map(_planned_series, subjects)),
    )


def reproduce(
    plan: Reproduction,
    subjects: Sequence[Subject],
    *,
    path: Path,
    progress: Progress,
    each: Ended | None = None,
    run: Runner | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Reproduction:
    """Run all of it, and keep `path` up to date; a KeyboardInterrupt returns what was done.

    `each` is told of every run that ended: on what, how, its outcome, and the seconds it took.
    UsageError ends it as it would end a single run; `path` then holds what was done before.
    """
    done, runner = plan, run or _runner()
    write_reproduction(path, done)
    try:
        for place, subject in enumerate(subjects):
            for options in subject.options:
                done, outcome = _with_run(
                    done, place, subject, options, progress=progress, run=runner, clock=clock
                )
                if each is not None:
                    each(subject, options, outcome, done.series[place].runs[-1].seconds)
                write_reproduction(path, done)
        done = replace(done, state=SeriesState.COMPLETE)
    except (KeyboardInterrupt, UsageError) as error:
        done = replace(done, state=SeriesState.INTERRUPTED)
        if isinstance(error, UsageError):
            raise
        progress.say(f"interrupted; what was done is in {path}")
    finally:
        write_reproduction(path, done)
    return done


def _runner() -> Runner:
    """Return the function that runs a scenario. Its import takes seconds."""
    from fencepost.harness.run.run import run_scenario  # noqa: PLC0415

    return run_scenario


def result_of(verdict: Verdict, sought: Iterable[Sequence[str]]) -> RunResult:
    """Return HIT if the verdict has all anomalies of one of the sets, else MISS or UNKNOWN.

    UNKNOWN where a check of a set that nothing else refutes has no answer, and where the run's
    verdict is unknown. Without any set, every invalid verdict is a hit.
    """
    validities = {check.check: check.validity for check in verdict.checks}
    found = [
        {validities.get(name, Validity.UNKNOWN) for name in names} for names in map(tuple, sought)
    ] or [{verdict.validity}]
    if {Validity.INVALID} in found:
        return RunResult.HIT
    if verdict.validity is Validity.UNKNOWN:
        return RunResult.UNKNOWN
    refuted = all(Validity.VALID in answers for answers in found)
    return RunResult.MISS if refuted else RunResult.UNKNOWN


def _planned_series(subject: Subject) -> Series:
    entries = subject.scenario.expect
    expectation = _expectation(subject)
    return Series(
        release=subject.release,
        metadata_version=subject.scenario.cluster.protocol_level,
        expected=expected_by(expectation),
        sought=(
            (expectation.anomalies,)
            if expectation and expectation.validity is Validity.INVALID
            else tuple(e.anomalies for e in entries if e.validity is Validity.INVALID)
        ),
    )


def _expectation(subject: Subject) -> Expectation | None:
    """Return what the scenario expects of it; None for a level that is not the release's own."""
    entries, spec = subject.scenario.expect, subject.scenario.cluster
    if subject.options[0].cluster.of_our_own:
        # Its protocol's level decides, whoever chose it.
        return expectation_for(entries, release=release_like(spec), level=level_of(spec))
    if subject.metadata_version:
        return None
    return expectation_for(entries, release=_version_of(subject.release))


def _version_of(release: str) -> str:
    """Return the release's version.

    A build of the user's own has none until it runs: it fits entries for every release.
    """
    return "" if release.startswith("path:") else release


def expected_by(expectation: Expectation | None) -> Expected:
    """Return what an entry of a scenario expects of a series; without one, nothing is stated."""
    if expectation is None or expectation.refused:
        return Expected.UNSTATED
    return Expected.FIRES if expectation.validity is Validity.INVALID else Expected.HOLDS


def _with_run(
    done: Reproduction,
    place: int,
    subject: Subject,
    options: RunOptions,
    *,
    progress: Progress,
    run: Runner,
    clock: Callable[[], float],
) -> tuple[Reproduction, RunOutcome | HarnessError]:
    before = done.series[place]
    number = f"run {len(before.runs) + 1} of {len(subject.options)}"
    progress.say(f"{before.label}: {number}, seed {options.seed} (repeat: {options.command})")
    begin_s = clock()
    outcome: RunOutcome | HarnessError
    try:
        outcome = run(subject.scenario, options, progress)
    except UsageError:
        raise
    except HarnessError as error:
        outcome = error
    made = _series_run(outcome, before, options, seconds=clock() - begin_s)
    after = replace(before, runs=(*before.runs, made))
    progress.say(_said(after, made))
    series = (*done.series[:place], after, *done.series[place + 1 :])
    return _with_surroundings(replace(done, series=series), place, outcome), outcome


def _series_run(
    outcome: RunOutcome | HarnessError, series: Series, options: RunOptions, *, seconds: float
) -> SeriesRun:
    if isinstance(outcome, HarnessError):
        return SeriesRun(
            seed=options.seed,
            result=RunResult.FAILED,
            validity=None,
            seconds=seconds,
            proof_seconds=None,
            anomalies={},
            run=None,
            command=options.command,
            reason=str(outcome),
        )
    verdict = outcome.verdict
    illegal = {
        check.check: check.anomaly_count - check.allowed_count
        for check in verdict.checks
        if check.validity is Validity.INVALID
    }
    result = result_of(verdict, series.sought)
    sought = {name for names in series.sought for name in names} or set(illegal)
    hit = result is RunResult.HIT
    return SeriesRun(
        seed=options.seed,
        result=result,
        validity=verdict.validity,
        seconds=seconds,
        proof_seconds=first_proof_seconds(outcome.run, verdict, sought) if hit else None,
        anomalies=illegal,
        run=str(outcome.run.root),
        command=options.command,
        reason=_open_question(verdict, sought) if result is RunResult.UNKNOWN else "",
        windows=windows_of_run(outcome),
    )


def _open_question(verdict: Verdict, sought: Collection[str]) -> str:
    """Return the words of the first check without an answer.

    Else return the sought ones that prove nothing.
    """
    unknown = (check for check in verdict.checks if check.validity is Validity.UNKNOWN)
    for check in unknown:
        return f"{check.check}: {check.reason}"
    empty = [
        f"{check.check} is {check.validity}"
        for check in verdict.checks
        if check.check in sought and check.validity in {Validity.NOT_JUDGED, Validity.FIGURE}
    ]
    return ", ".join(empty) or "a check that is sought was not made"


def _said(series: Series, made: SeriesRun) -> str:
    words = {RunResult.UNKNOWN: "inconclusive", RunResult.FAILED: "FAILED"}
    so_far = f"{series.rate.hit_count}/{series.rate.run_count} so far"
    reason = f": {made.reason}" if made.reason else ""
    word = words.get(made.result, made.result.value)
    return f"{series.label}: {word} after {made.seconds:.1f} s, {so_far}{reason}"


def _with_surroundings(
    done: Reproduction, place: int, outcome: RunOutcome | HarnessError
) -> Reproduction:
    """Return it with the machine and the versions, which the first run of each release knows."""
    known = done.series[place]
    if isinstance(outcome, HarnessError) or (known.versions and done.machine):
        return done
    manifest = read_manifest(outcome.run.manifest_path)
    series = list(done.series)
    series[place] = replace(known, versions=dict(manifest.versions))
    return replace(done, machine=dict(manifest.machine), series=tuple(series))


def first_proof_seconds(
    run: RunDirectory, verdict: Verdict, checks: Collection[str]
) -> float | None:
    """Return seconds since the run's clock began.

    None where no proof of these checks names operations or frames.

    Of the examples that the verdict keeps of each check, which are the first in the history.
    Raises HarnessError if the run's history cannot be read.
    """
    proofs = [
        example
        for check in verdict.checks
        if check.check in checks and check.validity is Validity.INVALID
        for example in check.examples
        if not example.allowed and (example.operations or example.frames)
    ]
    if not proofs:
        return None
    operations = {index for proof in proofs for index in proof.operations}
    # With pandas: a series is refused before.
    from fencepost.report.anomalies import operations_at  # noqa: PLC0415
    from fencepost.report.frames import frame_ends  # noqa: PLC0415

    found = operations_at(table_files(run, "operations"), operations)
    returns = {index: found[index].return_ns if index in found else None for index in operations}
    frames = {number for proof in proofs for number in proof.frames}
    passed = frame_ends(table_files(run, "wire"), frames) if frames else {}

    def complete_ns(proof: Anomaly) -> int | None:
        """Return the time at which all that the proof names had ended, or None."""
        ends = [returns[index] for index in proof.operations]
        ends += [passed.get(number) for number in proof.frames]
        known = [end for end in ends if end is not None]
        return max(known) if len(known) == len(ends) else None

    complete = [end for proof in proofs if (end := complete_ns(proof)) is not None]
    return min(complete) / 1e9 if complete else None
