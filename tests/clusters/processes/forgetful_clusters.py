"""Clusters of processes on disks that lose things, as tests use them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer

from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.processes import BrokerProcesses
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.port import Disks, NodeName
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError

ONE, TWO, THREE = (NodeName(f"broker-{number}") for number in (1, 2, 3))
BROKERS = (ONE, TWO, THREE)
TOPIC = TopicSpec(name="t", assignment=((1, 2, 3),), settings={"min.insync.replicas": "2"})

Until = Callable[..., bool]


@contextmanager
def started(make: Callable[..., BrokerProcesses], directory: Path) -> Iterator[BrokerProcesses]:
    with (
        Ledger(run_id="disks", directory=directory / "ledgers") as ledger,
        Warden(run_id="disks", will=ledger.will) as warden,
        LocalHost(warden, ledger=ledger) as host,
    ):
        cluster = make(site=Site(host=host, directory=directory / "nodes", clock=Clock.start()))
        try:
            cluster.start()
            cluster.create_topics([TOPIC])
            yield cluster
        finally:
            cluster.stop()
    assert not [path for path in directory.glob("nodes/*/disk") if path.is_mount()]


def is_whole(cluster: BrokerProcesses) -> bool:
    try:
        view = cluster.view()
    except HarnessError:
        return False
    # The others may still list a broker by the registration of its dead predecessor.
    return view.serving == {1, 2, 3} and len(view.partitions["t-0"].isr) == 3


def send(cluster: BrokerProcesses, count: int, *, topic: str = "t") -> None:
    """Have so many records acknowledged by all replicas."""
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "acks": "all",
        "message.timeout.ms": 60000,
        "log_level": 0,
    }
    producer = Producer(settings)
    for number in range(count):
        producer.produce(topic, f"{number}".encode() * 20, partition=0)
    assert producer.flush(60) == 0


def ends(cluster: BrokerProcesses, key: str = "t-0") -> list[int | None]:
    return [cluster.log_end(broker, key) for broker in BROKERS]


def quick_spec(disks: Disks) -> KafkaSpec:
    """For nodes that start in a second."""
    settings = {"broker.session.timeout.ms": "2000", "replica.lag.time.max.ms": "1500"}
    return KafkaSpec(disks=disks, settings=settings)
