"""Reads of znodes over a session that is kept, each behind a `sync`, within a bound.

A client library would choose the server, and go on where another look is due. Here a server that
does not answer in time is left for the next one, with the same session: a session of its own for
each look would be two transactions in the logs that are under test. A `sync` lets a follower catch
up with the leader before it answers; a server without a quorum answers nothing.
"""

import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.jute import JuteReader
from fencepost.clusters.protocol.talking import Address
from fencepost.clusters.protocol.zookeeper_records import OPERATIONS, read, written
from fencepost.history.failure import HarnessError

_TIMEOUT_S: Final = 2.0
_SESSION_MS: Final = 10_000
_FRAME_BYTES_MAX: Final = 1 << 22

_LENGTH: Final = struct.Struct(">i")
_PASSWORD_BYTES: Final = 16
_NO_NODE: Final = -101

Servers = Callable[[], Mapping[NodeName, Address]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZnodeRead:
    """The answer to one read: data with the zxid that made the znode, or names of children."""

    data: bytes = b""
    czxid: int = -1
    version: int = -1
    children: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    operation: str
    path: str


def data_of(path: str) -> _Read:
    """Ask for the data of a znode."""
    return _Read(operation="getData", path=path)


def children_of(path: str) -> _Read:
    """Ask for the names of its children."""
    return _Read(operation="getChildren", path=path)


class ZnodeReader:
    """Reads from any of these servers. Safe to use from several threads.

    `servers`: those that run, at the time of asking.
    """

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._lock = threading.Lock()
        self._server: NodeName | None = None
        self._connection: socket.socket | None = None
        self._session: tuple[int, bytes] = (0, bytes(_PASSWORD_BYTES))

    def read(self, asked: Sequence[_Read]) -> list[ZnodeRead | None]:
        """Return an answer for each, in order; None: there is no such znode.

        Raises HarnessError if no server answers within 2 s.
        """
        with self._lock:
            deadline = time.monotonic() + _TIMEOUT_S
            problem = "none runs"
            for server, address in self._in_turn():
                try:
                    return self._asked(server, address, asked, deadline=deadline)
                except (OSError, ValueError) as error:
                    self._leave()
                    problem = f"{server}: {error}"
                if time.monotonic() > deadline:
                    break
        raise HarnessError(f"no server answered a read of its znodes: {problem}")

    def close(self) -> None:
        """Leave the server; the session ends on its own."""
        with self._lock:
            self._leave()

    def _in_turn(self) -> list[tuple[NodeName, Address]]:
        """The servers, that of the last read first, else the one after it."""
        running = self._servers()
        if self._connection is not None and self._server not in running:
            self._leave()
        left = [name for name in running if self._connection is None and name == self._server]
        first = [name for name in running if self._connection is not None and name == self._server]
        rest = [name for name in running if name != self._server]
        return [(name, running[name]) for name in (*first, *rest, *left)]

    def _asked(
        self, server: NodeName, address: Address, asked: Sequence[_Read], *, deadline: float
    ) -> list[ZnodeRead | None]:
        connection = self._connected(server, address, deadline)
        requests = [_Read(operation="sync", path="/"), *asked]
        connection.sendall(b"".join(_frame(xid, one) for xid, one in enumerate(requests, 1)))
        answers = [
            _answer(self._received(deadline), xid, one) for xid, one in enumerate(requests, 1)
        ]
        return answers[1:]

    def _connected(self, server: NodeName, address: Address, deadline: float) -> socket.socket:
        if self._connection is not None and self._server == server:
            self._connection.settimeout(_left_s(deadline))
            return self._connection
        self._leave()
        self._server = server
        # So that one that is stuck leaves time for the others.
        within_s = _left_s(deadline) / 2
        self._connection = socket.create_connection(address, timeout=within_s)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        session, password = self._session
        greeting = written(
            "ConnectRequest",
            protocolVersion=0,
            lastZxidSeen=0,
            timeOut=_SESSION_MS,
            sessionId=session,
            passwd=password,
            readOnly=False,
        )
        self._connection.sendall(_LENGTH.pack(len(greeting)) + greeting)
        answer = read(self._received(time.monotonic() + within_s), "ConnectResponse")
        if answer["timeOut"] <= 0:
            self._session = (0, bytes(_PASSWORD_BYTES))
            raise ConnectionError("the session has expired")
        self._session = (answer["sessionId"], answer["passwd"] or b"")
        return self._connection

    def _leave(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _received(self, deadline: float) -> JuteReader:
        (length,) = _LENGTH.unpack(self._bytes(_LENGTH.size, deadline))
        if not 0 <= length <= _FRAME_BYTES_MAX:
            raise ValueError(f"a frame of {length} bytes")
        return JuteReader(self._bytes(length, deadline))

    def _bytes(self, count: int, deadline: float) -> bytes:
        assert self._connection is not None
        found = bytearray()
        while len(found) < count:
            self._connection.settimeout(_left_s(deadline))
            part = self._connection.recv(count - len(found))
            if not part:
                raise ConnectionResetError("closed by the server")
            found += part
        return bytes(found)


def _frame(xid: int, one: _Read) -> bytes:
    operation = OPERATIONS[one.operation]
    watches = {} if one.operation == "sync" else {"watch": False}
    head = written("RequestHeader", xid=xid, type=operation.type)
    body = head + written(operation.request, path=one.path, **watches)
    return _LENGTH.pack(len(body)) + body


def _answer(answer: JuteReader, xid: int, one: _Read) -> ZnodeRead | None:
    head = read(answer, "ReplyHeader")
    if head["xid"] != xid:
        raise ValueError(f"expected the answer to request {xid}, found that to {head['xid']}")
    if head["err"] == _NO_NODE:
        return None
    if head["err"]:
        raise ValueError(f"{one.path}: error {head['err']}")
    record = OPERATIONS[one.operation].response
    if not record:
        return ZnodeRead()
    found = read(answer, record)
    if "stat" not in found:
        return ZnodeRead(children=tuple(found["children"]))
    stat = found["stat"]
    return ZnodeRead(data=found["data"] or b"", czxid=stat["czxid"], version=stat["version"])


def _left_s(deadline: float) -> float:
    """Return the time left, never 0: a socket takes 0 for "do not wait"."""
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("no answer in time")
    return left_s
