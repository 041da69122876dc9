"""`fencepost run` and `fencepost replay`, and the flags of all that runs."""

from pathlib import Path
from typing import Any

import click

from fencepost.clusters.systems import AUTO, MAKES, SYSTEMS
from fencepost.harness.cli.options import (
    as_json,
    keep_running_option,
    results_option,
    set_option,
    spark_master_option,
)
from fencepost.harness.scenario.options import HostKind
from fencepost.harness.scenario.sources import find_scenario
from fencepost.harness.seeds import SEED_MAX
from fencepost.history.run_directory import find_run

_run_options = (
    results_option,
    spark_master_option,
    click.option(
        "--keep-data", is_flag=True, help="Keep the nodes' data even if the run is valid."
    ),
    keep_running_option,
    click.option(
        "--alongside", is_flag=True, help="Run although another run is under way on this machine."
    ),
    click.option(
        "--port-base",
        type=click.IntRange(1024, 65000),
        help="First port that nodes listen on. [default: any free ports]",
    ),
    click.option(
        "--no-wire",
        is_flag=True,
        help="Connect the nodes directly, without the proxy: no tape, no holds, no partitions.",
    ),
    click.option(
        "--cluster",
        type=click.Choice([*MAKES, AUTO]),
        metavar="KIND",
        help=f"Kind of nodes: {', '.join(MAKES)}; {AUTO}: kafka, or reference where its release "
        "cannot be fetched. [default: the system's own]",
    ),
    click.option(
        "--host",
        type=click.Choice([str(kind) for kind in HostKind]),
        default=str(HostKind.LOCAL),
        show_default=True,
        help="Kind of host that nodes run on.",
    ),
    click.option(
        "--image", help="Image of --host docker's containers. [default: a small Debian, made here]"
    ),
    click.option(
        "--inventory",
        type=click.Path(path_type=Path),
        help="YAML file that names the machines of --host ssh.",
    ),
    click.option(
        "--without-rule",
        "without_rules",
        multiple=True,
        metavar="RULE",
        help="Switch a rule of the reference cluster off, which opens its bug.",
    ),
    as_json,
)


def with_run_options(command: Any) -> Any:
    """Add the flags that say how to run, apart from what."""
    for option in reversed(_run_options):
        command = option(command)
    return command


@click.command()
@click.argument("scenario")
@click.option(
    "--kafka",
    help="Release of Apache Kafka (4.3.1), path:DIR of your own build, or image:DIR in --image.",
)
@click.option(
    "--system",
    type=click.Choice([*SYSTEMS]),
    help="Run the scenario on another system, of which --kafka names the release.",
)
@click.option("--release", help="Release of a system under test other than Kafka (3.9.5).")
@click.option("--metadata-version", help="Start the cluster at this metadata.version (3.5-IV1).")
@click.option("--seed", type=click.IntRange(1, SEED_MAX), help="Repeat a run's random choices.")
@click.option(
    "--runs", type=click.IntRange(1), default=1, help="Number of runs, of consecutive seeds."
)
@click.option("--time-limit", help="Duration of faults and load (45s, 10m, 8h).")
@click.option(
    "--no-require",
    is_flag=True,
    help="Waive what the scenario demands of a run; its verdict says so first.",
)
@click.option(
    "--nemesis", help="Faults to draw from (kill,strikes), or 'none' for no fault at all."
)
@click.option(
    "--window", help="Messages in the middle of which faults strike (AlterPartition,Vote)."
)
@click.option(
    "--rate", type=int, help="Records a second that all producers send together; 0: no limit."
)
@set_option
@click.option("--concurrency", type=int, help="Number of producers, and of consumers.")
@click.option("--dry-run", is_flag=True, help="Print what a run would do, and start nothing.")
@with_run_options
def run(**flags: Any) -> int:
    """Run SCENARIO (a name or a file): start a cluster, break it, judge what clients saw."""
    find_scenario(flags["scenario"])
    from fencepost.harness.cli.running import run as work

    return work(**flags)


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--kafka", help="Release of Kafka. [default: the run's own]")
@with_run_options
def replay(**flags: Any) -> int:
    """Repeat a stored RUN: the same cluster, clients and seed, and its faults at their times."""
    find_run(flags["run"], flags["results"])
    from fencepost.harness.cli.running import replay as work

    return work(**flags)
