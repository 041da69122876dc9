"""Voters and observers alone in a simulated world, and the oracle beside them.

Everything is drawn from one seed. What must hold, by notes and logs alone: at most one leader in an
epoch, one record at an offset below anybody's high watermark, and every leader has all of those.
"""

from functools import partial
from random import Random
from typing import Any

from stage import Stage

from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.node_port.effects import START, TICK, TICK_NS, Effects
from fencepost.clusters.node_port.notes import QUORUM_LEADER
from fencepost.clusters.reference.nodes.configuration import MS, Configuration
from fencepost.clusters.reference.nodes.quorum.observer import QuorumObserver
from fencepost.clusters.reference.nodes.quorum.replay import Replayer
from fencepost.clusters.reference.nodes.quorum.voter import Voter
from fencepost.clusters.reference.nodes.records import ProducerIdsRecord
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.oracle.oracle import Oracle
from fencepost.clusters.reference.oracle.world_view import WorldView

VOTERS = (1001, 1002, 1003)
OBSERVERS = (1, 2)


def configuration_of(
    node_id: int, voters: tuple[int, ...] = VOTERS, **bounds: Any
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
            "snapshot_piece_max": 1,
            **bounds,
        },
    )


class Broken(AssertionError):  # noqa: N818
    """What must never be, or no end of it."""


class Part:
    """A voter or an observer as a node, which replays what it knows to be committed."""

    def __init__(self, configuration: Configuration, rules: Rules) -> None:
        kind = Voter if configuration.is_controller else QuorumObserver
        self.alarm = Alarm()
        self.part: Any = kind(configuration, rules, self.alarm)
        self.replayer = Replayer()

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        if kind == TICK:
            self.alarm.reset()
        if kind == START:
            self.part.start(now, message, effects)
        else:
            self.part.handle(now, source, kind, message, effects)
        self.replayer.advance(self.part.log, self.part.high_watermark)


class World(Stage):
    """All parts, with faults that wait for a note."""

    def __init__(
        self,
        seed: int,
        rules: Rules | None = None,
        *,
        voters: tuple[int, ...] = VOTERS,
        observers: tuple[int, ...] = OBSERVERS,
        **bounds: int,
    ) -> None:
        super().__init__(seed)
        self.random = Random(seed)
        self.voters = voters
        self.ambush = ""
        """The subject of the note upon which somebody is killed."""
        self.oracle = Oracle(nodes=WorldView(self.simulation.hosts), lease_ns=0)
        self.simulation.watch(Watch(self))
        self._value = 0
        for node_id in (*voters, *observers):
            configuration = configuration_of(node_id, voters, seed=seed, **bounds)
            self.add(node_id, partial(Part, configuration, rules or Rules()))
            self.start(node_id)

    def noted_by(self, node: int, note: tuple[Any, ...]) -> None:
        """Look at a note, once the oracle has."""
        decided = self.oracle.decided
        if note[1] == QUORUM_LEADER and note[2] > decided.last_epoch:
            end = self.nodes[node].part.log.end
            if end < decided.offset:
                raise Broken(f"leader {node} ends at {end}, committed is {decided.offset}")
        if note[1] == self.ambush and self.random.random() < 0.4:
            self._after(int(self.random.random() ** 3 * 30 * MS), self._strike, node)

    # Faults.

    def bring_up(self, *node_ids: int) -> None:
        """Start those that are down."""
        for node_id in node_ids:
            if node_id not in self.nodes:
                self.start(node_id)

    def heal(self) -> None:
        """No faults from here on, and everybody up."""
        self.simulation.network.trouble(None)
        self.ambush = ""
        self.blocked.clear()
        self.bring_up(*self.ids)

    def _strike(self, node_id: int) -> None:
        """Cut off the node of the note, or kill a voter, often that one; for a short time."""
        if not self.ambush:
            return
        until = int(self.random.random() * 800 * MS)
        if self.random.random() < 0.5:
            ways = [(node_id, one) for one in self.ids] + [(one, node_id) for one in self.ids]
            self.blocked.update(ways)
            self._after(until, self.blocked.difference_update, ways)
            return
        target = node_id if self.random.random() < 0.7 else self.random.choice(self.voters)
        self.kill(target, power=self.random.random() < 0.7)
        self._after(until, self.bring_up, target)

    def _after(self, delay_ns: int, act: Any, *arguments: Any) -> None:
        self.simulation.call(self.now + delay_ns, partial(act, *arguments))

    # What voters are asked to do.

    def leader(self) -> int | None:
        """Whoever leads in the highest epoch."""
        parts = [(one, node.part) for one, node in self.nodes.items() if one in self.voters]
        leading = [(part.epoch, one) for one, part in parts if part.is_leader]
        return max(leading)[1] if leading else None

    def append(self, node_id: int, count: int = 1) -> int:
        """Let a leader append records that nobody appends again; the end offset."""
        values = range(self._value + 1, self._value + count + 1)
        self._value += count
        records = tuple(ProducerIdsRecord(-1, -1, value) for value in values)
        effects: Effects = []
        end: int = self.nodes[node_id].part.append(self.now, records, effects)
        self.perform(node_id, effects)
        return end

    def resign(self, node_id: int) -> None:
        effects: Effects = []
        self.nodes[node_id].part.resign(self.now, effects)
        self.perform(node_id, effects)

    def snapshot(self, node_id: int) -> None:
        """Let a node store what it has replayed."""
        node, effects = self.nodes[node_id], list[Any]()
        image = node.replayer.image
        node.part.snapshot(image.offset, image.epoch, image.records(), effects)
        self.perform(node_id, effects)

    def run_until(self, holds: Any, ns: int) -> bool:
        """Whether a condition came to hold within a bound."""
        until = self.now + ns
        while not holds():
            if self.now >= until:
                return False
            self.run(TICK_NS)
        return True


class Watch:
    """Who is told what happens in a world: its oracle, and then the world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.started = world.oracle.started

    def note(self, now: int, node: int, note: tuple[Any, ...]) -> None:
        self.world.oracle.note(now, node, note)
        self.world.noted_by(node, note)

    def sent(self, now: int, source: int, target: int, kind: int, message: Any) -> None: ...

    def delivered(self, now: int, source: int, target: int, kind: int, message: Any) -> None: ...
