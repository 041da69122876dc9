"""`fencepost doctor` and `fencepost clean`: this machine, before and after runs."""

from pathlib import Path
from typing import Any

import click

from harness.cli.options import as_json, results_option

__all__ = ["clean", "doctor"]


@click.command()
@results_option
@click.option(
    "--inventory",
    type=click.Path(path_type=Path),
    help="Look at the machines of this file, too.",
)
@as_json
def doctor(**flags: Any) -> int:
    """Say what this machine can do, and what to install for the rest."""
    from harness.cli.examining import doctor as work

    return work(**flags)


@click.command()
@results_option
@as_json
def clean(**flags: Any) -> int:
    """End what a dead run left behind: its processes, its half-written cache entries, its state."""
    from harness.cli.examining import clean as work

    return work(**flags)
