"""Strikes at the moment that matters: a node that says something of note may go down right after.

Faults at random times rarely hit the millisecond between a vote and its answer. An ambush watches
what nodes note for the oracle, and with some chance strikes the very node that noted it, at once or
a moment later; it comes back soon. Only what the network and the disks have then counts.

In a *regicidal* trial mostly new leaders are struck, before any other node has what they appended,
so that logs diverge again and again; otherwise any node that notes something, now and then.
While a leader commits what its predecessors left, all controllers may go down at once, as in a rack
that loses its power: what one of them alone has, and what two have, is then what the next election
is about.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from clusters.kafka_port import Role, role_of
from clusters.node_port import notes
from clusters.port import NodeName, NodeState
from clusters.reference.simulated.cluster import SimulatedCluster
from harness.interpreter.interpreter import Interpreter
from harness.trials.kits import Judge
from nemesis.targets import NamedNodes
from nemesis.verbs.cut_power import CutPower
from nemesis.verbs.kill import Kill
from nemesis.verbs.pause import Pause, Resume
from nemesis.verbs.start import Start
from nemesis.verbs.step import OnNodes

__all__ = ["Ambush"]

_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mood:
    chances: Mapping[str, float]
    """The chance of a strike, by what is noted."""
    inherited: float
    """The chance when a leader commits what others appended, or the first record of its own."""
    blackout: float
    """The share of the strikes then that hits all controllers."""
    delays_ms: tuple[float, ...]
    backs_ms: tuple[float, ...]
    """The time for which a struck node stays away, give or take a half."""
    strikes: tuple[type[OnNodes], ...]


_RESTLESS: Final = _Mood(
    chances={
        notes.VOTED: 0.25,
        notes.QUORUM_LEADER: 0.35,
        notes.APPENDED_METADATA: 0.02,
        notes.ACTIVE: 0.1,
    },
    inherited=0.4,
    blackout=0.0,
    delays_ms=(0.0, 0.5, 2.0, 10.0),
    backs_ms=(20.0, 100.0, 400.0, 1200.0),
    strikes=(CutPower, CutPower, Kill, Pause),
)
_REGICIDAL: Final = _Mood(
    chances={notes.QUORUM_LEADER: 0.6, notes.APPENDED_METADATA: 0.01},
    inherited=0.5,
    blackout=0.8,
    delays_ms=(0.0, 0.0, 0.5),
    backs_ms=(30.0, 300.0, 450.0),
    strikes=(Kill, Kill, Kill, CutPower),
)


class Ambush:
    """A watcher of the world in front of the oracle: it passes everything on. `end` mends."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        oracle: Judge,
        interpreter: Interpreter,
        *,
        seed: int,
        regicidal: bool,
    ) -> None:
        self._cluster = cluster
        self._oracle = oracle
        self._interpreter = interpreter
        self._draw = random.Random(f"ambush/{seed}")  # noqa: S311  # to be repeated
        self._names = {cluster.broker_id(node): node for node in cluster.nodes}
        self._controllers = [n for n in cluster.nodes if role_of(n) is Role.CONTROLLER]
        self._mood = _REGICIDAL if regicidal else _RESTLESS
        self._inherited: dict[int, int] = {}
        """The offset below which a leader's log existed when it was elected; -1: not known yet."""
        self._armed = False
        self.started = oracle.started
        self.sent = oracle.sent
        self.delivered = oracle.delivered

    def begin(self) -> None:
        """Strike nodes from now on."""
        self._armed = True

    def end(self) -> None:
        """Strike no more; nodes that are still down come back at their times."""
        self._armed = False

    def note(self, now: int, node: int, note: tuple[Any, ...]) -> None:
        """Tell the oracle; then perhaps strike the node."""
        self._oracle.note(now, node, note)
        if not self._armed or node not in self._names:
            return
        if note[1] == notes.QUORUM_LEADER:
            self._inherited[node] = -1
        elif note[1] == notes.APPENDED_METADATA and self._inherited.get(node) == -1:
            self._inherited[node] = note[2]
        elif note[1] == notes.COMMITTED_METADATA:
            if note[2] > self._inherited.get(node, -1):
                is_first = self._inherited.pop(node, None) is not None
            else:
                is_first = True
            if is_first and self._draw.random() < self._mood.inherited:
                self._at_inherited(self._names[node])
            return
        chance = self._mood.chances.get(note[1])
        if chance is not None and self._draw.random() < chance:
            self._strike(self._names[node], after_ms=self._draw.choice(self._mood.delays_ms))

    def _at_inherited(self, leader: NodeName) -> None:
        is_blackout = self._draw.random() < self._mood.blackout
        for node in self._controllers if is_blackout else [leader]:
            self._strike(node, after_ms=0.0)

    def _strike(self, node: NodeName, *, after_ms: float) -> None:
        draw, world = self._draw, self._cluster.world
        word = draw.choice(self._mood.strikes)
        at_ns = world.now_ns + int(after_ms * _MS)
        back_ns = at_ns + int(draw.choice(self._mood.backs_ms) * _MS * (0.5 + draw.random()))
        world.call(at_ns, lambda: self._down(node, word))
        world.call(back_ns, lambda: self._up(node))

    def _down(self, node: NodeName, step: type[OnNodes]) -> None:
        if self._armed and self._cluster.state(node) is NodeState.RUNNING:
            self._act(step, node)

    def _up(self, node: NodeName) -> None:
        state = self._cluster.state(node)
        if state is not NodeState.RUNNING:
            self._act(Resume if state is NodeState.PAUSED else Start, node)

    def _act(self, step: type[OnNodes], node: NodeName) -> None:
        self._interpreter.perform(step(target=NamedNodes(nodes=(node,))), end_s=0.0)
