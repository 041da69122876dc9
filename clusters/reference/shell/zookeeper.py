"""A node's session with a real ensemble: `clusters.node_port.zookeeper`, over one connection.

A client of its own, and not kazoo's, since the border promises more: watches outlive a connection
(SetWatches), fire before any answer that shows what they tell of, and an answer has its zxid. All
of it runs on the node's event loop.

A connection that has said nothing for two thirds of the session's time-out is given up, as
ZooKeeper's own client does, and the next server is tried. Requests without an answer are then
answered CONNECTION_LOSS, after the node was told that its session is suspended.
"""

import asyncio
import itertools
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from fencepost.clusters.node_port.zookeeper import (
    CloseSession,
    Exists,
    GetChildren,
    GetData,
    OpenSession,
    SessionEvent,
    SessionState,
    WatchEvent,
    WatchType,
    ZkError,
    ZkRequest,
    ZkResponse,
)
from fencepost.clusters.protocol.framing import FrameBuffer, FrameError
from fencepost.clusters.protocol.jute import JuteError
from fencepost.clusters.reference.codec import zookeeper as codec

_RETRY_S: Final = 0.1
"""The pause before the next server is tried."""
_XID_MAX: Final = (1 << 31) - 1
_NO_NODE: Final = int(ZkError.NO_NODE)

Address = tuple[str, int]
Told = Callable[[Any], None]


class ZooKeeper:
    """The ensemble, as a node's target. `told`: hand a message to the node."""

    def __init__(self, servers: Sequence[Address], *, told: Told) -> None:
        self._servers = tuple(servers)
        self._told = told
        self._session: _Session | None = None
        self._read: dict[int, asyncio.Future[bytes | None]] = {}
        """The reads of the shell itself, by their correlations, which are no node's."""
        self._correlations = itertools.count(-1, -1)

    def send(self, message: OpenSession | ZkRequest | CloseSession) -> None:
        """Take what the node says to the ensemble. A session is opened once the last has ended."""
        match message:
            case OpenSession():
                assert self._session is None or self._session.is_over
                self._session = _Session(self._servers, message.timeout_ms, told=self._tell)
            case ZkRequest():
                self._ask(message)
            case CloseSession():
                self.close()

    async def data(self, path: str) -> bytes | None:
        """Read a znode in the node's session, for the shell; None: it is not there, or not read."""
        correlation = next(self._correlations)
        done: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self._read[correlation] = done
        self.send(ZkRequest(correlation, (GetData(path),)))
        try:
            return await done
        finally:
            del self._read[correlation]

    def look(self) -> None:
        """Keep the session alive, and give up a connection that is silent; call often."""
        if self._session is not None:
            self._session.look()

    def close(self) -> None:
        """End the session, if there is one, without an event."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _ask(self, request: ZkRequest) -> None:
        if self._session is not None and not self._session.is_over:
            self._session.ask(request)
            return
        response = _without_answer(request, ZkError.SESSION_EXPIRED)
        asyncio.get_running_loop().call_soon(self._tell, response)

    def _tell(self, message: Any) -> None:
        if isinstance(message, ZkResponse) and (done := self._read.get(message.correlation)):
            if not done.done():
                done.set_result(None if message.error else message.outcomes[0].data)
        else:
            self._told(message)


class _Session(asyncio.Protocol):
    """A session, from its opening to its end, on one connection after the other."""

    def __init__(self, servers: tuple[Address, ...], timeout_ms: int, *, told: Told) -> None:
        self.is_over = False
        self._told = told
        self._timeout_ms = timeout_ms
        self._id = 0
        self._password = codec.SESSION_PASSWORD
        self._last_zxid = 0
        self._watches = _Watches()
        self._xids = itertools.cycle(range(1, _XID_MAX))
        self._asked: deque[tuple[int, ZkRequest]] = deque()
        self._transport: asyncio.Transport | None = None
        self._incoming = FrameBuffer()
        self._is_connected = False
        self._heard_s = self._sent_s = 0.0
        self._lost = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run(servers))

    def ask(self, request: ZkRequest) -> None:
        """Send a request; one that cannot be sent is answered CONNECTION_LOSS."""
        if not self._is_connected:
            response = _without_answer(request, ZkError.CONNECTION_LOSS)
            asyncio.get_running_loop().call_soon(self._told, response)
            return
        xid = next(self._xids)
        self._asked.append((xid, request))
        self._write(codec.request(xid, request))

    def look(self) -> None:
        """Ping in time; give up a connection that is silent."""
        now, timeout_s = time.monotonic(), self._timeout_ms / 1000
        if self._transport is None:
            return
        if now - self._heard_s > timeout_s * 2 / 3:
            self._transport.abort()
        elif self._is_connected and now - self._sent_s > timeout_s / 3:
            self._write(codec.PING)

    def close(self) -> None:
        """End it; what the node waits for is answered no more."""
        if self._is_connected:
            self._write(codec.CLOSE)
        self._end()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open the session, or go on with it."""
        assert isinstance(transport, asyncio.Transport)
        if self.is_over:
            transport.close()
            return
        self._transport = transport
        self._incoming = FrameBuffer()
        self._heard_s = time.monotonic()
        self._write(
            codec.connect_request(
                session_id=self._id,
                password=self._password,
                timeout_ms=self._timeout_ms,
                last_zxid=self._last_zxid,
            )
        )

    def data_received(self, data: bytes) -> None:
        """Hand whole messages on. An answer that cannot be read ends the connection."""
        self._heard_s = time.monotonic()
        self._incoming.feed(data)
        try:
            while not self.is_over and (frame := self._incoming.next_frame()) is not None:
                if self._is_connected:
                    self._said(codec.reply(frame))
                else:
                    self._opened(codec.opened(frame))
        except (FrameError, JuteError):
            assert self._transport is not None
            self._transport.abort()

    def connection_lost(self, _: Exception | None) -> None:
        """The session lives on, for a while."""
        was_connected, self._is_connected = self._is_connected, False
        self._transport = None
        self._lost.set()
        if was_connected and not self.is_over:
            asked, self._asked = self._asked, deque()
            self._told(SessionEvent(-1, SessionState.SUSPENDED, self._id))
            for _xid, request in asked:
                self._told(_without_answer(request, ZkError.CONNECTION_LOSS))

    async def _run(self, servers: tuple[Address, ...]) -> None:
        loop = asyncio.get_running_loop()
        for address in itertools.cycle(random.sample(servers, len(servers))):
            if self.is_over:
                return
            self._lost.clear()
            try:
                async with asyncio.timeout(self._timeout_ms / 1000):
                    await loop.create_connection(lambda: self, *address)
                await self._lost.wait()
            except OSError:  # among them the time-out
                pass
            await asyncio.sleep(_RETRY_S)

    def _opened(self, found: codec.Opened) -> None:
        if found.timeout_ms <= 0:
            self._end()
            self._told(SessionEvent(-1, SessionState.EXPIRED, self._id))
            return
        self._id, self._password = found.session_id, found.password
        self._timeout_ms = found.timeout_ms
        self._is_connected = True
        if watches := self._watches.set_again(self._last_zxid):
            self._write(watches)
        self._told(SessionEvent(-1, SessionState.CONNECTED, self._id))

    def _said(self, found: codec.ReplyHead) -> None:
        self._last_zxid = max(self._last_zxid, found.zxid)
        if found.xid == codec.WATCHED:
            event = codec.watch_event(found)
            if event is not None:
                self._watches.fired(event)
                self._told(event)
        elif self._asked and found.xid == self._asked[0][0]:
            _, request = self._asked.popleft()
            response = codec.outcomes(found, request)
            self._watches.answered(request, response)
            self._told(response)

    def _write(self, frame: bytes) -> None:
        assert self._transport is not None
        self._sent_s = time.monotonic()
        self._transport.write(len(frame).to_bytes(4) + frame)

    def _end(self) -> None:
        self.is_over = True
        self._lost.set()
        if self._transport is not None:
            self._transport.close()


