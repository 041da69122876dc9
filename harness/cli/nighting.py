"""The body of `fencepost night`: what can run here, the runs, and their sum."""

import json
import shlex
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fencepost.clusters.hosts.process import harness_mark
from fencepost.clusters.provision.cache import cache_dir
from fencepost.clusters.provision.java import find_java
from fencepost.clusters.provision.releases import UnfetchedError
from fencepost.clusters.systems import MAKES
from fencepost.harness.cli.keeping import Keeping
from fencepost.harness.cli.night_plan import not_valid_of, show_night
from fencepost.harness.cli.options import emit_json
from fencepost.harness.prepare.releases import wanted_by
from fencepost.harness.progress import TerminalProgress, terminal_progress
from fencepost.harness.run.lock import only_run
from fencepost.harness.run.plan import planned
from fencepost.harness.scenario.options import HostKind, RunOptions
from fencepost.harness.seeds import new_seed
from fencepost.harness.series.night import (
    Night,
    NightPlan,
    NightStore,
    left_out,
    next_seed,
    nights_of,
    unfinished,
)
from fencepost.harness.series.night_file import Cell, NightFile
from fencepost.history.failure import HarnessError, NotHereError, UsageError
from fencepost.report.notation import counted


def night(
    loaded: NightFile,
    file: str,
    results: Path,
    resume: str | None,
    only_failed: str | None,
    **flags: Any,
) -> int:
    """Make the runs of a night's file, and return the exit code of them together."""
    command = _command(file, results, flags)
    with terminal_progress() as progress:
        if resume is not None:
            store = NightStore.find(resume, results, loaded.name)
            plan, state = store.read_plan(), replace(store.read(), harness=harness_mark())
            if state.ended_at is not None:
                raise UsageError(f"{store.root} has ended; nothing of it is left to resume")
        else:
            plan = _plan(loaded, results, command, flags, progress)
            if only_failed is not None:
                plan = not_valid_of(NightStore.find(only_failed, results, loaded.name), plan)
            if flags["dry_run"]:
                return show_night(plan, as_json=flags["as_json"])
            state = Night(
                night=loaded.name,
                file=file,
                command=plan.command,
                started_at=datetime.now(UTC).isoformat(timespec="seconds"),
                harness=harness_mark(),
            )
        # Imported here, since a refusal or a plan draws no page.
        from fencepost.harness.cli.night_course import NightCourse

        with _alone(plan, results, alongside=flags["alongside"]):
            if resume is None:
                _say_unfinished(file, results, loaded.name, progress.say)
                store = NightStore.create(results, loaded.name, datetime.now(UTC))
                store.write_plan(plan)
            store.write(state)
            progress.say(f"{loaded.title}: {store.root}")
            course = NightCourse(
                plan=plan,
                store=store,
                results=results,
                flags=flags,
                progress=progress,
                night=state,
                resumed=resume is not None,
            )
            interrupted = course.go()
    course.say_end(file, interrupted=interrupted)
    if not interrupted:
        Keeping.from_flags(flags).keep_first(course.proofs(), aside=flags["as_json"])
    if flags["as_json"]:
        emit_json(json.loads(store.night_path.read_bytes()))
    return course.exit_code(interrupted=bool(interrupted))


def _plan(
    loaded: NightFile,
    results: Path,
    command: str,
    flags: dict[str, Any],
    progress: TerminalProgress,
) -> NightPlan:
    """Return what can be run here. Raises UsageError for what can be run nowhere."""
    why_not = _why_not_here(loaded, results, flags, progress)
    find_java()  # no run is judged without
    cells = tuple(cell for cell in loaded.cells if cell not in why_not)
    missing = []
    for cell, why in why_not.items():
        runs = loaded.entries[cell.entry].run_count or 0
        missing.append(left_out(cell, runs=runs, reason=why))
        progress.say(f"left out: {cell.scenario} on {cell.subject}: {why}")
    if not cells:
        raise NotHereError(*(f"{one.scenario}: {one.reason}" for one in missing))
    seed = flags["seed"] or next_seed(results, loaded.name) or new_seed()
    if flags["seed"] is None:
        command = f"{command} --seed {seed}"
    return NightPlan(
        night=loaded.name,
        file=loaded.path,
        command=command,
        first_seed=seed,
        time_s=loaded.time_s,
        thins=loaded.thins,
        entries=loaded.entries,
        cells=cells,
        left_out=tuple(missing),
    )


