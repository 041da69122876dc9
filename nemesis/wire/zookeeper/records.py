"""The operations that requests and transactions of ZooKeeper carry, as columns of `wire`.

Most begin with a path. A multi has an operation for each item. Sources: `zookeeper.jute` (`proto`,
`txn`), `MultiOperationRecord`, `MultiResponse`.
"""

from collections.abc import Callable
from typing import Any, Final

from clusters.protocol.jute import JuteReader
from clusters.protocol.zookeeper_transactions import (
    Change,
    Check,
    CloseSession,
    Create,
    Delete,
    OpenSession,
    Refusal,
    SetAcl,
    SetData,
    decoded_transaction,
)
from nemesis.wire.zookeeper.messages import CLIENT, type_of

__all__ = ["Items", "answer_columns", "changes", "error_name", "operation"]

Items = list[dict[str, Any]]

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


def error_name(code: int) -> str:
    """Return the error as `KeeperException.Code` writes it; NONE for what it calls OK."""
    return _ERRORS.get(code, f"ERROR {code}")


def operation(number: int, reader: JuteReader) -> Items:
    """Return the operations of a request of this type, each with its name in `detail`."""
    name = _NAMES.get(number, "")
    if name in ("multi", "multiRead"):
        return _multi(reader, operation)
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


def changes(transaction: bytes) -> Items:
    """Return the changes of a transaction, each with its name in `detail`; raise JuteError."""
    return [
        {"detail": name, **_change_columns(change)}
        for name, change in decoded_transaction(transaction).changes
    ]


def answer_columns(number: int, reader: JuteReader) -> Items:
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
        case SetData() | SetAcl() | Check():
            return {"path": change.path, "znode_version": change.version}
        case Create() | Delete():
            return {"path": change.path}
        case Refusal():
            return {"error": error_name(change.error)}
        case OpenSession() | CloseSession():
            return {}


def _multi(reader: JuteReader, part: Callable[[int, JuteReader], Items]) -> Items:
    items: Items = []
    while True:
        number, done, _ = reader.i32(), reader.flag(), reader.i32()
        if done:
            return items
        items += part(number, reader)


def _result(number: int, reader: JuteReader) -> Items:
    name = _NAMES.get(number, "")
    found: dict[str, Any] = {"detail": name, "error": "NONE"}
    if name == "error":
        return [{"error": error_name(reader.i32())}]
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
