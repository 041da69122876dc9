"""A node with a session: what it sends to ZOOKEEPER becomes frames to one server of the ensemble.

It stands between the node and its host, as the client library does in a process. Nothing else of
what the node does or hears is changed.

The session does what ZooKeeper's client library does: a ping when it has been silent for a third of
its time-out, another server when it has heard nothing for two thirds, its watches set again on the
new connection before anything else is asked there. It is over when a server says so, and not
before.
"""

from collections import deque
from typing import Any, Final, Protocol

from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.node_port.effects import EXIT, SEND, START, TICK, UNREACHABLE, Effects
from fencepost.clusters.node_port.zookeeper import (
    ZOOKEEPER,
    CloseSession,
    Exists,
    GetChildren,
    GetData,
    OpenSession,
    SessionEvent,
    SessionState,
    WatchType,
    ZkError,
    ZkRequest,
    ZkResponse,
)
from fencepost.clusters.simulation.zookeeper.frames import (
    Body,
    Call,
    Connect,
    Connected,
    Ping,
    Pong,
    Reply,
    SetWatches,
    Watched,
)
from fencepost.clusters.simulation.zookeeper.streams import Stream

_FIRST: Final = Connect.kind
_LAST: Final = Watched.kind
"""The kinds of frames between a client and its server lie between these."""
_MS: Final = 1_000_000
_RETRY_NS: Final = 100 * _MS
"""The wait before the next server is tried."""
_NEW_CONNECTION: Final = 1 << 20
"""Connections of one incarnation of a client are fewer."""
_NO_NODE: Final = int(ZkError.NO_NODE)
_LOST: Final = int(ZkError.CONNECTION_LOSS)


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
        self._session = _Session(number, servers, inner.alarm)

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


