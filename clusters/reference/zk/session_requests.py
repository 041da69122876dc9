"""A node's requests to ZooKeeper: coroutines await the answers; watches and the session are told.

Kafka's own way (`KafkaZkClient.retryRequestsUntilConnected`): what came back CONNECTION_LOSS is
asked again once the session is connected, since the session, and so all that is decided by it, may
live on. The first try may have been carried out: a write that failed then has to be looked at (a
BAD_VERSION may be its own doing).

When the session has expired, nothing of it is asked again: coroutines that wait get a
`SessionExpiredError`, in the order in which they asked.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.node_port.zookeeper import (
    ZOOKEEPER,
    Exists,
    GetChildren,
    GetData,
    Operation,
    SessionEvent,
    SessionState,
    Sync,
    WatchEvent,
    ZkError,
    ZkOutcome,
    ZkRequest,
    ZkResponse,
)
from fencepost.clusters.reference.zk.coroutines import Coroutines, NotDoneError, Result

_LOST: Final = int(ZkError.CONNECTION_LOSS)

Read = GetData | Exists | GetChildren | Sync
OnWatch = Callable[[int, WatchEvent, Effects], None]
"""(now, event, effects)."""
OnSession = Callable[[int, SessionEvent, Effects], None]


class SessionExpiredError(NotDoneError):
    """The session has ended in which something was asked; it may have been carried out."""


class _Batch:
    """Requests that were made together; their coroutine goes on once all are answered."""

    __slots__ = ("_answers", "_left", "_result")

    def __init__(self, result: "Result[list[ZkResponse]]", count: int) -> None:
        self._result = result
        self._answers: list[Any] = [None] * count
        self._left = count

    def answered(self, now: int, index: int, response: ZkResponse, effects: Effects) -> None:
        self._answers[index] = response
        self._left -= 1
        if not self._left:
            self._result.done(now, self._answers, effects)

    def expired(self, now: int, effects: Effects) -> None:
        """One of its requests will not be answered; the first one fails the batch."""
        if self._left:
            self._left = 0
            self._result.failed(now, SessionExpiredError(), effects)


class _Asked:
    __slots__ = ("batch", "index", "operations")

    def __init__(self, operations: tuple[Operation, ...], batch: _Batch, index: int) -> None:
        self.operations = operations
        self.batch = batch
        self.index = index


class SessionRequests:
    """A node's requests to ZooKeeper."""

    __slots__ = (
        "_correlation",
        "_listeners",
        "_lost",
        "_under_way",
        "_watching",
        "coroutines",
        "is_connected",
    )

    def __init__(self) -> None:
        self.is_connected = False
        self.coroutines = Coroutines()
        """The coroutines that nothing ends but the session."""
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

    # For coroutines. Each of these raises SessionExpiredError.

    async def answers(self, requests: Sequence[tuple[Operation, ...]]) -> list[ZkResponse]:
        """Make these requests, now or once connected; return all answers in their order."""
        if not requests:
            return []
        return await Result[list[ZkResponse]](partial(self._ask, requests))

    async def answer(self, *operations: Operation) -> ZkResponse:
        """Ask for one operation, or for writes that are carried out together or not at all."""
        return (await self.answers((operations,)))[0]

    async def read(self, reads: Sequence[Read]) -> list[ZkOutcome]:
        """Read, each by a request of its own; return the outcomes in the order of the reads."""
        answers = await self.answers([(one,) for one in reads])
        return [one.outcomes[0] if one.outcomes else ZkOutcome(one.error) for one in answers]

    async def read_children(self, path: str, *, watches_data: bool = False) -> dict[str, ZkOutcome]:
        """Read a znode's children and watch which there are; return those that are there, by name.

        `watches_data`: watch the data of each, too.
        """
        names = (await self.read([GetChildren(path, watch=True)]))[0].children
        found = await self.read([GetData(f"{path}/{name}", watch=watches_data) for name in names])
        pairs = zip(names, found, strict=True)
        return {name: one for name, one in pairs if not one.error}

    # Events.

    def answered(self, now: int, response: ZkResponse, effects: Effects) -> None:
        """Take an answer of ZooKeeper's."""
        asked = self._under_way.pop(response.correlation, None)
        if asked is None:
            return
        if response.error == _LOST:
            self._send(asked, effects)
        else:
            asked.batch.answered(now, asked.index, response, effects)

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
            waiting = [*self._under_way.values(), *self._lost]
            self._under_way.clear()
            self._lost = []
            for asked in waiting:
                asked.batch.expired(now, effects)
        elif self.is_connected:
            lost, self._lost = self._lost, []
            for asked in lost:
                self._send(asked, effects)
        for listener in tuple(self._listeners):
            listener(now, event, effects)

    def _ask(
        self,
        requests: Sequence[tuple[Operation, ...]],
        _now: int,
        result: "Result[list[ZkResponse]]",
        effects: Effects,
    ) -> None:
        batch = _Batch(result, len(requests))
        for index, operations in enumerate(requests):
            self._send(_Asked(operations, batch, index), effects)

    def _send(self, asked: _Asked, effects: Effects) -> None:
        """Send a request, or have it wait for the connection."""
        if not self.is_connected:
            self._lost.append(asked)
            return
        self._correlation += 1
        self._under_way[self._correlation] = asked
        effects.append((SEND, ZOOKEEPER, ZkRequest(self._correlation, asked.operations)))
