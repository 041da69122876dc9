"""A cluster of the ZooKeeper generation in a simulated world: brokers, an ensemble, a client."""

from functools import partial
from typing import Any

from stage import CLOSED, Stage

from fencepost.clusters.node_port.storage import Batch, PartitionKey
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.broker import BrokerNode
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.messages.client import MetadataRequest
from fencepost.clusters.reference.nodes.messages.control import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewTopic,
)
from fencepost.clusters.reference.nodes.messages.data import FetchRequest, ProduceRequest
from fencepost.clusters.reference.zk.broker import ZkRegistrar, zk_broker
from fencepost.clusters.reference.zk.configuration import ZkConfiguration
from fencepost.clusters.reference.zk.rules import ZkRules
from fencepost.clusters.simulation.host import ProcessState, SimulatedHost
from fencepost.clusters.simulation.network import Latency
from fencepost.clusters.simulation.zookeeper.ensemble import SimulatedEnsemble
from fencepost.clusters.simulation.zookeeper.sessioned import SessionedNode

SHORT: dict[str, Any] = {
    "heartbeat_interval_ns": 200 * MS,
    "session_timeout_ns": 1_500 * MS,
    "controller_side_timeout_ns": 1_000 * MS,
    "broker_side_timeout_ns": 2_000 * MS,
    "registration_timeout_ns": 5_000 * MS,
    "replica_lag_max_ns": 1_000 * MS,
    "request_timeout_ns": 2_000 * MS,
    "replica_fetch_backoff_ns": 40 * MS,
    "checkpoint_interval_ns": 500 * MS,
    "controlled_shutdown_retry_ns": 100 * MS,
}
"""Short times, so that tests run through few ticks."""


