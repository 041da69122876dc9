"""The witness: what lies on the disks of a cluster's nodes, as raw tables of a run.

These are metadata logs, and of each broker's disk the replicas: their offsets, leader epochs, and
every record in them.

It reads and never writes there, needs no process of Kafka's, and takes disks as they are: of a
stopped cluster, of one whose nodes were killed, of a running one (whose last batch may be half
written), or with nodes wiped. A file that cannot be read is a damage in the report; only a raw
directory that cannot be written is an error.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.clusters.kafka_port import Role, role_of
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.metadata_records import UNKNOWN, Definitions
from fencepost.clusters.protocol.records import Records
from fencepost.clusters.witness.checkpoints import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    read_leader_epochs,
    read_offsets,
    read_topic_id,
)
from fencepost.clusters.witness.metadata_log import read_metadata_log
from fencepost.clusters.witness.segments import read_log, segments_of
from fencepost.history.cluster_schema import REPLICA_RECORDS, REPLICAS
from fencepost.history.failure import HarnessError
from fencepost.history.schema import RECORD_BUCKET_COUNT
from fencepost.history.table_file import whole_table_file
from fencepost.history.writer import bucket_of

_PARTITION_DIRECTORY: Final = re.compile(r"(.+)-(\d+)")
_VALUE: Final = np.dtype("<i8")
_COMMIT: Final = 1
_DIGEST_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReplica:
    """The place of a replica, and what its broker noted of it elsewhere."""

    node: NodeName
    key: str
    directory: Path
    high_watermark: int | None
    log_start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Something on a node's disk that is not as it should be."""

    node: NodeName
    subject: str
    """"metadata log", "replicas", or the key of a replica."""
    what: str

    def __str__(self) -> str:
        return f"{self.node}: {self.subject}: {self.what}"


@dataclass(slots=True, kw_only=True)
class WitnessReport:
    """The number of things read, and those that could not be read."""

    metadata_record_counts: dict[NodeName, int] = field(default_factory=dict)
    """The counts of metadata records by node, those of a snapshot included."""
    unknown_type_counts: Counter[int] = field(default_factory=Counter)
    """Records that could not be decoded, by type; -1: not even that could be read."""
    replica_count: int = 0
    replica_record_count: int = 0
    damages: list[Damage] = field(default_factory=list)

    @property
    def damaged(self) -> tuple[str, ...]:
        """The things that could not be read, one sentence for each item."""
        unknown = sum(self.unknown_type_counts.values())
        words = (f"{unknown} metadata records of unknown types",) if unknown else ()
        return (*map(str, self.damages), *words)

    @property
    def summary(self) -> str:
        """The amount that was read, in words."""
        records = f"{self.replica_record_count:,} records in {self.replica_count} replicas"
        if not self.metadata_record_counts:
            return f"the disks hold {records}"
        metadata = sum(self.metadata_record_counts.values())
        return f"the disks hold {metadata:,} metadata records and {records}"


def write_witness(
    node_data: Mapping[NodeName, Path],
    *,
    topics: Collection[str],
    definitions: Definitions,
    raw: Path,
    kept: Mapping[NodeName, Path] = MappingProxyType({}),
) -> WitnessReport:
    """Write the tables metadata_log, replicas and replica_records into a run's raw directory.

    `node_data` has each node's data directory, `kept` what was cut off its metadata log, `topics`
    are those whose replicas are read. Raises HarnessError if `raw` cannot be written.
    """
    report = WitnessReport()
    try:
        raw.mkdir(parents=True, exist_ok=True)
        _write_metadata_log(node_data, kept, definitions=definitions, raw=raw, report=report)
        _write_replicas(node_data, topics=topics, raw=raw, report=report)
    except OSError as error:
        raise HarnessError(f"cannot write the witness's tables in {raw}: {error}") from error
    return report


