"""`fencepost serve`: a local web page over all results."""

import os
import socket
from pathlib import Path

import click

from fencepost.harness.cli.options import results_option
from fencepost.history.failure import UsageError

_PORT = 8765


@click.command()
@results_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    show_default=True,
    help="Port on 127.0.0.1; 0: any that is free.",
)
@click.option(
    "--known",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The gate's file of known issues.",
)
@click.option("--open", "opened", is_flag=True, help="Open it in this desktop's browser.")
def serve(results: Path, port: int, known: Path | None, opened: bool) -> int:
    """Show all results in a browser of this machine: nights, scenarios, runs, timelines.

    It listens on 127.0.0.1 alone, changes nothing, and needs no network. ^C ends it.
    """
    _refuse(results)
    listener = _listener(port)
    from fencepost.harness.serve.serving import serve_results

    with listener:
        serve_results(results, listener, known=known, opened=opened)
    return 0


def _refuse(results: Path) -> None:
    """Refuse a directory that cannot be shown."""
    if not results.is_dir():
        raise UsageError(
            f"there are no results in {results}; `fencepost run` makes them, "
            "and --results names another directory"
        )
    if not os.access(results, os.R_OK | os.X_OK):
        raise UsageError(f"cannot read {results}: Permission denied; --results names another one")


def _listener(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        message = f"port {port} on 127.0.0.1 cannot be used: {os.strerror(error.errno or 0)}"
        raise UsageError(f"{message}; choose another --port, or 0 for any that is free") from None
