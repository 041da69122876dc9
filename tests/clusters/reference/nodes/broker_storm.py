"""A storm over a small cluster: kills, stops, cuts, losses and delays, while clients go on.

Everything is drawn from the seed. Two producers, one for each partition, each with one idempotent
batch under way; a reader that asks any broker, one read after the other; a writer of a setting.
"""

import random
from dataclasses import dataclass, field
from typing import Any

from broker_world import CLOSED, LATENCY_NS, MS, World, batch

from clusters.node_port.storage import Batch, PartitionKey
from clusters.reference.nodes.messages.client import DescribeConfigsRequest
from clusters.reference.nodes.messages.control import AlterConfigsRequest
from clusters.reference.nodes.messages.data import ProduceRequest
from clusters.reference.nodes.rules import Rules

BROKERS = (1, 2, 3)
DEFAULT_RETENTION = 604_800_000
PATIENCE_NS = 3_000 * MS
"""How long a client waits before it gives a request up."""
HEALED_WITHIN_NS = 15_000 * MS


class Windy(World):
    """A world whose network loses and delays messages."""

    def __init__(self, draw: random.Random, **arguments: Any) -> None:
        self.draw = draw
        self.loss = 0.0
        self.delay_ns = 0
        self.committed: dict[PartitionKey, dict[int, Any]] = {}
        """Payloads that were below a leader's high watermark, by base offset."""
        super().__init__(**arguments)

    def _send(self, source: int, target: int, message: Any) -> None:
        if (source, target) in self.blocked or self.draw.random() < self.loss:
            return
        if target < 0:
            self.answers.setdefault(target, message)
            return
        delay_ns = LATENCY_NS + int(self.draw.random() ** 4 * self.delay_ns)
        self._push(self.now + delay_ns, target, source, message.kind, message)

    def _perform(self, node: int, effect: tuple[Any, ...]) -> bool:
        if effect[0] == 9 and effect[1] == "high-watermark":
            self._commit(node, effect[2], effect[4])
        return super()._perform(node, effect)

    def _commit(self, node: int, key: PartitionKey, offset: int) -> None:
        known = self.committed.setdefault(key, {})
        for one in self.log(node, key).batches:
            if one.end_offset <= offset:
                payload = known.setdefault(one.base_offset, one.payload)
                assert payload == one.payload, (key, one, payload)


@dataclass
class Producer:
    """One partition's: its next batch goes out once the last one is acknowledged."""

    key: PartitionKey
    sequence: int = 0
    client: int = 0
    sent_ns: int = -PATIENCE_NS
    under_way: Batch | None = None
    acknowledged: list[tuple[int, int]] = field(default_factory=list)
    """(offset, value)."""

    def act(self, world: Windy) -> None:
        answer = world.answers.get(self.client)
        if self.under_way is None:
            producer = (self.key[1], 0, self.sequence)
            self.under_way = batch(self.sequence, producer=producer)
        elif answer is not None and answer != CLOSED and answer.partitions[0][1] == 0:
            self.acknowledged.append((answer.partitions[0][2], self.sequence))
            self.sequence += 1
            self.under_way, self.sent_ns = None, world.now - PATIENCE_NS
            return
        elif answer is None and world.now - self.sent_ns < PATIENCE_NS:
            return
        request = ProduceRequest(1, -1, 1_500 * MS, ((self.key, self.under_way),))
        self.client, self.sent_ns = world.send(likely_leader(world, self.key), request), world.now


@dataclass
class Reader:
    """A client of the metadata: it reads a setting, and writes ever greater values."""

    checks: bool
    client: int = 0
    sent_ns: int = 0
    shown: int = 0
    written: int = 0
    floor: tuple[int, int] = (0, 0)
    """(metadata offset shown, value acknowledged) when the read began."""
    writer: int = 0
    write_sent_ns: int = 0
    value: int = 0
    reads: int = 0

    def act(self, world: Windy) -> None:
        if self.client == 0 or self._is_over(world, self.client, self.sent_ns):
            self._judge(world.answers.get(self.client))
            request = DescribeConfigsRequest(1, ((2, "t", ("retention.ms",)),))
            self.client, self.sent_ns = world.send(world.draw.choice(BROKERS), request), world.now
            self.floor = (self.shown, self.written)
        if self.writer == 0 or self._is_over(world, self.writer, self.write_sent_ns):
            answer = world.answers.get(self.writer)
            if answer not in (None, CLOSED) and answer.resources[0][2] == 0:
                self.written = self.value
            self.value += 1
            change = AlterConfigsRequest(1, ((2, "t", "retention.ms", str(self.value)),))
            self.writer = world.send(world.draw.choice(BROKERS), change)
            self.write_sent_ns = world.now

    def _judge(self, answer: Any) -> None:
        if answer in (None, CLOSED) or answer.resources[0][2]:
            return
        self.reads += 1
        value = int(answer.resources[0][3][0][1])
        if self.checks:
            assert answer.metadata_offset >= self.floor[0], (answer, self.floor)
            assert (0 if value == DEFAULT_RETENTION else value) >= self.floor[1], (value, self)
        self.shown = max(self.shown, answer.metadata_offset)

    def _is_over(self, world: Windy, client: int, sent_ns: int) -> bool:
        return client in world.answers or world.now - sent_ns >= PATIENCE_NS


