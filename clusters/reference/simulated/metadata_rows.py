"""The batches and snapshots of a simulated disk's metadata log, as rows of METADATA_LOG.

A simulated disk holds values, so there is nothing to decode and nothing that could be damaged.
Times are those at which a record was first appended anywhere (`AppendTimes`).
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from clusters.node_port.storage import MetadataBatch, Snapshot
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
from history.cluster_schema import METADATA_LOG

_PIECE_ROWS: Final = 1 << 13
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


class LogRows:
    """The maker of one node's rows, which have to be asked for in the order of its log."""

    def __init__(self, node: NodeName, times: AppendTimes) -> None:
        self._node = node
        self._times = times
        self._topics: dict[int, str] = {}
        """The names of topics by id, learnt on the way."""

    def snapshot(self, snapshot: Snapshot) -> Iterator[pa.Table]:
        """Yield the state that a log goes on from, in pieces."""
        stamp = MetadataBatch(snapshot.end_offset, snapshot.epoch, ())
        return _tables(
            self._row(record) | self._place(snapshot.end_offset - 1, stamp, snapshot=True)
            for record in snapshot.records
        )

    def batches(
        self, batches: Iterable[MetadataBatch], *, from_offset: int = 0
    ) -> Iterator[pa.Table]:
        """Yield the records of these batches from an offset on, in pieces."""
        return _tables(
            row | self._place(offset, batch, snapshot=False)
            for batch in batches
            for offset, record in enumerate(batch.records, batch.base_offset)
            if (row := self._row(record)) and offset >= from_offset
        )

    def _place(self, offset: int, batch: MetadataBatch, *, snapshot: bool) -> dict[str, Any]:
        return {
            "node": self._node,
            "snapshot": snapshot,
            "metadata_offset": offset,
            "controller_epoch": batch.epoch,
            "timestamp_ms": self._times.of(batch),
        }

    def _row(self, record: MetadataRecord) -> dict[str, Any]:
        """Return the columns that come from the record itself."""
        if isinstance(record, TopicRecord):
            self._topics[record.topic_id] = record.name
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
            found.setdefault("topic", self._topics.get(topic_id))
        return found


def _tables(rows: Iterator[dict[str, Any]]) -> Iterator[pa.Table]:
    while piece := list(islice(rows, _PIECE_ROWS)):
        yield pa.Table.from_pylist(piece, schema=METADATA_LOG)


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


def _digest(value: bytes) -> int:
    return int.from_bytes(sha256(value).digest()[:8], signed=True)
