"""A cluster of brokers and controllers in a simulated world."""

from dataclasses import replace
from functools import partial
from typing import Any

from stage import CLOSED, CLUSTER, Stage

from fencepost.clusters.node_port.storage import Batch, PartitionKey
from fencepost.clusters.reference.nodes.configuration import MS, Configuration
from fencepost.clusters.reference.nodes.controller import ControllerNode
from fencepost.clusters.reference.nodes.messages.control import CreateTopicsRequest, NewTopic
from fencepost.clusters.reference.nodes.messages.data import FetchRequest, ProduceRequest
from fencepost.clusters.reference.nodes.quorum_broker import quorum_broker
from fencepost.clusters.reference.nodes.rules import Rules


def configured(node_id: int, voters: tuple[int, ...], **settings: Any) -> Configuration:
    """A node with short times, so that tests run through few ticks."""
    defaults: dict[str, Any] = {
        "heartbeat_interval_ns": 200 * MS,
        "lease_timeout_ns": 2_000 * MS,
        "registration_timeout_ns": 5_000 * MS,
        "quorum_fetch_timeout_ns": 400 * MS,
        "metadata_max_wait_ns": 100 * MS,
        "election_timeout_ns": 100 * MS,
        "replica_lag_max_ns": 1_000 * MS,
        "request_timeout_ns": 2_000 * MS,
        "replica_fetch_backoff_ns": 40 * MS,
        "quorum_request_timeout_ns": 300 * MS,
        "checkpoint_interval_ns": 500 * MS,
    }
    return Configuration(
        node_id=node_id,
        is_controller=node_id in voters,
        voters=voters,
        cluster_id=CLUSTER,
        listeners=(("CLIENT", f"broker-{node_id}", 9092, 0),),
        **{**defaults, **settings},
    )


def batch(*values: Any, producer: tuple[int, int, int] = (-1, -1, -1)) -> Batch:
    """A client's batch; `producer` is its id, epoch and base sequence."""
    return Batch(-1, -1, len(values), *producer, values)


class World(Stage):
    """A cluster: controllers from 1000 on, brokers from 1 on; rules by node, 0 for all others."""

    def __init__(
        self,
        *,
        brokers: int = 3,
        controllers: int = 1,
        rules: dict[int, Rules] | None = None,
        settings: dict[str, Any] | None = None,
        broker_settings: dict[int, dict[str, Any]] | None = None,
    ) -> None:
        super().__init__()
        self.brokers = brokers
        self.voters = tuple(range(1000, 1000 + controllers))
        rules, of_brokers = rules or {}, broker_settings or {}
        for node_id in (*self.voters, *range(1, brokers + 1)):
            kind = ControllerNode if node_id in self.voters else quorum_broker
            said = {**(settings or {}), **of_brokers.get(node_id, {})}
            configuration = configured(node_id, self.voters, **said)
            kept = rules.get(node_id, rules.get(0, Rules()))
            self.add(node_id, partial(kind, configuration, kept))
            self.start(node_id)

    # What clients do.

    def create(self, name: str, *assignment: tuple[int, ...], **settings: str) -> int:
        """A topic; returns its id once every broker has applied it."""
        topic = NewTopic(name, -1, -1, tuple(assignment), tuple(settings.items()))
        leader = assignment[0][0]
        response = self.ask(leader, CreateTopicsRequest(1, (topic,), 1_000 * MS))
        assert response.topics[0][2] == 0, response
        topic_id: int = response.topics[0][1]
        running = [node for node in self.nodes if node not in self.voters]
        self.until(lambda: all(topic_id in self.nodes[one].image.names for one in running))
        return topic_id

    def produce(
        self, key: PartitionKey, one: Batch, *, acks: int = -1, broker: int | None = None
    ) -> tuple[int, int]:
        """(error, base offset)."""
        target = self.leader(key) if broker is None else broker
        request = ProduceRequest(7, acks, 1_500 * MS, ((key, one),))
        response = self.ask(target, request)
        return (-2, -1) if response == CLOSED else response.partitions[0][1:]

    def consume(self, key: PartitionKey, offset: int, *, broker: int | None = None) -> Any:
        """The FetchedPartition that a consumer gets; it does not wait for records."""
        target = self.leader(key) if broker is None else broker
        request = FetchRequest(8, -1, -1, 15, ((key, offset, -1, -1),), 0)
        response = self.ask(target, request)
        return CLOSED if response == CLOSED else response.partitions[0]

    # What there is to see.

    def leader(self, key: PartitionKey) -> int:
        """Who leads, by the newest metadata of any running broker."""
        images = [one.image for node, one in self.nodes.items() if node not in self.voters]
        return int(max(images, key=lambda image: image.offset).partitions[key].leader)

    def partition(self, key: PartitionKey) -> Any:
        images = [one.image for node, one in self.nodes.items() if node not in self.voters]
        return max(images, key=lambda image: image.offset).partitions[key]

    def log(self, broker: int, key: PartitionKey) -> Any:
        return self.nodes[broker].replicas.hosted[key].log

    def values(self, broker: int, key: PartitionKey) -> list[Any]:
        """The records of a replica, out of its memory; its disk has the same."""
        found = [value for one in self.log(broker, key).batches for value in one.payload]
        assert [v for one in self.disk(broker).batches(key) for v in one.payload] == found
        return found

    def is_ready(self, *brokers: int) -> bool:
        """All of these brokers (all there are, by default) are RUNNING."""
        return all(
            node in self.nodes and self.nodes[node].registrar.life.state == 3
            for node in brokers or range(1, self.brokers + 1)
        )


def ready(**arguments: Any) -> World:
    """A world whose brokers are all RUNNING."""
    world = World(**arguments)
    world.until(world.is_ready)
    return world


def without(*names: str) -> dict[int, Rules]:
    """All nodes' rules without these."""
    return {0: Rules().without(*names)}


def copied(message: Any, **changes: Any) -> Any:
    return replace(message, **changes)
