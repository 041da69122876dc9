"""The disks of an ensemble's stopped servers, as raw tables of a run.

A server would restore its newest whole snapshot and apply the logs behind it, and so its tree is
made here. The logs before that snapshot are read as well: they are the history of the ensemble. It
only reads there; a log that cannot be read to its end is a damage in the report.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from fencepost.clusters.data_tree.transactions import (
    Acl,
    Change,
    CheckVersionTxn,
    CloseSessionTxn,
    CreateSessionTxn,
    ErrorTxn,
    SetAclTxn,
    SetDataTxn,
    Transaction,
)
from fencepost.clusters.data_tree.tree import DataTree, Znode
from fencepost.clusters.port import NodeName
from fencepost.clusters.zookeeper.stored.logs import StoredError, log_files, transactions_in
from fencepost.clusters.zookeeper.stored.snapshots import newest_tree
from fencepost.clusters.zookeeper.transaction_log import holdings_of
from fencepost.clusters.zookeeper.view import zxid_text
from fencepost.history.failure import HarnessError
from fencepost.history.schema import TABLES
from fencepost.history.table_file import TableFile, whole_table_file

ENSEMBLE_DISK_TABLES: Final = ("server_disks", "transaction_log", "znodes")
"""The tables that are filled."""
_PIECE_ROWS: Final = 1 << 16
_VALUE_BYTES: Final = 256
_DIGEST_BYTES: Final = 8

_Row = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class DiskReport:
    """`clusters.system.Testimony`: the last transaction on each server's disk."""

    last_zxids: dict[NodeName, int] = field(default_factory=dict)
    transaction_count: int = 0
    damages: list[str] = field(default_factory=list)

    @property
    def damaged(self) -> tuple[str, ...]:
        """The things that could not be read, one sentence for each item."""
        return tuple(self.damages)

    @property
    def summary(self) -> str:
        """The amount that was read, in words."""
        ends = ", ".join(f"{node} at {zxid_text(z)}" for node, z in self.last_zxids.items())
        return f"the disks hold {self.transaction_count:,} transactions; the logs end: {ends}"


def write_server_disks(node_data: Mapping[NodeName, Path], raw: Path) -> DiskReport:
    """Write the tables server_disks, transaction_log and znodes into a run's raw directory.

    `node_data` has each server's data directory. Raises HarnessError if `raw` cannot be written, or
    a directory not be read.
    """
    report = DiskReport()
    try:
        raw.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            disks, log, znodes = (
                stack.enter_context(whole_table_file(raw / f"{name}.parquet", name))
                for name in ENSEMBLE_DISK_TABLES
            )
            for node, data in sorted(node_data.items()):
                home = data / "version-2"
                snapshot = newest_tree(home)
                tree = DataTree() if snapshot is None else snapshot
                first_zxid = None if snapshot is None else snapshot.zxid
                _add(log, "transaction_log", _logged(node, home, tree, report))
                _add(znodes, "znodes", _znodes(node, tree))
                _add(disks, "server_disks", [_disk(node, data, tree, first_zxid)])
                report.last_zxids[node] = tree.zxid
    except OSError as error:
        raise HarnessError(f"cannot copy the servers' disks into {raw}: {error}") from error
    return report


def _add(file: TableFile, name: str, rows: Iterable[_Row]) -> None:
    waiting = iter(rows)
    while piece := list(islice(waiting, _PIECE_ROWS)):
        file.add(pa.Table.from_pylist(piece, schema=TABLES[name]))


def _logged(node: NodeName, home: Path, tree: DataTree, report: DiskReport) -> Iterator[_Row]:
    """Yield the rows of a server's logs, and apply to its tree what is new to it."""
    try:
        for log in log_files(home):
            for transaction in transactions_in(log):
                yield from _rows(node, transaction)
                report.transaction_count += 1
                if transaction.zxid > tree.zxid:
                    tree.apply(transaction)
    except StoredError as error:
        report.damages.append(f"{node}: {error}")


def _rows(node: NodeName, transaction: Transaction) -> Iterator[_Row]:
    items = (one for name, change in transaction.changes for one in _items(name, change))
    for item, columns in enumerate(items):
        yield {
            "node": node,
            "zxid": transaction.zxid,
            "item": item,
            "session": transaction.session,
            "cxid": transaction.cxid,
            "timestamp_ms": transaction.time_ms,
            "digest": transaction.digest,
            **columns,
        }


def _items(name: str, change: Change) -> Iterator[_Row]:
    match change:
        case CloseSessionTxn():
            for path in change.paths or (None,):
                yield {"type": name, "path": path}
        case CreateSessionTxn():
            yield {"type": name}
        case ErrorTxn():
            yield {"type": name, "error": change.error}
        case SetDataTxn() | SetAclTxn() | CheckVersionTxn():
            yield {"type": name, "path": change.path, "version": change.version}
        case _:
            yield {"type": name, "path": change.path}


def _znodes(node: NodeName, tree: DataTree) -> Iterator[_Row]:
    for path, znode in sorted(tree.znodes.items()):
        session = znode.session
        yield {
            "node": node,
            "path": path,
            "czxid": znode.czxid,
            "mzxid": znode.mzxid,
            "pzxid": znode.pzxid,
            "ctime_ms": znode.ctime_ms,
            "mtime_ms": znode.mtime_ms,
            "version": znode.version,
            "cversion": znode.cversion,
            "aversion": znode.aversion,
            "ephemeral_owner": znode.ephemeral_owner,
            "session_open": None if session is None else session in tree.sessions,
            "acl": ",".join(map(_acl, znode.acls)),
            "value": None if znode.data is None else znode.data[:_VALUE_BYTES],
            "digest": _digest(znode),
        }


def _acl(acl: Acl) -> str:
    return f"{acl.scheme}:{acl.id}:{acl.permissions}"


def _digest(znode: Znode) -> int:
    return int.from_bytes(sha256(znode.data or b"").digest()[:_DIGEST_BYTES], signed=True)


def _disk(node: NodeName, data: Path, tree: DataTree, snapshot_zxid: int | None) -> _Row:
    accepted, current = (None if epoch < 0 else epoch for epoch in holdings_of(data).epochs)
    return {
        "node": node,
        "accepted_epoch": accepted,
        "current_epoch": current,
        "snapshot_zxid": snapshot_zxid,
        "last_zxid": tree.zxid,
        "session_count": len(tree.sessions),
    }
