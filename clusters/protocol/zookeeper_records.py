"""ZooKeeper's records: their layouts in jute, and which operation has which of them.

The one table of them: the client port's codec, logs and snapshots on disks, and the wire's columns
are read, and written, by it. Sources: `zookeeper.jute` and `ZooDefs.OpCode` of ZooKeeper 3.9.
"""

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from fencepost.clusters.protocol.jute import JuteReader

_LAYOUTS: Final = """
Id: ustring scheme, ustring id
ACL: int perms, Id id
Stat: long czxid, long mzxid, long ctime, long mtime, int version, int cversion, int aversion, \
long ephemeralOwner, int dataLength, int numChildren, long pzxid
StatPersisted: long czxid, long mzxid, long ctime, long mtime, int version, int cversion, \
int aversion, long ephemeralOwner, long pzxid

ConnectRequest: int protocolVersion, long lastZxidSeen, int timeOut, long sessionId, \
buffer passwd, boolean readOnly
ConnectResponse: int protocolVersion, int timeOut, long sessionId, buffer passwd
RequestHeader: int xid, int type
ReplyHeader: int xid, long zxid, int err
MultiHeader: int type, boolean done, int err
WatcherEvent: int type, int state, ustring path
ErrorResponse: int err

CreateRequest: ustring path, buffer data, vector<ACL> acl, int flags
CreateTTLRequest: ustring path, buffer data, vector<ACL> acl, int flags, long ttl
PathRequest: ustring path
VersionRequest: ustring path, int version
WatchRequest: ustring path, boolean watch
SetDataRequest: ustring path, buffer data, int version
SetACLRequest: ustring path, vector<ACL> acl, int version
TypeRequest: ustring path, int type
SetWatches: long relativeZxid, vector<ustring> dataWatches, vector<ustring> existWatches, \
vector<ustring> childWatches
SetWatches2: long relativeZxid, vector<ustring> dataWatches, vector<ustring> existWatches, \
vector<ustring> childWatches, vector<ustring> persistentWatches, \
vector<ustring> persistentRecursiveWatches

CreateResponse: ustring path
Create2Response: ustring path, Stat stat
StatResponse: Stat stat
GetDataResponse: buffer data, Stat stat
GetChildrenResponse: vector<ustring> children
GetChildren2Response: vector<ustring> children, Stat stat

TxnHeader: long clientId, int cxid, long zxid, long time, int type
TxnDigest: int version, long treeDigest
CreateTxn: ustring path, buffer data, vector<ACL> acl, boolean ephemeral, int parentCVersion
CreateContainerTxn: ustring path, buffer data, vector<ACL> acl, int parentCVersion
CreateTTLTxn: ustring path, buffer data, vector<ACL> acl, int parentCVersion, long ttl
DeleteTxn: ustring path
SetDataTxn: ustring path, buffer data, int version
SetACLTxn: ustring path, vector<ACL> acl, int version
CheckVersionTxn: ustring path, int version
CreateSessionTxn: int timeOut
CloseSessionTxn: vector<ustring> paths2Delete
ErrorTxn: int err
Txn: int type, buffer data
MultiTxn: vector<Txn> txns

FileHeader: int magic, int version, long dbid
SnapshotSession: long id, int timeOut
SnapshotAcls: long number, vector<ACL> acl
QuorumPacket: int type, long zxid, buffer data, vector<Id> authinfo
"""
"""A line for each record. PathRequest, VersionRequest, WatchRequest, TypeRequest and StatResponse
stand for several of one layout; those of a snapshot have no name in its source."""


def _parsed(layouts: str) -> Mapping[str, tuple[tuple[str, str], ...]]:
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for line in filter(None, layouts.splitlines()):
        record, _, fields = line.partition(": ")
        pairs = [field.split(" ") for field in fields.split(", ")]
        found[record] = tuple((kind, name) for kind, name in pairs)
    return found


RECORDS: Final = _parsed(_LAYOUTS)
"""(kind, name) of each field in order, by the name of the record."""


class OperationRecord(NamedTuple):
    """A request type: its number, and the records of request and answer; empty if it has none."""

    type: int
    request: str = ""
    response: str = ""
    transaction: str = ""


