"""`fencepost simulate` and `fencepost selftest`."""

from pathlib import Path
from typing import Any

import click

from clusters.systems import SYSTEMS
from harness.cli.options import as_json, results_option, spark_master_option
from harness.scenario.sources import find_scenario
from harness.seeds import SEED_MAX

__all__ = ["selftest", "simulate"]


@click.command()
@click.argument("scenario")
@click.option(
    "--seeds", type=click.IntRange(1), default=1000, show_default=True, help="Number of seeds."
)
@click.option(
    "--first", type=click.IntRange(1, SEED_MAX), default=1, show_default=True, help="First seed."
)
@click.option(
    "--system",
    type=click.Choice([name for name, one in SYSTEMS.items() if one.in_virtual_time]),
    help="System of every cluster. [default: the scenario's, or kafka]",
)
@click.option(
    "--metadata-version", type=click.Choice(["1", "2", "3"]), help="Level of each cluster."
)
@click.option(
    "--without-rule",
    "off",
    multiple=True,
    metavar="RULE",
    help="Switch a rule of the reference cluster off.",
)
@click.option(
    "--until",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Stop after this many trials with a finding.",
)
@click.option(
    "--store",
    "store_max",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    help="Number of trials of each anomaly to store as runs.",
)
@click.option(
    "--keep",
    type=click.Choice(["excused"]),
    multiple=True,
    help="Store as many of these trials, too: excused, which are no evidence.",
)
@results_option
@spark_master_option
@as_json
def simulate(**flags: Any) -> int:
    """Carry SCENARIO out in virtual time with seed after seed, an oracle watching every step.

    SCENARIO is a name, a file, or `storm`: then each seed draws a small cluster and its faults.
    Trials that find something are carried out once more and stored under results, as runs.
    Exit codes: 0 nothing was found, 1 something was, 255 the simulation itself failed.
    """
    if flags["scenario"] != "storm":
        find_scenario(flags["scenario"])
    from harness.cli.simulating import simulate as work

    return work(**flags)


@click.command()
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=2000,
    show_default=True,
    help="Largest number of trials of each rule.",
)
@click.option(
    "--system",
    type=click.Choice([name for name, one in SYSTEMS.items() if one.in_virtual_time]),
    default=next(iter(SYSTEMS)),
    show_default=True,
    help="The generation of the reference cluster.",
)
@click.option(
    "--clean",
    type=click.IntRange(0),
    default=20_000,
    show_default=True,
    help="Number of trials with all rules on.",
)
@click.option(
    "--hits",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Stop a rule after this many trials with a finding.",
)
@click.option(
    "--tries",
    type=click.IntRange(1),
    default=12,
    show_default=True,
    help="Largest number of a rule's trials that the checks judge.",
)
@click.option(
    "--rule", "chosen", multiple=True, metavar="RULE", help="Try only this rule. Can be repeated."
)
@click.option(
    "--write",
    "page",
    type=click.Path(path_type=Path),
    help="Write the result into the table of this page.",
)
@results_option
@spark_master_option
@as_json
def selftest(**flags: Any) -> int:
    """Switch each rule of the reference cluster off, and see that a check finds it out.

    An oracle finds the trials that are worth a record; the checks judge the records. Then a series
    with all rules on, in which nothing may be found. Exit codes: 0 a check found out each rule and
    the clean series found nothing, 1 not so.
    """
    from harness.cli.simulating import selftest as work

    return work(**flags)
