"""A broker among others whose ids are not the numbers of their hosts.

As a process does it, a broker dials another by the listeners that its metadata have for an id, or,
of one that they do not show, by those of its znode. It stands around the broker and its session.
"""

from collections.abc import Callable
from typing import Any

from fencepost.clusters.node_port.effects import RECOVERED, SEND, UNREACHABLE, Effects
from fencepost.clusters.node_port.zookeeper import ZOOKEEPER
from fencepost.clusters.reference.nodes.broker import BrokerNode
from fencepost.clusters.reference.zk.broker import ZkRegistrar
from fencepost.clusters.simulation.zookeeper.sessioned import SessionedNode


class AddressedNode:
    """`node_port.effects.Node` and `Woken`. `registered`: the host with this id by the znodes."""

    __slots__ = ("_dialled", "_registered", "_session", "alarm", "inner")

    def __init__(
        self,
        inner: BrokerNode[ZkRegistrar],
        session: SessionedNode,
        registered: Callable[[int], int | None],
    ) -> None:
        self.inner = inner
        self.alarm = session.alarm
        self._session = session
        self._registered = registered
        self._dialled: dict[int, int] = {}
        """The id for which each host was dialled last."""

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take one event of the world; who answers is who was meant."""
        if 0 < source < ZOOKEEPER and (kind == UNREACHABLE or (kind > RECOVERED and kind & 1)):
            source = self._dialled.get(source, source)
        seen_count = len(effects)
        self._session.handle(now, source, kind, message, effects)
        for place in range(seen_count, len(effects)):
            effect = effects[place]
            if effect[0] == SEND and 0 <= effect[1] < ZOOKEEPER:
                host = self._host_of(effect[1])
                if host != effect[1]:
                    effects[place] = (SEND, host, effect[2])
                self._dialled[host] = effect[1]

    def _host_of(self, broker_id: int) -> int:
        shown = self.inner.image.brokers.get(broker_id)
        if shown is not None and shown.listeners:
            return int(shown.listeners[0][1].rpartition("-")[2])
        host = self._registered(broker_id)
        return broker_id if host is None else host
