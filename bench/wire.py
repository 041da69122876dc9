"""The cost of the proxy: acks=all produce to a cluster behind it, and to one without.

Both clusters run at the same time and are measured in turns, one pair after the other: other work
on the machine moves single figures far more than a proxy does, so read the ratios within pairs.
Clients connect directly; replication and the way to the controllers go through the proxy.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from fencepost.bench.brief_topic import BRIEF, brief_topic
from fencepost.bench.measuring import spread
from fencepost.clusters.abilities import direct
from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.preparation import prepare
from fencepost.clusters.kafka.prepared import KafkaPrepared
from fencepost.clusters.port import NodeName
from fencepost.harness.prepare.wiring import links_of, wired_route
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError
from fencepost.nemesis.wire.wire import Wire

_BATCH_BYTES: Final = 100_000
"""The bytes handed to the producer at a time."""
_IN_FLIGHT_BYTES_MAX: Final = 8 << 20
_LATENCY_SHARE: Final = 0.3
"""The share of a run's seconds in which one record follows the other, each waited for."""
_FLUSH_TIMEOUT_S: Final = 30.0
_NODES: Final = tuple(
    NodeName(name) for name in ("controller-1", "broker-1", "broker-2", "broker-3")
)
_TOPIC: Final = brief_topic(partitions=6)


@dataclass(frozen=True, slots=True, kw_only=True)
class WireFigures:
    """The figures of each pair of runs, in order: the same index means the same pair."""

    kafka: str
    java: str
    value_bytes: int
    seconds: int
    direct_per_s: tuple[float, ...]
    """Records that were acknowledged by all replicas, a second."""
    proxied_per_s: tuple[float, ...]
    direct_ms: tuple[float, ...]
    """Median time from a record's send to its acknowledgement, one record at a time."""
    proxied_ms: tuple[float, ...]
    proxy_cpu_share: tuple[float, ...]
    """The share of one core, while the cluster behind it was produced to at full speed."""

    @property
    def ratios(self) -> tuple[float, ...]:
        """The ratios of throughput behind the proxy to that without: 1 means that it is free."""
        pairs = zip(self.proxied_per_s, self.direct_per_s, strict=True)
        return tuple(proxied / plain for proxied, plain in pairs)

    @property
    def added_ms(self) -> tuple[float, ...]:
        """The median latency that the proxy adds, in ms, one figure a pair."""
        pairs = zip(self.proxied_ms, self.direct_ms, strict=True)
        return tuple(proxied - plain for proxied, plain in pairs)

    def as_data(self) -> dict[str, object]:
        """Return the figures for JSON."""
        return {**asdict(self), "ratios": self.ratios, "added_ms": self.added_ms}

    def lines(self) -> list[str]:
        """Return the figures as lines of text."""
        return [
            f"Kafka {self.kafka}, Java {self.java}; {len(self.ratios)} pairs of {self.seconds} s",
            f"acks=all to 3 replicas, {self.value_bytes} B a record: min / median / max",
            f"  direct, records a second   {spread(self.direct_per_s, '9,.0f')}",
            f"  proxied, records a second  {spread(self.proxied_per_s, '9,.0f')}",
            f"  ratio, pair by pair        {spread(self.ratios, '9.2f')}",
            f"  direct, median ms          {spread(self.direct_ms, '9.2f')}",
            f"  proxied, median ms         {spread(self.proxied_ms, '9.2f')}",
            f"  added, pair by pair        {spread(self.added_ms, '9.2f')}",
            f"  the proxy's share of a core{spread(self.proxy_cpu_share, '9.2f')}",
        ]


def wire_bench(
    *, pairs: int, seconds: int, value_bytes: int, say: Callable[[str], None] = lambda _: None
) -> WireFigures:
    """Start both clusters and measure pairs of runs; raise HarnessError if one does not start."""
    prepared = prepare(BRIEF, say)
    with _both(prepared) as (plain, proxied, wire):
        runs = _Runs(seconds=seconds, value_bytes=value_bytes)
        for cluster in (plain, proxied):  # The first run finds a cold cluster: its JVMs compile.
            runs.records_per_s(cluster)
        direct_per_s, proxied_per_s, direct_ms, proxied_ms, shares = [], [], [], [], []
        for pair in range(pairs):
            # In turns, so that neither always comes second.
            for cluster in (plain, proxied) if pair % 2 else (proxied, plain):
                if cluster is plain:
                    direct_per_s.append(runs.records_per_s(plain))
                    direct_ms.append(runs.median_ms(plain))
                else:
                    began_s, used_s = time.monotonic(), wire.status().cpu_s
                    proxied_per_s.append(runs.records_per_s(proxied))
                    took_s = time.monotonic() - began_s
                    shares.append((wire.status().cpu_s - used_s) / took_s)
                    proxied_ms.append(runs.median_ms(proxied))
            say(
                f"direct {direct_per_s[-1]:,.0f}/s {direct_ms[-1]:.2f} ms, "
                f"proxied {proxied_per_s[-1]:,.0f}/s {proxied_ms[-1]:.2f} ms"
            )
    return WireFigures(
        kafka=prepared.release.version,
        java=prepared.java.version,
        value_bytes=value_bytes,
        seconds=seconds,
        direct_per_s=tuple(direct_per_s),
        proxied_per_s=tuple(proxied_per_s),
        direct_ms=tuple(direct_ms),
        proxied_ms=tuple(proxied_ms),
        proxy_cpu_share=tuple(shares),
    )


