"""The disks of a simulated cluster, as the tables that the witness writes.

A simulated disk holds values, so there is nothing to decode and nothing that could be damaged.
Times are those at which a record was first appended anywhere (`AppendTimes`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain, groupby
from operator import attrgetter, is_
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clusters.kafka_port import Role
from clusters.node_port.storage import (
    HIGH_WATERMARKS,
    METADATA,
    SNAPSHOT,
    Batch,
    MetadataBatch,
    PartitionKey,
)
from clusters.port import NodeName
from clusters.reference.codec.identifiers import text_of
from clusters.reference.nodes.levels import KAFKA_LEVELS, METADATA_VERSION
from clusters.reference.nodes.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    LeaderChangeMessage,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from clusters.reference.simulated.append_times import AppendTimes
from clusters.simulation.disk import Disk
from history.cluster_schema import METADATA_LOG, REPLICA_RECORDS, REPLICAS
from history.schema import RECORD_BUCKET_COUNT
from history.table_file import TableFile
from history.writer import bucket_of

__all__ = ["write_simulated_replicas", "write_simulated_witness"]

_TYPE_KEYS: Final[Mapping[type, int]] = {
    RegisterBrokerRecord: 0,
    UnregisterBrokerRecord: 1,
    TopicRecord: 2,
    PartitionRecord: 3,
    ConfigRecord: 4,
    PartitionChangeRecord: 5,
    RemoveTopicRecord: 9,
    FeatureLevelRecord: 12,
    ProducerIdsRecord: 15,
    BrokerRegistrationChangeRecord: 17,
    NoOpRecord: 20,
    LeaderChangeMessage: 2,
}
_TOPIC_RESOURCE: Final = 2
_RECOVERING: Final = {None: None, False: 0, True: 1}


def write_simulated_witness(
    disks: Mapping[NodeName, Disk], *, topics: Collection[str], times: AppendTimes, raw: Path
) -> tuple[int, int]:
    """Write metadata_log, replicas and replica_records into a raw directory; how many records.

    (metadata records, records in replicas.)
    """
    metadata_count = 0
    with TableFile(raw / "metadata_log.parquet", "metadata_log") as file:
        for node, disk in sorted(disks.items()):
            rows = _metadata_rows(node, disk, times)
            metadata_count += len(rows)
            file.add(pa.Table.from_pylist(rows, schema=METADATA_LOG))
    return metadata_count, write_simulated_replicas(disks, topics=topics, times=times, raw=raw)


def write_simulated_replicas(
    disks: Mapping[NodeName, Disk], *, topics: Collection[str], times: AppendTimes, raw: Path
) -> int:
    """Write replicas and replica_records of the brokers' disks; return how many records."""
    replicas = [
        (f"{topic}-{log[1]}", node, log, disk)
        for node, disk in disks.items()
        if node.startswith(Role.BROKER)
        for log, topic in disk.topics.items()
        if topic in topics
    ]
    replicas.sort(key=lambda replica: replica[:2])
    with TableFile(raw / "replicas.parquet", "replicas") as file:
        rows = [_replica_row(*replica) for replica in replicas]
        file.add(pa.Table.from_pylist(rows, schema=REPLICAS))
    return _write_records(replicas, times, raw / "replica_records")


