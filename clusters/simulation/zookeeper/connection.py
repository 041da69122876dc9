"""Clients as servers see them: their connections, and, at the leader, their sessions."""

from collections import deque
from collections.abc import Mapping

from fencepost.clusters.node_port.alarm import NEVER_NS
from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.node_port.zookeeper import WatchEvent, WatchType, ZkResponse
from fencepost.clusters.simulation.zookeeper.frames import (
    Call,
    Connect,
    Connected,
    Ping,
    Pong,
    Reply,
    Watched,
)
from fencepost.clusters.simulation.zookeeper.streams import Stream

_MS = 1_000_000


class PendingRequest:
    """A request that is not answered yet."""

    __slots__ = ("frame", "response")

    def __init__(self, frame: Call | Ping) -> None:
        self.frame = frame
        self.response: ZkResponse | None = None


class Connection:
    """`source`: to whom answers go, which are to requests; pushes go to the client's host."""

    __slots__ = ("_client", "_sent_count", "asked", "number", "session", "source", "stream")

    def __init__(self, source: int, connect: Connect, session: int) -> None:
        self.source = source
        self.number = connect.connection
        self.session = session
        self.stream: Stream[Call | Ping] = Stream(1)
        self.asked: deque[PendingRequest] = deque()
        self._client = connect.client
        self._sent_count = 0

    def connected(self, session: int, timeout_ms: int, effects: Effects) -> None:
        """Say that the session is served; 0: that it has expired."""
        sequence = self._next()
        push = Connected(-1, self.number, sequence, session, timeout_ms)
        effects.append((SEND, self._client, push))

    def fired(self, what: WatchType, path: str, effects: Effects) -> None:
        """Say that a watch has fired."""
        push = Watched(-1, self.number, self._next(), WatchEvent(-1, what, path))
        effects.append((SEND, self._client, push))

    def pong(self, ping: Ping, effects: Effects) -> None:
        """Answer a ping."""
        pong = Pong(ping.correlation, self.number, self._next())
        effects.append((SEND, self.source, pong))

    def reply(self, call: Call, response: ZkResponse, effects: Effects) -> None:
        """Answer a call."""
        reply = Reply(call.correlation, self.number, self._next(), response)
        effects.append((SEND, self.source, reply))

    def _next(self) -> int:
        self._sent_count += 1
        return self._sent_count - 1


class SessionTracker:
    """The time at which each session expires, and the connection that may ask in its name.

    The leader alone keeps it; a new leader gives every session its whole time-out again.

    A session belongs to the connection that opened it or took it over last. Requests of an earlier
    one, which were under way when the client left it, come too late (SESSION_MOVED).
    """

    __slots__ = ("_due_ns", "_owners", "_timeouts_ns")

    def __init__(self) -> None:
        self._timeouts_ns: dict[int, int] = {}
        self._due_ns: dict[int, int] = {}
        self._owners: dict[int, tuple[int, int]] = {}

    @property
    def due_ns(self) -> int:
        """The earliest time at which one expires, unless its client is heard of before."""
        return min(self._due_ns.values(), default=NEVER_NS)

    def begin(self, now: int, timeouts_ms: Mapping[int, int]) -> None:
        """This server leads from here on."""
        self._timeouts_ns.clear()
        self._due_ns.clear()
        self._owners.clear()
        for session, timeout_ms in timeouts_ms.items():
            self.open(now, session, timeout_ms)

    def open(self, now: int, session: int, timeout_ms: int) -> None:
        """A session has begun."""
        self._timeouts_ns[session] = timeout_ms * _MS
        self._due_ns[session] = now + timeout_ms * _MS

    def end(self, session: int) -> None:
        """A session has ended."""
        self._timeouts_ns.pop(session, None)
        self._due_ns.pop(session, None)
        self._owners.pop(session, None)

    def touch(self, now: int, session: int) -> None:
        """Its client was heard of. One that ends already ends all the same."""
        if session in self._due_ns:
            self._due_ns[session] = now + self._timeouts_ns[session]

    def belongs(self, session: int, owner: tuple[int, int]) -> None:
        """Let this connection of this server ask in its name from here on."""
        self._owners[session] = owner

    def is_owner(self, session: int, owner: tuple[int, int]) -> bool:
        """Return whether that connection may ask in its name."""
        return self._owners.get(session) == owner

    def expire(self, now: int) -> list[int]:
        """Return the sessions whose time is over; they end, whoever is heard of now."""
        over = [session for session, due_ns in self._due_ns.items() if due_ns <= now]
        for session in over:
            del self._due_ns[session]
        return over
