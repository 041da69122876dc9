"""`fencepost report`: the page of a stored run, written anew."""

from typing import Any

import click

from harness.cli.options import as_json, results_option

__all__ = ["report"]


@click.command()
@click.argument("run", metavar="RUN", default="latest")
@click.option(
    "--window",
    metavar="FROM..TO",
    help="What of the run the sequence picture shows (10s..25s). [default: around what was held]",
)
@results_option
@as_json
def report(**flags: Any) -> int:
    """Write a stored RUN's page and JUnit file anew, and say where they lie."""
    from harness.cli.reporting import report as work

    return work(**flags)
