"""`fencepost bench`: speed and memory, measured on this machine, never asserted."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

from fencepost.clusters.port import ClusterSpec
from fencepost.harness.cli.options import as_json, emit_json, results_option
from fencepost.harness.progress import terminal_progress
from fencepost.history.run_directory import find_run

if TYPE_CHECKING:
    from fencepost.clusters.system import Make

CHECKER_SECTIONS: Final = (
    "registers",
    "register-on-spark",
    "one-key-on-spark",
    "data-plane",
    "data-plane-one-key",
    "cycles",
    "recheck",
    "worst-refused",
    "worst-open",
)
"""The names in `bench.checkers`, which takes seconds to be imported."""
SIMULATOR_SECTIONS: Final = ("trials", "recorded", "control-plane")


class _Figures(Protocol):
    def as_data(self) -> object:
        """Return them for JSON."""

    def lines(self) -> Iterable[str]:
        """Return them as lines of text."""


def _shown(figures: _Figures, *, as_json: bool) -> int:
    """Print the figures; return the exit code."""
    if as_json:
        emit_json(figures.as_data())
    else:
        click.echo("\n".join(figures.lines()))
    return 0


@click.group()
def bench() -> None:
    """Measure how fast parts of Fencepost are on this machine."""


_of_make = click.option(
    "--cluster",
    type=click.Choice(["kafka", "reference"]),
    help="Brokers of Kafka or of our own, under controllers. [default: kafka]",
)
_runs = click.option(
    "--runs",
    type=click.IntRange(1, 100),
    default=5,
    show_default=True,
    help="Number of repetitions.",
)
_pairs = click.option(
    "--pairs",
    type=click.IntRange(1, 50),
    default=5,
    show_default=True,
    help="Number of runs of each kind, which alternate.",
)
_seconds = click.option(
    "--seconds",
    type=click.IntRange(2, 120),
    default=10,
    show_default=True,
    help="Duration of one run.",
)
_servers = click.option(
    "--servers",
    type=click.Choice(["1", "3", "5"]),
    default="3",
    show_default=True,
    help="Size of the ensemble of ZooKeeper.",
)


@bench.command()
@_of_make
@_pairs
@_seconds
@as_json
def recorder(cluster: str | None, pairs: int, seconds: int, as_json: bool) -> int:
    """Recorded operations a second with real acks=all produce, and the same without recording."""
    from fencepost.bench.recorder import recorder_bench
    from fencepost.clusters.kafka_port import KafkaSpec

    make = _make(cluster, KafkaSpec())
    with terminal_progress() as progress:
        figures = recorder_bench(make, pairs=pairs, seconds=seconds, say=progress.say)
    return _shown(figures, as_json=as_json)


@bench.command()
@_of_make
@click.option("--kafka", help="Release of Kafka. [default: 4.3.1; with --zookeepers 3.9.2]")
@click.option(
    "--controllers",
    type=click.Choice(["1", "3", "5"]),
    default="1",
    show_default=True,
    help="Number of controllers.",
)
@click.option(
    "--zookeepers",
    type=click.Choice(["1", "3", "5"]),
    help="Start Kafka on an ensemble of this many servers, without controllers.",
)
@click.option("--zookeeper", help="Start an ensemble of this release of ZooKeeper instead.")
@_servers
@_runs
@as_json
def start(as_json: bool, runs: int, **flags: Any) -> int:
    """Seconds from the first spawn to a usable cluster of three brokers, release and Java warm."""
    from fencepost.bench.clusters import start_bench
    from fencepost.clusters.kafka_port import KafkaSpec
    from fencepost.clusters.kafka_zookeeper.system import KafkaZooKeeperSpec
    from fencepost.clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
    from fencepost.clusters.zookeeper.system import ZooKeeperSpec

    release = {} if flags["kafka"] is None else {"release": flags["kafka"]}
    spec: ClusterSpec = KafkaSpec(controllers=int(flags["controllers"]), **release)
    if flags["zookeeper"] is not None:
        spec = ZooKeeperSpec(release=flags["zookeeper"], servers=int(flags["servers"]))
    elif flags["zookeepers"] is not None:
        is_ours = flags["cluster"] == "reference"
        on_ensemble = ReferenceZooKeeperSpec if is_ours else KafkaZooKeeperSpec
        spec = on_ensemble(zookeepers=int(flags["zookeepers"]), **release)
    is_one_make = isinstance(spec, ReferenceZooKeeperSpec)
    make = _make(None if is_one_make else flags["cluster"], spec)
    with terminal_progress() as progress:
        figures = start_bench(make, spec, runs=runs, say=progress.say)
    return _shown(figures, as_json=as_json)


@bench.command()
@click.option("--zookeeper", help="Release of ZooKeeper. [default: that of PySpark's jars]")
@_servers
@click.option(
    "--clients", type=click.IntRange(1, 32), default=3, show_default=True, help="Number of clients."
)
@_runs
@_seconds
@as_json
def register(as_json: bool, **flags: Any) -> int:
    """Recorded operations a second of clients that read and write znodes of an ensemble."""
    from fencepost.bench.register import register_bench
    from fencepost.clusters.zookeeper.system import ZooKeeperSpec

    release = {} if flags["zookeeper"] is None else {"release": flags["zookeeper"]}
    common = {name: flags[name] for name in ("clients", "runs", "seconds")}
    with terminal_progress() as progress:
        figures = register_bench(
            spec=ZooKeeperSpec(servers=int(flags["servers"]), **release),
            **common,
            say=progress.say,
        )
    return _shown(figures, as_json=as_json)


@bench.command()
@_pairs
@_seconds
@click.option(
    "--value-bytes",
    type=click.IntRange(1, 900_000),
    default=200,
    show_default=True,
    help="Size of a record's value.",
)
@as_json
def wire(pairs: int, seconds: int, value_bytes: int, as_json: bool) -> int:
    """Throughput and latency of acks=all produce behind the proxy, and the same without it."""
    from fencepost.bench.wire import wire_bench

    with terminal_progress() as progress:
        figures = wire_bench(
            pairs=pairs, seconds=seconds, value_bytes=value_bytes, say=progress.say
        )
    return _shown(figures, as_json=as_json)


@bench.command()
@click.option(
    "--only",
    metavar="SECTION,…",
    help=f"Sections, of {', '.join(CHECKER_SECTIONS)}. [default: all]",
)
@click.option(
    "--size",
    "sizes",
    type=click.IntRange(1000, 1_000_000_000),
    multiple=True,
    help="Number of operations, records or transactions. Can be repeated. "
    "[default: each section's own]",
)
@click.option(
    "--runs",
    type=click.IntRange(1, 50),
    default=3,
    show_default=True,
    help="Number of repetitions.",
)
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Directory for the histories, which are removed again. [default: the system's for such]",
)
@as_json
def checkers(
    *, only: str | None, sizes: tuple[int, ...], runs: int, directory: Path | None, as_json: bool
) -> int:
    """Time, growth and peak memory of the checkers, on histories of any length."""
    sections = _named(only, CHECKER_SECTIONS)
    from fencepost.bench.checkers import checkers_bench

    with terminal_progress() as progress:
        figures = checkers_bench(
            only=sections,
            sizes=sizes,
            repetitions=runs,
            directory=directory,
            say=progress.say,
        )
    return _shown(figures, as_json=as_json)


@bench.command()
@click.argument("run")
@results_option
@_runs
@as_json
def check(*, run: str, results: Path, runs: int, as_json: bool) -> int:
    """Time of judging a stored RUN, and memory of each process: a worker, the JVM, the harness."""
    from fencepost.bench.check import check_bench

    find_run(run, results)
    with terminal_progress() as progress:
        figures = check_bench(run, results=results, runs=runs, say=progress.say)
    return _shown(figures, as_json=as_json)


@bench.command()
@click.option(
    "--only",
    metavar="SECTION,…",
    help=f"Sections, of {', '.join(SIMULATOR_SECTIONS)}. [default: all]",
)
@_runs
@as_json
def simulator(*, only: str | None, runs: int, as_json: bool) -> int:
    """Events and virtual seconds of simulated clusters a second of one core, and where it goes."""
    sections = _named(only, SIMULATOR_SECTIONS)
    from fencepost.bench.simulator import simulator_bench

    with terminal_progress() as progress:
        figures = simulator_bench(only=sections, runs=runs, say=progress.say)
    return _shown(figures, as_json=as_json)


@bench.command("gate")
@click.option(
    "--runs",
    type=click.IntRange(1, 5000),
    default=500,
    show_default=True,
    help="Number of runs of each night.",
)
@click.option(
    "--nights",
    type=click.IntRange(1, 30),
    default=30,
    show_default=True,
    help="Number of nights, the one that is judged included.",
)
@as_json
def gate(*, runs: int, nights: int, as_json: bool) -> int:
    """Measure how long the gate takes for a night, after a number of nights before it."""
    from fencepost.bench.gate import gate_bench

    return _shown(gate_bench(runs=runs, nights=nights), as_json=as_json)


@bench.command("serve")
@click.option(
    "--stored",
    type=click.IntRange(1, 5000),
    default=500,
    show_default=True,
    help="Number of stored runs.",
)
@click.option(
    "--nights",
    type=click.IntRange(1, 90),
    default=30,
    show_default=True,
    help="Number of nights that they are of.",
)
@_runs
@as_json
def serve(*, stored: int, nights: int, runs: int, as_json: bool) -> int:
    """Measure the time to the first paint of the web page's pages, in Chromium."""
    from fencepost.bench.serve import serve_bench

    return _shown(serve_bench(runs=stored, nights=nights, repetitions=runs), as_json=as_json)


