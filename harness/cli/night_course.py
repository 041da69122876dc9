"""A night under way: run after run, each stored before the next, and their sum."""

import json
import shlex
import signal
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click

from fencepost.clusters.hosts.warden import Warden
from fencepost.harness.cli.series_end import end_series
from fencepost.harness.cli.sum_table import run_line
from fencepost.harness.cli.tables import console
from fencepost.harness.progress import TerminalProgress
from fencepost.harness.series.night import (
    LeftOutRuns,
    Night,
    NightPlan,
    NightRun,
    NightStore,
    due,
    ended,
    keep_seed,
    place_of_next,
)
from fencepost.harness.series.night_child import ChildRuns, ToldRun, judged_run
from fencepost.harness.series.night_file import Cell
from fencepost.history.failure import HarnessError
from fencepost.history.run_directory import RunDirectory
from fencepost.history.thinned import thin
from fencepost.report.notation import about, length, one_line, utc
from fencepost.report.sums import LeftOutCell, SummedRun, summed_run

_FAILED_IN_A_ROW: Final = 5
"""So many runs without a verdict, one after the other, say that none will have one."""
_CODES: Final = {"invalid": 1, "failed": 255, "unknown": 2, "valid": 0}
_INTERRUPTED: Final = 255


@dataclass(slots=True, kw_only=True)
class NightCourse:
    """A night under way."""

    plan: NightPlan
    store: NightStore
    results: Path
    flags: dict[str, Any]
    progress: TerminalProgress
    night: Night
    resumed: bool

    def go(self) -> str:
        """Make the runs. Return why the night was broken off and may be resumed; empty: it ended.

        `night.json` is whole after each run.
        """
        previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with Warden(run_id=f"night/{self.plan.night}/{self.store.root.name}") as warden:
                return self._runs(self._children(warden))
        except KeyboardInterrupt:
            return "interrupted"
        except HarnessError as error:
            return str(error)
        finally:
            signal.signal(signal.SIGTERM, previous)

    def _children(self, warden: Warden) -> ChildRuns:
        options = ["--alongside", "--json", "--spark-master", self.flags["spark_master"]]
        return ChildRuns(warden=warden, results=self.results, logs=self.store.runs, options=options)

    def _runs(self, children: ChildRuns) -> str:
        reason = ""
        while not reason and (found := due(self.plan, self.night.runs)) is not None:
            cell, seed = found
            self._add(cell, seed, self._made(children, cell, seed))
            reason = self._stopped()
            if self._is_stuck():
                return f"{_FAILED_IN_A_ROW} runs in a row have failed"
        if not reason:
            time_s = self.plan.time_s
            reason = "no time left" if time_s is None else f"no time left of {length(time_s * 1e9)}"
        self.night = ended(self.night, self.plan, reason=reason)
        self.store.write(self.night)
        return ""

    def _made(self, children: ChildRuns, cell: Cell, seed: int) -> ToldRun:
        """Make a run; one that a killed night had as good as ended is taken as it is."""
        if self.resumed:
            self.resumed = False
            since = datetime.fromisoformat(self.night.started_at)
            counted = {run.run for run in self.night.runs if run.run is not None}
            told = judged_run(self.results, cell, seed, since=since, counted=counted)
            if told is not None:
                return ToldRun(told=told, seconds=0.0)
        if self.plan.only is None:
            keep_seed(self.results, self.plan.night, seed)
        shown = self.progress.of_run(place_of_next(self.plan, self.night))
        started_s = self.progress.elapsed_s()

        def look() -> None:
            took = about(self.progress.elapsed_s() - started_s)
            shown.say(f"{cell.scenario} on {cell.subject}, seed {seed}, for {took}")

        return children.run(cell, seed, number=len(self.night.runs) + 1, look=look)

    def _add(self, cell: Cell, seed: int, made: ToldRun) -> None:
        place, told = place_of_next(self.plan, self.night), made.told
        run = told.get("run")
        reason = one_line(told.get("error") or told.get("reason", ""))
        made_run = NightRun(
            **cell.names,
            seed=seed,
            run=None if run is None else str(Path(run).absolute().relative_to(self._root())),
            verdict=told["validity"],
            reason=reason,
            findings=tuple(told.get("findings", ())),
            expected=tuple(told.get("expected", ())),
            seconds=made.seconds,
        )
        self.night = replace(self.night, runs=(*self.night.runs, made_run))
        self.store.write(self.night)
        if self.plan.thins and made_run.verdict == "valid" and run is not None:
            thin(RunDirectory(Path(run)))
        line = run_line(self._summed(len(self.night.runs) - 1), place="")
        self.progress.say(f"{place} · {cell.scenario} on {cell.subject}{line}")

    def _root(self) -> Path:
        return self.results.absolute()

    def _stopped(self) -> str:
        run = self.night.runs[-1]
        if run.holds:
            return ""
        if self.flags["fail_fast"]:
            return f"a run was {run.verdict} (--fail-fast)"
        if self.flags["stop_at_proof"] and run.verdict == "invalid":
            return "a violation was proven (--stop-at-proof)"
        return ""

    def _is_stuck(self) -> bool:
        last = self.night.runs[-_FAILED_IN_A_ROW:]
        return len(last) == _FAILED_IN_A_ROW and all(run.verdict == "failed" for run in last)

    def proofs(self) -> list[RunDirectory]:
        """Return the runs that are invalid, and not as their scenario expects, in their order.

        Those first whose nodes can be started once more.
        """
        found = [
            RunDirectory((self.results / run.run).absolute())
            for run in self.night.runs
            if run.run is not None and run.verdict == "invalid" and not run.holds
        ]
        return sorted(found, key=lambda run: not run.starts_path.exists())

    def summed(self) -> list[SummedRun]:
        """Return the runs, for their sum."""
        return [self._summed(index) for index in range(len(self.night.runs))]

    def _summed(self, index: int) -> SummedRun:
        run = self.night.runs[index]
        cell = next(cell for cell in self.plan.cells if run.is_of(cell))
        words = ["fencepost", "run", *cell.arguments, "--seed", str(run.seed)]
        words += ["--results", str(self.results)] if self.results != Path("results") else []
        return summed_run(
            self._told(index, run),
            scenario=run.scenario,
            system=run.system,
            cluster=run.cluster,
            release=run.release,
            host=run.host,
            variant=run.variant,
            seed=run.seed,
            seconds=run.seconds,
            command=shlex.join(words),
            issue=cell.issue,
            as_expected=run.as_expected,
        )

    def _told(self, index: int, run: NightRun) -> dict[str, Any]:
        """Return what the run told, with the faults that took effect where they are known."""
        known = {
            "validity": run.verdict,
            "run": None if run.run is None else str(self.results / run.run),
            "reason": run.reason,
            "findings": run.findings,
        }
        try:
            (told,) = json.loads((self.store.runs / f"{index + 1:04}.json").read_bytes())
            return {**known, "faults": told["faults"], "checks": told["checks"]}
        except (OSError, ValueError, TypeError, KeyError):
            return known

    def exit_code(self, *, interrupted: bool) -> int:
        """Return 1 if any run is invalid, and not as its scenario expects; else 255, 2 or 0."""
        codes = {0 if run.holds else _CODES[run.verdict] for run in self.night.runs}
        codes |= {_INTERRUPTED} if interrupted else set()
        return next((code for code in (1, 255, 2, 0) if code in codes), 0)

    def say_end(self, file: str, *, interrupted: str) -> None:
        """Print the sum of the night and where it is stored, and write its page and JUnit file."""
        store, plan, night = self.store, self.plan, self.night
        runs = self.summed()
        missing = [_left_out(one) for one in night.left_out or plan.left_out]
        end_series(
            runs,
            console(aside=self.flags["as_json"]),
            label="night",
            stored=store.night_path,
            page=store.page_path,
            junit=store.junit_path,
            title=f"Night {plan.night} of {utc(night.started_at)}",
            started_at=night.started_at,
            command=plan.command,
            left_out=missing,
        )
        if interrupted:
            again = f"fencepost night {shlex.quote(file)} --resume {store.root.name}"
            again += f" --results {self.results}" if self.results != Path("results") else ""
            click.echo(f"fencepost: {interrupted}; {again} goes on with it", err=True)


def _left_out(one: LeftOutRuns) -> LeftOutCell:
    cell = Cell(
        entry=one.entry,
        scenario=one.scenario,
        issue=None,
        system=one.system,
        cluster=one.cluster,
        release=one.release,
        host=one.host,
        variant=one.variant,
        arguments=(),
        bound_s=0.0,
    )
    return LeftOutCell(
        scenario=one.scenario, subject=cell.subject, run_count=one.runs, reason=one.reason
    )
