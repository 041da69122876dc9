"""The runs of one `fencepost run --runs N`: a file that is complete after each, and their sum.

    results/<scenario>/series/<yyyymmddThhmmssZ>.json, .html, .junit.xml

A run that failed is one of them, without a verdict. A series that was interrupted or killed keeps
what it had done.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fencepost.harness.cli.series_end import end_series, summed_outcome
from fencepost.harness.cli.single_run import run_once
from fencepost.harness.cli.sum_table import run_line, time_left
from fencepost.harness.cli.tables import console
from fencepost.harness.cli.verdicts import outcome_json
from fencepost.harness.cli.window_table import say_windows
from fencepost.harness.progress import Progress, terminal_progress
from fencepost.harness.run.outcome import RunOutcome
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import Scenario
from fencepost.harness.series.reproduction_file import new_series_path
from fencepost.harness.series.window_grid import WindowGrid, window_grid, windows_of_run
from fencepost.history.atomic import write_atomically
from fencepost.history.failure import HarnessError, UsageError
from fencepost.report.sums import SummedRun


def run_series(
    scenario: Scenario,
    options: Callable[[Progress], Iterable[RunOptions]],
    *,
    run_count: int,
    variant: str,
    aside: bool,
) -> list[RunOutcome | HarnessError]:
    """Run once for each of `options`, with a line a run, and their sum at the end.

    `variant`: the flags that tell it from other series of the scenario.

    UsageError ends the series, as any interruption does; it still says what its runs tried.
    """
    series: _RunSeries | None = None
    told: set[str] = set()
    try:
        with terminal_progress() as progress:

            def say_once(line: str) -> None:
                if line not in told:
                    told.add(line)
                    progress.say(line)

            for number, one in enumerate(options(progress), start=1):
                if series is None:
                    say_once(f"{scenario.title} (repeat: {one.command} --runs {run_count})")
                    series = _RunSeries(
                        scenario=scenario, run_count=run_count, first=one, variant=variant
                    )
                place = f"run {number} of {run_count}{time_left(series.runs, of=run_count)}"
                begin_s = progress.elapsed_s()
                try:
                    within = progress.of_run(place)
                    outcome: RunOutcome | HarnessError = run_once(scenario, one, within, say_once)
                except UsageError:
                    raise
                except HarnessError as error:
                    outcome = error
                series.add(one, outcome, seconds=progress.elapsed_s() - begin_s)
                progress.say(run_line(series.runs[-1], place=f"run {number} of {run_count}"))
                if isinstance(outcome, RunOutcome) and outcome.ended_early:
                    break
    finally:
        if series is not None:
            series.say(aside=aside)
    return series.outcomes if series is not None else []


@dataclass(slots=True, kw_only=True)
class _RunSeries:
    """A series under way. `add` stores each run, `say` sums them up."""

    scenario: Scenario
    run_count: int
    """The number of runs that were asked for."""
    first: RunOptions
    variant: str
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    outcomes: list[RunOutcome | HarnessError] = field(default_factory=list)
    runs: list[SummedRun] = field(default_factory=list)
    _path: Path | None = None
    _told: list[dict[str, Any]] = field(default_factory=list)

    @property
    def _command(self) -> str:
        return f"{self.first.command} --runs {self.run_count}"

    def add(
        self, options: RunOptions, outcome: RunOutcome | HarnessError, *, seconds: float
    ) -> None:
        """Store one more run. Raises HarnessError if the disk refuses."""
        scenario = self.scenario
        if self._path is None:
            self._path = new_series_path(
                options.results, scenario.name, self.started_at, folder="series"
            )
        told = outcome_json(outcome)
        self.outcomes.append(outcome)
        self._told.append({"seed": options.seed, "seconds": round(seconds, 3), **told})
        self.runs.append(
            summed_outcome(told, scenario, options, seconds=seconds, variant=self.variant)
        )
        content = {
            "scenario": scenario.name,
            "command": self._command,
            "runs_asked": self.run_count,
            "runs": self._told,
            "windows": windows_of(self.outcomes).as_data(),
        }
        write_atomically(self._path, (json.dumps(content, indent=2) + "\n").encode())

    def say(self, *, aside: bool) -> None:
        """Print the windows and the sum of all runs so far, and write its page and JUnit file."""
        out = console(aside=aside)
        say_windows(windows_of(self.outcomes), out)
        if self._path is None:
            return
        end_series(
            self.runs,
            out,
            label="series",
            stored=self._path,
            title=f"{self.scenario.name}, {len(self.runs)} of {self.run_count} runs",
            started_at=self.started_at.isoformat(),
            command=self._command,
        )


def windows_of(outcomes: Sequence[RunOutcome | HarnessError]) -> WindowGrid:
    """Return the windows of the runs that reached a verdict."""
    return window_grid(
        windows_of_run(outcome) for outcome in outcomes if isinstance(outcome, RunOutcome)
    )
