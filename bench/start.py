"""The time that a cluster takes from the first spawn to a topic that can be created, warm."""

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from clusters.hosts.local_host import LocalHost
from clusters.hosts.warden import Warden
from clusters.kafka.cluster import KafkaCluster
from clusters.kafka.preparation import prepare
from clusters.kafka_port import KafkaSpec, TopicSpec
from history.clock import Clock

__all__ = ["StartFigures", "start_bench"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFigures:
    """The seconds of each start, in order."""

    release: str
    controllers: int
    brokers: int
    java: str
    start_s: tuple[float, ...]
    """The time from the first spawn until all brokers are unfenced."""
    usable_s: tuple[float, ...]
    """The time until a topic was created on all of them, too."""

    def as_data(self) -> dict[str, object]:
        """Return the figures for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return the figures as lines of text."""
        return [
            f"Kafka {self.release}, {self.controllers} + {self.brokers} nodes, Java {self.java}",
            f"{len(self.start_s)} starts: min / median / max",
            f"  all brokers unfenced   {_spread(self.start_s)}",
            f"  and a topic created    {_spread(self.usable_s)}",
        ]


def start_bench(
    *, release: str, controllers: int, runs: int, say: Callable[[str], None]
) -> StartFigures:
    """Start and stop a cluster of three brokers `runs` times; raise HarnessError if one fails."""
    spec = KafkaSpec(release=release, controllers=controllers)
    prepared = prepare(spec, say)
    times = []
    for _ in range(runs):
        with (
            tempfile.TemporaryDirectory(prefix="fencepost-bench-") as directory,
            Warden(run_id="bench-start") as warden,
        ):
            cluster = KafkaCluster(
                spec,
                host=LocalHost(warden),
                prepared=prepared,
                directory=Path(directory),
                clock=Clock.start(),
            )
            try:
                times.append(_time_one(cluster))
            finally:
                cluster.stop()
        say(f"unfenced after {times[-1][0]:.2f} s, usable after {times[-1][1]:.2f} s")
    return StartFigures(
        release=prepared.release.version,
        controllers=controllers,
        brokers=spec.brokers,
        java=prepared.java.version,
        start_s=tuple(start_s for start_s, _ in times),
        usable_s=tuple(usable_s for _, usable_s in times),
    )


def _time_one(cluster: KafkaCluster) -> tuple[float, float]:
    begin_s = time.monotonic()
    cluster.start()
    start_s = time.monotonic() - begin_s
    cluster.create_topics([TopicSpec(name="t", partitions=1, replication_factor=3)])
    return start_s, time.monotonic() - begin_s


def _spread(seconds: tuple[float, ...]) -> str:
    low, middle, high = min(seconds), statistics.median(seconds), max(seconds)
    return f"{low:5.2f} / {middle:5.2f} / {high:5.2f} s"
