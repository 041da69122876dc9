"""Brokers and controllers in memory: a clock, a network without luck, and disks that crash."""

import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from clusters.node_port import effects as border
from clusters.node_port.storage import (
    META_PROPERTIES,
    Batch,
    Contents,
    MetaProperties,
    PartitionKey,
)
from clusters.reference.nodes.broker import BrokerNode
from clusters.reference.nodes.configuration import MS, Configuration
from clusters.reference.nodes.controller import ControllerNode
from clusters.reference.nodes.messages.control import CreateTopicsRequest, NewTopic
from clusters.reference.nodes.messages.data import FetchRequest, ProduceRequest
from clusters.reference.nodes.rules import Rules

CLUSTER = "broker-tests"
CLIENT = -100
LATENCY_NS = 1 * MS
CLOSED = "closed"

Held = tuple[int, int, Any]


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


def formatted(node_id: int) -> Contents:
    """A disk as the storage tool leaves it."""
    properties = MetaProperties(cluster_id=CLUSTER, node_id=node_id, directory_id=node_id)
    return Contents(files={META_PROPERTIES: properties})


def batch(*values: Any, producer: tuple[int, int, int] = (-1, -1, -1)) -> Batch:
    """A client's batch; `producer` is its id, epoch and base sequence."""
    return Batch(-1, -1, len(values), *producer, values)


