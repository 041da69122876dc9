"""ZooKeeper's client port: what a session asks, and what a server says, as bytes and back. Sans-IO.

A create is asked as create2, whose answer has the znode's Stat; several writes are a multi, and so
is a lone check, which ZooKeeper has no request for. Each is a frame without its length here.

Source: `zookeeper.jute`, `MultiOperationRecord` and `MultiResponse` of ZooKeeper 3.9.
"""

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from clusters.node_port.zookeeper import (
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
    WatchEvent,
    WatchType,
    ZkError,
    ZkOutcome,
    ZkRequest,
    ZkResponse,
)
from clusters.protocol.jute import JuteReader

WATCHED: Final = -1
"""The xid of a watch that fires."""
PINGED: Final = -2
SESSION_PASSWORD: Final = bytes(16)
"""The password of a session which is not opened yet."""
_WATCHES_SET: Final = -8

_CREATE: Final = 15
_MULTI: Final = 14
_PING: Final = 11
_CLOSE: Final = -11
_SET_WATCHES: Final = 101
_ERROR: Final = -1
_TYPES: Final[dict[type, int]] = {
    Create: _CREATE,
    Delete: 2,
    Exists: 3,
    GetData: 4,
    SetData: 5,
    Sync: 9,
    GetChildren: 12,
    Check: 13,
}
_HEAD: Final = struct.Struct(">ii")
_CONNECT: Final = struct.Struct(">iqiq")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_MULTI_HEAD: Final = struct.Struct(">i?i")
_MULTI_END: Final = _MULTI_HEAD.pack(-1, True, -1)
_EPHEMERAL: Final = 1
_SEQUENTIAL: Final = 2
_NOT_FIRST: Final = frozenset((0, int(ZkError.RUNTIME_INCONSISTENCY)))
_OF_WATCH: Final = {
    1: WatchType.CREATED,
    2: WatchType.DELETED,
    3: WatchType.CHANGED,
    4: WatchType.CHILDREN,
}


def _buffer(data: bytes) -> bytes:
    return _INT.pack(len(data)) + data


def _text(text: str) -> bytes:
    return _buffer(text.encode())


_ANYONE: Final = _INT.pack(1) + _INT.pack(31) + _text("world") + _text("anyone")
"""The access control list with all permissions for all."""

PING: Final = _HEAD.pack(PINGED, _PING)
CLOSE: Final = _HEAD.pack(0, _CLOSE)


class Opened(NamedTuple):
    """The answer to a connect request."""

    timeout_ms: int
    """0 or less: the session has expired."""
    session_id: int
    password: bytes


class ReplyHead(NamedTuple):
    """The head of what a server says, and where the rest of it begins."""

    xid: int
    zxid: int
    error: int
    rest: JuteReader


def connect_request(*, session_id: int, password: bytes, timeout_ms: int, last_zxid: int) -> bytes:
    """Open a session (id 0), or go on with one at another server."""
    return _CONNECT.pack(0, last_zxid, timeout_ms, session_id) + _buffer(password) + b"\x00"


def opened(frame: bytes) -> Opened:
    """Read the answer to a connect request. Raises JuteError."""
    reader = JuteReader(frame)
    reader.i32()  # protocol version
    return Opened(reader.i32(), reader.i64(), reader.buffer() or b"")


def set_watches(
    last_zxid: int, *, data: Iterable[str], exist: Iterable[str], children: Iterable[str]
) -> bytes:
    """Set watches again on another connection; what happened since `last_zxid` fires at once."""
    head = _HEAD.pack(_WATCHES_SET, _SET_WATCHES) + _LONG.pack(last_zxid)
    return head + b"".join(map(_paths, (data, exist, children)))


def request(xid: int, asked: ZkRequest) -> bytes:
    """Encode one operation, or a multi of several."""
    operations = asked.operations
    if _is_multi(operations):
        parts = (_MULTI_HEAD.pack(_TYPES[type(one)], False, -1) + _body(one) for one in operations)
        return _HEAD.pack(xid, _MULTI) + b"".join(parts) + _MULTI_END
    return _HEAD.pack(xid, _TYPES[type(operations[0])]) + _body(operations[0])


def reply(frame: bytes) -> ReplyHead:
    """Read the head of what a server says. Raises JuteError."""
    reader = JuteReader(frame)
    return ReplyHead(reader.i32(), reader.i64(), reader.i32(), reader)


def watch_event(found: ReplyHead) -> WatchEvent | None:
    """Read a watch that fired; None: the event is not of a znode. Raises JuteError."""
    number = found.rest.i32()
    found.rest.i32()  # state
    path = found.rest.text()
    kind = _OF_WATCH.get(number)
    return None if kind is None else WatchEvent(-1, kind, path)


def outcomes(found: ReplyHead, asked: ZkRequest) -> ZkResponse:
    """Read the answer to a request. Raises JuteError."""
    operations = asked.operations
    if _is_multi(operations) and not found.rest.ended:
        each = tuple(_multi_outcome(one, found.rest) for one in operations)
        failed = (one.error for one in each if one.error not in _NOT_FIRST)
        return ZkResponse(asked.correlation, next(failed, found.error), found.zxid, each)
    if found.error:
        each = tuple(ZkOutcome(error=found.error) for _ in operations)
    else:
        each = (_outcome(operations[0], found.rest),)
    return ZkResponse(asked.correlation, found.error, found.zxid, each)


def _is_multi(operations: tuple[Operation, ...]) -> bool:
    return len(operations) > 1 or isinstance(operations[0], Check)


def _paths(paths: Iterable[str]) -> bytes:
    each = [_text(one) for one in paths]
    return _INT.pack(len(each)) + b"".join(each)


def _body(one: Operation) -> bytes:
    path = _text(one.path)
    match one:
        case Create():
            flags = _EPHEMERAL * one.ephemeral + _SEQUENTIAL * one.sequential
            return path + _buffer(one.data) + _ANYONE + _INT.pack(flags)
        case SetData():
            return path + _buffer(one.data) + _INT.pack(one.version)
        case Delete() | Check():
            return path + _INT.pack(one.version)
        case GetData() | Exists() | GetChildren():
            return path + bytes([one.watch])
        case Sync():
            return path


def _multi_outcome(one: Operation, reader: JuteReader) -> ZkOutcome:
    kind, _, error = reader.i32(), reader.flag(), reader.i32()
    if kind == _ERROR:
        return ZkOutcome(error=reader.i32())
    return ZkOutcome(error=error) if error else _outcome(one, reader)


def _outcome(one: Operation, reader: JuteReader) -> ZkOutcome:
    match one:
        case Create():
            return ZkOutcome(path=reader.text(), stat=_stat(reader))
        case SetData() | Exists():
            return ZkOutcome(stat=_stat(reader))
        case GetData():
            return ZkOutcome(data=reader.buffer() or b"", stat=_stat(reader))
        case GetChildren():
            names = tuple(sorted(reader.vector(reader.text)))
            return ZkOutcome(children=names, stat=_stat(reader))
        case Delete() | Check() | Sync():
            return ZkOutcome()


def _stat(reader: JuteReader) -> Stat:
    czxid, mzxid = reader.i64(), reader.i64()
    reader.skip(2 * _LONG.size)  # times
    version = reader.i32()
    reader.skip(2 * _INT.size)  # versions of its children and its access control list
    owner = reader.i64()
    reader.skip(_INT.size)  # the size of its data
    children_count = reader.i32()
    reader.skip(_LONG.size)  # the last change of its children
    return Stat(czxid, mzxid, version, owner, children_count)
