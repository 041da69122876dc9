"""Clusters for benchmarks: on this machine, without the proxy; and the time that a start takes."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fencepost.bench.measuring import spread
from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka_port import BrokersSpec
from fencepost.clusters.port import ClusterSpec
from fencepost.clusters.system import Make, Prepared, Wanted
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock

Usable = Callable[[Any], None]
"""Uses a cluster that has just started, as its first client would."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFigures:
    """The seconds of each start, in order."""

    title: str
    nodes: str
    java: str
    start_s: tuple[float, ...]
    """The time from the first spawn until all nodes take part."""
    usable_s: tuple[float, ...] = ()
    """The time until a topic was created on all of them, too."""

    def as_data(self) -> dict[str, object]:
        """Return the figures for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return the figures as lines of text."""
        found = [
            f"{self.title}, {self.nodes} nodes, Java {self.java}",
            f"{len(self.start_s)} starts: min / median / max",
            f"  all nodes take part    {spread(self.start_s, '5.2f')} s",
        ]
        if self.usable_s:
            found.append(f"  and a topic created    {spread(self.usable_s, '5.2f')} s")
        return found


def start_bench(
    make: Make, spec: ClusterSpec, *, runs: int, say: Callable[[str], None]
) -> StartFigures:
    """Start and stop a cluster `runs` times; raise HarnessError if one fails."""
    has_topics = isinstance(spec, BrokersSpec)
    java, times = _times(make, spec, runs=runs, say=say, use=_topic_made if has_topics else _unused)
    return StartFigures(
        title=make.title.format(release=spec.release),
        nodes=" + ".join(map(str, spec.counts.values())),
        java=java,
        start_s=tuple(start_s for start_s, _ in times),
        usable_s=tuple(usable_s for _, usable_s in times) if has_topics else (),
    )


def _topic_made(cluster: Any) -> None:
    cluster.create_topics([TopicSpec(name="t", partitions=1, replication_factor=3)])


def _unused(_cluster: Any) -> None:
    """A cluster without topics is used once it has started."""


def _times(
    make: Make, spec: ClusterSpec, *, runs: int, say: Callable[[str], None], use: Usable
) -> tuple[str, list[tuple[float, float]]]:
    """Return the Java, and of each start the seconds until it was over and until it was used."""
    prepared = make.driver.prepare(spec, Wanted(), say)
    times = []
    for _ in range(runs):
        with built(make, spec, prepared=prepared, name="start") as bench:
            begin_s = time.monotonic()
            bench.cluster.start()
            start_s = time.monotonic() - begin_s
            use(bench.cluster)
            times.append((start_s, time.monotonic() - begin_s))
        say(f"started after {times[-1][0]:.2f} s, usable after {times[-1][1]:.2f} s")
    return prepared.java.version, times


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A cluster, and what it stands on."""

    cluster: Any
    directory: Path
    """The directory above the nodes' own."""
    warden: Warden
    clock: Clock


@contextmanager
def built(make: Make, spec: ClusterSpec, *, prepared: Prepared, name: str) -> Iterator[Built]:
    """Give the cluster with nothing of it running yet; stop it, and remove all, at the end."""
    with (
        tempfile.TemporaryDirectory(prefix="fencepost-bench-") as directory,
        Warden(run_id=f"bench-{name}") as warden,
    ):
        clock = Clock.start()
        cluster = make.driver.build(
            spec,
            prepared,
            site=Site(host=LocalHost(warden), directory=Path(directory, "nodes"), clock=clock),
            rules_off=(),
        )
        try:
            yield Built(cluster=cluster, directory=Path(directory), warden=warden, clock=clock)
        finally:
            cluster.stop()
