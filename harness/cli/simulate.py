"""`fencepost simulate` and `fencepost selftest`."""

from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from fencepost.clusters.systems import SYSTEMS
from fencepost.harness.cli.options import as_json, results_option, set_option, spark_master_option
from fencepost.harness.scenario.sources import find_scenario
from fencepost.harness.seeds import SEED_MAX
from fencepost.history.failure import UsageError


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
@set_option
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
    "--dry-run", is_flag=True, help="Print the schedules that the seeds unfold, and try nothing."
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
    from fencepost.harness.cli.simulating import simulate as work

    return work(chosen=flags.pop("set"), **flags)


@click.command()
@click.argument("runs", metavar="[RUN]…", nargs=-1)
@click.option(
    "--metamorphic",
    is_flag=True,
    help="Change stored runs in ways that may not accuse their clusters, and judge them again.",
)
@click.option(
    "--planted",
    is_flag=True,
    help="Plant violations into stored runs, and see that each is called, or the run unknown.",
)
@click.option(
    "--seed",
    type=click.IntRange(1, SEED_MAX),
    help="With --metamorphic or --planted: seed of all draws. [default: a random one]",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="With either, and without a RUN: of every scenario that virtual time can carry out.",
)
@click.option(
    "--within",
    metavar="TIME",
    help="With --all: begin no other run after this time (2h), and name those left out.",
)
@click.option(
    "--transformation",
    "transformations",
    multiple=True,
    metavar="NAME",
    help="With either: do only this one. Can be repeated.",
)
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
    help="Write the result into the table of this page; with --planted, a column a kind of run.",
)
@results_option
@spark_master_option
@as_json
@click.pass_context
def selftest(context: click.Context, /, **flags: Any) -> int:
    """Switch each rule of the reference cluster off, and see that a check finds it out.

    An oracle finds the trials that are worth a record; the checks judge the records. Then a series
    with all rules on, in which nothing may be found. Exit codes: 0 a check found out each rule and
    the clean series found nothing, 1 not so.

    With --metamorphic, the checks themselves are tried: each RUN, valid as it is, is judged again
    with frames held or lost, rows told twice or not at all, other names, other times, or an earlier
    end. It has to stay valid or become unknown. RUN is a path, a scenario's name (its last run),
    or 'latest'; without one, short runs of each system are recorded in virtual time, with --all of
    every scenario. Exit codes: 0 no cluster was accused, 1 one was, 254 a RUN is not valid as it
    is.

    With --planted, violations are planted into the evidence of such runs: a record that is lost or
    logged twice, an ISR that nobody asked for, a table that is gone. Exit codes: 0 a check called
    each, or the run became unknown; 1 one was missed.
    """
    if all(flags[name] for name in _WAYS):
        raise UsageError("--metamorphic and --planted exclude each other: choose one")
    on_runs = any(flags[name] for name in _WAYS)
    _refuse_what_is_for_the_other(context, on_runs=on_runs)
    taken = {name: flags[name] for name in ("planted", *_OF_RUNS, *_SHARED)}
    if on_runs:
        for run in flags["runs"]:
            _refuse_unsealed(run, flags["results"])
        from fencepost.harness.cli.metamorphic import metamorphic

        return metamorphic(**taken)
    from fencepost.harness.cli.simulating import selftest as work

    return work(**{name: flags[name] for name in flags if name not in (*_OF_RUNS, *_WAYS)})


def _refuse_unsealed(text: str, results: Path) -> None:
    """Raise UsageError if there is no such run, or none that is sealed."""
    from fencepost.history.manifest import read_manifest
    from fencepost.history.run_directory import find_run

    run = find_run(text, results)
    read_manifest(run.manifest_path)
    if not run.history.is_dir():
        raise UsageError(f"{run.root} has no sealed history; `fencepost check` it first")


_WAYS: Final = ("metamorphic", "planted")
_OF_RUNS: Final = ("runs", "seed", "transformations", "every", "within")
"""The parameters that these ways alone take."""
_SHARED: Final = ("page", "results", "spark_master", "as_json")


def _refuse_what_is_for_the_other(context: click.Context, *, on_runs: bool) -> None:
    """Raise UsageError for a parameter that the half of `selftest` which is asked for lacks."""
    for one in context.command.params:
        if one.name in (*_SHARED, *_WAYS) or one.name is None:
            continue
        source = context.get_parameter_source(one.name)
        given = source is not ParameterSource.DEFAULT and context.params[one.name] != ()
        if given and on_runs is not (one.name in _OF_RUNS):
            word = "RUN" if one.param_type_name == "argument" else one.opts[0]
            raise UsageError(f"{word} is {'not ' * on_runs}for --metamorphic or --planted")
