"""Voters and observers in virtual time, on a network and disks that misbehave, and their oracle.

Everything is drawn from one seed. The oracle sees notes and logs alone: at most one leader in an
epoch, one record at an offset below anybody's high watermark, and every leader has all of those.
"""

import heapq
from dataclasses import dataclass, field
from random import Random
from typing import Any

from quorum_disk import Disk

from clusters.node_port.alarm import Alarm
from clusters.node_port.effects import (
    ADVANCE,
    APPEND,
    CLOSE,
    NOTE,
    SEND,
    SYNC,
    SYNCED,
    TICK,
    TICK_NS,
    TRUNCATE,
    UNREACHABLE,
    WRITE,
)
from clusters.node_port.notes import COMMITTED_METADATA, QUORUM_LEADER
from clusters.reference.nodes.configuration import MS, Configuration
from clusters.reference.nodes.quorum.observer import Observer
from clusters.reference.nodes.quorum.replay import Replayer
from clusters.reference.nodes.quorum.voter import Voter
from clusters.reference.nodes.records import ProducerIdsRecord
from clusters.reference.nodes.rules import Rules

VOTERS = (1001, 1002, 1003)
OBSERVERS = (1, 2)


def configuration_of(
    node_id: int, voters: tuple[int, ...] = VOTERS, **bounds: int
) -> Configuration:
    """Time-outs a fifth of the real ones, so that a second has many elections."""
    return Configuration(
        node_id=node_id,
        is_controller=node_id in voters,
        voters=voters,
        cluster_id="c",
        **{
            "quorum_fetch_timeout_ns": 400 * MS,
            "election_timeout_ns": 200 * MS,
            "election_backoff_max_ns": 400 * MS,
            "quorum_request_timeout_ns": 400 * MS,
            "retry_backoff_max_ns": 200 * MS,
            "metadata_max_wait_ns": 100 * MS,
            **bounds,
        },
    )


class Broken(AssertionError):  # noqa: N818
    """The oracle saw what must never be."""


@dataclass(slots=True)
class Node:
    configuration: Configuration
    disk: Disk = field(default_factory=Disk)
    incarnation: int = 0
    part: Any = None
    """A Voter or an Observer; None: it is down."""
    replayer: Any = None
    synced_at: int = 0
    """When its disk is done with the syncs so far."""
    checked: int = 0
    """Below it, the oracle has compared this incarnation's log."""


class Oracle:
    """What was committed, as the first node to say so had it."""

    def __init__(self) -> None:
        self.leaders: dict[int, tuple[int, int]] = {}
        self.committed: list[tuple[int, Any]] = []

    def leads(self, node: Node, epoch: int) -> None:
        who = (node.configuration.node_id, node.incarnation)
        if self.leaders.setdefault(epoch, who) != who:
            raise Broken(f"two leaders in epoch {epoch}: {self.leaders[epoch]} and {who}")
        log = node.part.log
        if log.end < len(self.committed):
            raise Broken(f"leader {who} ends at {log.end}, committed is {len(self.committed)}")
        self._compare(node, log.start, len(self.committed))

    def commits(self, node: Node, end: int) -> None:
        log = node.part.log
        node.checked = max(node.checked, log.start)
        if log.end < end:
            raise Broken(f"{node.configuration.node_id} commits {end}, its log ends at {log.end}")
        self._compare(node, node.checked, end)
        node.checked = end

    def _compare(self, node: Node, start: int, end: int) -> None:
        for batch in node.part.log.batches(start, end):
            for offset, record in enumerate(batch.records, batch.base_offset):
                found = (batch.epoch, record)
                if offset == len(self.committed):
                    self.committed.append(found)
                elif offset > len(self.committed):
                    raise Broken(f"{offset} is committed, {len(self.committed)} was not")
                elif self.committed[offset] != found:
                    who = node.configuration.node_id
                    raise Broken(f"at {offset}: {self.committed[offset]}, on {who} {found}")