class _Session:
    """The session of one incarnation of a node. `client`: the number of the node's host.

    Its methods return or append effects; `told` is what the node is to be told, in that order.
    """

    __slots__ = (
        "_alarm",
        "_at",
        "_children",
        "_client",
        "_connection",
        "_correlation",
        "_data",
        "_due_ns",
        "_exists",
        "_heard_ns",
        "_is_connected",
        "_is_wanted",
        "_open",
        "_sent_count",
        "_sent_ns",
        "_servers",
        "_session",
        "_stream",
        "_timeout_ns",
        "_wanted_ms",
        "_zxid",
        "told",
    )

    def __init__(self, client: int, servers: tuple[int, ...], alarm: Alarm) -> None:
        self.told: deque[ZkResponse | SessionEvent | Any] = deque()
        self._client = client
        self._servers = servers
        self._alarm = alarm
        self._at = client % len(servers)
        """The index of the server that is asked, or is asked next."""
        self._connection = 0
        """The number of the present connection, or of the attempt; raised when it is over."""
        self._correlation = 0
        self._is_wanted = False
        """True if the node has a session, or is about to."""
        self._is_connected = False
        self._session = 0
        self._wanted_ms = 0
        self._timeout_ns = 0
        self._stream: Stream[Any] = Stream()
        self._sent_count = 0
        self._sent_ns = 0
        self._heard_ns = 0
        self._due_ns = 0
        """While it is not connected: when the next attempt begins."""
        self._zxid = 0
        """The last one that an answer had."""
        self._open: dict[int, ZkRequest | None] = {}
        """Requests without an answer, by number; None: one of its own."""
        self._data: dict[str, None] = {}
        self._exists: dict[str, None] = {}
        """Paths that are watched for a znode that was not there."""
        self._children: dict[str, None] = {}

    def begin(self, incarnation_id: int) -> None:
        """A new incarnation of the node, whose connections no one takes for an earlier one's."""
        self._connection = (incarnation_id & 0xFFFF_FFFF) * _NEW_CONNECTION

    # Requests of the node.

    def open(self, now: int, request: OpenSession) -> tuple[Any, ...]:
        """Open a session; return the effect."""
        assert not self._is_wanted, "a node has one session"
        self._is_wanted, self._session, self._zxid = True, 0, 0
        self._wanted_ms = request.timeout_ms
        self._timeout_ns = request.timeout_ms * _MS
        return self._connect(now)

    def ask(self, now: int, request: ZkRequest) -> tuple[Any, ...] | None:
        """Ask the server; return the effect. None: the connection is lost, as the node is told."""
        if not self._is_connected:
            self.told.append(_lost(request))
            return None
        return self._call(now, request, request)

    def close(self, now: int, request: CloseSession) -> tuple[Any, ...] | None:
        """End the session; return the effect, if there is a server to be told."""
        effect = self._call(now, request, None) if self._is_connected else None
        self._end()
        return effect

    # Frames from the network.

    def take(self, now: int, frame: Any, effects: Effects) -> None:
        """Take a frame of a server."""
        if frame.connection != self._connection:
            return
        for one in self._stream.take(frame.sequence, frame):
            self._heard_ns = now
            if isinstance(one, Reply):
                self._replied(one)
            elif isinstance(one, Watched):
                self._watched(one)
            elif isinstance(one, Connected):
                self._connected(now, one, effects)
            else:
                assert isinstance(one, Pong), one

    def unreachable(self, now: int, frame: Connect | Call | Ping) -> None:
        """A frame did not arrive, or its connection has broken."""
        if frame.connection == self._connection:
            self._lose(now)

    def tick(self, now: int, effects: Effects) -> None:
        """Give a sign of life, give a server up or try the next one, if it is time."""
        if not self._is_wanted:
            return
        if self._is_connected:
            if now >= self._heard_ns + self._patience_ns():
                self._lose(now)
            elif now >= self._sent_ns + self._timeout_ns // 3:
                ping = Ping(self._number(), self._connection, self._sequence(now))
                effects.append((SEND, self._servers[self._at], ping))
        elif now >= self._due_ns:
            self._at = (self._at + 1) % len(self._servers)
            effects.append(self._connect(now))
        self._set_alarm()

    def _patience_ns(self) -> int:
        return self._timeout_ns * 2 // 3

    def _set_alarm(self) -> None:
        if not self._is_connected:
            self._alarm.by(self._due_ns)
            return
        silent_ns = self._sent_ns + self._timeout_ns // 3
        self._alarm.by(min(silent_ns, self._heard_ns + self._patience_ns()))

    def _connect(self, now: int) -> tuple[Any, ...]:
        self._connection += 1
        self._stream, self._sent_count = Stream(), 1
        self._due_ns = now + max(_RETRY_NS, self._timeout_ns // len(self._servers))
        self._alarm.by(self._due_ns)
        connect = Connect(
            self._number(),
            self._client,
            self._connection,
            self._session,
            self._wanted_ms,
            self._zxid,
        )
        return (SEND, self._servers[self._at], connect)

    def _call(self, now: int, body: Body, request: ZkRequest | None) -> tuple[Any, ...]:
        call = Call(self._number(), self._connection, self._sequence(now), body)
        self._open[call.correlation] = request
        return (SEND, self._servers[self._at], call)

    def _number(self) -> int:
        self._correlation += 1
        return self._correlation

    def _sequence(self, now: int) -> int:
        self._sent_ns = now
        self._sent_count += 1
        return self._sent_count - 1

    def _connected(self, now: int, connected: Connected, effects: Effects) -> None:
        if not connected.session:
            session = self._session
            self._end()
            self.told.append(SessionEvent(-1, SessionState.EXPIRED, session))
            return
        self._is_connected = True
        self._session = connected.session
        self._timeout_ns = connected.timeout_ms * _MS
        self._sent_ns = now
        if self._data or self._exists or self._children:
            watched = (tuple(self._data), tuple(self._exists), tuple(self._children))
            effects.append(self._call(now, SetWatches(-1, self._zxid, *watched), None))
        self._set_alarm()
        self.told.append(SessionEvent(-1, SessionState.CONNECTED, self._session))

    def _lose(self, now: int) -> None:
        """Give the connection up; another server is tried soon."""
        self._connection += 1
        self._due_ns = now + _RETRY_NS
        self._alarm.by(self._due_ns)
        if self._is_connected:
            self._is_connected = False
            self.told.append(SessionEvent(-1, SessionState.SUSPENDED, self._session))
            self.told.extend(_lost(one) for one in self._open.values() if one is not None)
        self._open.clear()

    def _end(self) -> None:
        self._is_wanted = self._is_connected = False
        self._connection += 1
        self._session = 0
        for known in (self._open, self._data, self._exists, self._children):
            known.clear()

    # Answers and watches.

    def _replied(self, reply: Reply) -> None:
        request = self._open.pop(reply.correlation)
        response = reply.response
        self._zxid = max(self._zxid, response.zxid)
        if request is None:
            return
        operation = request.operations[0]
        if isinstance(operation, GetData | Exists | GetChildren) and operation.watch:
            self._watch(operation, response.error)
        self.told.append(response)

    def _watch(self, operation: GetData | Exists | GetChildren, error: int) -> None:
        if error == _NO_NODE and isinstance(operation, Exists):
            self._exists[operation.path] = None
        elif not error and isinstance(operation, GetChildren):
            self._children[operation.path] = None
        elif not error:
            self._data[operation.path] = None

    def _watched(self, watched: Watched) -> None:
        event = watched.event
        if event.type is not WatchType.CHILDREN:
            self._data.pop(event.path, None)
            self._exists.pop(event.path, None)
        if event.type in (WatchType.CHILDREN, WatchType.DELETED):
            self._children.pop(event.path, None)
        self.told.append(event)


def _lost(request: ZkRequest) -> ZkResponse:
    return ZkResponse(request.correlation, _LOST, -1, ())