def likely_leader(world: Windy, key: PartitionKey) -> int:
    """Who leads by the metadata of somebody, or anybody."""
    images = [world.nodes[one].image for one in BROKERS if one in world.nodes]
    known = [image.partitions[key] for image in images if key in image.partitions]
    newest = max(known, key=lambda one: one.leader_epoch, default=None)
    leads = newest is not None and newest.leader > 0
    return newest.leader if newest is not None and leads else world.draw.choice(BROKERS)


def storm(seed: int, *, rules: Rules | None = None, steps: int = 30) -> tuple[int, int]:
    """Blow, heal, and compare: (acknowledged records, answered reads). Raises AssertionError."""
    draw = random.Random(seed)
    level, controllers = 1 + seed % 3, draw.choice([1, 3])
    settings = {
        "level": level,
        "replica_lag_max_ns": 600 * MS,
        "request_timeout_ns": draw.choice([500, 2_000, 10_000]) * MS,
        "metadata_snapshot_records": draw.choice([30, 10_000]),
        # Over records that say nothing the offset that is shown may go back, by right.
        "noop_interval_ns": 0,
    }
    world = Windy(draw, controllers=controllers, settings=settings, rules={0: rules or Rules()})
    world.until(world.is_ready)
    topic = world.create("t", (1, 2, 3), (2, 3, 1))
    producers = [Producer((topic, number)) for number in range(2)]
    reader = Reader(checks=level == 3)
    for _ in range(steps):
        blow(world)
        for _ in range(draw.randint(1, 40)):
            world.run(20 * MS)
            for client in (*producers, reader):
                client.act(world)
    heal(world, [one.key for one in producers])
    for one in producers:
        compare(world, one)
    return sum(len(one.acknowledged) for one in producers), reader.reads


def blow(world: Windy) -> None:
    """One thing happens."""
    draw = world.draw
    node, broker = draw.choice(world.ids), draw.choice(BROKERS)
    what = draw.choice(["kill", "start", "start", "cut", "heal", "wind", "controller", "stop"])
    if what == "kill":
        world.kill(broker)
    elif what == "start":
        start_all(world, BROKERS)
    elif what == "cut":
        others = [one for one in world.ids if one != node]
        world.cut([node], draw.sample(others, draw.randint(1, len(others))))
    elif what == "heal":
        world.blocked.clear()
    elif what == "wind":
        world.loss, world.delay_ns = draw.choice([0, 0, 0.02, 0.1]), draw.choice([0, 20, 300]) * MS
    elif what == "stop":
        world.stop(broker)
    elif (controller := draw.choice(world.voters)) in world.nodes:
        world.kill(controller)
    else:
        world.start(controller)


def start_all(world: Windy, nodes: tuple[int, ...]) -> None:
    for node in nodes:
        if node not in world.nodes:
            world.start(node)


def heal(world: Windy, keys: list[PartitionKey]) -> None:
    """Everything works again: in time all brokers run, and are in sync."""
    world.loss, world.delay_ns = 0.0, 0
    world.blocked.clear()
    end_ns = world.now + HEALED_WITHIN_NS

    def is_whole() -> bool:
        if not world.is_ready() or any(len(world.partition(key).isr) < 3 for key in keys):
            return False
        return all(len({world.log(one, key).end for one in BROKERS}) == 1 for key in keys)

    while not is_whole():
        assert world.now < end_ns, [world.partition(key) for key in keys]
        start_all(world, world.ids)
        world.run(50 * MS)
    world.run(3_000 * MS)


def compare(world: Windy, producer: Producer) -> None:
    """Nothing that was acknowledged is lost, moved or there twice, on any replica."""
    replicas = [world.values(one, producer.key) for one in BROKERS]
    assert replicas[0] == replicas[1] == replicas[2]
    kept = replicas[0]
    for offset, value in producer.acknowledged:
        assert kept[offset : offset + 1] == [value], (producer.key, offset, value, kept)
    assert len(set(kept)) == len(kept), kept