def write_replicas(
    node_data: Mapping[NodeName, Path], *, topics: Collection[str], raw: Path
) -> WitnessReport:
    """Write the tables replicas and replica_records alone, as `write_witness` does."""
    report = WitnessReport()
    try:
        raw.mkdir(parents=True, exist_ok=True)
        _write_replicas(node_data, topics=topics, raw=raw, report=report)
    except OSError as error:
        raise HarnessError(f"cannot write the witness's tables in {raw}: {error}") from error
    return report


def _write_metadata_log(
    node_data: Mapping[NodeName, Path],
    kept: Mapping[NodeName, Path],
    *,
    definitions: Definitions,
    raw: Path,
    report: WitnessReport,
) -> None:
    with whole_table_file(raw / "metadata_log.parquet", "metadata_log") as file:
        for node, data in sorted(node_data.items()):
            count = 0
            for piece in read_metadata_log(
                node, data, kept=kept.get(node), definitions=definitions
            ):
                file.add(piece.rows)
                count += piece.rows.num_rows
                unknown = piece.rows.filter(pc.equal(piece.rows["type"], UNKNOWN))
                report.unknown_type_counts.update(unknown["type_key"].to_pylist())
                _note(report, node, "metadata log", *piece.damages)
            report.metadata_record_counts[node] = count


def _write_replicas(
    node_data: Mapping[NodeName, Path],
    *,
    topics: Collection[str],
    raw: Path,
    report: WitnessReport,
) -> None:
    directory = raw / "replica_records"
    directory.mkdir(exist_ok=True)
    rows = []
    replicas = _all_replicas(node_data, topics, report)
    # All buckets, also those without a replica: an earlier look may have left something there.
    for bucket in range(RECORD_BUCKET_COUNT):
        with whole_table_file(directory / f"bucket-{bucket:02}.parquet", "replica_records") as file:
            for replica in (one for one in replicas if bucket_of(one.key) == bucket):
                state = read_replica(replica, write=file.add)
                rows.append(state.row)
                report.replica_count += 1
                report.replica_record_count += state.row["record_count"]
                _note(report, replica.node, replica.key, *state.damages)
    with whole_table_file(raw / "replicas.parquet", "replicas") as file:
        in_order = sorted(rows, key=lambda row: (row["key"], row["node"]))
        file.add(pa.Table.from_pylist(in_order, schema=REPLICAS))


def _all_replicas(
    node_data: Mapping[NodeName, Path], topics: Collection[str], report: WitnessReport
) -> list[StoredReplica]:
    found: list[StoredReplica] = []
    for node, data in node_data.items():
        if role_of(node) is Role.BROKER:
            there = find_replicas(node, data, topics=topics)
            found.extend(there.by_key.values())
            _note(report, node, "replicas", *there.damages)
    return sorted(found, key=lambda replica: (replica.key, replica.node))


def _note(report: WitnessReport, node: NodeName, subject: str, *whats: str) -> None:
    report.damages.extend(Damage(node=node, subject=subject, what=what) for what in whats)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundReplicas:
    """The replicas of some topics on one broker's disk, by key."""

    by_key: Mapping[str, StoredReplica]
    damages: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """The state found in a replica's directory."""

    row: dict[str, Any]
    """The row of REPLICAS."""
    damages: tuple[str, ...]


def find_replicas(node: NodeName, data: Path, *, topics: Collection[str]) -> FoundReplicas:
    """The replicas of `topics` in a data directory; deleted and future ones are left out."""
    try:
        names = sorted(path.name for path in data.iterdir() if path.is_dir())
    except OSError as error:
        return FoundReplicas(by_key={}, damages=(f"no data: {error.strerror}: {data}",))
    high_watermarks = read_offsets(data / HIGH_WATERMARKS)
    log_starts = read_offsets(data / LOG_STARTS)
    found = {
        name: StoredReplica(
            node=node,
            key=name,
            directory=data / name,
            high_watermark=high_watermarks.by_key.get(name),
            log_start_offset=log_starts.by_key.get(name, 0),
        )
        for name in names
        if (parts := _PARTITION_DIRECTORY.fullmatch(name)) and parts[1] in topics
    }
    damages = (high_watermarks.damage, log_starts.damage)
    return FoundReplicas(by_key=found, damages=tuple(one for one in damages if one is not None))


