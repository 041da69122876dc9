"""`fencepost check`: stored runs, again, without a cluster."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fencepost.harness.cli.options import (
    as_json,
    budget_option,
    emit_json,
    memory_option,
    results_option,
    spark_master_option,
)
from fencepost.history.manifest import read_manifest
from fencepost.history.run_directory import RunDirectory, find_run
from fencepost.history.thinned import refuse_thinned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from fencepost.harness.progress import Progress
    from fencepost.harness.run.outcome import RunOutcome
    from fencepost.harness.run.spark_start import SparkStart


@click.command()
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@results_option
@spark_master_option
@budget_option
@memory_option
@as_json
def check(
    *,
    runs: tuple[str, ...],
    results: Path,
    spark_master: str,
    budget_s: float,
    memory_bytes: int | None,
    as_json: bool,
) -> int:
    """Judge stored RUNs again: a path, a URI, a scenario's name (its last run), or 'latest'."""
    for run in runs:
        if "://" not in run:
            # What cannot be read is said before Spark starts, which takes a while.
            found_run = find_run(run, results)
            refuse_thinned(found_run)
            read_manifest(found_run.manifest_path)
    from fencepost.checkers.runner.session import is_local
    from fencepost.clusters.provision.java import find_java
    from fencepost.harness.cli.run_series import windows_of
    from fencepost.harness.cli.tables import console
    from fencepost.harness.cli.verdicts import exit_code_of, outcome_json
    from fencepost.harness.cli.window_table import say_windows
    from fencepost.harness.progress import terminal_progress
    from fencepost.harness.run.spark_start import SparkStart

    elsewhere = not is_local(spark_master)
    with terminal_progress() as progress:
        spark = SparkStart(
            find_java(), master=spark_master, say=progress.say, memory_bytes=memory_bytes
        )
        found = [
            _run_at(text, results, session=spark.session, elsewhere=elsewhere) for text in runs
        ]
        outcomes = [
            _judged(run, spark, progress=progress, budget_s=budget_s, aside=as_json)
            for run in found
        ]
    if len(outcomes) > 1:
        say_windows(windows_of(outcomes), console(aside=as_json))
    if as_json:
        emit_json([outcome_json(outcome) for outcome in outcomes])
    return exit_code_of(outcomes)


def _judged(
    run: RunDirectory, spark: "SparkStart", *, progress: "Progress", budget_s: float, aside: bool
) -> "RunOutcome":
    spark.begin()
    # Meanwhile: to import these takes a second.
    from fencepost.harness.cli.verdicts import say_verdict
    from fencepost.harness.run.judge import judge
    from fencepost.harness.run.outcome import RunOutcome

    verdict = judge(run, spark, progress=progress, budget_s=budget_s)
    outcome = RunOutcome(run=run, verdict=verdict, as_expected=None)
    say_verdict(outcome, aside=aside)
    return outcome


def _run_at(
    text: str, results: Path, *, session: Callable[[], "SparkSession"], elsewhere: bool
) -> RunDirectory:
    """Return the run that a user means.

    A run that is not on a disk of this machine is copied to results.
    """
    from fencepost.checkers.runner.mirror import mirrored
    from fencepost.checkers.runner.storage import is_uri, local_path

    path = local_path(text) if is_uri(text) else text
    if path is not None:
        return find_run(path, results)
    return mirrored(text, results=results, session=session, elsewhere=elsewhere)
