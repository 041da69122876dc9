"""`fencepost check`: stored runs, again, without a cluster."""

from typing import Any

import click

from harness.cli.options import (
    as_json,
    budget_option,
    memory_option,
    results_option,
    spark_master_option,
)
from history.run_directory import find_run

__all__ = ["check"]


@click.command()
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@results_option
@spark_master_option
@budget_option
@memory_option
@as_json
def check(**flags: Any) -> int:
    """Judge stored RUNs again: a path, a URI, a scenario's name (its last run), or 'latest'."""
    for run in flags["runs"]:
        if "://" not in run:
            find_run(run, flags["results"])
    from harness.cli.checking import check as work

    return work(**flags)
