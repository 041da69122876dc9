"""The runs of one `fencepost run --runs N`: a file that is complete after each, and their sum.

    results/<scenario>/series/<yyyymmddThhmmssZ>.json

A run that failed is one of them, without a verdict. A series that was interrupted or killed keeps
what it had done.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.cli.tables import console
from harness.cli.verdicts import outcome_json
from harness.cli.window_table import say_windows
from harness.run.outcome import RunOutcome
from harness.scenario.options import RunOptions
from harness.series.reproduction_file import new_series_path
from harness.series.window_grid import WindowGrid, window_grid, windows_of_run
from history.atomic import write_atomically
from history.failure import HarnessError

__all__ = ["RunSeries", "windows_of"]


@dataclass(slots=True, kw_only=True)
class RunSeries:
    """A series under way. `add` stores each run, `say` sums them up."""

    results: Path
    scenario: str
    run_count: int
    """The number of runs that were asked for."""
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    _path: Path | None = None
    _command: str = ""
    _outcomes: list[RunOutcome | HarnessError] = field(default_factory=list)
    _runs: list[dict[str, Any]] = field(default_factory=list)

    def add(self, options: RunOptions, outcome: RunOutcome | HarnessError) -> None:
        """Store one more run. Raises HarnessError if the disk refuses."""
        if self._path is None:
            self._command = f"{options.command} --runs {self.run_count}"
            self._path = new_series_path(
                self.results, self.scenario, self.started_at, folder="series"
            )
        self._outcomes.append(outcome)
        self._runs.append({"seed": options.seed, **outcome_json(outcome)})
        content = {
            "scenario": self.scenario,
            "command": self._command,
            "runs_asked": self.run_count,
            "runs": self._runs,
            "windows": windows_of(self._outcomes).as_data(),
        }
        write_atomically(self._path, (json.dumps(content, indent=2) + "\n").encode())

    def say(self, *, aside: bool) -> None:
        """Print the windows of all runs so far, and where the series is stored."""
        out = console(aside=aside)
        say_windows(windows_of(self._outcomes), out)
        if self._path is not None:
            out.print(f"series: {self._path}", markup=False)


def windows_of(outcomes: Sequence[RunOutcome | HarnessError]) -> WindowGrid:
    """Return the windows of the runs that reached a verdict."""
    return window_grid(
        windows_of_run(outcome) for outcome in outcomes if isinstance(outcome, RunOutcome)
    )
