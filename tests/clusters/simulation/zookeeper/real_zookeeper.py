"""A session with a real server, byte by byte: what a client library would hide is seen here.

The order of answers and watches is that of the bytes. A connection can be dropped and taken up
again with the same session; watches are set again then, as ZooKeeper's own client does. Nothing is
sent on its own: a test pings.
"""

import socket
import struct
from typing import Final

from fencepost.clusters.node_port.zookeeper import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Operation,
    SetData,
    Stat,
    Sync,
    WatchType,
    ZkError,
    ZkOutcome,
    ZkResponse,
)
from fencepost.clusters.protocol.jute import JuteReader

_TIMEOUT_S: Final = 30.0
_PASSWORD_BYTES: Final = 16
_WATCH_XID, _PING_XID, _WATCHES_XID = -1, -2, -8
_PING, _SET_WATCHES, _MULTI, _CLOSE = 11, 101, 14, -11
_TYPES: Final = {
    Create: 15,  # create2, which returns a Stat
    Delete: 2,
    Exists: 3,
    GetData: 4,
    SetData: 5,
    Sync: 9,
    GetChildren: 12,
    Check: 13,
}
_EVENTS: Final = {
    1: WatchType.CREATED,
    2: WatchType.DELETED,
    3: WatchType.CHANGED,
    4: WatchType.CHILDREN,
}

Event = tuple[WatchType, str]


