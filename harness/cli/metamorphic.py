"""The body of `fencepost selftest --metamorphic` and `--planted`.

Runs of its own are short and in virtual time, so that a night can draw them anew.
"""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

from clusters.provision.java import find_java
from clusters.systems import MAKES
from harness.cli.options import emit_json
from harness.cli.tables import console
from harness.progress import Progress, terminal_progress
from harness.scenario.options import RunOptions
from harness.scenario.requirement import NO_REQUIRE
from harness.scenario.scenario import load_scenario
from harness.scenario.sources import find_scenario
from harness.seeds import new_seed, stream_seed
from history.failure import UsageError
from history.run_directory import RunDirectory, find_run

if TYPE_CHECKING:
    from checkers.runner.tasks import TaskSession
    from checkers.verdict import Verdict
    from harness.metamorphic.metamorphic import Transformed
    from harness.metamorphic.transformation import Transformation

__all__ = ["metamorphic"]

_TIME_LIMIT: Final = "30s"
_OWN_RUNS: Final = (
    ("storm", "simulated"),
    ("reference-zookeeper-storm", "simulated-zookeeper"),
    ("smoke", "simulated"),
    ("visibility", "simulated"),
)
"""The scenarios of its own runs, each with its cluster: both generations, and every workload that
virtual time has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """A run and what became of it."""

    run: RunDirectory
    before: "Verdict"
    outcomes: "Sequence[Transformed]"

    @property
    def holds(self) -> bool:
        """True if the cluster is accused neither as it is nor after any transformation."""
        return self.before.exit_code != 1 and all(one.holds for one in self.outcomes)


def metamorphic(
    runs: tuple[str, ...],
    *,
    planted: bool,
    seed: int | None,
    transformations: tuple[str, ...],
    results: Path,
    spark_master: str,
    as_json: bool,
) -> int:
    """Judge sealed runs again after each transformation.

    1 if a cluster is accused, else 0; of what is planted, 1 if anything is not called.
    """
    named = [find_run(text, results) for text in runs]
    chosen = _chosen(transformations, planted=planted)
    from checkers.runner.session import is_local

    if not is_local(spark_master):
        raise UsageError("selftest changes runs on this machine: pass a local --spark-master")
    java = find_java()
    seed = new_seed() if seed is None else seed
    root = results.absolute() / "metamorphic"
    from checkers.runner.spark_tasks import SparkTasks
    from harness.run.spark_start import SparkStart

    tried: list[_Tried] = []
    with terminal_progress() as progress:
        progress.say(f"seed {seed}")
        spark = SparkStart(java, master=spark_master, say=progress.say)
        spark.begin()
        for run in named or _recorded(seed, root, progress):
            session = SparkTasks(spark.session())
            tried.append(
                _tried(run, seed=seed, root=root, chosen=chosen, session=session, own=not named)
            )
            progress.say(_line(tried[-1]))
    if as_json:
        emit_json({"seed": seed, "runs": [_json(one) for one in tried]})
    else:
        _say(tried, seed)
    return 0 if all(one.holds for one in tried) else 1


def _chosen(names: Sequence[str], *, planted: bool) -> "Sequence[Transformation]":
    from harness.metamorphic.planted import PLANTED
    from harness.metamorphic.transformation import transformation_of
    from harness.metamorphic.transformations import TRANSFORMATIONS

    known = PLANTED if planted else TRANSFORMATIONS
    return [transformation_of(name, known) for name in names] or known


def _recorded(seed: int, root: Path, progress: Progress) -> Iterator[RunDirectory]:
    """Yield short runs of each system, recorded now."""
    from harness.run.run import record_scenario
    from history.seal import seal

    for name, cluster in _OWN_RUNS:
        own_seed = stream_seed(seed, name)
        words = ["fencepost", "run", name, "--cluster", cluster, "--seed", str(own_seed)]
        words += ["--time-limit", _TIME_LIMIT, NO_REQUIRE]
        options = RunOptions(
            results=root, seed=own_seed, command=shlex.join(words), cluster=MAKES[cluster]
        )
        overrides: list[tuple[tuple[str, ...], object, str]] = [
            (("time_limit",), _TIME_LIMIT, "--time-limit"),
            (("require",), {}, NO_REQUIRE),
        ]
        progress.say(f"recording: {options.command}")
        run = record_scenario(load_scenario(find_scenario(name), overrides), options, progress)
        seal(run)
        yield run


def _tried(
    run: RunDirectory,
    *,
    seed: int,
    root: Path,
    chosen: "Sequence[Transformation]",
    session: "TaskSession",
    own: bool,
) -> _Tried:
    """Return what becomes of a run.

    Raise UsageError if it is not valid as it is. A run of our own may be unknown: a fault that its
    seed drew may have had no effect, say, which makes no difference to what is proved here.
    """
    from harness.metamorphic.metamorphic import outcomes, verdict_before

    copies = root / "changed" / f"{run.root.parent.name}-{run.root.name}"
    try:
        before = verdict_before(run, root=copies)
        if not own and before.exit_code != 0:
            raise UsageError(
                f"{run.root} is {before.validity} as it is; a run that is tried has to be valid"
            )
        found: list[Transformed] = []
        if before.exit_code != 1:
            found += outcomes(run, before, seed=seed, root=copies, session=session, chosen=chosen)
    finally:
        with suppress(OSError):  # unless an accused copy is in it
            copies.rmdir()
            copies.parent.rmdir()
    return _Tried(run=run, before=before, outcomes=found)


def _line(tried: _Tried) -> str:
    bad = sum(not one.holds for one in tried.outcomes)
    count = sum(one.validity is not None for one in tried.outcomes)
    return f"{tried.run.root}: {tried.before.validity}; {count} transformations, {bad} amiss"


def _say(tried: Sequence[_Tried], seed: int) -> None:
    table = Table(title="runs, and what became of them", title_justify="left")
    for name in ("run", "transformation", "before", "after", "called by, or changed"):
        table.add_column(name, overflow="fold")
    for one in tried:
        name = _name(one.run)
        if not one.outcomes:
            table.add_row(
                name, "as it is", "", str(one.before.validity), _by(one.before), style="red"
            )
        for outcome in one.outcomes:
            table.add_row(
                name,
                outcome.transformation.name,
                str(one.before.validity),
                "nothing to change" if outcome.validity is None else str(outcome.validity),
                _words(outcome),
                style="" if outcome.holds else "red",
            )
    out = console()
    out.print(table)
    for one in tried:
        for outcome in one.outcomes:
            if outcome.kept is not None:
                way = "--planted" if outcome.transformation.is_plant else "--metamorphic"
                words = ["fencepost", "selftest", way, str(one.run.root)]
                words += ["--seed", str(seed), "--transformation", outcome.transformation.name]
                out.print(f"look: fencepost check {outcome.kept}", soft_wrap=True)
                out.print(f"repeat: {shlex.join(words)}", soft_wrap=True)
    bad = sum(not one.holds for one in tried)
    out.print(f"seed {seed}: {len(tried)} runs, {bad} of them not as they have to be")


def _name(run: RunDirectory) -> str:
    return f"{run.root.parent.name}/{run.root.name}"


def _words(outcome: "Transformed") -> str:
    accused = [f"{name} ({count})" for name, count in outcome.accused.items()]
    if outcome.transformation.is_plant and not outcome.holds:
        return f"not called; by {', '.join(accused)} alone" if accused else "missed"
    changed = [f"{name} has another answer" for name in outcome.changed]
    return ", ".join([*accused, *changed])


def _by(verdict: "Verdict") -> str:
    return ", ".join(
        f"{one.check} ({one.anomaly_count})" for one in verdict.checks if _accuses(one)
    )


def _accuses(check: Any) -> bool:
    return str(check.validity) == "invalid"


def _json(tried: _Tried) -> dict[str, Any]:
    return {
        "run": str(tried.run.root),
        "before": str(tried.before.validity),
        "holds": tried.holds,
        "transformations": [
            {
                "transformation": one.transformation.name,
                "title": one.transformation.title,
                "after": None if one.validity is None else str(one.validity),
                "accused": dict(one.accused),
                "changed": list(one.changed),
                "doubts": list(one.doubts),
                "kept": None if one.kept is None else str(one.kept),
            }
            for one in tried.outcomes
        ],
    }