def read_replica(replica: StoredReplica, *, write: Callable[[pa.Table], None]) -> ReplicaState:
    """Read a replica's log. Its records go to `write`, as rows of REPLICA_RECORDS, by the piece."""
    segments = segments_of(replica.directory)
    leader_epochs, epochs_damage = read_leader_epochs(replica.directory)
    start = max(replica.log_start_offset, segments[0].base_offset if segments else 0)
    # A new segment is named by the offset at which the one before it ends.
    end = max(start, segments[-1].base_offset if segments else 0)
    damage = None if segments else "no segment"
    count = 0
    read_to = start
    for piece in read_log(replica.directory, from_offset=start):
        table = _rows(replica, piece.records, start=start)
        write(table)
        count += table.num_rows
        damage = piece.damage
        if piece.batches:
            read_to = max(read_to, piece.batches[-1].last_offset + 1)
    row = {
        "node": replica.node,
        "key": replica.key,
        "topic_id": read_topic_id(replica.directory),
        "log_start_offset": start,
        "log_end_offset": read_to if damage else max(read_to, end),
        "high_watermark": replica.high_watermark,
        "leader_epochs": [
            {"leader_epoch": one.leader_epoch, "start_offset": one.start_offset}
            for one in leader_epochs
        ],
        "record_count": count,
        "damage": damage,
    }
    damages = tuple(one for one in (damage, epochs_damage) if one is not None)
    return ReplicaState(row=row, damages=damages)


def _rows(replica: StoredReplica, records: Records, *, start: int) -> pa.Table:
    control = records.of_batches("control").astype(bool)
    values, foreign = _values(records, control)
    size = len(records)
    table = pa.table(
        [
            _constant(replica.key, size),
            _constant(replica.node, size),
            records.offsets,
            records.of_batches("leader_epoch").astype(np.int32),
            records.timestamps_ms,
            control,
            pa.array(_outcomes(records, control), pa.bool_()),
            records.of_batches("transactional").astype(bool),
            records.of_batches("producer_id"),
            records.of_batches("producer_epoch").astype(np.int16),
            pa.array(values, mask=foreign),
            _digests(records),
        ],
        schema=REPLICA_RECORDS,
    )
    # Records below the log's start are deleted, though they may still lie in its first segment.
    return (
        table
        if not size or records.offsets[0] >= start
        else table.filter(pa.array(records.offsets >= start))
    )


def _values(
    records: Records, control: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return (the first 8 bytes of each value as a number, which of them are not ours)."""
    foreign = control | (records.value_lengths < _VALUE.itemsize)
    starts = np.where(foreign, 0, records.value_starts)
    data = np.frombuffer(records.data + bytes(_VALUE.itemsize), np.uint8)
    heads = data[starts[:, np.newaxis] + np.arange(_VALUE.itemsize)]
    values = np.ascontiguousarray(heads).view(_VALUE).reshape(len(records)).astype(np.int64)
    return values, foreign | (values < 0)


def _outcomes(records: Records, control: NDArray[np.bool_]) -> list[bool | None]:
    found: list[bool | None] = [None] * len(records)
    for index in np.flatnonzero(control).tolist():
        # A control record's key: version, type.
        kind = int.from_bytes((records.key(index) or b"")[2:4], signed=True)
        found[index] = kind == _COMMIT if kind in (0, _COMMIT) else None
    return found


def _digests(records: Records) -> NDArray[np.int64]:
    data = records.data
    heads = [
        sha256(data[start:end]).digest()[:_DIGEST_BYTES]
        for start, end in zip(
            records.content_starts.tolist(), records.value_ends.tolist(), strict=True
        )
    ]
    return np.frombuffer(b"".join(heads), ">i8").astype(np.int64)


def _constant(text: str, size: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(np.zeros(size, np.int32), [text]).cast(pa.string())
