"""Small disks of an ensemble's servers, as the tables of a run.

    disk("server-1", epoch=2, last=7)
    logged("server-1", 7, "setData", "/a", content=3)
    stored("server-1", "/a", value=b"1", version=1)

Transactions of one content are equal.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from fencepost.history.schema import TABLES

Row = dict[str, Any]


def disk(node: str, *, epoch: int | None = 1, last: int) -> Row:
    epochs = {"accepted_epoch": epoch, "current_epoch": epoch}
    return {"table": "server_disks", "node": node, "last_zxid": last, "session_count": 0, **epochs}


def logged(
    node: str, zxid: int, kind: str, path: str | None = None, *, content: int = 0, **columns: Any
) -> Row:
    told = {"item": 0, "session": 7, "cxid": 1, "timestamp_ms": zxid, **columns}
    row = {"table": "transaction_log", "node": node, "zxid": zxid, "type": kind, "path": path}
    return {**row, "digest": content, **told}


def stored(node: str, path: str, *, value: bytes = b"", **columns: Any) -> Row:
    numbers = ("czxid", "mzxid", "pzxid", "ctime_ms", "mtime_ms", "version", "cversion", "aversion")
    zeros = dict.fromkeys((*numbers, "ephemeral_owner"), 0)
    row = {"table": "znodes", "node": node, "path": path, "acl": "world:anyone:31"}
    return {**row, **zeros, "value": value, "digest": sum(value), **columns}


def fault(name: str) -> Row:
    return {
        "table": "faults",
        "index": 0,
        "fault": name,
        "targets": ["server-1"],
        "begin_ns": 0,
    }


def disks(*rows: Row) -> dict[str, pa.Table]:
    names = ("server_disks", "transaction_log", "znodes", "faults")
    return {name: _table(name, rows) for name in names}


def _table(name: str, rows: Sequence[Row]) -> pa.Table:
    own = [
        {column: value for column, value in row.items() if column != "table"}
        for row in rows
        if row["table"] == name
    ]
    return pa.Table.from_pylist(own, schema=TABLES[name])
