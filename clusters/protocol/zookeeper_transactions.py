"""A transaction of ZooKeeper's as values, from the bytes of its log and back.

A transaction is a header (session, its number there, zxid, time, type), a body by the type, and
from 3.6 on the digest that the leader's tree had afterwards (`org.apache.zookeeper.txn`,
`server.util.SerializeUtils`). A `multi` holds several changes of one zxid, all made or all refused.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final, assert_never

from fencepost.clusters.data_tree.transactions import (
    CONTAINER_OWNER,
    TTL_OWNER,
    Acl,
    Change,
    CheckVersionTxn,
    CloseSessionTxn,
    CreateSessionTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    SetAclTxn,
    SetDataTxn,
    Transaction,
)
from fencepost.clusters.protocol.jute import JuteError, JuteReader
from fencepost.clusters.protocol.zookeeper_records import NAMES, OPERATIONS, head_of, read, written

_HEADER: Final = head_of("TxnHeader")
_TREE_DIGEST: Final = head_of("TxnDigest")
_TREE_DIGEST_VERSION: Final = 2
_DIGEST_BYTES: Final = 8
_MULTI: Final = OPERATIONS["multi"].type
_CLOSE_SESSION: Final = OPERATIONS["closeSession"].type


def decoded_transaction(data: bytes) -> Transaction:
    """Return the transaction of a log's entry. Raises JuteError for an unknown one."""
    jute = JuteReader(data)
    jute.skip(_HEADER.size)
    session, cxid, zxid, time_ms, kind = _HEADER.unpack_from(data)
    changes: tuple[tuple[str, Change], ...]
    if kind == _MULTI:
        parts = read(jute, "MultiTxn")["txns"]
        changes = tuple(
            _change(part["type"], JuteReader(part["data"] or b""), session) for part in parts
        )
    elif kind == _CLOSE_SESSION and _without_paths(data[jute.at :]):
        changes = (("closeSession", CloseSessionTxn(paths=None)),)
    else:
        changes = (_change(kind, jute, session),)
    body, rest = data[: jute.at], data[jute.at :]
    if kind == _MULTI and any(isinstance(change, ErrorTxn) for _, change in changes):
        body = data[: _HEADER.size]
    if rest and len(rest) != _TREE_DIGEST.size:
        raise JuteError(f"transaction {zxid:#x} has {len(rest)} bytes behind its end")
    return Transaction(
        session=session,
        cxid=cxid,
        zxid=zxid,
        time_ms=time_ms,
        changes=changes,
        digest=int.from_bytes(sha256(body).digest()[:_DIGEST_BYTES], signed=True),
        tree_digest=_TREE_DIGEST.unpack(rest)[1] if rest else None,
    )


def encoded_transaction(transaction: Transaction) -> bytes:
    """Return the entry of a log that has this transaction; several changes are a multi.

    Without a digest of the tree, as before release 3.6.
    """
    changes = transaction.changes
    kind, body = OPERATIONS[changes[0][0]].type, _body(*changes[0])
    if len(changes) > 1:
        parts = [{"type": OPERATIONS[one].type, "data": _body(one, it)} for one, it in changes]
        kind, body = _MULTI, written("MultiTxn", txns=parts)
    session, cxid, zxid = transaction.session, transaction.cxid, transaction.zxid
    return _HEADER.pack(session, cxid, zxid, transaction.time_ms, kind) + body


def zxid_in(data: bytes) -> int:
    """Return the zxid of a log's entry, the rest of it undecoded; 0 if it is too short for one."""
    return int(_HEADER.unpack_from(data)[2]) if len(data) >= _HEADER.size else 0


def acls_of(listed: Iterable[Mapping[str, Any]]) -> tuple[Acl, ...]:
    """Return a list of permissions as values."""
    return tuple(Acl(permissions=one["perms"], **one["id"]) for one in listed)


def acl_records(acls: Iterable[Acl]) -> list[dict[str, Any]]:
    """Return a list of permissions as records."""
    return [{"perms": one.permissions, "id": {"scheme": one.scheme, "id": one.id}} for one in acls]


def _change(kind: int, jute: JuteReader, session: int) -> tuple[str, Change]:
    name = NAMES.get(kind, "")
    record = OPERATIONS[name].transaction if name else ""
    if not record or kind == _MULTI:
        raise JuteError(f"ZooKeeper has no transaction of type {kind}")
    return name, _value(record, read(jute, record), session)


def _without_paths(body: bytes) -> bool:
    """Return whether the end of a session says nothing but the digest of the tree, or nothing."""
    if len(body) != _TREE_DIGEST.size:
        return not body
    return bool(_TREE_DIGEST.unpack(body)[0] == _TREE_DIGEST_VERSION)


def _value(record: str, body: Mapping[str, Any], session: int) -> Change:
    match record:
        case "CreateTxn":
            return _creation(body, session if body["ephemeral"] else 0)
        case "CreateContainerTxn":
            return _creation(body, CONTAINER_OWNER)
        case "CreateTTLTxn":
            return _creation(body, TTL_OWNER | body["ttl"])
        case "DeleteTxn":
            return DeleteTxn(path=body["path"])
        case "SetDataTxn":
            return SetDataTxn(path=body["path"], data=body["data"], version=body["version"])
        case "SetACLTxn":
            acls = acls_of(body["acl"])
            return SetAclTxn(path=body["path"], acls=acls, version=body["version"])
        case "CheckVersionTxn":
            return CheckVersionTxn(path=body["path"], version=body["version"])
        case "CreateSessionTxn":
            return CreateSessionTxn(timeout_ms=body["timeOut"])
        case "CloseSessionTxn":
            return CloseSessionTxn(paths=tuple(body["paths2Delete"]))
        case _:
            return ErrorTxn(error=body["err"])


def _creation(body: Mapping[str, Any], owner: int) -> CreateTxn:
    return CreateTxn(
        path=body["path"],
        data=body["data"],
        acls=acls_of(body["acl"]),
        ephemeral_owner=owner,
        parent_cversion=body["parentCVersion"],
    )


def _body(name: str, change: Change) -> bytes:
    record = OPERATIONS[name].transaction
    match change:
        case CreateTxn():
            owner = change.ephemeral_owner
            own: dict[str, dict[str, Any]] = {
                "CreateTxn": {"ephemeral": owner != 0},
                "CreateContainerTxn": {},
                "CreateTTLTxn": {"ttl": owner - TTL_OWNER},
            }
            acl, count = acl_records(change.acls), change.parent_cversion
            made = {"path": change.path, "data": change.data, "acl": acl, "parentCVersion": count}
            return written(record, **made, **own[record])
        case DeleteTxn():
            return written(record, path=change.path)
        case SetDataTxn():
            return written(record, path=change.path, data=change.data, version=change.version)
        case SetAclTxn():
            acl = acl_records(change.acls)
            return written(record, path=change.path, acl=acl, version=change.version)
        case CheckVersionTxn():
            return written(record, path=change.path, version=change.version)
        case CreateSessionTxn():
            return written(record, timeOut=change.timeout_ms)
        case CloseSessionTxn():
            return b"" if change.paths is None else written(record, paths2Delete=change.paths)
        case ErrorTxn():
            return written(record, err=change.error)
        case _:
            assert_never(change)
