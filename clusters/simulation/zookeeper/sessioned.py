"""A node with a session: what it sends to ZOOKEEPER becomes frames to one server of the ensemble.

It stands between the node and its host, as the client library does in a process. Nothing else of
what the node does or hears is changed.
"""

from typing import Any, Final, Protocol

from clusters.node_port.alarm import Alarm
from clusters.node_port.effects import EXIT, SEND, START, TICK, UNREACHABLE, Effects
from clusters.node_port.zookeeper import ZOOKEEPER, CloseSession, OpenSession, ZkRequest
from clusters.simulation.zookeeper.frames import Connect, Watched
from clusters.simulation.zookeeper.session import Session

__all__ = ["AwakenedNode", "SessionedNode"]

_FIRST: Final = Connect.kind
_LAST: Final = Watched.kind
"""The kinds of frames between a client and its server lie between these."""


class AwakenedNode(Protocol):
    """A node that says when it needs its next tick."""

    alarm: Alarm

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take one event."""


class SessionedNode:
    """`node_port.effects.Node` and `Woken`. `number`: that of its host; `servers`: the ensemble's.

    The node's alarm is its own, since a tick before its time changes nothing.
    """

    __slots__ = ("_session", "alarm", "inner")

    def __init__(self, inner: AwakenedNode, *, number: int, servers: tuple[int, ...]) -> None:
        self.inner = inner
        self.alarm = inner.alarm
        self._session = Session(number, servers, inner.alarm)

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take one event of the world; the node takes it, or what it means to its session."""
        session, seen_count = self._session, len(effects)
        if _FIRST <= kind <= _LAST:
            session.take(now, message, effects)
        elif kind == UNREACHABLE and _FIRST <= message.kind <= _LAST:
            session.unreachable(now, message)
        else:
            if kind == START:
                session.begin(message.incarnation_id)
            self.inner.handle(now, source, kind, message, effects)
            if kind == TICK:
                session.tick(now, effects)
        self._translate(now, seen_count, effects)
        while session.told and not (effects and effects[-1][0] == EXIT):
            event = session.told.popleft()
            seen_count = len(effects)
            self.inner.handle(now, ZOOKEEPER, event.kind, event, effects)
            self._translate(now, seen_count, effects)

    def _translate(self, now: int, at: int, effects: Effects) -> None:
        """Put frames in the place of what the node sends to ZOOKEEPER."""
        while at < len(effects):
            effect = effects[at]
            if effect[0] != SEND or effect[1] != ZOOKEEPER:
                at += 1
                continue
            frame = self._frame(now, effect[2])
            if frame is None:
                del effects[at]
            else:
                effects[at] = frame
                at += 1

    def _frame(self, now: int, message: Any) -> tuple[Any, ...] | None:
        if isinstance(message, ZkRequest):
            return self._session.ask(now, message)
        if isinstance(message, OpenSession):
            return self._session.open(now, message)
        assert isinstance(message, CloseSession), message
        return self._session.close(now, message)
