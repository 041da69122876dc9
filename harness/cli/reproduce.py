"""`fencepost reproduce` and `fencepost track-record`."""

from pathlib import Path
from typing import Any

import click

from fencepost.harness.cli.options import as_json, results_option, set_option
from fencepost.harness.cli.run import with_run_options
from fencepost.harness.scenario.sources import find_scenario
from fencepost.harness.seeds import SEED_MAX
from fencepost.history.failure import UsageError


@click.command()
@click.argument("scenario")
@click.option(
    "--kafka",
    help="Releases, or a build (3.4.1,4.3.1,path:DIR). [default: those that the scenario names]",
)
@click.option("--release", help="Releases of a system under test other than Kafka (3.9.1,3.9.5).")
@click.option("--metadata-version", help="Start the clusters at this metadata.version (3.5-IV1).")
@click.option(
    "--runs",
    type=click.IntRange(1, 10_000),
    default=20,
    show_default=True,
    help="Number of runs on each release.",
)
@click.option("--seed", type=click.IntRange(1, SEED_MAX), help="Seed of each release's first run.")
@set_option
@with_run_options
def reproduce(**flags: Any) -> int:
    """Run SCENARIO again and again, release by release, and say how often its bug shows.

    One run that shows it proves that a release has the bug; that a release has it not takes every
    run. Exit codes: 0 as the scenario expects, 1 not so, 2 inconclusive, 254 wrong use,
    255 interrupted or the harness failed.
    """
    find_scenario(flags["scenario"])
    from fencepost.harness.cli.reproducing import reproduce as work

    return work(**flags)


@click.command("track-record")
@click.option(
    "--add",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="Take a stored reproduction into the record.",
)
@click.option(
    "--write",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Put the table between the markers of this file; with --findings, write the page of what "
    "plays told.",
)
@click.option(
    "--missing",
    is_flag=True,
    help="Show the series that scenarios claim and the record lacks, as commands that make them, "
    "and the bounds beside which no release was tried.",
)
@click.option(
    "--findings",
    is_flag=True,
    help="Show how steady findings are: of each scenario the causes that its runs told, those on "
    "record and those stored.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, SEED_MAX),
    help="With --findings: instead of what is stored, carry out each play that shows a bug in "
    "virtual time with seeds from 1 to this one, and record what the checks told.",
)
@click.option(
    "--play",
    "plays",
    multiple=True,
    metavar="SCENARIO",
    help="With --seeds: only this play. Can be repeated.",
)
@results_option
@as_json
def track_record(**flags: Any) -> int:
    """Show what reproductions found: the newest series of each scenario and release.

    Exit codes: 0; with --missing 1 if any is; with --findings 1 if any scenario has one finding in
    fewer than 95 % of the runs with anomalies, or plays of different bugs share one.
    """
    if flags["seeds"] is not None and not flags["findings"]:
        raise UsageError("--seeds needs --findings: it is the number of runs of each play")
    if flags["plays"] and flags["seeds"] is None:
        raise UsageError("--play needs --seeds: it names the plays to run")
    if flags["seeds"] is not None and flags["write"] is not None:
        raise UsageError("--write makes the page from stored findings: leave --seeds out")
    for play in flags["plays"]:
        find_scenario(play)
    from fencepost.harness.cli.recording import track_record as work

    return work(**flags)
