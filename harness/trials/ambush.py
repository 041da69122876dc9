"""Strikes at the moment that matters: a node that says something of note may go down right after.

Faults at random times rarely hit the millisecond between a vote and its answer. An ambush watches
what nodes note for the oracle, and with some chance strikes the very node that noted it, at once or
a moment later; it comes back soon. Only what the network and the disks have then counts.
"""

import random
from collections.abc import Mapping
from typing import Any, Final

from clusters.port import NodeName, NodeState
from clusters.reference import notes
from clusters.reference.oracle.oracle import Oracle
from clusters.reference.simulated import SimulatedCluster

__all__ = ["Ambush"]

_MS: Final = 1_000_000
_CHANCES: Final[Mapping[str, float]] = {
    notes.VOTED: 0.25,
    notes.QUORUM_LEADER: 0.35,
    notes.APPENDED_METADATA: 0.02,
    notes.ACTIVE: 0.1,
}
_FIRST_COMMIT_NS: Final = 60 * _MS
"""So soon after its election, what a leader commits is mostly its predecessors'."""
_FIRST_COMMIT_CHANCE: Final = 0.4
_DELAYS_MS: Final = (0.0, 0.5, 2.0, 10.0)
_BACK_MS: Final = (20.0, 100.0, 400.0, 1200.0)
_STRIKES: Final = ("power", "power", "kill", "pause")


class Ambush:
    """A watcher of the world in front of the oracle: it passes everything on. `end` mends."""

    def __init__(self, cluster: SimulatedCluster, oracle: Oracle, *, seed: int) -> None:
        self._cluster = cluster
        self._oracle = oracle
        self._draw = random.Random(f"ambush/{seed}")  # noqa: S311  # to be repeated
        self._names = {cluster.broker_id(node): node for node in cluster.nodes}
        self._elected_ns: dict[int, int] = {}
        self._armed = False
        self.started = oracle.started
        self.sent = oracle.sent
        self.delivered = oracle.delivered

    def begin(self) -> None:
        """From now on nodes are struck."""
        self._armed = True

    def end(self) -> None:
        """Strike no more; who is still down comes back by its time."""
        self._armed = False

    def note(self, now: int, node: int, note: tuple[Any, ...]) -> None:
        """Tell the oracle; then perhaps lay hands on the node."""
        self._oracle.note(now, node, note)
        if not self._armed or node not in self._names:
            return
        if note[1] == notes.QUORUM_LEADER:
            self._elected_ns[node] = now
        if note[1] == notes.COMMITTED_METADATA:
            elected_ns = self._elected_ns.pop(node, None)
            is_first = elected_ns is not None and now - elected_ns < _FIRST_COMMIT_NS
            if is_first and self._draw.random() < _FIRST_COMMIT_CHANCE:
                self._strike(self._names[node], after_ms=0.0)
            return
        chance = _CHANCES.get(note[1])
        if chance is not None and self._draw.random() < chance:
            self._strike(self._names[node], after_ms=self._draw.choice(_DELAYS_MS))

    def _strike(self, node: NodeName, *, after_ms: float) -> None:
        draw, world = self._draw, self._cluster.world
        word = draw.choice(_STRIKES)
        at_ns = world.now_ns + int(after_ms * _MS)
        back_ns = at_ns + int(draw.choice(_BACK_MS) * _MS * (0.5 + draw.random()))
        world.call(at_ns, lambda: self._down(node, word))
        world.call(back_ns, lambda: self._up(node))

    def _down(self, node: NodeName, word: str) -> None:
        cluster = self._cluster
        if not self._armed or cluster.state(node) is not NodeState.RUNNING:
            return
        if word == "power":
            cluster.cut_power(node)
        elif word == "kill":
            cluster.kill_node(node)
        else:
            cluster.pause_node(node)

    def _up(self, node: NodeName) -> None:
        cluster = self._cluster
        if cluster.state(node) is NodeState.DOWN:
            cluster.start_node(node)
        elif cluster.state(node) is NodeState.PAUSED:
            cluster.resume_node(node)
