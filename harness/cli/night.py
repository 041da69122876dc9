"""`fencepost night`: many runs by one file, and their sum."""

from typing import Any

import click

from fencepost.harness.cli.options import (
    as_json,
    keep_running_option,
    results_option,
    spark_master_option,
)
from fencepost.harness.scenario.sources import find_night
from fencepost.harness.seeds import SEED_MAX


@click.command()
@click.argument("file")
@results_option
@spark_master_option
@click.option("--resume", metavar="NIGHT", help="Go on with a night: its time, or 'latest'.")
@click.option(
    "--only-failed",
    metavar="NIGHT",
    help="Repeat the runs of a night that were not valid or as expected, with their seeds.",
)
@click.option(
    "--seed",
    type=click.IntRange(1, SEED_MAX),
    help="First seed, to repeat a night. [default: behind those of the nights before]",
)
@click.option(
    "--fail-fast", is_flag=True, help="End with the first run that is not valid or as expected."
)
@click.option(
    "--stop-at-proof",
    is_flag=True,
    help="End with the first run that is invalid, and not as expected.",
)
@keep_running_option
@click.option(
    "--alongside", is_flag=True, help="Run although another run is under way on this machine."
)
@click.option("--dry-run", is_flag=True, help="Print what would run, and start nothing.")
@as_json
def night(**flags: Any) -> int:
    """Make the runs of a night: FILE names scenarios, releases, hosts, flags and how often.

    A night that was killed is resumed where it was. Exit codes: 1 if any run is invalid, else 255
    if any failed or the night was interrupted, else 2 if any is unknown, else 0. A run with no
    finding but those that its scenario expects of the release counts as 0.
    """
    path = find_night(flags["file"])
    # A mistake in the file is told before more is imported than it takes to see it.
    from fencepost.harness.series.night_file import load_night

    loaded = load_night(path)
    from fencepost.harness.cli.nighting import night as work

    return work(loaded, **flags)
