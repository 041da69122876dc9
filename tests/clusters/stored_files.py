"""Files of a server's data directory, written byte by byte as ZooKeeper's own classes do."""

import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from zlib import adler32

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
from fencepost.clusters.data_tree.tree import DataTree

TYPES: Mapping[str, int] = {
    "error": -1,
    "create": 1,
    "delete": 2,
    "setData": 5,
    "setACL": 7,
    "check": 13,
    "create2": 15,
    "reconfig": 16,
    "createContainer": 19,
    "deleteContainer": 20,
    "createTTL": 21,
    "createSession": -10,
    "closeSession": -11,
    "multi": 14,
}
ANYONE = (Acl(permissions=31, scheme="world", id="anyone"),)


def buffer(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def text(words: str) -> bytes:
    return buffer(words.encode())


def vector(elements: Iterable[bytes]) -> bytes:
    listed = list(elements)
    return struct.pack(">i", len(listed)) + b"".join(listed)


def acls(listed: tuple[Acl, ...]) -> bytes:
    return vector(
        struct.pack(">i", one.permissions) + text(one.scheme) + text(one.id) for one in listed
    )


def body(change: Change) -> bytes:
    match change:
        case CreateTxn():
            head = text(change.path) + buffer(change.data) + acls(change.acls)
            parent = struct.pack(">i", change.parent_cversion)
            if change.ephemeral_owner == CONTAINER_OWNER:
                return head + parent
            if change.ephemeral_owner >> 56 == TTL_OWNER >> 56:
                return head + parent + struct.pack(">q", change.ephemeral_owner - TTL_OWNER)
            return head + struct.pack(">?", change.ephemeral_owner != 0) + parent
        case DeleteTxn():
            return text(change.path)
        case SetDataTxn():
            return text(change.path) + buffer(change.data) + struct.pack(">i", change.version)
        case SetAclTxn():
            return text(change.path) + acls(change.acls) + struct.pack(">i", change.version)
        case CheckVersionTxn():
            return text(change.path) + struct.pack(">i", change.version)
        case CreateSessionTxn():
            return struct.pack(">i", change.timeout_ms)
        case CloseSessionTxn():
            return b"" if change.paths is None else vector(map(text, change.paths))
        case ErrorTxn():
            return struct.pack(">i", change.error)


def entry(one: Transaction) -> bytes:
    """Return a transaction as a log has it; one of several changes is a multi."""
    name, change = one.changes[0]
    kind, content = TYPES[name], body(change)
    if len(one.changes) > 1:
        kind = TYPES["multi"]
        content = vector(struct.pack(">i", TYPES[of]) + buffer(body(it)) for of, it in one.changes)
    digest = b"" if one.tree_digest is None else struct.pack(">iq", 2, one.tree_digest)
    return (
        struct.pack(">qiqqi", one.session, one.cxid, one.zxid, one.time_ms, kind) + content + digest
    )


def log(transactions: Iterable[Transaction], *, zeros: int = 100) -> bytes:
    framed = b"".join(
        struct.pack(">qi", adler32(found), len(found)) + found + b"B"
        for found in map(entry, transactions)
    )
    return struct.pack(">4siq", b"ZKLG", 2, 0) + framed + bytes(zeros)


def snapshot(tree: DataTree) -> bytes:
    """Return a snapshot as of 3.9; each list of permissions has the number of its znode."""
    lists = {number: one.acls for number, one in enumerate(tree.znodes.values(), 1)}
    nodes = b"".join(
        text("" if path == "/" else path)
        + buffer(one.data)
        + struct.pack(
            ">qqqqqiiiqq",
            *(number, one.czxid, one.mzxid, one.ctime_ms, one.mtime_ms),
            *(one.version, one.cversion, one.aversion, one.ephemeral_owner, one.pzxid),
        )
        for number, (path, one) in enumerate(tree.znodes.items(), 1)
    )
    content = (
        struct.pack(">4siq", b"ZKSN", 2, -1)
        + vector(struct.pack(">qi", *session) for session in tree.sessions.items())
        + vector(struct.pack(">q", number) + acls(found) for number, found in lists.items())
        + nodes
        + text("/")
    )
    for part in (b"", struct.pack(">qiq", tree.zxid, 2, 77), struct.pack(">q", tree.zxid)):
        content += part
        content += struct.pack(">q", adler32(content)) + text("/")
    return content


def home_of(data: Path) -> Path:
    home = data / "version-2"
    home.mkdir(parents=True, exist_ok=True)
    return home


def write_log(data: Path, *transactions: Transaction) -> Path:
    path = home_of(data) / f"log.{transactions[0].zxid:x}"
    path.write_bytes(log(transactions))
    return path


def write_snapshot(data: Path, tree: DataTree) -> Path:
    path = home_of(data) / f"snapshot.{tree.zxid:x}"
    path.write_bytes(snapshot(tree))
    return path


def made(
    zxid: int, *changes: tuple[str, Change], session: int = 7, digest: int | None = None
) -> Transaction:
    """Return a transaction; its own digest is not told apart by these tests."""
    return Transaction(
        session=session,
        cxid=1,
        zxid=zxid,
        time_ms=1_700_000_000_000 + zxid,
        changes=changes,
        digest=0,
        tree_digest=digest,
    )


def creation(
    path: str, *, data: bytes = b"", owner: int = 0, nth: int = 1
) -> tuple[str, CreateTxn]:
    return "create", CreateTxn(
        path=path, data=data, acls=ANYONE, ephemeral_owner=owner, parent_cversion=nth
    )


def setting(path: str, data: bytes, version: int) -> tuple[str, SetDataTxn]:
    return "setData", SetDataTxn(path=path, data=data, version=version)