class World:
    """All nodes, and what is under way between them."""

    def __init__(
        self,
        seed: int,
        rules: Rules | None = None,
        *,
        voters: tuple[int, ...] = VOTERS,
        observers: tuple[int, ...] = OBSERVERS,
        **bounds: int,
    ) -> None:
        self.random = Random(seed)
        self.rules = rules or Rules()
        self.now = 0
        self.oracle = Oracle()
        self.notes: list[tuple[int, tuple[Any, ...]]] = []
        self.nodes = {
            node_id: Node(configuration_of(node_id, voters, seed=seed, **bounds))
            for node_id in (*voters, *observers)
        }
        self.voters = voters
        self.loss = self.duplication = 0.0
        self.delay_max = self.sync_max = 5 * MS
        self.ambush = ""
        """The subject of the note upon which somebody is killed."""
        self.cut: set[tuple[int, int]] = set()
        """(source, target) of flows that are blocked."""
        self._queue: list[tuple[int, int, Any]] = []
        self._sequence = 0
        self._value = 0
        for node_id in self.nodes:
            self.start(node_id)

    # -- faults ------------------------------------------------------------------------------

    def start(self, node_id: int) -> None:
        node = self.nodes[node_id]
        if node.part is not None:
            return
        node.incarnation += 1
        build = Voter if node_id in self.voters else Observer
        node.part = build(node.configuration, self.rules, Alarm())
        node.replayer = Replayer()
        node.checked = 0
        effects: list[tuple[Any, ...]] = []
        contents = node.disk.contents(node_id * 1_000 + node.incarnation)
        node.part.start(self.now, contents, effects)
        self._perform(node_id, effects)
        self._at(self.random.randrange(TICK_NS), self._tick, node_id, node.incarnation)

    def kill(self, node_id: int, *, power: bool = False) -> None:
        node = self.nodes[node_id]
        node.part = None
        if power:
            node.disk.lose_power(self.random)

    def _strike(self, node_id: int) -> None:
        """Cut off the node of the note, or kill a voter, often that one; for a short time."""
        if not self.ambush:
            return
        until = int(self.random.random() * 800 * MS)
        if self.random.random() < 0.5:
            ways = [(node_id, one) for one in self.nodes] + [(one, node_id) for one in self.nodes]
            self.cut.update(ways)
            self._at(until, self.cut.difference_update, ways)
            return
        target = node_id if self.random.random() < 0.7 else self.random.choice(self.voters)
        self.kill(target, power=self.random.random() < 0.7)
        self._at(until, self.start, target)

    def heal(self) -> None:
        """No faults from here on, and everybody up."""
        self.loss = self.duplication = 0.0
        self.delay_max = self.sync_max = 5 * MS
        self.ambush = ""
        self.cut.clear()
        for node_id in self.nodes:
            self.start(node_id)

    # -- clients -----------------------------------------------------------------------------

    def leader(self) -> int | None:
        """Whoever leads in the highest epoch."""
        leading = [
            (node.part.epoch, node_id)
            for node_id, node in self.nodes.items()
            if node_id in self.voters and node.part is not None and node.part.is_leader
        ]
        return max(leading)[1] if leading else None

    def append(self, node_id: int, count: int = 1) -> int:
        """Let a leader append records that nobody appends again; the end offset."""
        records = []
        for _ in range(count):
            self._value += 1
            records.append(ProducerIdsRecord(-1, -1, self._value))
        effects: list[tuple[Any, ...]] = []
        end: int = self.nodes[node_id].part.append(self.now, tuple(records), effects)
        self._perform(node_id, effects)
        return end

    def resign(self, node_id: int) -> None:
        effects: list[tuple[Any, ...]] = []
        self.nodes[node_id].part.resign(self.now, effects)
        self._perform(node_id, effects)

    def snapshot(self, node_id: int) -> None:
        """Let a node store what it has replayed."""
        node = self.nodes[node_id]
        image = node.replayer.image
        effects: list[tuple[Any, ...]] = []
        node.part.snapshot(image.offset, image.epoch, image.records(), effects)
        self._perform(node_id, effects)

    # -- time --------------------------------------------------------------------------------

    def run(self, ns: int) -> None:
        until = self.now + ns
        while self._queue and self._queue[0][0] <= until:
            self.now, _, (act, arguments) = heapq.heappop(self._queue)
            act(*arguments)
        self.now = until

    def run_until(self, holds: Any, ns: int) -> bool:
        """Whether a condition came to hold within a bound."""
        until = self.now + ns
        while not holds():
            if self.now >= until:
                return False
            self.run(TICK_NS)
        return True

    def step(self, node_id: int, source: int, kind: int, message: Any) -> None:
        """One event of one node, and everything that follows from it at once."""
        node = self.nodes[node_id]
        effects: list[tuple[Any, ...]] = []
        node.part.handle(self.now, source, kind, message, effects)
        self._perform(node_id, effects, source, message)

    def _at(self, delay: int, act: Any, *arguments: Any) -> None:
        self._sequence += 1
        heapq.heappush(self._queue, (self.now + delay, self._sequence, (act, arguments)))

    def _tick(self, node_id: int, incarnation: int) -> None:
        if self._is_up(node_id, incarnation):
            self.step(node_id, -1, TICK, None)
            self._at(TICK_NS, self._tick, node_id, incarnation)

    def _is_up(self, node_id: int, incarnation: int) -> bool:
        node = self.nodes[node_id]
        return node.part is not None and node.incarnation == incarnation

    def _incarnation(self, node_id: int) -> int:
        return self.nodes[node_id].incarnation

    def _perform(
        self, node_id: int, effects: list[tuple[Any, ...]], source: int = -1, message: Any = None
    ) -> None:
        node = self.nodes[node_id]
        for effect in effects:
            what = effect[0]
            if what == SEND:
                self._send(node_id, effect[1], effect[2])
            elif what in (APPEND, TRUNCATE, ADVANCE, WRITE):
                node.disk.perform(effect[1], what, effect[2])
            elif what == SYNC:
                marks = node.disk.marks(effect[1])
                drawn = self.now + 1 + int(self.random.random() * self.sync_max)
                node.synced_at = max(node.synced_at, drawn)
                delay = node.synced_at - self.now
                self._at(delay, self._sync, node_id, node.incarnation, marks, effect[2])
            elif what == CLOSE:
                self._at(MS, self._bounce, node_id, source, self._incarnation(source), message)
            elif what == NOTE:
                self.notes.append((node_id, effect[1:]))
                if effect[1] == self.ambush and self.random.random() < 0.4:
                    self._at(int(self.random.random() ** 3 * 30 * MS), self._strike, node_id)
        self._judge(node, effects)
        node.replayer.advance(node.part.log, node.part.high_watermark)

    def _judge(self, node: Node, effects: list[tuple[Any, ...]]) -> None:
        for effect in effects:
            if effect[0] == NOTE and effect[1] == QUORUM_LEADER:
                self.oracle.leads(node, effect[2])
            elif effect[0] == NOTE and effect[1] == COMMITTED_METADATA:
                self.oracle.commits(node, effect[2])

    def _sync(self, node_id: int, incarnation: int, marks: dict[str, int], token: Any) -> None:
        if self._is_up(node_id, incarnation):
            self.nodes[node_id].disk.sync(marks)
            self.step(node_id, -1, SYNCED, token)

    def _send(self, source: int, target: int, message: Any) -> None:
        copies = 2 if self.random.random() < self.duplication else 1
        for _ in range(copies):
            if (source, target) not in self.cut and self.random.random() >= self.loss:
                delay = 1 + int(self.random.random() * self.delay_max)
                incarnation = self._incarnation(target)
                self._at(delay, self._deliver, source, target, incarnation, message)

    def _deliver(self, source: int, target: int, incarnation: int, message: Any) -> None:
        if (source, target) in self.cut:
            return
        if self._is_up(target, incarnation):
            self.step(target, source, message.kind, message)
        elif message.kind % 2 == 0:
            self._at(MS, self._bounce, target, source, self._incarnation(source), message)

    def _bounce(self, target: int, source: int, incarnation: int, message: Any) -> None:
        if self._is_up(source, incarnation):
            self.step(source, target, UNREACHABLE, message)
