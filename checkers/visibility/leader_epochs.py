"""Leader epochs in reads of metadata: within one topic id they only grow.

The same question as of topics (`newer.first_known_above`), with the epoch itself as the rank: no
write has to be known. So it also covers the topics of records, which the harness watches.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.visibility.newer import NONE, first_known_above

__all__ = ["epochs_that_went_back"]

_COLUMNS = ("read", "process", "call_ns", "return_ns", "leader_epoch")


def epochs_that_went_back(describes: pa.Table, *, across: bool) -> tuple[list[dict[str, Any]], int]:
    """Rows of STALE_READS, and how many sightings were compared.

    `across`: against reads through other brokers, else through the same one.
    """
    kept = describes.filter(
        pc.and_(
            pc.is_valid(describes["topic_id"]),
            pc.greater_equal(pc.fill_null(describes["leader_epoch"], -1), 0),
        )
    )
    rows: list[dict[str, Any]] = []
    for partition in _by_partition(kept):
        rows += _went_back(partition, across=across)
    return rows, len(kept)


def _went_back(rows: pa.Table, *, across: bool) -> Iterator[dict[str, Any]]:
    first = rows.slice(0, 1).to_pylist()[0]
    columns = {name: rows[name].to_numpy().astype(np.int64) for name in _COLUMNS}
    epochs, return_ns = columns["leader_epoch"], columns["return_ns"]
    if epochs.min() == epochs.max():
        return
    nodes = np.array(rows["node"].to_pylist(), dtype=object)
    for node in np.unique(nodes):
        here = nodes == node
        mine, others = np.flatnonzero(here), np.flatnonzero(~here if across else here)
        claim = first_known_above(
            epochs[others],
            return_ns[others],
            asked=epochs[mine],
            before_ns=columns["call_ns"][mine],
        )
        for row, other in zip(mine[claim != NONE], others[claim[claim != NONE]], strict=True):
            yield {
                "key": f"{first['topic']}-{first['partition']}",
                "read": int(columns["read"][row]),
                "process": int(columns["process"][row]),
                "node": node,
                "call_ns": int(columns["call_ns"][row]),
                "seen": f"leader epoch {epochs[row]}",
                "lacks": f"leader epoch {epochs[other]}, as read {columns['read'][other]} through "
                f"{nodes[other]} had shown (process {columns['process'][other]})",
                "known_ns": int(return_ns[other]),
            }


def _by_partition(table: pa.Table) -> Iterator[pa.Table]:
    names = ("topic", "topic_id", "partition")
    table = table.sort_by([(name, "ascending") for name in (*names, "read")])
    if not len(table):
        return
    codes = [table[name].combine_chunks().dictionary_encode().indices.to_numpy() for name in names]
    new = np.any([np.diff(one, prepend=-1) != 0 for one in codes], axis=0)
    starts = np.flatnonzero(new)
    for start, end in zip(starts, np.append(starts[1:], len(table)), strict=True):
        yield table.slice(int(start), int(end - start))
