"""A node's requests to ZooKeeper: its parts are told the answers, the watches, the session's end.

Kafka's own way (`KafkaZkClient.retryRequestsUntilConnected`): what came back CONNECTION_LOSS is
asked again once the session is connected, since the session, and so all that is decided by it, may
live on. The first try may have been carried out; an answer to a repeated request says so, and a
write that failed then has to be looked at (a BAD_VERSION may be its own doing).

When the session has expired, nothing of it is asked again: who waits is answered SESSION_EXPIRED.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from clusters.node_port.effects import SEND, Effects
from clusters.node_port.zookeeper import (
    ZOOKEEPER,
    Operation,
    SessionEvent,
    SessionState,
    WatchEvent,
    ZkError,
    ZkRequest,
    ZkResponse,
)

__all__ = ["Asking", "OnAnswer", "OnSession", "OnWatch", "ZkAnswer"]

_LOST: Final = int(ZkError.CONNECTION_LOSS)


@dataclass(slots=True)
class ZkAnswer:
    """The answer to a request."""

    response: ZkResponse
    is_repeated: bool
    """True if an earlier try of the request may have been carried out."""


OnAnswer = Callable[[int, ZkAnswer, Effects], None]
"""(now, answer, effects)."""
OnWatch = Callable[[int, WatchEvent, Effects], None]
OnSession = Callable[[int, SessionEvent, Effects], None]


class _Asked:
    __slots__ = ("is_repeated", "operations", "then")

    def __init__(self, operations: tuple[Operation, ...], then: OnAnswer) -> None:
        self.operations = operations
        self.then = then
        self.is_repeated = False


class Asking:
    """A node's requests to ZooKeeper."""

    __slots__ = ("_correlation", "_listeners", "_lost", "_under_way", "_watching", "is_connected")

    def __init__(self) -> None:
        self.is_connected = False
        self._correlation = 0
        self._under_way: dict[int, _Asked] = {}
        """By correlation, in the order of asking."""
        self._lost: list[_Asked] = []
        """To be asked again once connected, in the order of asking."""
        self._watching: dict[str, list[OnWatch]] = {}
        self._listeners: list[OnSession] = []

    def on_session(self, listener: OnSession) -> None:
        """Tell this one of every event of the session, after the requests without an answer."""
        self._listeners.append(listener)

    def on_watch(self, path: str, listener: OnWatch) -> None:
        """Tell this one of every watch of this path, or below it for a path that ends in "/".

        The watch itself is set by a read with `watch`, each time anew.
        """
        self._watching.setdefault(path, []).append(listener)

    def ask(self, operations: tuple[Operation, ...], then: OnAnswer, effects: Effects) -> None:
        """Ask, or wait for the connection to ask; `then` gets the one answer that is the last."""
        asked = _Asked(operations, then)
        if self.is_connected:
            self._send(asked, effects)
        else:
            self._lost.append(asked)

    def answered(self, now: int, response: ZkResponse, effects: Effects) -> None:
        """Take an answer of ZooKeeper's."""
        asked = self._under_way.pop(response.correlation, None)
        if asked is None:
            return
        if response.error == _LOST:
            asked.is_repeated = True
            self._again(asked, effects)
            return
        asked.then(now, ZkAnswer(response, asked.is_repeated), effects)

    def watched(self, now: int, event: WatchEvent, effects: Effects) -> None:
        """Take a watch that fired."""
        above = event.path.rpartition("/")[0] + "/"
        for path in (event.path, above):
            for listener in self._watching.get(path, ()):
                listener(now, event, effects)

    def session(self, now: int, event: SessionEvent, effects: Effects) -> None:
        """Take an event of the session."""
        self.is_connected = event.state is SessionState.CONNECTED
        if event.state is SessionState.EXPIRED:
            self._expire(now, effects)
        elif self.is_connected:
            lost, self._lost = self._lost, []
            for asked in lost:
                self._send(asked, effects)
        for listener in tuple(self._listeners):
            listener(now, event, effects)

    def _send(self, asked: _Asked, effects: Effects) -> None:
        self._correlation += 1
        self._under_way[self._correlation] = asked
        effects.append((SEND, ZOOKEEPER, ZkRequest(self._correlation, asked.operations)))

    def _again(self, asked: _Asked, effects: Effects) -> None:
        if self.is_connected:
            self._send(asked, effects)
        else:
            self._lost.append(asked)

    def _expire(self, now: int, effects: Effects) -> None:
        waiting = [*self._under_way.values(), *self._lost]
        self._under_way.clear()
        self._lost = []
        response = ZkResponse(-1, int(ZkError.SESSION_EXPIRED), -1, ())
        for asked in waiting:
            asked.then(now, ZkAnswer(response, asked.is_repeated), effects)
