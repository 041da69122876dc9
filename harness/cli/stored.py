"""`fencepost check` and `fencepost report`: stored runs, again, without a cluster."""

from collections.abc import Callable
from pathlib import Path

import click
from pyspark.sql import SparkSession

from checkers.mirror import mirrored
from checkers.session import is_local, spark_session
from checkers.storage import is_uri, local_path
from clusters.java import find_java, spark_java_home
from harness.cli.options import (
    as_json,
    budget_option,
    emit_json,
    memory_option,
    results_option,
    spark_master_option,
)
from harness.cli.verdicts import exit_code_of, outcome_json, say_verdict
from harness.judge import judge, write_reports
from harness.progress import terminal_progress
from harness.run import RunOutcome
from history.failure import SpecError, UsageError
from history.run_directory import RunDirectory, find_run
from nemesis.words import duration_s
from report.sequence import Window

__all__ = ["check", "report"]


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
    java = find_java()

    def session() -> SparkSession:
        home = spark_java_home(java)
        return spark_session(java_home=home, master=spark_master, memory_bytes=memory_bytes)

    elsewhere = not is_local(spark_master)
    found = [_run_at(text, results, session=session, elsewhere=elsewhere) for text in runs]
    outcomes = []
    with terminal_progress() as progress:
        for run in found:
            verdict = judge(
                run,
                java,
                master=spark_master,
                progress=progress,
                budget_s=budget_s,
                memory_bytes=memory_bytes,
            )
            outcome = RunOutcome(run=run, verdict=verdict, as_expected=None)
            say_verdict(outcome, aside=as_json)
            outcomes.append(outcome)
    if as_json:
        emit_json([outcome_json(outcome) for outcome in outcomes])
    return exit_code_of(outcomes)


@click.command()
@click.argument("run", metavar="RUN", default="latest")
@click.option(
    "--window",
    metavar="FROM..TO",
    help="What of the run the sequence picture shows (10s..25s). [default: around what was held]",
)
@results_option
@as_json
def report(run: str, window: str | None, results: Path, as_json: bool) -> int:
    """Write a stored RUN's page and JUnit file anew, and say where they lie."""
    chosen = None if window is None else _window(window)
    found = find_run(run, results)
    write_reports(found, window=chosen)
    if as_json:
        emit_json({"report": found.report_path, "junit": found.junit_path})
    else:
        click.echo(f"{found.report_path}\n{found.junit_path}")
    return 0


def _run_at(
    text: str, results: Path, *, session: Callable[[], SparkSession], elsewhere: bool
) -> RunDirectory:
    """The run that a user means; one that lies on no disk of this machine is copied to results."""
    path = local_path(text) if is_uri(text) else text
    if path is not None:
        return find_run(path, results)
    return mirrored(text, results=results, session=session, elsewhere=elsewhere)


def _window(text: str) -> Window:
    begin, between, end = text.partition("..")
    try:
        from_s, to_s = duration_s(begin), duration_s(end)
    except SpecError as error:
        raise UsageError(f"--window: {error.message}") from None
    if not between or from_s > to_s:
        raise UsageError(f"--window: {text!r} is no span of time; write 10s..25s")
    return Window(from_ns=round(from_s * 1e9), to_ns=round(to_s * 1e9))
