"""A cluster of the ZooKeeper generation in a simulated world: brokers, an ensemble, a client."""

from collections.abc import Callable
from typing import Any

from clusters.node_port.effects import SEND, TICK, UNREACHABLE, Effects
from clusters.node_port.storage import Batch, PartitionKey
from clusters.reference.nodes.broker import BrokerNode
from clusters.reference.nodes.configuration import MS
from clusters.reference.nodes.messages.client import MetadataRequest
from clusters.reference.nodes.messages.control import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewTopic,
)
from clusters.reference.nodes.messages.data import FetchRequest, ProduceRequest
from clusters.reference.nodes.states import BrokerState
from clusters.reference.zk.broker import ZkRegistrar, zk_broker
from clusters.reference.zk.configuration import ZkConfiguration
from clusters.reference.zk.rules import ZkRules
from clusters.simulation.host import ProcessState, SimulatedHost
from clusters.simulation.world import World
from clusters.simulation.zookeeper.ensemble import SimulatedEnsemble
from clusters.simulation.zookeeper.sessioned import SessionedNode

CLIENT = 3000
CLOSED = "closed"
"""The answer of a broker that closes the connection."""
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


class Client:
    """A client that sends what it is given at its next tick."""

    def __init__(self) -> None:
        self.to_send: list[tuple[int, Any]] = []
        self.answers: dict[int, Any] = {}
        self.correlation = 0

    def handle(self, _now: int, _source: int, kind: int, message: Any, effects: Effects) -> None:
        if kind == TICK:
            effects.extend((SEND, target, one) for target, one in self.to_send)
            self.to_send.clear()
        elif kind == UNREACHABLE:
            self.answers[message.correlation] = CLOSED
        elif kind > UNREACHABLE + 1:
            self.answers[message.correlation] = message


class Cluster:
    """Brokers from 1 on. `rules_off` are of all; `settings` by broker, 0 for all.

    `watched`: the kinds of messages that are kept in `sent_messages`.
    """

    def __init__(
        self,
        *rules_off: str,
        brokers: int = 3,
        servers: int = 1,
        settings: dict[int, dict[str, Any]] | None = None,
        seed: int = 1,
        rules: ZkRules | None = None,
        witnessed: bool = False,
        watched: tuple[int, ...] = (),
    ) -> None:
        self.world = World(seed, witnessed=witnessed)
        self.rules = rules or ZkRules().without(*rules_off)
        self.settings = settings or {}
        self.sent_messages: list[tuple[int, int, Any]] = []
        """(source, target, message) of the kinds in `watched`."""
        self.notes: list[tuple[int, tuple[Any, ...]]] = []
        self.ensemble = SimulatedEnsemble(self.world, servers)
        self.client = Client()
        self.client_host = self.world.add(CLIENT, "client", lambda: self.client)
        self.hosts: dict[int, SimulatedHost] = {
            number: self.world.add(number, f"broker-{number}", lambda n=number: self._node(n))
            for number in range(1, brokers + 1)
        }
        self.world.watch(self, sent=watched)
        self.ensemble.start()
        self.until(lambda: self.ensemble.leader is not None)
        self.world.start(self.client_host)
        for host in self.hosts.values():
            self.world.start(host)

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

    # A watcher of the world.

    def started(self, node: int) -> None:
        """Nothing to be noted."""

    def note(self, _now: int, node: int, note: tuple[Any, ...]) -> None:
        self.notes.append((node, note[1:]))

    def sent(self, _now: int, source: int, target: int, _kind: int, message: Any) -> None:
        self.sent_messages.append((source, target, message))

    def delivered(self, *_: Any) -> None:
        """Nothing is looked at on its arrival."""

    def noted(self, subject: str, *, node: int | None = None) -> list[tuple[Any, ...]]:
        """What was noted of this subject, by this node or any."""
        return [note[1:] for one, note in self.notes if note[0] == subject and node in (None, one)]

    # Time.

    def run(self, ms: float) -> None:
        self.world.run(self.world.now_ns + int(ms * MS))

    def until(
        self, reached: Callable[[], bool], *, within_ms: int = 20_000, step_ms: float = 5
    ) -> None:
        for _ in range(int(within_ms / step_ms)):
            if reached():
                return
            self.run(step_ms)
        raise AssertionError("not reached in time")

    # Brokers.

    def broker(self, number: int) -> BrokerNode[ZkRegistrar]:
        node = self.hosts[number].node
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

    def kill(self, *numbers: int) -> None:
        for one in numbers:
            self.world.kill(self.hosts[one])

    def start(self, *numbers: int) -> None:
        for one in numbers:
            self.world.start(self.hosts[one])

    def stop(self, number: int) -> None:
        """Ask a broker to end, and wait until it has."""
        self.world.stop(self.hosts[number])
        self.until(lambda: self.hosts[number].state is ProcessState.DOWN)

    def cut(self, a: int, b: int) -> None:
        """Let nothing through between two hosts."""
        self.world.network.block([(a, b), (b, a)])

    def heal(self, a: int, b: int) -> None:
        self.world.network.unblock([(a, b), (b, a)])

    # What clients do.

    def send(self, broker: int, message: Any) -> int:
        """Send a request; return its correlation."""
        self.client.correlation += 1
        message.correlation = self.client.correlation
        self.client.to_send.append((broker, message))
        return self.client.correlation

    def ask(self, broker: int, message: Any) -> Any:
        """Send a request, and return its answer."""
        correlation = self.send(broker, message)
        self.until(lambda: correlation in self.client.answers)
        return self.client.answers[correlation]

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