class Cluster(Stage):
    """Brokers from 1 on. `rules_off` are of all; `settings` by broker, 0 for all.

    `watched`: the kinds of messages that are kept in `sent`.
    """

    STEP_NS = 5 * MS

    def __init__(
        self,
        *rules_off: str,
        brokers: int = 3,
        servers: int = 1,
        settings: dict[int, dict[str, Any]] | None = None,
        seed: int = 1,
        rules: ZkRules | None = None,
        witnessed: bool = False,
        watched: tuple[int, ...] | None = (),
    ) -> None:
        super().__init__(seed, latency=Latency(), watched=watched, witnessed=witnessed)
        self.rules = rules or ZkRules().without(*rules_off)
        self.settings = settings or {}
        self.ensemble = SimulatedEnsemble(self.simulation, servers)
        for number in range(1, brokers + 1):
            self.add(number, partial(self._node, number), formatted=False)
        self.ensemble.start()
        self.until(lambda: self.ensemble.leader is not None)
        self.start(*self.ids)

    def _node(self, number: int) -> SessionedNode:
        said = {**SHORT, **self.settings.get(0, {}), **self.settings.get(number, {})}
        configuration = ZkConfiguration(
            **{
                "node_id": number,
                "is_controller": False,
                "voters": (),
                "cluster_id": "c",
                "listeners": (("CLIENT", f"broker-{number}", 9092, 0),),
                "host_name": f"host-{number}",
                **said,
            }
        )
        node = zk_broker(configuration, self.rules)
        return SessionedNode(node, number=number, servers=self.ensemble.numbers)

    def run_ms(self, ms: float) -> None:
        self.run(int(ms * MS))

    # Brokers.

    @property
    def hosts(self) -> dict[int, SimulatedHost]:
        """The brokers' hosts."""
        return {one: self.host(one) for one in self.ids}

    def broker(self, number: int) -> BrokerNode[ZkRegistrar]:
        node = self.nodes[number]
        assert isinstance(node, SessionedNode), self.hosts[number]
        assert isinstance(node.inner, BrokerNode)
        return node.inner

    def running(self) -> list[int]:
        return [one for one, host in self.hosts.items() if host.state is ProcessState.RUNNING]

    def is_ready(self, *numbers: int) -> bool:
        """These brokers (all, by default) are RUNNING, and one of them is the controller."""
        found = numbers or tuple(self.hosts)
        return self.controller() > 0 and all(
            self.hosts[one].node is not None
            and self.broker(one).registrar.life.state == BrokerState.RUNNING
            and len(self.broker(one).image.brokers) >= len(found)
            for one in found
        )

    def ready(self) -> "Cluster":
        self.until(self.is_ready)
        return self

    def controller(self) -> int:
        """The broker that is the active controller; -1: none is."""
        active = [one for one in self.running() if self.broker(one).registrar.controller.is_active]
        return active[0] if active else -1

    def stop(self, node_id: int) -> None:
        """Ask a broker to end, and wait until it has."""
        super().stop(node_id)
        self.until(lambda: self.host(node_id).state is ProcessState.DOWN)

    def block(self, a: int, b: int) -> None:
        """Let nothing through between two hosts."""
        self.simulation.network.block([(a, b), (b, a)])

    def heal(self, a: int, b: int) -> None:
        self.simulation.network.unblock([(a, b), (b, a)])

    # What clients do.

    def create(self, name: str, *assignment: tuple[int, ...], **settings: str) -> int:
        """Make a topic; return its id once every broker shows it, led."""
        topic_id = self.ask_to_create(name, *assignment, **settings)
        keys = [(topic_id, number) for number in range(len(assignment))]
        self.until(lambda: all(self.shows(one, key) for one in self.running() for key in keys))
        leaders = {key: replicas[0] for key, replicas in zip(keys, assignment, strict=True)}
        self.until(
            lambda: all(key in self.broker(one).replicas.leaders for key, one in leaders.items())
        )
        return topic_id

    def ask_to_create(self, name: str, *assignment: tuple[int, ...], **settings: str) -> int:
        """Have a topic made; return its id."""
        topic = NewTopic(name, -1, -1, tuple(assignment), tuple(settings.items()))
        response = self.ask(self.controller(), CreateTopicsRequest(0, (topic,), 1_000 * MS))
        assert response.topics[0][2] == 0, response
        topic_id: int = response.topics[0][1]
        return topic_id

    def delete(self, name: str) -> None:
        response = self.ask(self.controller(), DeleteTopicsRequest(0, ((name, 0),), 1_000 * MS))
        assert response.topics[0][2] == 0, response

    def shows(self, broker: int, key: PartitionKey) -> bool:
        return key in self.broker(broker).image.partitions

    def produce(self, key: PartitionKey, *values: Any, broker: int, acks: int = -1) -> int:
        """Produce; return the error, -1: closed."""
        batch = Batch(-1, -1, len(values), -1, -1, -1, values)
        response = self.ask(broker, ProduceRequest(0, acks, 1_500 * MS, ((key, batch),)))
        return -1 if response == CLOSED else int(response.partitions[0][1])

    def consume(self, key: PartitionKey, *, broker: int, offset: int = 0) -> list[Any]:
        """The values that a consumer gets."""
        response = self.ask(broker, FetchRequest(0, -1, -1, 15, ((key, offset, -1, -1),), 0))
        assert response != CLOSED, response
        part = response.partitions[0]
        assert not part.error, part
        return [value for batch in part.batches for value in batch.payload]

    def metadata(self, broker: int) -> Any:
        return self.ask(broker, MetadataRequest(0, None))

    def isr(self, key: PartitionKey, *, broker: int) -> tuple[int, ...]:
        """The ISR as this broker shows it."""
        shown = self.broker(broker).image.partitions.get(key)
        return () if shown is None else shown.isr

    def leader(self, key: PartitionKey) -> int:
        """The broker that leads by the metadata of a running one that shows the latest epoch."""
        images = [self.broker(one).image for one in self.running()]
        shown = [image.partitions[key] for image in images if key in image.partitions]
        return max(shown, key=lambda one: one.leader_epoch).leader

    def values(self, broker: int, key: PartitionKey) -> list[Any]:
        """The records of a replica."""
        log = self.broker(broker).replicas.hosted[key].log
        return [value for batch in log.batches for value in batch.payload]
