"""Leader epochs in reads of metadata: within one topic id they only grow.

The same question as of topics (`newer.first_known_above`), with the epoch itself as the rank: no
write has to be known. So it also covers the topics of records, which the harness watches.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from checkers.visibility.lacking import Lacking
from checkers.visibility.newer import NONE, first_known_above

__all__ = ["epochs_that_went_back"]

_COLUMNS: Final = ("read", "process", "call_ns", "return_ns", "leader_epoch")


def epochs_that_went_back(describes: pa.Table, *, across: bool) -> tuple[list[Lacking], int]:
    """Reads that went back, and how many sightings were compared.

    `across`: against reads through other brokers, else through the same one.
    """
    kept = describes.filter(
        pc.and_(
            pc.is_valid(describes["topic_id"]),
            pc.greater_equal(pc.fill_null(describes["leader_epoch"], -1), 0),
        )
    )
    found = [
        lacking
        for partition in _by_partition(kept)
        for lacking in _went_back(partition, across=across)
    ]
    return found, len(kept)


def _went_back(rows: pa.Table, *, across: bool) -> Iterator[Lacking]:
    columns = {name: rows[name].to_numpy().astype(np.int64) for name in _COLUMNS}
    epochs = columns["leader_epoch"]
    if epochs.min() == epochs.max():
        return
    nodes = np.array(rows["node"].to_pylist(), dtype=object)
    key = f"{rows['topic'][0]}-{rows['partition'][0]}"
    for node in np.unique(nodes):
        here = nodes == node
        mine, others = np.flatnonzero(here), np.flatnonzero(~here if across else here)
        claim = first_known_above(
            epochs[others],
            columns["return_ns"][others],
            asked=epochs[mine],
            before_ns=columns["call_ns"][mine],
        )
        lacking = claim != NONE
        yield _lacking(key, columns, nodes, stale=mine[lacking], newer=others[claim[lacking]])


def _lacking(
    key: str,
    columns: Mapping[str, NDArray[np.int64]],
    nodes: NDArray[np.object_],
    *,
    stale: NDArray[np.int64],
    newer: NDArray[np.int64],
) -> Lacking:
    def words(place: int) -> tuple[str, str]:
        row, other = stale[place], newer[place]
        newest = (
            f"leader epoch {columns['leader_epoch'][other]}, as read {columns['read'][other]} "
            f"through {nodes[other]} had shown (process {columns['process'][other]})"
        )
        return f"leader epoch {columns['leader_epoch'][row]}", newest

    return Lacking(
        key=key,
        read=columns["read"][stale],
        process=columns["process"][stale],
        node=nodes[stale],
        call_ns=columns["call_ns"][stale],
        known_ns=columns["return_ns"][newer],
        words=words,
    )


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