OPERATIONS: Final[Mapping[str, OperationRecord]] = {
    "error": OperationRecord(-1, "", "ErrorResponse", "ErrorTxn"),
    "closeSession": OperationRecord(-11, "", "", "CloseSessionTxn"),
    "createSession": OperationRecord(-10, "ConnectRequest", "ConnectResponse", "CreateSessionTxn"),
    "create": OperationRecord(1, "CreateRequest", "CreateResponse", "CreateTxn"),
    "delete": OperationRecord(2, "VersionRequest", "", "DeleteTxn"),
    "exists": OperationRecord(3, "WatchRequest", "StatResponse"),
    "getData": OperationRecord(4, "WatchRequest", "GetDataResponse"),
    "setData": OperationRecord(5, "SetDataRequest", "StatResponse", "SetDataTxn"),
    "getACL": OperationRecord(6, "PathRequest"),
    "setACL": OperationRecord(7, "SetACLRequest", "StatResponse", "SetACLTxn"),
    "getChildren": OperationRecord(8, "WatchRequest", "GetChildrenResponse"),
    "sync": OperationRecord(9, "PathRequest"),
    "ping": OperationRecord(11),
    "getChildren2": OperationRecord(12, "WatchRequest", "GetChildren2Response"),
    "check": OperationRecord(13, "VersionRequest", "", "CheckVersionTxn"),
    "multi": OperationRecord(14, "", "", "MultiTxn"),
    "create2": OperationRecord(15, "CreateRequest", "Create2Response", "CreateTxn"),
    "reconfig": OperationRecord(16, "", "", "SetDataTxn"),
    "checkWatches": OperationRecord(17, "TypeRequest"),
    "removeWatches": OperationRecord(18, "TypeRequest"),
    "createContainer": OperationRecord(
        19, "CreateRequest", "Create2Response", "CreateContainerTxn"
    ),
    "deleteContainer": OperationRecord(20, "PathRequest", "", "DeleteTxn"),
    "createTTL": OperationRecord(21, "CreateTTLRequest", "Create2Response", "CreateTTLTxn"),
    "multiRead": OperationRecord(22),
    "auth": OperationRecord(100),
    "setWatches": OperationRecord(101, "SetWatches"),
    "sasl": OperationRecord(102),
    "getEphemerals": OperationRecord(103, "PathRequest"),
    "getAllChildrenNumber": OperationRecord(104, "PathRequest"),
    "setWatches2": OperationRecord(105, "SetWatches2"),
    "addWatch": OperationRecord(106, "TypeRequest"),
    "whoAmI": OperationRecord(107),
}
"""Types by name, as `ZooDefs.OpCode` has them. Records that nothing reads are left out."""
NAMES: Final[Mapping[int, str]] = {one.type: name for name, one in OPERATIONS.items()}
"""Names by type."""

_FIXED: Final = {"int": "i", "long": "q", "boolean": "?"}


def read(jute: JuteReader, record: str) -> dict[str, Any]:
    """Read a record; return its values by name. Raises JuteError."""
    return {name: reader(jute) for name, reader in _READERS[record]}


def written(record: str, **values: Any) -> bytes:
    """Return the bytes of a record with these values, all of them."""
    assert len(values) == len(RECORDS[record]), (record, values)
    return b"".join(_written(kind, values[name]) for kind, name in RECORDS[record])


@cache
def head_of(record: str, *, framed: bool = False) -> struct.Struct:
    """Return the layout of the numbers with which a record begins, up to the first other value.

    `framed`: behind the four bytes of the length of a frame.
    """
    codes = "i" if framed else ""
    for kind, _ in RECORDS[record]:
        if kind not in _FIXED:
            break
        codes += _FIXED[kind]
    return struct.Struct(">" + codes)


def _reader(kind: str) -> Callable[[JuteReader], Any]:
    if kind.startswith("vector<"):
        item = _reader(kind[7:-1])
        return lambda jute: jute.vector(lambda: item(jute))
    return _SIMPLE.get(kind) or (lambda jute: read(jute, kind))


_SIMPLE: Final[Mapping[str, Callable[[JuteReader], Any]]] = {
    "int": JuteReader.i32,
    "long": JuteReader.i64,
    "boolean": JuteReader.flag,
    "buffer": JuteReader.buffer,
    "ustring": JuteReader.text,
}
_READERS: Final = {
    record: tuple((name, _reader(kind)) for kind, name in fields)
    for record, fields in RECORDS.items()
}


def _written(kind: str, value: Any) -> bytes:
    if kind in _FIXED:
        return struct.pack(">" + _FIXED[kind], value)
    if kind == "buffer":
        return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    if kind == "ustring":
        return _written("buffer", value.encode())
    if kind.startswith("vector<"):
        return struct.pack(">i", len(value)) + b"".join(_written(kind[7:-1], one) for one in value)
    return written(kind, **value)
