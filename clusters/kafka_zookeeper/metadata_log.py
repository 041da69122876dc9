"""The metadata log of the ZooKeeper generation: METADATA_LOG from the disks of the ensemble.

A server's transaction logs that begin with the ensemble are the whole story. One that lost its
disk, or was away for long, took over a snapshot of its leader: its story begins with that, and what
its logs hold before it is left out. Such a gap is known by its zxids, which are counted from 1 in
each epoch; a gap that lasts until the end of an epoch cannot be told, but other servers' logs do
not agree with such a log (`checkers.metadata.log_of_record`).
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from clusters.kafka_zookeeper.metadata_changes import MetadataChanges
from clusters.port import NodeName
from clusters.protocol.zookeeper_transactions import Transaction, zxid_in
from clusters.witness.witness import Damage, WitnessReport
from clusters.zookeeper.stored.logs import (
    StoredError,
    log_files,
    stored_entries,
    transactions_in,
)
from clusters.zookeeper.stored.snapshots import NEVER, newest_tree
from clusters.zookeeper.view import zxid_text
from history.cluster_schema import METADATA_LOG
from history.failure import HarnessError
from history.table_file import whole_table_file

__all__ = ["metadata_rows", "write_metadata_log"]

_TABLE: Final = "metadata_log"
_SUBJECT: Final = "transaction logs"
_PIECE_ROWS: Final = 1 << 14
_EPOCH_BITS: Final = 32
_NO_DIGEST: Final = 0
"""A snapshot is no transaction."""


def write_metadata_log(
    node_data: Mapping[NodeName, Path], *, raw: Path, report: WitnessReport
) -> None:
    """Write the table metadata_log into a run's raw directory, and note in `report` what it has.

    `node_data` has each ZooKeeper server's data directory. Raises HarnessError if `raw` cannot be
    written, or a directory not be read.
    """
    try:
        raw.mkdir(parents=True, exist_ok=True)
        with whole_table_file(raw / f"{_TABLE}.parquet", _TABLE) as file:
            for node, data in sorted(node_data.items()):
                report.metadata_record_counts[node] = 0
                rows = metadata_rows(node, data, report=report)
                while piece := list(islice(rows, _PIECE_ROWS)):
                    file.add(pa.Table.from_pylist(piece, schema=METADATA_LOG))
                    report.metadata_record_counts[node] += len(piece)
    except OSError as error:
        raise HarnessError(
            f"cannot copy the metadata of the ensemble into {raw}: {error}"
        ) from error


def metadata_rows(node: NodeName, data: Path, *, report: WitnessReport) -> Iterator[dict[str, Any]]:
    """Yield a server's rows, those of a snapshot first; a damage is noted in `report`."""
    home = data / "version-2"
    changes = MetadataChanges(node)
    try:
        first = _first_without_gap(home)
        transactions = _transactions(home, first=first)
        one = next(transactions, None)
        snapshot = newest_tree(home, before=NEVER if first is None else first)
        if snapshot is not None:
            yield from changes.begin(
                snapshot, timestamp_ms=one.time_ms if one else 0, digest=_NO_DIGEST
            )
        elif first is not None and first != _first_of_epoch(first):
            what = f"the logs begin at {zxid_text(first)}, and no snapshot goes before that"
            report.damages.append(Damage(node=node, subject=_SUBJECT, what=what))
        while one is not None:
            yield from changes.of(one)
            one = next(transactions, None)
    except StoredError as error:
        report.damages.append(Damage(node=node, subject=_SUBJECT, what=str(error)))


def _transactions(home: Path, *, first: int | None) -> Iterator[Transaction]:
    """Yield the transactions from this one on, each once."""
    after = 0 if first is None else first - 1
    for log in log_files(home):
        for one in transactions_in(log):
            if one.zxid > after:
                after = one.zxid
                yield one


def _first_without_gap(home: Path) -> int | None:
    """Return the zxid from which on the logs have every transaction; None for empty logs.

    The logs are looked through up to any damage, which their reader reports.
    """
    first = last = None
    with suppress(StoredError):
        for zxid in _zxids(home):
            if last is None or (zxid > last + 1 and zxid != _first_of_epoch(zxid)):
                first = zxid
            last = max(zxid, last or 0)
    return first


def _zxids(home: Path) -> Iterator[int]:
    return (zxid_in(entry) for log in log_files(home) for _, entry in stored_entries(log))


def _first_of_epoch(zxid: int) -> int:
    return (zxid >> _EPOCH_BITS << _EPOCH_BITS) + 1