def _why_not_here(
    loaded: NightFile, results: Path, flags: dict[str, Any], progress: TerminalProgress
) -> dict[Cell, str]:
    """Return the cells that cannot be run on this machine, and why.

    Raises UsageError with the places of those that can be run nowhere, and HarnessError for
    results that cannot be written.
    """
    found: dict[Cell, str] = {}
    mistakes: list[str] = []
    fetched: dict[tuple[str, str | None], str] = {}
    unkept: dict[str, list[str]] = defaultdict(list)
    rows = zip(loaded.cells, loaded.scenarios, loaded.flags, loaded.places, strict=True)
    for cell, scenario, own, place in rows:
        options = _options(cell, own, results, flags)
        try:
            plan = planned(scenario, options, lambda _: None)
        except NotHereError as error:
            found[cell] = str(error)
            continue
        except UsageError as error:
            mistakes += [f"{place}: {line}" for line in error.args]
            continue
        if (why := plan.why_not_again) is not None:
            unkept[why].append(place)
        make = options.cluster
        if make.of_our_own or flags["dry_run"] or make.is_here(scenario.cluster.release):
            continue
        key = (cell.cluster, cell.release)
        if key not in fetched:
            fetched[key] = _why_unfetched(plan.scenario, options, progress.say)
        if fetched[key]:
            found[cell] = fetched[key]
    if mistakes:
        raise UsageError(*dict.fromkeys(mistakes))
    if flags["keep_s"] is not None:
        _say_unkept(unkept, cell_count=len(loaded.cells) - len(found), say=progress.say)
    return found


def _say_unkept(
    unkept: Mapping[str, Sequence[str]], *, cell_count: int, say: Callable[[str], None]
) -> None:
    """Say of which cells no cluster can be kept running; raise UsageError if that is all of them.

    `unkept`: the places of these cells, by the reason.
    """
    if cell_count and sum(map(len, unkept.values())) == cell_count:
        raise UsageError(*(f"{at[0]}: --keep-running: {why}" for why, at in unkept.items()))
    for why, at in unkept.items():
        say(f"--keep-running: not the clusters of {', '.join(dict.fromkeys(at))}: {why}")


def _why_unfetched(scenario: Any, options: RunOptions, say: Callable[[str], None]) -> str:
    """Fetch the release of a scenario; return why it cannot be had, or nothing."""
    wanted = wanted_by(scenario.play, portable=not options.host.shares_files)
    try:
        options.cluster.driver.prepare(scenario.cluster, wanted, say)
    except UnfetchedError as error:
        return str(error)
    return ""


def _options(cell: Cell, own: Any, results: Path, flags: dict[str, Any]) -> RunOptions:
    return RunOptions(
        results=results,
        seed=1,
        command="",
        alongside=True,
        spark_master=flags["spark_master"],
        cluster=MAKES[cell.cluster],
        host=HostKind(cell.host),
        image=own.get("image"),
        inventory=Path(own["inventory"]) if "inventory" in own else None,
        without_rules=tuple(own.get("without_rule", ())),
        wire=not own.get("no_wire", False),
    )


def _alone(plan: NightPlan, results: Path, *, alongside: bool) -> ExitStack:
    """Hold the machine, if processes are run, and this night's directory."""
    held = ExitStack()
    what = f"night {plan.night}"
    virtual = all(MAKES[cell.cluster].in_virtual_time for cell in plan.cells)
    try:
        held.enter_context(only_run(cache_dir(), what=what, alongside=alongside or virtual))
        own = nights_of(results, plan.night)
        held.enter_context(only_run(own, what=what, alongside=False, way_out="wait for it"))
    except OSError as error:
        raise HarnessError(f"cannot write in {results}: {error.strerror}") from error
    return held


def _say_unfinished(file: str, results: Path, name: str, say: Callable[[str], None]) -> None:
    for store in unfinished(results, name):
        done = counted(len(store.read().runs), "run")
        again = f"fencepost night {shlex.quote(file)} --resume {store.root.name}"
        say(f"unfinished: {store.root} after {done}; this is a new night, {again} goes on with it")


def _command(file: str, results: Path, flags: dict[str, Any]) -> str:
    words = ["fencepost", "night", file]
    words += ["--seed", str(flags["seed"])] if flags["seed"] is not None else []
    for name in ("fail_fast", "stop_at_proof"):
        words += [f"--{name.replace('_', '-')}"] if flags[name] else []
    words += ["--results", str(results)] if results != Path("results") else []
    return shlex.join(words)
