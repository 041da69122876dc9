"""The server behind `fencepost serve`, until it is told to end."""

import socket
import webbrowser
from pathlib import Path
from threading import Thread

import click
from uvicorn import Config, Server

from fencepost.harness.gate.known_issues import read_known_issues
from fencepost.harness.series.rate import Rate
from fencepost.harness.serve.archive import ResultsArchive
from fencepost.report.serve.app import application

_GRACE_S = 1


def serve_results(
    results: Path, listener: socket.socket, *, known: Path | None, opened: bool
) -> None:
    """Serve the page on a listening socket until SIGINT or SIGTERM."""
    port = listener.getsockname()[1]
    archive = ResultsArchive(results.resolve(), issues=read_known_issues(known) if known else ())
    app = application(archive, results.resolve(), port=port)
    url = f"http://127.0.0.1:{port}/"
    click.echo(f"{results} is shown at {url} (^C ends it)")
    Thread(target=_look_ahead, args=(archive,), name="first look", daemon=True).start()
    if opened:
        webbrowser.open(url)
    server = Server(
        Config(
            app,
            lifespan="off",
            access_log=False,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=_GRACE_S,
        )
    )
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        return  # uvicorn has ended well, and tells what ended it


def _look_ahead(archive: ResultsArchive) -> None:
    """Read what the first pages show, and import the statistics, so that nobody waits for them."""
    archive.nights()
    Rate(hit_count=1, run_count=2).interval()
