"""The content of ZooKeeper's messages as columns of the table `wire`; a multi has items.

Most operations of requests and transactions begin with a path. A multi has an operation for each
item. Sources: `zookeeper.jute` (`proto`, `txn`), `MultiOperationRecord`, `MultiResponse`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from fencepost.clusters.data_tree.transactions import (
    Change,
    CheckVersionTxn,
    CloseSessionTxn,
    CreateSessionTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    SetAclTxn,
    SetDataTxn,
)
from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.clusters.protocol.jute import JuteReader
from fencepost.clusters.protocol.zookeeper_records import NAMES as OPERATION_NAMES
from fencepost.clusters.protocol.zookeeper_records import OPERATIONS, read
from fencepost.clusters.protocol.zookeeper_transactions import decoded_transaction
from fencepost.nemesis.wire.frames import Header
from fencepost.nemesis.wire.rules import Direction
from fencepost.nemesis.wire.zookeeper.messages import NAMES, protocol_of, type_of

_Items = list[dict[str, Any]]
_CREATES: Final = ("create", "create2", "createContainer", "createTTL")
_FLAGS: Final = ("persistent", "ephemeral", "sequential", "ephemeral sequential", "container")
_VERSIONED: Final = ("getData", "setData", "setACL", "exists")
_ERRORS: Final = {
    0: "NONE",
    -1: "SYSTEMERROR",
    -2: "RUNTIMEINCONSISTENCY",
    -3: "DATAINCONSISTENCY",
    -4: "CONNECTIONLOSS",
    -5: "MARSHALLINGERROR",
    -6: "UNIMPLEMENTED",
    -7: "OPERATIONTIMEOUT",
    -8: "BADARGUMENTS",
    -13: "NEWCONFIGNOQUORUM",
    -14: "RECONFIGINPROGRESS",
    -100: "APIERROR",
    -101: "NONODE",
    -102: "NOAUTH",
    -103: "BADVERSION",
    -108: "NOCHILDRENFOREPHEMERALS",
    -110: "NODEEXISTS",
    -111: "NOTEMPTY",
    -112: "SESSIONEXPIRED",
    -113: "INVALIDCALLBACK",
    -114: "INVALIDACL",
    -115: "AUTHFAILED",
    -118: "SESSIONMOVED",
    -119: "NOTREADONLY",
    -120: "EPHEMERALONLOCALSESSION",
    -121: "NOWATCHER",
    -122: "REQUESTTIMEOUT",
    -123: "RECONFIGDISABLED",
    -124: "SESSIONCLOSEDREQUIRESASLAUTH",
    -125: "QUOTAEXCEEDED",
    -127: "THROTTLEDOP",
}

Content = tuple[Mapping[str, Any], _Items]

_LENGTH_BYTES: Final = 4
_EVENTS: Final = {
    -1: "None",
    1: "NodeCreated",
    2: "NodeDeleted",
    3: "NodeDataChanged",
    4: "NodeChildrenChanged",
    5: "DataWatchRemoved",
    6: "ChildWatchRemoved",
}
_STATES: Final = ("looking", "following", "leading", "observing")
_EPOCH_SHIFT: Final = 32
_OF_EPOCHS: Final = ("FOLLOWERINFO", "OBSERVERINFO", "LEADERINFO", "NEWLEADER")


def content(header: Header, direction: Direction, data: bytes) -> Content:
    """Return the columns and items of a whole message; raise JuteError."""
    name = NAMES.get(header.api_key, "")
    match protocol_of(name):
        case LinkProtocol.ZOOKEEPER_QUORUM:
            return _packet(name, data)
        case LinkProtocol.ZOOKEEPER_ELECTION:
            return _election(name, data)
        case _ if direction is Direction.REQUEST:
            return _request(name, header, data)
        case _:
            return _answer(name, header, data)


def _request(name: str, header: Header, data: bytes) -> Content:
    reader = JuteReader(data, _LENGTH_BYTES)
    if name == "createSession":
        asked = read(reader, "ConnectRequest")
        return {"zxid": asked["lastZxidSeen"], "detail": f"timeout {asked['timeOut']} ms"}, []
    reader.skip(2 * _LENGTH_BYTES)
    return _told(name, _operation(type_of(header.api_key), reader))


def _answer(name: str, header: Header, data: bytes) -> Content:
    reader = JuteReader(data, _LENGTH_BYTES)
    if name == "createSession":
        made = read(reader, "ConnectResponse")
        timeout_ms, session = made["timeOut"], made["sessionId"]
        error = "NONE" if timeout_ms > 0 else "SESSIONEXPIRED"
        said = f"session 0x{session & (1 << 64) - 1:x}, timeout {timeout_ms} ms"
        return {"error": error, "detail": said}, []
    head = read(reader, "ReplyHeader")
    zxid, code = head["zxid"], head["err"]
    if name == "WatcherEvent":
        event = read(reader, "WatcherEvent")
        kind = event["type"]
        return {"path": event["path"], "detail": _EVENTS.get(kind, str(kind))}, []
    columns = {"zxid": zxid, "error": _error_name(code)}
    if code and reader.ended:
        return columns, []
    own, items = _told(name, _answer_columns(type_of(header.api_key), reader))
    return {**columns, **own}, items


def _packet(name: str, data: bytes) -> Content:
    if name == "TREE":
        return {}, []
    packet = read(JuteReader(data), "QuorumPacket")
    zxid, said = packet["zxid"], packet["data"]
    columns: dict[str, Any] = {"zxid": zxid}
    if name in _OF_EPOCHS:
        columns["leader_epoch"] = zxid >> _EPOCH_SHIFT
    if not said:
        return columns, []
    if name in _TRANSACTIONS:
        own, items = _told("", _changes(said))
    elif name in _PACKETS:
        own, items = _PACKETS[name](JuteReader(said))
    else:
        return columns, []
    return {**columns, **own}, items


def _forwarded(reader: JuteReader) -> Content:
    reader.skip(8 + 4)
    return _told("", _operation(reader.i32(), reader))


def _learner(reader: JuteReader) -> Content:
    return {"broker_id": reader.i64()}, []


def _accepted(reader: JuteReader) -> Content:
    epoch = reader.i32()
    return {"detail": "epoch accepted before" if epoch < 0 else f"current epoch {epoch}"}, []


def _session(reader: JuteReader) -> Content:
    return {"detail": f"session 0x{reader.i64() & (1 << 64) - 1:x}"}, []


_TRANSACTIONS: Final = ("PROPOSAL", "INFORM")
_PACKETS: Final[Mapping[str, Callable[[JuteReader], Content]]] = {
    "REQUEST": _forwarded,
    "FOLLOWERINFO": _learner,
    "OBSERVERINFO": _learner,
    "ACKEPOCH": _accepted,
    "REVALIDATE": _session,
}


def _election(name: str, data: bytes) -> Content:
    if name == "InitialMessage":
        first = JuteReader(data).i64()
        return {"broker_id": JuteReader(data, 8).i64() if first < 0 else first}, []
    reader = JuteReader(data, _LENGTH_BYTES)
    state, leader, zxid, election_round = (
        reader.i32(),
        reader.i64(),
        reader.i64(),
        reader.i64(),
    )
    said = _STATES[state] if 0 <= state < len(_STATES) else f"state {state}"
    columns = {
        "leader_id": leader if abs(leader) < 1 << 31 else -1,
        "zxid": zxid,
        "detail": f"{said}, round {election_round}",
    }
    return columns if reader.ended else columns | {"leader_epoch": reader.i64()}, []


def _told(name: str, items: _Items) -> Content:
    """Return one operation as columns of its own, several as items."""
    if len(items) != 1:
        return {}, items
    (only,) = items
    return {key: value for key, value in only.items() if (key, value) != ("detail", name)}, []


def _error_name(code: int) -> str:
    """Return the error as `KeeperException.Code` writes it; NONE for what it calls OK."""
    return _ERRORS.get(code, f"ERROR {code}")


def _operation(number: int, reader: JuteReader) -> _Items:
    """Return the operations of a request of this type, each with its name in `detail`."""
    name = OPERATION_NAMES.get(number, "")
    if name in ("multi", "multiRead"):
        return _multi(reader, _operation)
    found: dict[str, Any] = {"detail": name}
    record = OPERATIONS[name].request if name else ""
    if record and name != "createSession":
        asked = read(reader, record)
        columns = {"zxid": "relativeZxid", "path": "path", "znode_version": "version"}
        found |= {column: asked[one] for column, one in columns.items() if one in asked}
        if 0 < asked.get("flags", 0) < len(_FLAGS):
            found["detail"] += f" {_FLAGS[asked['flags']]}"
    return [found]


def _changes(transaction: bytes) -> _Items:
    """Return the changes of a transaction, each with its name in `detail`; raise JuteError."""
    return [
        {"detail": name, **_change_columns(change)}
        for name, change in decoded_transaction(transaction).changes
    ]


def _answer_columns(number: int, reader: JuteReader) -> _Items:
    """Return what a request of this type was granted: paths that were made, versions."""
    name = OPERATION_NAMES.get(number, "")
    if name == "multi":
        return _multi(reader, _result)
    granted = _granted(name, reader)
    return [granted] if granted else []


def _change_columns(change: Change) -> dict[str, Any]:
    match change:
        case SetDataTxn() | SetAclTxn() | CheckVersionTxn():
            return {"path": change.path, "znode_version": change.version}
        case CreateTxn() | DeleteTxn():
            return {"path": change.path}
        case ErrorTxn():
            return {"error": _error_name(change.error)}
        case CreateSessionTxn() | CloseSessionTxn():
            return {}


def _multi(reader: JuteReader, part: Callable[[int, JuteReader], _Items]) -> _Items:
    items: _Items = []
    while True:
        head = read(reader, "MultiHeader")
        if head["done"]:
            return items
        items += part(head["type"], reader)


def _result(number: int, reader: JuteReader) -> _Items:
    name = OPERATION_NAMES.get(number, "")
    if name == "error":
        return [{"error": _error_name(read(reader, "ErrorResponse")["err"])}]
    return [{"detail": name, "error": "NONE", **_granted(name, reader)}]


def _granted(name: str, reader: JuteReader) -> dict[str, Any]:
    if name not in (*_CREATES, *_VERSIONED):
        return {}
    answer = read(reader, OPERATIONS[name].response)
    if name in _VERSIONED:
        return {"znode_version": answer["stat"]["version"]}
    return {"path": answer["path"]}
