"""`fencepost bench`: speed and memory, measured on this machine, never asserted."""

import click

from harness.benchmarks.recorder import recorder_bench
from harness.benchmarks.start import start_bench
from harness.benchmarks.wire import wire_bench
from harness.cli.options import as_json, emit_json
from harness.progress import terminal_progress

__all__ = ["bench"]


@click.group()
def bench() -> None:
    """Measure how fast parts of Fencepost are on this machine."""


@bench.command()
@click.option("--pairs", type=click.IntRange(1, 50), default=5, show_default=True)
@click.option("--seconds", type=click.IntRange(2, 120), default=10, show_default=True)
@as_json
def recorder(pairs: int, seconds: int, as_json: bool) -> int:
    """Recorded operations a second with real acks=all produce, and the same without recording."""
    with terminal_progress() as progress:
        figures = recorder_bench(pairs=pairs, seconds=seconds, say=progress.say)
    if as_json:
        emit_json(figures.as_data())
    else:
        click.echo("\n".join(figures.lines()))
    return 0


@bench.command()
@click.option("--kafka", default="4.3.1", show_default=True)
@click.option("--controllers", type=click.Choice(["1", "3"]), default="1", show_default=True)
@click.option("--runs", type=click.IntRange(1, 50), default=5, show_default=True)
@as_json
def start(kafka: str, controllers: str, runs: int, as_json: bool) -> int:
    """Seconds from the first spawn to a usable cluster of three brokers, release and Java warm."""
    with terminal_progress() as progress:
        figures = start_bench(
            release=kafka, controllers=int(controllers), runs=runs, say=progress.say
        )
    if as_json:
        emit_json(figures.as_data())
    else:
        click.echo("\n".join(figures.lines()))
    return 0


@bench.command()
@click.option("--pairs", type=click.IntRange(1, 50), default=5, show_default=True)
@click.option("--seconds", type=click.IntRange(2, 120), default=10, show_default=True)
@click.option("--value-bytes", type=click.IntRange(1, 900_000), default=200, show_default=True)
@as_json
def wire(pairs: int, seconds: int, value_bytes: int, as_json: bool) -> int:
    """Throughput and latency of acks=all produce behind the proxy, and the same without it."""
    with terminal_progress() as progress:
        figures = wire_bench(
            pairs=pairs, seconds=seconds, value_bytes=value_bytes, say=progress.say
        )
    if as_json:
        emit_json(figures.as_data())
    else:
        click.echo("\n".join(figures.lines()))
    return 0
