"""Transactions that are open in the logs as the nodes left them, bucket by bucket.

A marker ends whatever its producer has open in that partition. So a transaction is open where
transactional records of a producer follow its last marker. It counts if it is open on every replica
that has its first record: one that was behind when it stopped may only lack the marker.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.runner.tables import SealedFile, source_in

_VALUES_MAX: Final = 5
_COLUMNS: Final = (
    *("key", "node", "offset", "control"),
    *("transactional", "producer_id", "producer_epoch", "value"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """Transactional records of a producer that no marker of its follows."""

    key: str
    producer_id: int
    producer_epoch: int
    """The producer epoch of the first of them."""
    first_offset: int
    record_count: int
    nodes: tuple[str, ...]
    """The nodes on whose disks it is open: all that have its first record."""
    values: tuple[int, ...]
    """The first few."""


def open_in(file: SealedFile) -> list[OpenTransaction]:
    """Return the open transactions of a file of `replica_records`, a sixteenth of the logs.

    In memory is what belongs to transactions.
    """
    batches = source_in(file, "replica_records")(_COLUMNS)
    return list(open_transactions(pa.Table.from_batches(map(_of_transactions, batches))))


def _of_transactions(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.filter(pc.or_(rows.column("control"), rows.column("transactional")))


def open_transactions(replica_records: pa.Table) -> Iterator[OpenTransaction]:
    """Yield the open transactions of these logs, by key and offset; rows in schema order."""
    logs: dict[str, dict[str, _Log]] = {}
    for rows in _stretches(replica_records.select(list(_COLUMNS)).combine_chunks()):
        key, node = rows["key"][0].as_py(), rows["node"][0].as_py()
        of_nodes = logs.setdefault(key, {})
        assert node not in of_nodes, f"the log of {key} on {node} comes in two pieces"
        of_nodes[node] = _Log.of(rows)
    for key, of_nodes in logs.items():
        yield from _of_key(key, of_nodes)


def _stretches(ordered: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of each key and node; these come together."""
    if not len(ordered):
        return
    codes = [
        pc.dictionary_encode(ordered[name].combine_chunks()).indices.to_numpy()
        for name in ("key", "node")
    ]
    changes = np.any([np.diff(code, prepend=-1) != 0 for code in codes], axis=0)
    starts = np.flatnonzero(changes).tolist()
    for start, end in zip(starts, [*starts[1:], len(ordered)], strict=True):
        yield ordered.slice(start, end - start)


@dataclass(frozen=True, slots=True)
class _Log:
    """One replica's log of a key."""

    offset: NDArray[np.int64]
    producer: NDArray[np.int64]
    epoch: NDArray[np.int64]
    marker: NDArray[np.bool_]
    transactional: NDArray[np.bool_]
    value: NDArray[np.int64]

    @staticmethod
    def of(rows: pa.Table) -> "_Log":
        control = rows["control"].to_numpy()
        return _Log(
            offset=rows["offset"].to_numpy(),
            producer=rows["producer_id"].to_numpy(),
            epoch=rows["producer_epoch"].to_numpy(),
            marker=control,
            transactional=rows["transactional"].to_numpy() & ~control,
            value=rows["value"].fill_null(-1).to_numpy(),
        )

    def open_rows(self) -> dict[int, NDArray[np.int64]]:
        """Return the rows of each producer that follow its last marker, where there are any."""
        found = {}
        for producer in np.unique(self.producer[self.transactional]):
            mine = self.producer == producer
            markers = np.flatnonzero(mine & self.marker)
            since = int(markers[-1]) if len(markers) else -1
            rows = np.flatnonzero(mine & self.transactional)
            if len(rows := rows[rows > since]):
                found[int(producer)] = rows
        return found


def _of_key(key: str, logs: dict[str, _Log]) -> Iterator[OpenTransaction]:
    open_rows = {node: log.open_rows() for node, log in logs.items()}
    firsts = {
        (int(logs[node].offset[rows[0]]), producer)
        for node, producers in open_rows.items()
        for producer, rows in producers.items()
    }
    for first_offset, producer in sorted(firsts):
        having = [node for node, log in logs.items() if first_offset in log.offset]
        log, rows = _longest(having, producer, logs, open_rows)
        if all(_is_open_at(open_rows[node], producer, logs[node], first_offset) for node in having):
            values = [int(value) for value in log.value[rows][:_VALUES_MAX] if value >= 0]
            yield OpenTransaction(
                key=key,
                producer_id=producer,
                producer_epoch=int(log.epoch[rows[0]]),
                first_offset=first_offset,
                record_count=len(rows),
                nodes=tuple(having),
                values=tuple(values),
            )


def _is_open_at(
    open_rows: dict[int, NDArray[np.int64]], producer: int, log: _Log, first_offset: int
) -> bool:
    rows = open_rows.get(producer)
    return rows is not None and first_offset in log.offset[rows]


def _longest(
    nodes: list[str],
    producer: int,
    logs: dict[str, _Log],
    open_rows: dict[str, dict[int, NDArray[np.int64]]],
) -> tuple[_Log, NDArray[np.int64]]:
    """Return the log with the most open records of the producer, and their rows."""
    holders = [node for node in nodes if producer in open_rows[node]]
    best = max(holders, key=lambda node: len(open_rows[node][producer]))
    return logs[best], open_rows[best][producer]