class _Watches:
    """The watches of a session that have not fired: paths, by what sets them."""

    def __init__(self) -> None:
        self._data: dict[str, None] = {}
        self._exist: dict[str, None] = {}
        self._children: dict[str, None] = {}

    def answered(self, request: ZkRequest, response: ZkResponse) -> None:
        """Note the watch that a read has set: of a missing znode only `Exists` sets one."""
        match request.operations[0]:
            case GetData(path, watch=True) if not response.error:
                self._data[path] = None
            case Exists(path, watch=True) if not response.error:
                self._data[path] = None
            case Exists(path, watch=True) if response.error == _NO_NODE:
                self._exist[path] = None
            case GetChildren(path, watch=True) if not response.error:
                self._children[path] = None
            case _:
                return

    def fired(self, event: WatchEvent) -> None:
        """Forget what has fired."""
        if event.type is not WatchType.CHILDREN:
            self._data.pop(event.path, None)
            self._exist.pop(event.path, None)
        if event.type in (WatchType.CHILDREN, WatchType.DELETED):
            self._children.pop(event.path, None)

    def set_again(self, last_zxid: int) -> bytes | None:
        """Return the request that sets all of them on another connection; None: there are none."""
        if not (self._data or self._exist or self._children):
            return None
        return codec.set_watches(
            last_zxid, data=self._data, exist=self._exist, children=self._children
        )


def _without_answer(request: ZkRequest, error: ZkError) -> ZkResponse:
    return ZkResponse(request.correlation, int(error), -1, ())