@dataclass
class World:
    """A cluster: controllers from 1000 on, brokers from 1 on."""

    brokers: int = 3
    controllers: int = 1
    rules: dict[int, Rules] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    broker_settings: dict[int, dict[str, Any]] = field(default_factory=dict)
    now: int = 1_000_000_000
    nodes: dict[int, Any] = field(default_factory=dict)
    disks: dict[int, Contents] = field(default_factory=dict)
    notes: list[tuple[Any, ...]] = field(default_factory=list)
    """(node id, subject, …)."""
    exits: dict[int, str] = field(default_factory=dict)
    answers: dict[int, Any] = field(default_factory=dict)
    """Of clients, by source."""
    blocked: set[tuple[int, int]] = field(default_factory=set)
    catches: Callable[[int, int, Any], bool] | None = None
    """Messages to hold back: (source, target, message)."""
    held: list[Held] = field(default_factory=list)
    sent: list[Held] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._events: list[tuple[int, int, int, int, int, int, Any]] = []
        self._numbers = itertools.count(1)
        self._lives = dict.fromkeys(self.ids, 0)
        self._clients = itertools.count(100)
        for node_id in self.ids:
            self.disks[node_id] = formatted(node_id)
            self.start(node_id)

    @property
    def voters(self) -> tuple[int, ...]:
        return tuple(range(1000, 1000 + self.controllers))

    @property
    def ids(self) -> tuple[int, ...]:
        return (*self.voters, *range(1, self.brokers + 1))

    def start(self, node_id: int) -> None:
        """Start a node on its disk."""
        settings = {**self.settings, **self.broker_settings.get(node_id, {})}
        configuration = configured(node_id, self.voters, **settings)
        kind = ControllerNode if node_id in self.voters else BrokerNode
        rules = self.rules.get(node_id, self.rules.get(0, Rules()))
        self.nodes[node_id] = kind(configuration, rules)
        self._lives[node_id] += 1
        self.exits.pop(node_id, None)
        disk = self.disks[node_id]
        contents = Contents(
            files=dict(disk.files),
            logs={name: list(log) for name, log in disk.logs.items()},
            topics=dict(disk.topics),
            log_starts=dict(disk.log_starts),
            incarnation_id=node_id * 1_000 + self._lives[node_id],
        )
        self._push(self.now, node_id, node_id, border.START, contents)
        self._push(self.now + border.TICK_NS, node_id, node_id, border.TICK, None)

    def kill(self, node_id: int) -> None:
        """End a process at once; what it wrote stays."""
        self.nodes.pop(node_id, None)

    def wipe(self, node_id: int) -> None:
        """A new disk, formatted."""
        self.disks[node_id] = formatted(node_id)

    def stop(self, node_id: int) -> None:
        self._push(self.now, node_id, node_id, border.STOP, None)

    def run(self, duration_ns: int) -> None:
        """Let time pass."""
        end = self.now + duration_ns
        while self._events and self._events[0][0] <= end:
            self.step()
        self.now = end

    def until(self, claim: Callable[[], Any], *, limit_ns: int = 20_000 * MS) -> Any:
        """Run until a claim holds; fails the test if it does not in time."""
        end = self.now + limit_ns
        while self._events and self.now <= end:
            found = claim()
            if found:
                return found
            self.step()
        raise AssertionError(f"not within {limit_ns / 1e9} s: {claim}")

    def step(self) -> None:
        at, _, target, source, kind, life, message = heapq.heappop(self._events)
        self.now = max(at, self.now)
        node = self.nodes.get(target)
        if node is None or life not in (0, self._lives[target]):
            if kind > border.STOP and kind % 2 == 0:
                self._push(self.now, source, target, border.UNREACHABLE, message)
            return
        if kind == border.TICK:
            self._push(self.now + border.TICK_NS, target, target, border.TICK, None)
        self.feed(target, source, kind, message)

    def feed(self, target: int, source: int, kind: int, message: Any) -> None:
        """One event for a node, and its effects."""
        found: border.Effects = []
        self.nodes[target].handle(self.now, source, kind, message, found)
        for effect in found:
            if not self._perform(target, effect):
                return

    def release(self) -> None:
        """Deliver what was held back, and hold nothing more."""
        self.catches = None
        held, self.held = self.held, []
        for source, target, message in held:
            self._push(self.now, target, source, message.kind, message)

    def cut(self, one: Iterable[int], other: Iterable[int]) -> None:
        """No message passes between these nodes."""
        pairs = list(itertools.product(one, other))
        self.blocked.update(pairs)
        self.blocked.update((target, source) for source, target in pairs)

    # What clients do.

    def ask(self, broker: int, request: Any, *, limit_ns: int = 20_000 * MS) -> Any:
        """A client's request and its answer, or CLOSED."""
        client = self.send(broker, request)
        return self.until(lambda: self.answers.get(client), limit_ns=limit_ns)

    def send(self, broker: int, request: Any) -> int:
        """A client's request; its answer will be in `answers` under this number."""
        client = -next(self._clients)
        self._push(self.now + LATENCY_NS, broker, client, request.kind, request)
        return client

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
        assert [v for one in self.disks[broker].logs[key] for v in one.payload] == found
        return found

    def is_ready(self, *brokers: int) -> bool:
        """All of these brokers (all there are, by default) are RUNNING."""
        return all(
            node in self.nodes and self.nodes[node].life.state == 3
            for node in brokers or range(1, self.brokers + 1)
        )

    def noted(self, subject: str, *, node: int | None = None) -> list[tuple[Any, ...]]:
        return [one for one in self.notes if one[1] == subject and node in (None, one[0])]

    def _push(self, at: int, target: int, source: int, kind: int, message: Any) -> None:
        life = 0 if kind > border.STOP and kind % 2 == 0 else self._lives.get(target, 0)
        heapq.heappush(self._events, (at, next(self._numbers), target, source, kind, life, message))

    def _perform(self, node: int, effect: tuple[Any, ...]) -> bool:
        what, disk = effect[0], self.disks[node]
        if what == border.SEND:
            self._send(node, effect[1], effect[2])
        elif what == border.CLOSE:
            if effect[1] < 0:
                self.answers.setdefault(effect[1], CLOSED)
        elif what == border.APPEND:
            disk.logs.setdefault(effect[1], []).append(effect[2])
        elif what == border.SYNC:
            self._push(self.now + LATENCY_NS, node, node, border.SYNCED, effect[2])
        elif what == border.TRUNCATE:
            log = disk.logs.get(effect[1], [])
            assert all(one.base_offset >= effect[2] or one.end_offset <= effect[2] for one in log)
            log[:] = [one for one in log if one.end_offset <= effect[2]]
        elif what == border.WRITE:
            disk.files[effect[1]] = effect[2]
        elif what == border.DELETE:
            disk.logs.pop(effect[1], None)
            disk.topics.pop(effect[1], None)
        elif what == border.CREATE:
            assert effect[1] not in disk.logs, effect
            disk.logs[effect[1]] = []
            disk.topics[effect[1]] = effect[2]
        elif what == border.ADVANCE:
            log = disk.logs.get(effect[1], [])
            log[:] = [one for one in log if one.end_offset > effect[2]]
            disk.log_starts[effect[1]] = effect[2]
        elif what == border.EXIT:
            self.exits[node] = effect[1]
            self.kill(node)
            return False
        else:
            assert what == border.NOTE, effect
            self.notes.append((node, *effect[1:]))
        return True

    def _send(self, source: int, target: int, message: Any) -> None:
        self.sent.append((source, target, message))
        if (source, target) in self.blocked:
            return
        if self.catches is not None and self.catches(source, target, message):
            self.held.append((source, target, message))
        elif target < 0:
            self.answers.setdefault(target, message)
        else:
            self._push(self.now + LATENCY_NS, target, source, message.kind, message)


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
