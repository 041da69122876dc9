"""The replicas of a key as they lay on the disks: `replicas` and `replica_records` as arrays."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

NO_VALUE: Final = int(np.iinfo(np.int64).min)
"""The value of a record that no send of ours wrote: a marker or a stranger's record."""

_COPIED: Final = ("leader_epoch", "digest", "timestamp_ms", "producer_id", "producer_epoch")
"""The columns of a record's batch and content, which a follower copies from its leader."""

UNCLEAN: Final = "an election of the partition was recorded as unclean"
"""The condition under which the findings on the replicas of a key are legal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLog:
    """One replica. Arrays have one element a record, by offset."""

    node: str
    key: str
    topic_id: str | None
    log_start_offset: int
    log_end_offset: int
    high_watermark: int | None
    leader_epochs: tuple[tuple[int, int], ...]
    """(leader epoch, the offset it starts at)."""
    damage: str | None
    offset: NDArray[np.int64]
    leader_epoch: NDArray[np.int32]
    digest: NDArray[np.int64]
    timestamp_ms: NDArray[np.int64]
    producer_id: NDArray[np.int64]
    producer_epoch: NDArray[np.int16]
    value: NDArray[np.int64]
    """The values; `NO_VALUE` for records that no send of ours wrote."""

    def value_at(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the value at each of these offsets; `NO_VALUE` without a record of ours."""
        if not len(self.offset):
            return np.full(len(offsets), NO_VALUE)
        place = np.minimum(np.searchsorted(self.offset, offsets), len(self.offset) - 1)
        found: NDArray[np.int64] = np.where(
            self.offset[place] == offsets, self.value[place], NO_VALUE
        )
        return found


def keys_of(*tables: pa.Table) -> list[str]:
    """Return the keys that any of these tables has rows of, sorted."""
    return sorted({key for table in tables for key in pc.unique(table["key"]).to_pylist()})


def group_begins(rows: pa.Table, by: Sequence[str]) -> NDArray[np.bool_]:
    """Return which rows begin a group: they differ in one of these columns from the row before."""
    begins = np.zeros(len(rows), dtype=np.bool_)
    begins[:1] = True
    for name in by:
        column = rows[name].combine_chunks()
        if pa.types.is_string(column.type):
            column = column.dictionary_encode().indices
        numbers = column.to_numpy()
        begins[1:] |= numbers[1:] != numbers[:-1]
    return begins


def replica_logs(key: str, replicas: pa.Table, replica_records: pa.Table) -> list[ReplicaLog]:
    """Return the replicas of a key, by node, without nodes that have two rows of it (a stray)."""
    rows = replicas.filter(pc.equal(replicas["key"], key)).to_pylist()
    records = replica_records.filter(pc.equal(replica_records["key"], key))
    nodes = [row["node"] for row in rows]
    return [
        _replica(row, records.filter(pc.equal(records["node"], row["node"])))
        for row in sorted(rows, key=lambda row: row["node"])
        if nodes.count(row["node"]) == 1
    ]


def _replica(row: Mapping[str, Any], records: pa.Table) -> ReplicaLog:
    ordered = records.sort_by("offset")
    return ReplicaLog(
        **{
            name: row[name]
            for name in (
                *("node", "key", "topic_id", "log_start_offset", "log_end_offset"),
                *("high_watermark", "damage"),
            )
        },
        leader_epochs=tuple(_epochs(row["leader_epochs"])),
        offset=ordered["offset"].to_numpy(),
        **{name: ordered[name].to_numpy() for name in _COPIED},
        value=pc.fill_null(ordered["value"], NO_VALUE).to_numpy(),
    )


def _epochs(rows: list[Mapping[str, int]]) -> Iterator[tuple[int, int]]:
    for row in rows:
        yield row["leader_epoch"], row["start_offset"]
