"""The log of a simulated server as the file that a real one writes, for the very same witness.

The format is that of `clusters.zookeeper.stored.logs`; a transaction has no digest of the tree, as
before release 3.6.
"""

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final, assert_never
from zlib import adler32

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
    Transaction,
)

_FILE_HEADER: Final = struct.pack(">4siq", b"ZKLG", 2, 0)
_ENTRY: Final = struct.Struct(">qi")
_HEADER: Final = struct.Struct(">qiqqi")
_OPEN: Final = struct.pack(">ii", 1, 31) + b"\0\0\0\5world\0\0\0\6anyone"
"""The list of permissions by which anyone may do anything."""
_MULTI: Final = 14


def write_log(data: Path, transactions: Iterable[Transaction], *, origin_ms: int) -> None:
    """Write a data directory with these transactions. `origin_ms`: the wall clock at time 0."""
    home = data / "version-2"
    home.mkdir(parents=True)
    found = list(transactions)
    first = found[0].zxid if found else 0
    with (home / f"log.{first:x}").open("wb") as file:
        file.write(_FILE_HEADER)
        for one in found:
            entry = encoded_transaction(one, origin_ms=origin_ms)
            file.write(_ENTRY.pack(adler32(entry), len(entry)) + entry + b"B")


def encoded_transaction(transaction: Transaction, *, origin_ms: int) -> bytes:
    """Return a transaction as the log has it, header and body."""
    parts = [_encoded(one) for _, one in transaction.changes]
    if len(parts) == 1:
        ((kind, body),) = parts
    else:
        kind = _MULTI
        items = b"".join(struct.pack(">i", one) + _buffer(part) for one, part in parts)
        body = struct.pack(">i", len(parts)) + items
    time_ms = origin_ms + transaction.time_ms
    cxid, zxid = transaction.cxid, transaction.zxid
    return _HEADER.pack(transaction.session, cxid, zxid, time_ms, kind) + body


def _encoded(change: Change) -> tuple[int, bytes]:
    """Return the type of a change, and its body."""
    match change:
        case CreateTxn(path=path, data=data):
            count = change.parent_cversion
            is_ephemeral = struct.pack(">?i", change.ephemeral_owner != 0, count)
            return 1, _text(path) + _buffer(data or b"") + _OPEN + is_ephemeral
        case SetDataTxn(path=path, data=data, version=version):
            return 5, _text(path) + _buffer(data or b"") + struct.pack(">i", version)
        case DeleteTxn(path=path):
            return 2, _text(path)
        case CheckVersionTxn(path=path, version=version):
            return 13, _text(path) + struct.pack(">i", version)
        case CreateSessionTxn(timeout_ms=timeout_ms):
            return -10, struct.pack(">i", timeout_ms)
        case CloseSessionTxn(paths=paths):
            found = paths or ()
            return -11, struct.pack(">i", len(found)) + b"".join(map(_text, found))
        case ErrorTxn(error=error):
            return -1, struct.pack(">i", error)
        case SetAclTxn():
            raise AssertionError("no simulated client sets permissions")
        case _:
            assert_never(change)


def _text(value: str) -> bytes:
    return _buffer(value.encode())


def _buffer(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value
