"""Brokers on ZooKeeper that ask the controller for what cannot be, now and then.

No broker of our own does. So a share of the requests is followed by a copy that the draft
"Controller heartbeats" calls invalid: a heartbeat of a negative broker id or with a target state
that does not exist, an IsrChange to an ISR without members, or without its leader. The broker
itself takes no notice of the answer.
"""

import random
from dataclasses import replace
from typing import Any, Final

from clusters.node_port.effects import SEND, Effects
from clusters.reference.simulated.cluster import SimulatedCluster
from clusters.reference.zk.messages import IsrChangeRequest, MetadataHeartbeatRequest
from clusters.simulation.zookeeper.sessioned import SessionedNode

__all__ = ["garble"]

_SHARE: Final = 0.5
_NO_STATE: Final = 7
_BEYOND: Final = 1 << 30
"""Added to the correlation of a copy: beyond all numbers of the broker's own."""


def garble(cluster: SimulatedCluster, *, seed: int) -> None:
    """Have every broker that starts from now on garble a share of its requests."""
    draw = random.Random(f"garbled/{seed}")  # noqa: S311  # to be repeated, not kept secret
    for number in cluster.brokers:
        host = cluster.host(cluster.node_of(number))
        host.build = _Built(host.build, draw)


class _Built:
    """Makes garbling nodes."""

    def __init__(self, build: Any, draw: random.Random) -> None:
        self._build = build
        self._draw = draw

    def __call__(self) -> "_GarblingNode":
        return _GarblingNode(self._build(), self._draw)


class _GarblingNode:
    """A broker with its session, some of whose requests cannot be meant."""

    def __init__(self, node: SessionedNode, draw: random.Random) -> None:
        self._node = node
        self._draw = draw
        self.alarm = node.alarm
        self.inner = node.inner

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take one event."""
        first = len(effects)
        self._node.handle(now, source, kind, message, effects)
        asked = [effect for effect in effects[first:] if effect[0] == SEND]
        for _, target, request in asked:
            can_be_garbled = isinstance(request, MetadataHeartbeatRequest | IsrChangeRequest)
            if can_be_garbled and self._draw.random() < _SHARE:
                effects.append((SEND, target, self._garbled(request)))

    def _garbled(self, request: Any) -> Any:
        request = replace(request, correlation=request.correlation + _BEYOND)
        one_way = self._draw.random() < 0.5  # noqa: PLR2004
        if isinstance(request, MetadataHeartbeatRequest):
            wrong = {"broker_id": -request.broker_id} if one_way else {"target_state": _NO_STATE}
            return replace(request, **wrong)
        topics = tuple(
            (topic, tuple(_without(one, request.broker_id, whole=one_way) for one in several))
            for topic, several in request.topics
        )
        return replace(request, topics=topics)


def _without(change: Any, leader: int, *, whole: bool) -> Any:
    """Return a change to an ISR without anybody (`whole`), or without its leader."""
    isr = tuple(one for one in change.isr if not whole and one != leader)
    return replace(change, isr=isr, incarnations=())
