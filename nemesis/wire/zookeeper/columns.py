"""The content of ZooKeeper's messages as columns of the table `wire`; a multi has items.

Most operations of requests and transactions begin with a path. A multi has an operation for each
item. Sources: `zookeeper.jute` (`proto`, `txn`), `MultiOperationRecord`, `MultiResponse`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from clusters.data_tree.transactions import (
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
from clusters.link_protocol import LinkProtocol
from clusters.protocol.jute import JuteReader
from clusters.protocol.zookeeper_transactions import decoded_transaction
from nemesis.wire.frames import Header
from nemesis.wire.rules import Direction
from nemesis.wire.zookeeper.messages import CLIENT, NAMES, protocol_of, type_of

_Items = list[dict[str, Any]]
_NAMES: Final = {type_of(key): name for name, key in CLIENT.items()} | {-1: "error"}
_CREATES: Final = ("create", "create2", "createContainer", "createTTL")
_PATHLESS: Final = frozenset(
    ("auth", "closeSession", "createSession", "ping", "reconfig", "sasl", "whoAmI", "error")
)
_FLAGS: Final = ("persistent", "ephemeral", "sequential", "ephemeral sequential", "container")
_VERSION_IN_STAT: Final = 32
_STAT_BYTES: Final = 68
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
        reader.i32()
        seen, timeout_ms = reader.i64(), reader.i32()
        return {"zxid": seen, "detail": f"timeout {timeout_ms} ms"}, []
    reader.skip(2 * _LENGTH_BYTES)
    return _told(name, _operation(type_of(header.api_key), reader))


def _answer(name: str, header: Header, data: bytes) -> Content:
    reader = JuteReader(data, _LENGTH_BYTES)
    if name == "createSession":
        reader.i32()
        timeout_ms, session = reader.i32(), reader.i64()
        error = "NONE" if timeout_ms > 0 else "SESSIONEXPIRED"
        said = f"session 0x{session & (1 << 64) - 1:x}, timeout {timeout_ms} ms"
        return {"error": error, "detail": said}, []
    reader.i32()
    zxid, code = reader.i64(), reader.i32()
    if name == "WatcherEvent":
        kind, _ = reader.i32(), reader.i32()
        return {"path": reader.text(), "detail": _EVENTS.get(kind, str(kind))}, []
    columns = {"zxid": zxid, "error": _error_name(code)}
    if code and reader.ended:
        return columns, []
    own, items = _told(name, _answer_columns(type_of(header.api_key), reader))
    return {**columns, **own}, items


def _packet(name: str, data: bytes) -> Content:
    if name == "TREE":
        return {}, []
    reader = JuteReader(data)
    reader.i32()
    zxid = reader.i64()
    columns: dict[str, Any] = {"zxid": zxid}
    if name in _OF_EPOCHS:
        columns["leader_epoch"] = zxid >> _EPOCH_SHIFT
    said = reader.buffer()
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
    name = _NAMES.get(number, "")
    if name in ("multi", "multiRead"):
        return _multi(reader, _operation)
    found: dict[str, Any] = {"detail": name}
    if name in ("setWatches", "setWatches2"):
        return [found | {"zxid": reader.i64()}]
    if name in _PATHLESS or not name:
        return [found]
    found["path"] = reader.text()
    if name in ("setData", *_CREATES):
        reader.buffer()
    if name in ("setACL", *_CREATES):
        _pass_acl(reader)
    if name in ("setData", "setACL", "delete", "check"):
        found["znode_version"] = reader.i32()
    if name in _CREATES:
        flags = reader.i32()
        found["detail"] += f" {_FLAGS[flags]}" if 0 < flags < len(_FLAGS) else ""
    return [found]


def _changes(transaction: bytes) -> _Items:
    """Return the changes of a transaction, each with its name in `detail`; raise JuteError."""
    return [
        {"detail": name, **_change_columns(change)}
        for name, change in decoded_transaction(transaction).changes
    ]


def _answer_columns(number: int, reader: JuteReader) -> _Items:
    """Return what a request of this type was granted: paths that were made, versions."""
    name = _NAMES.get(number, "")
    if name == "multi":
        return _multi(reader, _result)
    if name == "getData":
        reader.buffer()
    if name in ("getData", "setData", "setACL", "exists"):
        return [{"znode_version": _stat_version(reader)}]
    return [{"path": reader.text()}] if name in _CREATES else []


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
        number, done, _ = reader.i32(), reader.flag(), reader.i32()
        if done:
            return items
        items += part(number, reader)


def _result(number: int, reader: JuteReader) -> _Items:
    name = _NAMES.get(number, "")
    found: dict[str, Any] = {"detail": name, "error": "NONE"}
    if name == "error":
        return [{"error": _error_name(reader.i32())}]
    if name in _CREATES:
        found["path"] = reader.text()
    if name in ("setData", "setACL"):
        found["znode_version"] = _stat_version(reader)
    elif name in _CREATES and name != "create":
        reader.skip(_STAT_BYTES)
    return [found]


def _stat_version(reader: JuteReader) -> int:
    begin = reader.at
    reader.skip(_VERSION_IN_STAT)
    version = reader.i32()
    reader.skip(begin + _STAT_BYTES - reader.at)
    return version


def _pass_acl(reader: JuteReader) -> None:
    reader.vector(lambda: (reader.i32(), reader.text(), reader.text()))
