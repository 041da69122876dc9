"""The body of `fencepost selftest --metamorphic` and `--planted`.

Runs of its own are short and in virtual time, so that a night can draw them anew: of four
scenarios, or, with --all, of every one that virtual time can carry out.
"""

import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

from fencepost.checkers.verdict import Validity
from fencepost.clusters.provision.java import find_java
from fencepost.clusters.systems import MAKES, system_of
from fencepost.harness.cli.options import emit_json
from fencepost.harness.cli.tables import console
from fencepost.harness.progress import Progress, terminal_progress
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.requirement import NO_REQUIRE
from fencepost.harness.scenario.scenario import load_scenario
from fencepost.harness.scenario.sources import find_scenario, library
from fencepost.harness.seeds import new_seed, stream, stream_seed
from fencepost.history.failure import SpecError, UsageError
from fencepost.history.manifest import read_manifest
from fencepost.history.run_directory import RunDirectory, find_run
from fencepost.nemesis.words import duration_s

if TYPE_CHECKING:
    from fencepost.checkers.runner.tasks import TaskSession
    from fencepost.checkers.verdict import Verdict
    from fencepost.harness.metamorphic.metamorphic import Transformed
    from fencepost.harness.metamorphic.transformation import Transformation

_TIME_LIMIT: Final = "30s"
_NEVER_S: Final = float("inf")
_PARTITIONS_MAX: Final = 500
_FOR_BUGS: Final = ("bugs", "rules")
"""The kinds of scenarios that were written for a bug."""
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
    may_be_invalid: bool = False
    """It is of a scenario that was written for a bug: as it is, it may be invalid."""

    @property
    def holds(self) -> bool:
        """True if the cluster is accused neither as it is nor after any transformation."""
        as_it_is = self.may_be_invalid or self.before.exit_code != 1
        return as_it_is and all(one.holds for one in self.outcomes)


def metamorphic(
    runs: tuple[str, ...],
    *,
    planted: bool,
    seed: int | None,
    transformations: tuple[str, ...],
    every: bool,
    within: str | None,
    page: Path | None,
    results: Path,
    spark_master: str,
    as_json: bool,
) -> int:
    """Judge sealed runs again after each transformation.

    `every`: of every scenario that virtual time can carry out; `within`: no other run is begun
    after that time, and those left out are named. 1 if a cluster is accused, else 0; of what is
    planted, 1 if anything is not called.
    """
    if runs and every:
        raise UsageError("--all records its own runs: leave out either RUN or --all")
    if within is not None and not every:
        raise UsageError("--within bounds the time of --all: pass --all as well")
    if page is not None and not planted:
        raise UsageError(
            "--write makes the table of --planted only; pass --planted, or leave --write out"
        )
    bound_s = _bound_s(within)
    named = [find_run(text, results) for text in runs]
    chosen = _chosen(transformations, planted=planted)
    from fencepost.checkers.runner.session import is_local

    if not is_local(spark_master):
        raise UsageError("selftest changes runs on this machine: pass a local --spark-master")
    java = find_java()
    seed = new_seed() if seed is None else seed
    root = results.absolute() / "metamorphic"
    from fencepost.checkers.runner.spark_tasks import SparkTasks
    from fencepost.harness.run.spark_start import SparkStart

    tried: list[_Tried] = []
    with terminal_progress() as progress:
        progress.say(f"seed {seed}")
        spark = SparkStart(java, master=spark_master, say=progress.say)
        spark.begin()
        for run in named or _recorded(seed, root, progress, every=every, bound_s=bound_s):
            session = SparkTasks(spark.session())
            one = _tried(run, seed=seed, root=root, chosen=chosen, session=session, own=not named)
            tried.append(replace(one, may_be_invalid=every and _is_for_a_bug(run)))
            progress.say(_line(tried[-1]))
    if page is not None:
        _write(page, tried)
    if as_json:
        emit_json({"seed": seed, "runs": [_json(one) for one in tried]})
    else:
        _say(tried, seed)
    return 0 if all(one.holds for one in tried) else 1


def _chosen(names: Sequence[str], *, planted: bool) -> "Sequence[Transformation]":
    from fencepost.harness.metamorphic.planted import PLANTED
    from fencepost.harness.metamorphic.transformation import transformation_of
    from fencepost.harness.metamorphic.transformations import TRANSFORMATIONS

    known = PLANTED if planted else TRANSFORMATIONS
    return [transformation_of(name, known) for name in names] or known


