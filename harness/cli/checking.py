"""The body of `fencepost check`.

Spark starts while the judging modules, which take a second, are imported.
"""

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from checkers.runner.mirror import mirrored
from checkers.runner.session import is_local
from checkers.runner.storage import is_uri, local_path
from clusters.provision.java import find_java
from harness.cli.options import emit_json
from harness.cli.verdicts import exit_code_of, outcome_json, say_verdict
from harness.progress import Progress, terminal_progress
from harness.run.outcome import RunOutcome
from harness.run.spark_start import SparkStart
from history.run_directory import RunDirectory, find_run

__all__ = ["check"]


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
    if as_json:
        emit_json([outcome_json(outcome) for outcome in outcomes])
    return exit_code_of(outcomes)


def _judged(
    run: RunDirectory, spark: SparkStart, *, progress: Progress, budget_s: float, aside: bool
) -> RunOutcome:
    spark.begin()
    from harness.run.judge import judge  # meanwhile: see above

    verdict = judge(run, spark, progress=progress, budget_s=budget_s)
    outcome = RunOutcome(run=run, verdict=verdict, as_expected=None)
    say_verdict(outcome, aside=aside)
    return outcome


def _run_at(
    text: str, results: Path, *, session: Callable[[], SparkSession], elsewhere: bool
) -> RunDirectory:
    """Return the run that a user means.

    A run that is not on a disk of this machine is copied to results.
    """
    path = local_path(text) if is_uri(text) else text
    if path is not None:
        return find_run(path, results)
    return mirrored(text, results=results, session=session, elsewhere=elsewhere)