def _make(name: str | None, spec: ClusterSpec) -> "Make":
    """Return the make of that name, which the spec's system must have; None: its first."""
    from fencepost.clusters.systems import system_of

    system = system_of(spec)
    if name is None:
        return system.makes[0]
    if name not in system.by_name:
        raise click.BadParameter(f"{system.name} has no such cluster", param_hint="--cluster")
    return system.by_name[name]


def _named(text: str | None, sections: Iterable[str]) -> tuple[str, ...]:
    """Return the names that were given, in the order of all of them."""
    known = tuple(sections)
    if text is None:
        return known
    named = {name.strip() for name in text.split(",")}
    if unknown := named.difference(known):
        raise click.BadParameter(
            f"no section {', '.join(sorted(unknown))}; there are: {', '.join(known)}",
            param_hint="--only",
        )
    return tuple(name for name in known if name in named)


@bench.command()
@click.option("--run", metavar="RUN", help="A stored run. [default: one that is made]")
@click.option(
    "--events",
    type=click.IntRange(1000, 1_200_000),
    default=1_000_000,
    show_default=True,
    help="Number of events of the run that is made.",
)
@click.option(
    "--frames",
    type=click.IntRange(20, 2000),
    default=240,
    show_default=True,
    help="Number of steps of zooming and panning.",
)
@results_option
@as_json
def timeline(*, run: str | None, events: int, frames: int, results: Path, as_json: bool) -> int:
    """First paint, pan and zoom, and memory of the timeline in the system's Chromium."""
    from fencepost.bench.timeline import timeline_bench

    found = None if run is None else find_run(run, results)
    return _shown(timeline_bench(found, events=events, frames=frames), as_json=as_json)