def _metadata_rows(node: NodeName, disk: Disk, times: AppendTimes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    topics: dict[int, str] = {}
    batches: Sequence[MetadataBatch] = disk.batches(METADATA)
    snapshot = disk.files.get(SNAPSHOT)
    start = 0
    if snapshot is not None and (not batches or batches[0].base_offset > 0):
        start = snapshot.end_offset
        stamp = MetadataBatch(start, snapshot.epoch, ())
        for record in snapshot.records:
            row = _metadata_row(record, topics)
            found.append(row | _place(node, start - 1, stamp, times, snapshot=True))
    for batch in batches:
        for offset, record in enumerate(batch.records, batch.base_offset):
            row = _metadata_row(record, topics)
            if offset >= start:
                found.append(row | _place(node, offset, batch, times, snapshot=False))
    return found


def _place(
    node: NodeName, offset: int, batch: MetadataBatch, times: AppendTimes, *, snapshot: bool
) -> dict[str, Any]:
    return {
        "node": node,
        "snapshot": snapshot,
        "metadata_offset": offset,
        "controller_epoch": batch.epoch,
        "timestamp_ms": times.of(batch),
    }


def _metadata_row(record: MetadataRecord, topics: dict[int, str]) -> dict[str, Any]:
    """The columns that come from the record itself. `topics`: names by id, learnt on the way."""
    if isinstance(record, TopicRecord):
        topics[record.topic_id] = record.name
    words = repr(record)
    found = {
        "type": type(record).__name__,
        "type_key": _TYPE_KEYS[type(record)],
        "version": 0,
        "control": isinstance(record, LeaderChangeMessage),
        "digest": _digest(words.encode()),
        "detail": words,
        **_columns(record),
    }
    topic_id = getattr(record, "topic_id", None)
    if topic_id is not None:
        found["topic_id"] = text_of(topic_id)
        found.setdefault("topic", topics.get(topic_id))
    return found


def _columns(record: MetadataRecord) -> dict[str, Any]:
    match record:
        case PartitionRecord() | PartitionChangeRecord():
            return _partition_columns(record)
        case RegisterBrokerRecord() | BrokerRegistrationChangeRecord():
            return {
                "broker_id": record.broker_id,
                "broker_epoch": record.broker_epoch,
                "fenced": record.fenced,
                "in_controlled_shutdown": record.in_controlled_shutdown,
                **(_registered_as(record) if isinstance(record, RegisterBrokerRecord) else {}),
            }
        case UnregisterBrokerRecord():
            return {"broker_id": record.broker_id, "broker_epoch": record.broker_epoch}
        case TopicRecord():
            return {"topic": record.name}
        case ConfigRecord():
            return _config_columns(record)
        case FeatureLevelRecord():
            return {"name": record.name, "value": str(_level(record.name, record.level))}
        case ProducerIdsRecord():
            return {
                "broker_id": record.broker_id,
                "broker_epoch": record.broker_epoch,
                "value": str(record.next_producer_id),
            }
        case LeaderChangeMessage():
            return {"leader": record.leader_id}
        case _:
            return {}


def _registered_as(record: RegisterBrokerRecord) -> dict[str, Any]:
    supported = [
        f"{name}={_level(name, least)}..{_level(name, most)}"
        for name, least, most in record.features
    ]
    return {
        "incarnation_id": text_of(record.incarnation_id),
        "value": ",".join(supported) or None,
    }


def _level(feature: str, level: int) -> int:
    return KAFKA_LEVELS.get(level, level) if feature == METADATA_VERSION else level


def _partition_columns(record: PartitionRecord | PartitionChangeRecord) -> dict[str, Any]:
    found: dict[str, Any] = {
        "partition": record.partition,
        "leader": record.leader,
        "leader_recovery_state": _RECOVERING[record.recovering],
    }
    for name in ("replicas", "isr", "adding", "removing"):
        value = getattr(record, name)
        found[name] = None if value is None else list(value)
    if isinstance(record, PartitionRecord):
        found["leader_epoch"] = record.leader_epoch
        found["partition_epoch"] = record.partition_epoch
    return found


def _config_columns(record: ConfigRecord) -> dict[str, Any]:
    found: dict[str, Any] = {"name": record.name, "value": record.value}
    if record.resource_type == _TOPIC_RESOURCE:
        return found | {"topic": record.resource_name}
    named = record.resource_name.isdecimal()
    return found | ({"broker_id": int(record.resource_name)} if named else {})


def _replica_row(key: str, node: NodeName, log: PartitionKey, disk: Disk) -> dict[str, Any]:
    batches: Sequence[Batch] = disk.batches(log)
    checkpoint = dict(disk.files.get(HIGH_WATERMARKS, ()))
    epochs = [
        {"leader_epoch": epoch, "start_offset": next(several).base_offset}
        for epoch, several in groupby(batches, key=attrgetter("leader_epoch"))
    ]
    return {
        "node": node,
        "key": key,
        "topic_id": text_of(log[0]),
        "log_start_offset": disk.start_of(log),
        "log_end_offset": batches[-1].end_offset if batches else 0,
        "high_watermark": checkpoint.get(log),
        "leader_epochs": epochs,
        "record_count": sum(map(attrgetter("count"), batches)),
        "damage": None,
    }


def _write_records(
    replicas: Sequence[tuple[str, NodeName, PartitionKey, Disk]], times: AppendTimes, path: Path
) -> int:
    path.mkdir()
    count = 0
    for bucket in range(RECORD_BUCKET_COUNT):
        with TableFile(path / f"bucket-{bucket:02}.parquet", "replica_records") as file:
            mine = [replica for replica in replicas if bucket_of(replica[0]) == bucket]
            for table in _record_tables(mine, times):
                count += table.num_rows
                file.add(table)
    return count


def _record_tables(
    replicas: Sequence[tuple[str, NodeName, PartitionKey, Disk]], times: AppendTimes
) -> Iterator[pa.Table]:
    """The records of each. Replicas of a key mostly hold the very same batches, looked at once."""
    known: Sequence[Batch] = ()
    columns = _record_columns(known, times)
    for key, node, log, disk in replicas:
        batches = disk.batches(log)
        if len(batches) != len(known) or not all(map(is_, batches, known)):
            known, columns = batches, _record_columns(batches, times)
        total = len(columns["offset"])
        whose = {"key": pa.repeat(key, total), "node": pa.repeat(str(node), total)}
        arrays = [(whose | columns)[field.name].cast(field.type) for field in REPLICA_RECORDS]
        yield pa.Table.from_arrays(arrays, schema=REPLICA_RECORDS)


def _record_columns(batches: Sequence[Batch], times: AppendTimes) -> dict[str, pa.Array]:
    """Return all columns of these batches' records but whose they are."""
    counts = np.array([batch.count for batch in batches], np.int64)
    total = int(counts.sum())

    def each(numbers: Iterable[int]) -> NDArray[np.int64]:
        """A number of each batch, for each of its records."""
        return np.repeat(np.fromiter(numbers, np.int64, len(batches)), counts)

    within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    made_ms = [times.stamp_ms(getattr(batch.payload, "made_ns", 0)) for batch in batches]
    values = pa.array(
        np.fromiter(chain.from_iterable(batch.payload for batch in batches), np.int64, total)
    )
    return {
        "offset": pa.array(each(batch.base_offset for batch in batches) + within),
        "leader_epoch": pa.array(each(batch.leader_epoch for batch in batches)),
        "timestamp_ms": pa.array(each(made_ms)),
        "control": pa.repeat(False, total),  # a value, not an option
        "committed": pa.nulls(total, pa.bool_()),
        "transactional": pa.repeat(False, total),
        "producer_id": pa.array(each(batch.producer_id for batch in batches)),
        "producer_epoch": pa.array(each(batch.producer_epoch for batch in batches)),
        "value": values,
        "digest": values,
    }


def _digest(value: bytes) -> int:
    return int.from_bytes(sha256(value).digest()[:8], signed=True)
