"""The log of a simulated server as the file that a real one writes, for the very same witness.

The format is that of `clusters.zookeeper.stored.logs`; a transaction has no digest of the tree, as
before release 3.6.
"""

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final, assert_never
from zlib import adler32

from clusters.simulation.zookeeper.transactions import (
    Checked,
    CommittedTransaction,
    Created,
    Deleted,
    Ended,
    Made,
    Refused,
    Started,
    Updated,
)

_FILE_HEADER: Final = struct.pack(">4siq", b"ZKLG", 2, 0)
_ENTRY: Final = struct.Struct(">qi")
_HEADER: Final = struct.Struct(">qiqqi")
_OPEN: Final = struct.pack(">ii", 1, 31) + b"\0\0\0\5world\0\0\0\6anyone"
"""The list of permissions by which anyone may do anything."""
_MULTI: Final = 14


def write_log(data: Path, transactions: Iterable[CommittedTransaction], *, origin_ms: int) -> None:
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


def encoded_transaction(transaction: CommittedTransaction, *, origin_ms: int) -> bytes:
    """Return a transaction as the log has it, header and body."""
    parts = [_encoded(one) for one in transaction.made]
    if len(parts) == 1:
        ((kind, body),) = parts
    else:
        kind = _MULTI
        items = b"".join(struct.pack(">i", one) + _buffer(part) for one, part in parts)
        body = struct.pack(">i", len(parts)) + items
    time_ms = origin_ms + transaction.time_ms
    xid, zxid = transaction.xid, transaction.zxid
    return _HEADER.pack(transaction.session, xid, zxid, time_ms, kind) + body


def _encoded(made: Made) -> tuple[int, bytes]:
    """Return the type of a change, and its body."""
    match made:
        case Created(path, data, owner, count):
            is_ephemeral = struct.pack(">?i", owner != 0, count)
            return 1, _text(path) + _buffer(data) + _OPEN + is_ephemeral
        case Updated(path, data, version):
            return 5, _text(path) + _buffer(data) + struct.pack(">i", version)
        case Deleted(path):
            return 2, _text(path)
        case Checked(path, version):
            return 13, _text(path) + struct.pack(">i", version)
        case Started(timeout_ms):
            return -10, struct.pack(">i", timeout_ms)
        case Ended(paths):
            return -11, struct.pack(">i", len(paths)) + b"".join(map(_text, paths))
        case Refused(error):
            return -1, struct.pack(">i", error)
        case _:
            assert_never(made)


def _text(value: str) -> bytes:
    return _buffer(value.encode())


def _buffer(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value
