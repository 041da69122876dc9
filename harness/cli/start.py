"""`fencepost start` and `fencepost stop`: the cluster of a stored run, once more."""

from pathlib import Path

import click

from fencepost.harness.cli.options import as_json, duration, emit_json, results_option
from fencepost.history.run_directory import find_run


@click.command()
@click.argument("run", metavar="RUN")
@click.option(
    "--for",
    "for_s",
    metavar="DURATION",
    default="1h",
    show_default=True,
    callback=duration,
    help="Time after which it is ended.",
)
@click.option(
    "--alongside", is_flag=True, help="Start it although a run is under way on this machine."
)
@results_option
@as_json
def start(run: str, *, for_s: float, alongside: bool, results: Path, as_json: bool) -> int:
    """Start the cluster of a stored RUN once more, as it was in the end, to be looked at.

    Its nodes stand on copies of their disks: the run stays as it was judged. No other run starts on
    this machine meanwhile. RUN: a path, a scenario's name (its last run), or 'latest'.
    """
    found = find_run(run, results)
    from fencepost.harness.cli.keeping import kept_lines
    from fencepost.harness.kept.keeping import keep
    from fencepost.harness.progress import terminal_progress

    with terminal_progress() as progress:
        kept = keep(found, for_s=for_s, alongside=alongside, say=progress.say)
    if as_json:
        emit_json(kept.as_data(found))
    else:
        click.echo("\n".join(kept_lines(found, kept)))
    return 0


@click.command()
@click.argument("run", metavar="RUN")
@results_option
@as_json
def stop(run: str, *, results: Path, as_json: bool) -> int:
    """End the cluster of a stored RUN that is kept running, and remove the copies of its disks."""
    found = find_run(run, results)
    from fencepost.harness.kept.keeping import end_kept

    end_kept(found)
    if as_json:
        emit_json({"run": str(found.root), "ended": True})
    else:
        click.echo(f"ended: the cluster of {found.root}")
    return 0
