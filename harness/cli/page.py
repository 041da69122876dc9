"""`fencepost report`: the page of a stored run, written anew."""

from pathlib import Path

import click

from fencepost.harness.cli.options import as_json, emit_json, results_option
from fencepost.history.failure import SpecError, UsageError
from fencepost.history.run_directory import RunDirectory, find_run
from fencepost.history.thinned import refuse_thinned
from fencepost.nemesis.words import duration_s


@click.command()
@click.argument("run", metavar="RUN", default="latest")
@click.option(
    "--window",
    metavar="FROM..TO",
    help="Part of the run in the sequence picture (10s..25s). [default: around what was held]",
)
@click.option(
    "--perfetto",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the run as a Perfetto trace instead (ui.perfetto.dev reads it).",
)
@results_option
@as_json
def report(
    *, run: str, window: str | None, perfetto: Path | None, results: Path, as_json: bool
) -> int:
    """Write a stored RUN's page and JUnit file anew, and say where they lie."""
    span = None if window is None else _span_s(window)
    if window is not None and perfetto is not None:
        raise UsageError(
            "--window is for the page; a trace has the whole run: leave one of them out"
        )
    found = find_run(run, results)
    refuse_thinned(found)
    if perfetto is not None:
        return _trace(found, perfetto, as_json=as_json)
    from fencepost.harness.run.reports import write_reports
    from fencepost.report.sequence import Window

    chosen = None
    if span is not None:
        chosen = Window(from_ns=round(span[0] * 1e9), to_ns=round(span[1] * 1e9))
    write_reports(found, window=chosen)
    if as_json:
        emit_json({"report": found.report_path, "junit": found.junit_path})
    else:
        click.echo(f"{found.report_path}\n{found.junit_path}")
    return 0


def _trace(run: RunDirectory, path: Path, *, as_json: bool) -> int:
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(f"--perfetto: cannot write {path}: name a file in an existing directory")
    if not run.history.is_dir():
        raise UsageError(f"the run {run.root} is not sealed: `fencepost check` seals it")
    from fencepost.report.perfetto import write_trace

    counts = write_trace(run, path)
    if as_json:
        emit_json({"perfetto": path, "slices": counts.slices, "instants": counts.instants})
    else:
        click.echo(f"{path}: {counts.slices:,} slices, {counts.instants:,} instants")
    return 0


def _span_s(text: str) -> tuple[float, float]:
    begin, between, end = text.partition("..")
    try:
        from_s, to_s = duration_s(begin), duration_s(end)
    except SpecError as error:
        raise UsageError(f"--window: {error.message}") from None
    if not between or from_s > to_s:
        raise UsageError(f"--window: {text!r} is not a span of time; write 10s..25s")
    return from_s, to_s
