"""A client's connection as its server sees it: requests in their order, and frames to it."""

from collections import deque

from clusters.node_port.effects import SEND, Effects
from clusters.node_port.zookeeper import WatchEvent, WatchType, ZkResponse
from clusters.simulation.zookeeper.frames import (
    Call,
    Connect,
    Connected,
    Ping,
    Pong,
    Reply,
    Watched,
)
from clusters.simulation.zookeeper.streams import Stream

__all__ = ["Asked", "Connection"]


class Asked:
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
        self.asked: deque[Asked] = deque()
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