def _is_for_a_bug(run: RunDirectory) -> bool:
    scenario = find_scenario(read_manifest(run.manifest_path).scenario)
    return scenario.parent.name in _FOR_BUGS


def _bound_s(within: str | None) -> float:
    try:
        return _NEVER_S if within is None else duration_s(within)
    except SpecError as error:
        raise UsageError(f"--within {within}: {error}") from error


def _recorded(
    seed: int, root: Path, progress: Progress, *, every: bool, bound_s: float
) -> Iterator[RunDirectory]:
    """Yield short runs, recorded now, until the bound."""
    begun_s = time.monotonic()
    wanted = list(_all_runs()) if every else list(_OWN_RUNS)
    if every:
        stream(seed, "order").shuffle(wanted)  # so that each night gets to others
    for place, (name, cluster) in enumerate(wanted):
        if time.monotonic() - begun_s > bound_s:
            left = ", ".join(sorted(one for one, _ in wanted[place:]))
            progress.say(f"the time is over; not tried: {left}")
            return
        try:
            run = _one(name, cluster, stream_seed(seed, name), root, progress)
        except UsageError as error:
            if not every:
                raise
            progress.say(f"{name} is not tried: {str(error).splitlines()[0]}")
            continue
        if run is not None:
            yield run


def _all_runs() -> Iterator[tuple[str, str]]:
    """Yield every scenario of a system that virtual time has, with its cluster there."""
    for name, path in library().items():
        make = system_of(load_scenario(path, []).cluster).in_virtual_time
        if make is not None:
            yield name, make.name


def _one(
    name: str, cluster: str, own_seed: int, root: Path, progress: Progress
) -> RunDirectory | None:
    """Record a short run; None if its scenario expects it to be invalid.

    Raises UsageError if virtual time cannot carry it out.
    """
    from fencepost.harness.run.plan import planned
    from fencepost.harness.run.run import record_scenario
    from fencepost.history.seal import seal

    words = ["fencepost", "run", name, "--cluster", cluster, "--seed", str(own_seed)]
    overrides: list[tuple[tuple[str, ...], object, str]] = []
    if load_scenario(find_scenario(name), []).trial is None:
        words += ["--time-limit", _TIME_LIMIT, NO_REQUIRE]
        overrides = [(("time_limit",), _TIME_LIMIT, "--time-limit"), (("require",), {}, NO_REQUIRE)]
    scenario = load_scenario(find_scenario(name), overrides)
    options = RunOptions(
        results=root, seed=own_seed, command=shlex.join(words), cluster=MAKES[cluster]
    )
    partitions = sum(topic.partitions for topic in scenario.topics)
    if partitions > _PARTITIONS_MAX:
        raise UsageError(
            f"{name} has {partitions:,} partitions; the tables of more than "
            f"{_PARTITIONS_MAX:,} do not fit in memory"
        )
    expected = planned(scenario, options, progress.say).expectation
    if expected is not None and expected.validity is Validity.INVALID:
        progress.say(f"{name} is not tried: it is invalid, as its scenario expects")
        return None
    progress.say(f"recording: {options.command}")
    run = record_scenario(scenario, options, progress)
    seal(run)
    return run


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
    from fencepost.harness.metamorphic.metamorphic import outcomes, verdict_before

    copies = root / "changed" / f"{run.root.parent.name}-{run.root.name}"
    try:
        before = verdict_before(run, root=copies)
        if not own and before.exit_code != 0:
            raise UsageError(
                f"{run.root} is {before.validity}: only a valid run can be transformed"
            )
        found: list[Transformed] = []
        if before.exit_code != 1:
            found += outcomes(run, before, seed=seed, root=copies, session=session, chosen=chosen)
    finally:
        with suppress(OSError):  # unless an accused copy is in it
            copies.rmdir()
            copies.parent.rmdir()
    return _Tried(run=run, before=before, outcomes=found)


def _write(page: Path, tried: Sequence[_Tried]) -> None:
    """Write what called each plant into the page, a column a kind of run; of one, the last run."""
    from fencepost.harness.metamorphic.planted_page import planted_page

    measured: dict[str, dict[str, str]] = {}
    for one in tried:
        manifest = read_manifest(one.run.manifest_path)
        released = manifest.versions.get("kafka", "")
        head = f"{manifest.scenario} on {manifest.cluster} {released}".strip()
        cells = {outcome.transformation.name: outcome.told_by for outcome in one.outcomes}
        measured.setdefault(head, {}).update(cells)
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    page.write_text(planted_page(measured, before=before), encoding="utf-8")


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
