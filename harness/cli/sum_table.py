"""The sum of a series or a night on a terminal, in a pipe and in a log: a table and a line."""

from collections.abc import Sequence
from statistics import mean
from typing import Final

from rich.console import Console
from rich.text import Text

from fencepost.harness.cli.tables import table_of
from fencepost.report.notation import about, integer, length, one_line, shortened
from fencepost.report.sums import (
    VERDICTS,
    LeftOutCell,
    RunGroup,
    SummedRun,
    not_judged_in,
    run_groups,
    sum_line,
)

_LINE_MAX: Final = 160
_TONES: Final = {"valid": "green", "invalid": "bold red", "unknown": "yellow", "failed": "bold red"}


def run_line(run: SummedRun, *, place: str) -> str:
    """Return the line of a run that ended: `run 3 of 20: seed 7 INVALID after 17.0 s: …`."""
    found = ", ".join(map(one_line, run.found))
    why = ": ".join(filter(None, (found, run.reason if run.verdict != "invalid" else "")))
    took = length(run.seconds * 1e9)
    verdict = f"{run.verdict.upper()}{' as expected' if run.as_expected else ''}"
    line = f"{place}: seed {run.seed} {verdict} after {took}"
    return shortened(f"{line}{f': {one_line(why)}' if why else ''}", length_max=_LINE_MAX)


def time_left(done: Sequence[SummedRun], *, of: int) -> str:
    """Return `, about 4 min left`, from the runs that are done; empty before the first one."""
    if not done:
        return ""
    return f", {about((of - len(done)) * mean(run.seconds for run in done))} left"


def say_sum(
    runs: Sequence[SummedRun], out: Console, *, left_out: Sequence[LeftOutCell] = ()
) -> None:
    """Print a row a group of runs, the checks that never had a case, and the sum in one line."""
    if runs:
        table = table_of("scenario", "on", *VERDICTS, "median", "found in runs")
        for column in table.columns[2:-1]:
            column.justify = "right"
        for group in run_groups(runs):
            table.add_row(*_cells(group))
        out.print(table)
    if idle := not_judged_in(runs):
        out.print(f"had no case in any run: {', '.join(map(one_line, idle))}", markup=False)
    out.print(sum_line(runs, left_out=left_out), markup=False)


def _cells(group: RunGroup) -> tuple[Text, ...]:
    found = ", ".join(f"{one_line(name)} {integer(count)}" for name, count in group.found.items())
    return (
        Text(one_line(group.scenario)),
        Text(one_line(group.subject)),
        *(_count(group, verdict) for verdict in VERDICTS),
        Text(length(group.median_seconds * 1e9)),
        Text(found),
    )


def _count(group: RunGroup, verdict: str) -> Text:
    count = group.count(verdict)
    return Text(integer(count) if count else "", _TONES[verdict])