class RealSession:
    """A session of one client. `heard`: answers and watches, in their order."""

    def __init__(self, timeout_ms: int) -> None:
        self.session = 0
        self.heard: list[ZkResponse | Event] = []
        self._timeout_ms = timeout_ms
        self._password = bytes(_PASSWORD_BYTES)
        self._socket: socket.socket | None = None
        self._received = bytearray()
        self._xid = 0
        self._zxid = 0
        self._asked: dict[int, tuple[Operation, ...]] = {}
        self._data: dict[str, None] = {}
        self._exists: dict[str, None] = {}
        self._children: dict[str, None] = {}

    def connect(self, address: tuple[str, int]) -> bool:
        """Open the session, or go on with it; False: it has expired. OSError: no server serves."""
        self.drop()
        self._socket = socket.create_connection(address, timeout=_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        greeting = struct.pack(">iqiq", 0, self._zxid, self._timeout_ms, self.session)
        self._write(greeting + _buffer(self._password) + b"\0")
        answer = self._read()
        answer.i32()
        if answer.i32() <= 0:
            self.drop()
            return False
        self.session, self._password = answer.i64(), answer.buffer() or b""
        self._set_watches()
        return True

    def drop(self) -> None:
        """Leave the connection; the session lives on. What was not answered never is."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._received = None, bytearray()
        self._asked.clear()

    def close(self) -> None:
        """End the session."""
        self._xid += 1
        self._write(struct.pack(">ii", self._xid, _CLOSE))
        while self._read().i32() != self._xid:
            pass
        self.drop()

    def send(self, *operations: Operation) -> None:
        """Ask; `ping` waits for the answer."""
        self._xid += 1
        self._asked[self._xid] = operations
        if len(operations) == 1 and not isinstance(operations[0], Check):
            kind, body = _TYPES[type(operations[0])], _record(operations[0])
        else:
            parts = [
                struct.pack(">ibi", _TYPES[type(one)], 0, -1) + _record(one) for one in operations
            ]
            kind, body = _MULTI, b"".join(parts) + struct.pack(">ibi", -1, 1, -1)
        self._write(struct.pack(">ii", self._xid, kind) + body)

    def ping(self) -> None:
        """Ping, and read up to the answer: all that the server sent before it was read then."""
        self._write(struct.pack(">ii", _PING_XID, _PING))
        self._read_to(_PING_XID)

    def _set_watches(self) -> None:
        watched = (self._data, self._exists, self._children)
        if any(watched):
            paths = b"".join(
                struct.pack(">i", len(one)) + b"".join(_buffer(path.encode()) for path in one)
                for one in watched
            )
            header = struct.pack(">iiq", _WATCHES_XID, _SET_WATCHES, self._zxid)
            self._write(header + paths)
            self._read_to(_WATCHES_XID)

    def _read_to(self, awaited: int) -> None:
        xid = 0
        while xid != awaited:
            answer = self._read()
            xid, zxid, error = answer.i32(), answer.i64(), answer.i32()
            if xid == _WATCH_XID:
                self._fired(answer)
                continue
            self._zxid = max(self._zxid, zxid)
            if xid > 0:
                self._answered(self._asked.pop(xid), answer, zxid, error)

    def _fired(self, event: JuteReader) -> None:
        what = _EVENTS[event.i32()]
        event.i32()  # the state of the connection
        path = event.text()
        if what is not WatchType.CHILDREN:
            self._data.pop(path, None)
            self._exists.pop(path, None)
        if what in (WatchType.CHILDREN, WatchType.DELETED):
            self._children.pop(path, None)
        self.heard.append((what, path))

    def _answered(
        self, operations: tuple[Operation, ...], answer: JuteReader, zxid: int, error: int
    ) -> None:
        if len(operations) == 1 and not isinstance(operations[0], Check):
            outcomes = (_outcome(operations[0], answer) if not error else ZkOutcome(error),)
            self._watch(operations[0], error)
        else:
            outcomes = _multi_outcomes(operations, answer) if not answer.ended else ()
            error = next((one.error for one in outcomes if one.error), error)
        if error == ZkError.SESSION_EXPIRED:
            outcomes = ()
        self.heard.append(ZkResponse(0, error, zxid, outcomes))

    def _watch(self, operation: Operation, error: int) -> None:
        if not isinstance(operation, GetData | Exists | GetChildren) or not operation.watch:
            return
        if isinstance(operation, Exists) and error == ZkError.NO_NODE:
            self._exists[operation.path] = None
        elif not error:
            known = self._children if isinstance(operation, GetChildren) else self._data
            known[operation.path] = None

    def _write(self, frame: bytes) -> None:
        assert self._socket is not None
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def _read(self) -> JuteReader:
        assert self._socket is not None
        while True:
            if len(self._received) >= 4:
                (size,) = struct.unpack_from(">i", self._received)
                if len(self._received) >= 4 + size:
                    frame = bytes(self._received[4 : 4 + size])
                    del self._received[: 4 + size]
                    return JuteReader(frame)
            part = self._socket.recv(1 << 16)
            if not part:
                raise ConnectionResetError("closed by the server")
            self._received += part


def _buffer(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def _record(operation: Operation) -> bytes:
    path = _buffer(operation.path.encode())
    if isinstance(operation, Create):
        anyone = struct.pack(">ii", 1, 31) + _buffer(b"world") + _buffer(b"anyone")
        flags = operation.ephemeral | operation.sequential << 1
        return path + _buffer(operation.data) + anyone + struct.pack(">i", flags)
    if isinstance(operation, SetData):
        return path + _buffer(operation.data) + struct.pack(">i", operation.version)
    if isinstance(operation, Delete | Check):
        return path + struct.pack(">i", operation.version)
    if isinstance(operation, Sync):
        return path
    return path + struct.pack(">b", operation.watch)


def _outcome(operation: Operation, answer: JuteReader) -> ZkOutcome:
    if isinstance(operation, Create):
        return ZkOutcome(path=answer.text(), stat=_stat(answer))
    if isinstance(operation, GetData):
        return ZkOutcome(data=answer.buffer() or b"", stat=_stat(answer))
    if isinstance(operation, GetChildren):
        children = tuple(sorted(answer.vector(answer.text)))
        return ZkOutcome(children=children, stat=_stat(answer))
    if isinstance(operation, SetData | Exists):
        return ZkOutcome(stat=_stat(answer))
    return ZkOutcome()


def _stat(answer: JuteReader) -> Stat:
    czxid, mzxid = answer.i64(), answer.i64()
    answer.skip(16)
    version = answer.i32()
    answer.skip(8)
    owner = answer.i64()
    answer.skip(4)
    children_count = answer.i32()
    answer.skip(8)
    return Stat(czxid, mzxid, version, owner, children_count)


def _multi_outcomes(operations: tuple[Operation, ...], answer: JuteReader) -> tuple[ZkOutcome, ...]:
    found = []
    for operation in operations:
        kind, _, _ = answer.i32(), answer.flag(), answer.i32()
        found.append(ZkOutcome(answer.i32()) if kind == -1 else _outcome(operation, answer))
    return tuple(found)
