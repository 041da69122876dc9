"""Series of runs without a cluster: a runner whose verdicts are stated, run by run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.harness.progress import Progress, Status
from fencepost.harness.run.outcome import RunOutcome
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import Scenario, load_scenario
from fencepost.harness.series.reproduce import Runner, Subject
from fencepost.history.manifest import Manifest, Promises, RunState, write_manifest
from fencepost.history.run_directory import RunDirectory

SCENARIO = """\
name: trial
title: A trial
issue: KAFKA-1
cluster: {kafka: 4.3.1}
topics: [{name: t}]
workload: {kind: produce-poll}
expect:
  - {kafka: "<3.5", invalid: [lost-write, unseen], tried: [3.4.1]}
  - {kafka: ">=3.5", valid: true, tried: [3.5.2, 4.3.1]}
"""
BOTH = ("lost-write", "unseen")


def verdict(*invalid: str, unknown: Sequence[str] = ()) -> Verdict:
    """Every check that a trial knows, valid but for these."""
    checks = []
    for name in ("lost-write", "unseen", "duplicate"):
        validity = Validity.INVALID if name in invalid else Validity.VALID
        if name in unknown:
            validity = Validity.UNKNOWN
        count = 3 if name in invalid else 0
        reason = "it ran out of its budget" if name in unknown else ""
        checks.append(
            CheckResult(check=name, validity=validity, anomaly_count=count, reason=reason)
        )
    return Verdict.of(checks)


@dataclass
class SilentProgress:
    """Keeps the lines."""

    lines: list[str] = field(default_factory=list)

    def say(self, line: str) -> None:
        self.lines.append(line)

    def live(self, line: str) -> None:
        """Forget it."""

    def show(self, status: Status) -> None:
        raise AssertionError(status)

    def elapsed_s(self) -> float:
        return 0.0


def ticking(step_s: float = 10.0) -> Callable[[], float]:
    """A clock that moves so far each time it is read: every run takes one step."""
    now = iter(range(1_000_000))
    return lambda: next(now) * step_s


def scenario_for(directory: Path, release: str, metadata_version: str | None = None) -> Scenario:
    path = directory / "trial.yaml"
    path.write_text(SCENARIO)
    flags = {"kafka": release, "metadata_version": metadata_version}
    return load_scenario(
        path, [(("cluster", name), value, name) for name, value in flags.items() if value]
    )


def subject(
    directory: Path, release: str, *, runs: int, metadata_version: str | None = None
) -> Subject:
    return Subject(
        release=release,
        metadata_version=metadata_version,
        scenario=scenario_for(directory, release, metadata_version),
        options=[
            RunOptions(results=directory, seed=seed, command=f"fencepost run trial --seed {seed}")
            for seed in range(7, 7 + runs)
        ],
    )


def runner(*answers: Verdict | BaseException) -> Runner:
    """Each run takes the next answer."""
    given: Iterator[Verdict | BaseException] = iter(answers)

    def run(scenario: Scenario, options: RunOptions, progress: Progress) -> RunOutcome:
        del progress
        answer = next(given)
        if isinstance(answer, BaseException):
            raise answer
        directory = RunDirectory.create(options.results, scenario.name, datetime.now(UTC))
        write_manifest(directory.manifest_path, manifest(scenario, options))
        return RunOutcome(run=directory, verdict=answer, as_expected=None)

    return run


def manifest(scenario: Scenario, options: RunOptions) -> Manifest:
    return Manifest(
        run_id="trial/1",
        state=RunState.CHECKED,
        scenario=scenario.name,
        title=scenario.title,
        seed=options.seed,
        started_at="2026-03-01T08:00:00+00:00",
        origin_ns=0,
        command=options.command,
        fencepost_version="1",
        versions={"kafka": scenario.cluster.release, "java": "17.0.13"},
        machine={"cores": "2", "memory_bytes": str(24 << 30)},
        promises=Promises(idempotent=True, acks="all", consume="assign"),
    )
