"""Each link between nodes can be led over an address of its own, and be cut there alone."""

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress

import pytest
from confluent_kafka import Producer

from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.configuration import LOOPBACK, Listener
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.clusters.topic_spec import TopicSpec

pytestmark = pytest.mark.kafka

ONE, TWO, CONTROLLER = NodeName("broker-1"), NodeName("broker-2"), NodeName("controller-1")


class Forwarder:
    """Plain TCP from one address to 127.0.0.1, same port; can be cut for good."""

    def __init__(self, address: str, port: int) -> None:
        self._port = port
        self._listener = socket.create_server((address, port))
        self._open: list[socket.socket] = [self._listener]
        self.connection_count = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.connection_count += 1
                self._open.append(near)
                threading.Thread(target=self._forward, args=(near,), daemon=True).start()

    def _forward(self, near: socket.socket) -> None:
        # Refused while the target is still starting; the source then tries again.
        with (
            closing(near),
            suppress(OSError, ValueError),
            socket.create_connection((LOOPBACK, self._port)) as far,
        ):
            self._open.append(far)
            while True:
                ready, _, _ = select.select([near, far], [], [])
                for one in ready:
                    data = one.recv(1 << 16)
                    if not data:
                        return
                    (far if one is near else near).sendall(data)


def lettered(source: NodeName, target: NodeName) -> str | None:
    """127.1.source.target, by the order of the nodes; the clients' own links go straight."""
    if source == CLIENTS:
        return None
    order = (CONTROLLER, ONE, TWO)
    return f"127.1.{order.index(source)}.{order.index(target)}"


@contextmanager
def forwarders(cluster: KafkaCluster) -> Iterator[dict[tuple[NodeName, NodeName], Forwarder]]:
    """One for each link from a broker to another node."""
    made = {
        (source, target): Forwarder(lettered(source, target), cluster.port_of(target, listener))
        for source in (ONE, TWO)
        for target, listener in (
            (CONTROLLER, Listener.CONTROLLER),
            (ONE, Listener.REPLICATION),
            (TWO, Listener.REPLICATION),
        )
        if source != target
    }
    try:
        yield made
    finally:
        for forwarder in made.values():
            forwarder.cut()


def test_a_link_led_over_its_own_address_carries_its_traffic_and_can_be_cut_alone(
    run_cluster: Callable[..., AbstractContextManager[KafkaCluster]], until: Callable[..., bool]
) -> None:
    spec = KafkaSpec(brokers=2, release="3.4.1", settings={"replica.lag.time.max.ms": "1500"})
    with (
        run_cluster(spec, route=lettered, start=False) as cluster,
        forwarders(cluster) as links,
    ):
        cluster.start()
        topics = [
            TopicSpec(name="led-by-1", assignment=((1, 2),)),
            TopicSpec(name="led-by-2", assignment=((2, 1),)),
        ]
        cluster.create_topics(topics)
        assert until(lambda: all(link.connection_count > 0 for link in links.values()))
        both = ("led-by-1", "led-by-2")
        assert until(lambda: all(isr_of(cluster, one) == {1, 2} for one in both))

        links[TWO, ONE].cut()
        produce(cluster, "led-by-1")
        assert until(lambda: isr_of(cluster, "led-by-1") == {1})
        assert until(lambda: isr_of(cluster, "led-by-2") == {1, 2})
        assert until(lambda: cluster.view().brokers == {1, 2})

        links[ONE, CONTROLLER].cut()
        assert until(lambda: cluster.view().brokers == {2})


def isr_of(cluster: KafkaCluster, topic: str) -> set[int]:
    return set(cluster.view().partitions[f"{topic}-0"].isr)


def produce(cluster: KafkaCluster, topic: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": 1})
    producer.produce(topic, b"new", partition=0)
    assert producer.flush(30) == 0