@contextmanager
def _both(prepared: KafkaPrepared) -> Iterator[tuple[KafkaCluster, KafkaCluster, Wire]]:
    """A cluster without the proxy, one behind it, and the proxy."""
    clock = Clock.start()
    with ExitStack() as stack:
        directory = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="fencepost-bench-"))
        )
        warden = stack.enter_context(Warden(run_id="bench-wire"))
        host = stack.enter_context(LocalHost(warden))
        route = wired_route(_NODES, host=host, clients=False)
        plain, proxied = (
            KafkaCluster(
                BRIEF,
                site=Site(host=host, directory=directory / name, clock=clock, route=route_of),
                prepared=prepared,
            )
            for name, route_of in (("direct", direct), ("proxied", route))
        )
        wire = stack.enter_context(
            Wire(
                links_of(proxied, route),
                warden=warden,
                directory=directory,
                log=directory / "wire.log",
                clock=clock,
            )
        )
        for cluster in (plain, proxied):
            stack.callback(cluster.stop)
            cluster.start()
            cluster.create_topics([_TOPIC])
        yield plain, proxied, wire


class _Runs:
    """Producers of one kind of record, for a time."""

    def __init__(self, *, seconds: int, value_bytes: int) -> None:
        self._throughput_s = seconds * (1 - _LATENCY_SHARE)
        self._latency_s = seconds * _LATENCY_SHARE
        self._value = Random(0).randbytes(value_bytes)  # noqa: S311 -- not to be compressed
        self._batch = max(1, _BATCH_BYTES // value_bytes)
        self._in_flight_max = max(self._batch, _IN_FLIGHT_BYTES_MAX // value_bytes)

    def records_per_s(self, cluster: KafkaCluster) -> float:
        """The acknowledged records a second, at full speed."""
        reports = _Reports()
        producer = _producer(cluster, linger_ms=5)
        self._send_one(producer, reports)
        begin_s, queued = time.monotonic(), 1
        turn = 0
        while (now_s := time.monotonic()) < begin_s + self._throughput_s:
            if queued - reports.count > self._in_flight_max:
                producer.poll(0.1)
                continue
            batch = [{"value": self._value} for _ in range(self._batch)]
            partition = turn % _TOPIC.partitions
            queued += producer.produce_batch(
                _TOPIC.name, batch, partition=partition, on_delivery=reports.take
            )
            turn += 1
            producer.poll(0)
        acknowledged = reports.count - 1
        _flush(producer)
        return acknowledged / (now_s - begin_s)

    def median_ms(self, cluster: KafkaCluster) -> float:
        """Return the median time from send to acknowledgement, one record after the other."""
        reports = _Reports()
        producer = _producer(cluster, linger_ms=0)
        self._send_one(producer, reports)
        took_ms = []
        end_s = time.monotonic() + self._latency_s
        while (begin_s := time.monotonic()) < end_s:
            self._send_one(producer, reports)
            took_ms.append((time.monotonic() - begin_s) * 1000)
        return statistics.median(took_ms)

    def _send_one(self, producer: Producer, reports: "_Reports") -> None:
        count = reports.count
        producer.produce(_TOPIC.name, self._value, partition=0, on_delivery=reports.take)
        deadline_s = time.monotonic() + _FLUSH_TIMEOUT_S
        while reports.count == count:
            producer.poll(0.1)
            if time.monotonic() > deadline_s:
                raise HarnessError(f"no record was acknowledged within {_FLUSH_TIMEOUT_S:.0f} s")


class _Reports:
    """Counts delivery reports; the first error ends the bench."""

    def __init__(self) -> None:
        self.count = 0

    def take(self, error: KafkaError | None, _: Message) -> None:
        """Take note of a delivery report."""
        if error is not None:
            raise HarnessError(f"a record was not acknowledged: {error}")
        self.count += 1


def _producer(cluster: KafkaCluster, *, linger_ms: int) -> Producer:
    return Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": linger_ms,
            "queue.buffering.max.messages": 10_000_000,
            # A new cluster is loading its coordinators; the client asks again unprompted.
            "log_level": 3,
        }
    )


def _flush(producer: Producer) -> None:
    if left := producer.flush(_FLUSH_TIMEOUT_S):
        raise HarnessError(f"{left} records were not acknowledged in {_FLUSH_TIMEOUT_S:.0f} s")
