"""ZooKeeper's client port: what a session asks, and what a server says, as bytes and back. Sans-IO.

A create is asked as create2, whose answer has the znode's Stat; several writes are a multi, and so
is a lone check, which ZooKeeper has no request for. Each is a frame without its length here.

The records are those of `clusters.protocol.zookeeper_records`. Source: `MultiOperationRecord` and
`MultiResponse` of ZooKeeper 3.9.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from fencepost.clusters.data_tree.tree import OPEN
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
    WatchEvent,
    WatchType,
    ZkError,
    ZkOutcome,
    ZkRequest,
    ZkResponse,
)
from fencepost.clusters.protocol.jute import JuteReader
from fencepost.clusters.protocol.zookeeper_records import OPERATIONS, read, written
from fencepost.clusters.protocol.zookeeper_transactions import acl_records

WATCHED: Final = -1
"""The xid of a watch that fires."""
PINGED: Final = -2
SESSION_PASSWORD: Final = bytes(16)
"""The password of a session which is not opened yet."""
_WATCHES_SET: Final = -8

_NAMES: Final[dict[type, str]] = {
    Create: "create2",
    Delete: "delete",
    Exists: "exists",
    GetData: "getData",
    SetData: "setData",
    Sync: "sync",
    GetChildren: "getChildren2",
    Check: "check",
}
_ERROR: Final = OPERATIONS["error"].type
_MULTI_END: Final = written("MultiHeader", type=-1, done=True, err=-1)
_EPHEMERAL: Final = 1
_SEQUENTIAL: Final = 2
_NOT_FIRST: Final = frozenset((0, int(ZkError.RUNTIME_INCONSISTENCY)))
_OF_WATCH: Final = {
    1: WatchType.CREATED,
    2: WatchType.DELETED,
    3: WatchType.CHANGED,
    4: WatchType.CHILDREN,
}
_ANYONE: Final = acl_records(OPEN)


def _head(xid: int, operation: str) -> bytes:
    return written("RequestHeader", xid=xid, type=OPERATIONS[operation].type)


PING: Final = _head(PINGED, "ping")
CLOSE: Final = _head(0, "closeSession")


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
    return written(
        "ConnectRequest",
        protocolVersion=0,
        lastZxidSeen=last_zxid,
        timeOut=timeout_ms,
        sessionId=session_id,
        passwd=password,
        readOnly=False,
    )


def opened(frame: bytes) -> Opened:
    """Read the answer to a connect request. Raises JuteError."""
    found = read(JuteReader(frame), "ConnectResponse")
    return Opened(found["timeOut"], found["sessionId"], found["passwd"] or b"")


def set_watches(
    last_zxid: int, *, data: Iterable[str], exist: Iterable[str], children: Iterable[str]
) -> bytes:
    """Set watches again on another connection; what happened since `last_zxid` fires at once."""
    return _head(_WATCHES_SET, "setWatches") + written(
        "SetWatches",
        relativeZxid=last_zxid,
        dataWatches=tuple(data),
        existWatches=tuple(exist),
        childWatches=tuple(children),
    )


def request(xid: int, asked: ZkRequest) -> bytes:
    """Encode one operation, or a multi of several."""
    operations = asked.operations
    if _is_multi(operations):
        return _head(xid, "multi") + b"".join(map(_part, operations)) + _MULTI_END
    return _head(xid, _NAMES[type(operations[0])]) + _body(operations[0])


def reply(frame: bytes) -> ReplyHead:
    """Read the head of what a server says. Raises JuteError."""
    reader = JuteReader(frame)
    head = read(reader, "ReplyHeader")
    return ReplyHead(head["xid"], head["zxid"], head["err"], reader)


def watch_event(found: ReplyHead) -> WatchEvent | None:
    """Read a watch that fired; None: the event is not of a znode. Raises JuteError."""
    event = read(found.rest, "WatcherEvent")
    kind = _OF_WATCH.get(event["type"])
    return None if kind is None else WatchEvent(-1, kind, event["path"])


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


def _part(one: Operation) -> bytes:
    kind = OPERATIONS[_NAMES[type(one)]].type
    return written("MultiHeader", type=kind, done=False, err=-1) + _body(one)


def _body(one: Operation) -> bytes:
    record, path = OPERATIONS[_NAMES[type(one)]].request, one.path
    match one:
        case Create():
            flags = _EPHEMERAL * one.ephemeral + _SEQUENTIAL * one.sequential
            return written(record, path=path, data=one.data, acl=_ANYONE, flags=flags)
        case SetData():
            return written(record, path=path, data=one.data, version=one.version)
        case Delete() | Check():
            return written(record, path=path, version=one.version)
        case GetData() | Exists() | GetChildren():
            return written(record, path=path, watch=one.watch)
        case Sync():
            return written(record, path=path)


def _multi_outcome(one: Operation, reader: JuteReader) -> ZkOutcome:
    head = read(reader, "MultiHeader")
    if head["type"] == _ERROR:
        return ZkOutcome(error=read(reader, "ErrorResponse")["err"])
    return ZkOutcome(error=head["err"]) if head["err"] else _outcome(one, reader)


def _outcome(one: Operation, reader: JuteReader) -> ZkOutcome:
    record = OPERATIONS[_NAMES[type(one)]].response
    found = read(reader, record) if record else {}
    return ZkOutcome(
        path=found.get("path", ""),
        data=found.get("data") or b"",
        children=tuple(sorted(found.get("children", ()))),
        stat=_stat(found["stat"]) if "stat" in found else None,
    )


def _stat(found: Mapping[str, int]) -> Stat:
    return Stat(
        found["czxid"],
        found["mzxid"],
        found["version"],
        found["ephemeralOwner"],
        found["numChildren"],
    )
