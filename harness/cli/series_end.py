"""The end of every series (`run --runs`, `reproduce`, `night`): files, one table and one line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from fencepost.clusters.systems import system_of
from fencepost.harness.cli.sum_table import say_sum
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import Scenario
from fencepost.history.failure import HarnessError
from fencepost.report.sums import LeftOutCell, SummedRun, summed_run
from fencepost.report.sums_junit import write_sums_junit
from fencepost.report.sums_page import write_sums_page


def summed_outcome(
    told: dict[str, Any],
    scenario: Scenario,
    options: RunOptions,
    *,
    seconds: float,
    variant: str,
) -> SummedRun:
    """Return a run of a series as one of its sum; `told`: `harness.cli.verdicts.outcome_json`.

    `variant`: the flags that tell it from other runs of the scenario.
    """
    return summed_run(
        told,
        scenario=scenario.name,
        system=system_of(scenario.cluster).name,
        cluster=str(options.cluster),
        release=None if options.cluster.of_our_own else scenario.cluster.release,
        host=str(options.host),
        variant=variant,
        seed=options.seed,
        seconds=seconds,
        command=options.command,
        issue=scenario.issue,
    )


def end_series(
    runs: Sequence[SummedRun],
    out: Console,
    *,
    label: str,
    stored: Path,
    title: str,
    started_at: str,
    command: str,
    page: Path | None = None,
    junit: Path | None = None,
    left_out: Sequence[LeftOutCell] = (),
) -> None:
    """Write the page and the JUnit file of all runs; print where they lie, and the sum.

    `stored`: the file that keeps the series, told as `label`; the others lie beside it unless
    `page` and `junit` say otherwise. A disk that refuses them takes nothing from the sum.
    """
    page = page or stored.with_suffix(".html")
    junit = junit or stored.with_suffix(".junit.xml")
    try:
        write_sums_junit(junit, runs, left_out=left_out)
        write_sums_page(
            page, runs, title=title, started_at=started_at, command=command, left_out=left_out
        )
    except HarnessError as error:
        click.echo(f"fencepost: {error}", err=True)
    for name, path in ((label, stored), ("junit", junit), ("page", page)):
        out.print(f"{name}: {path}", markup=False)
    out.print(f"repeat: {command}", markup=False)
    say_sum(runs, out, left_out=left_out)
