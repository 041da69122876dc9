"""A transaction of ZooKeeper's as values, from the bytes of its log.

A transaction is a header (session, its number there, zxid, time, type), a body by the type, and
from 3.6 on the digest that the leader's tree had afterwards (`org.apache.zookeeper.txn`,
`server.util.SerializeUtils`). A `multi` holds several changes of one zxid, all made or all refused.
"""

import struct
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Final

from clusters.data_tree.transactions import (
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
from clusters.protocol.jute import JuteError, JuteReader

_HEADER: Final = struct.Struct(">qiqqi")
_TREE_DIGEST: Final = struct.Struct(">iq")
_TREE_DIGEST_VERSION: Final = 2
_DIGEST_BYTES: Final = 8


def decoded_transaction(data: bytes) -> Transaction:
    """Return the transaction of a log's entry. Raises JuteError for an unknown one."""
    jute = JuteReader(data)
    jute.skip(_HEADER.size)
    session, cxid, zxid, time_ms, kind = _HEADER.unpack_from(data)
    changes: tuple[tuple[str, Change], ...]
    if kind == _MULTI:
        pairs = jute.vector(lambda: (jute.i32(), jute.buffer() or b""))
        changes = tuple(_change(kind, JuteReader(body), session) for kind, body in pairs)
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


def zxid_in(data: bytes) -> int:
    """Return the zxid of a log's entry, the rest of it undecoded; 0 if it is too short for one."""
    return int(_HEADER.unpack_from(data)[2]) if len(data) >= _HEADER.size else 0


def read_acls(jute: JuteReader) -> tuple[Acl, ...]:
    """Read a list of permissions."""
    return tuple(
        jute.vector(lambda: Acl(permissions=jute.i32(), scheme=jute.text(), id=jute.text()))
    )


def _change(kind: int, jute: JuteReader, session: int) -> tuple[str, Change]:
    if kind not in _BODIES:
        raise JuteError(f"ZooKeeper has no transaction of type {kind}")
    name, read = _BODIES[kind]
    return name, read(jute, session)


def _without_paths(body: bytes) -> bool:
    """Return whether the end of a session says nothing but the digest of the tree, or nothing."""
    if len(body) != _TREE_DIGEST.size:
        return not body
    return bool(_TREE_DIGEST.unpack(body)[0] == _TREE_DIGEST_VERSION)


def _create(jute: JuteReader, session: int) -> Change:
    return CreateTxn(
        path=jute.text(),
        data=jute.buffer(),
        acls=read_acls(jute),
        ephemeral_owner=session if jute.flag() else 0,
        parent_cversion=jute.i32(),
    )


def _create_container(jute: JuteReader, _session: int) -> Change:
    return CreateTxn(
        path=jute.text(),
        data=jute.buffer(),
        acls=read_acls(jute),
        ephemeral_owner=CONTAINER_OWNER,
        parent_cversion=jute.i32(),
    )


def _create_ttl(jute: JuteReader, _session: int) -> Change:
    return CreateTxn(
        path=jute.text(),
        data=jute.buffer(),
        acls=read_acls(jute),
        parent_cversion=jute.i32(),
        ephemeral_owner=TTL_OWNER | jute.i64(),
    )


def _delete(jute: JuteReader, _session: int) -> Change:
    return DeleteTxn(path=jute.text())


def _set_data(jute: JuteReader, _session: int) -> Change:
    return SetDataTxn(path=jute.text(), data=jute.buffer(), version=jute.i32())


def _set_acl(jute: JuteReader, _session: int) -> Change:
    return SetAclTxn(path=jute.text(), acls=read_acls(jute), version=jute.i32())


def _check(jute: JuteReader, _session: int) -> Change:
    return CheckVersionTxn(path=jute.text(), version=jute.i32())


def _open_session(jute: JuteReader, _session: int) -> Change:
    return CreateSessionTxn(timeout_ms=jute.i32())


def _close_session(jute: JuteReader, _session: int) -> Change:
    return CloseSessionTxn(paths=tuple(jute.vector(jute.text)))


def _refusal(jute: JuteReader, _session: int) -> Change:
    return ErrorTxn(error=jute.i32())


_MULTI: Final = 14
_CLOSE_SESSION: Final = -11
_BODIES: Final[Mapping[int, tuple[str, Callable[[JuteReader, int], Change]]]] = {
    -1: ("error", _refusal),
    1: ("create", _create),
    2: ("delete", _delete),
    5: ("setData", _set_data),
    7: ("setACL", _set_acl),
    13: ("check", _check),
    15: ("create2", _create),
    16: ("reconfig", _set_data),
    19: ("createContainer", _create_container),
    20: ("deleteContainer", _delete),
    21: ("createTTL", _create_ttl),
    -10: ("createSession", _open_session),
    _CLOSE_SESSION: ("closeSession", _close_session),
}
