"""A node's copy of the metadata log, as rows of METADATA_LOG.

Controllers write `__cluster_metadata-0`, brokers replicate it; both lie on disk alike. A log that
begins at offset 0 is the whole story. Once a node has deleted old segments, or has fetched a
snapshot because the others had, the story begins with a snapshot `<end offset>-<epoch>.checkpoint`
in the same directory: of those that the log goes on from without a gap, the oldest is taken, since
it leaves most of the history. (`bootstrap.checkpoint` lies elsewhere: it is what a controller of a
new cluster copies into its log.)

Nodes of our own keep what they cut off, in a directory beside their data that outlives these
(`clusters.reference.shell.disk`): pieces of the log, each named as a segment is, and a snapshot
where one of a leader's replaced the log, so that something is not there. What lies there is put in
front, and a log that goes on from it without a gap needs no snapshot.

What a log holds at its end may not be committed: that only the quorum knows.

Kafka's records say "nothing changed" by values of their own (leader -2, recovery state -1); the
table says it by null.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.message_decoder import Fields
from fencepost.clusters.protocol.metadata_records import DecodedRecord, Definitions
from fencepost.clusters.witness.segments import BatchRun, read_batches_file, read_log, segments_of
from fencepost.history.cluster_schema import METADATA_LOG

METADATA_DIRECTORY: Final = "__cluster_metadata-0"
_SNAPSHOT: Final = re.compile(r"(\d{20})-\d{10}\.checkpoint")
_FOOTER: Final = "SnapshotFooterRecord"
_DIGEST_BYTES: Final = 8
_PIECE_BYTES: Final = 1 << 20
"""A record of 50 bytes becomes a row of 35 columns."""
_PARTITION: Final = {
    "topic_id": "topicId",
    "partition": "partitionId",
    "replicas": "replicas",
    "isr": "isr",
    "adding": "addingReplicas",
    "removing": "removingReplicas",
    "elr": "eligibleLeaderReplicas",
    "last_known_elr": "lastKnownElr",
    "leader": "leader",
    "leader_recovery_state": "leaderRecoveryState",
}
_REGISTRATION: Final = {
    "broker_id": "brokerId",
    "broker_epoch": "brokerEpoch",
    "incarnation_id": "incarnationId",
    "fenced": "fenced",
    "in_controlled_shutdown": "inControlledShutdown",
}

_FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "RegisterBrokerRecord": _REGISTRATION,
    "BrokerRegistrationChangeRecord": _REGISTRATION,
    "UnregisterBrokerRecord": {"broker_id": "brokerId", "broker_epoch": "brokerEpoch"},
    "FenceBrokerRecord": {"broker_id": "id", "broker_epoch": "epoch"},
    "UnfenceBrokerRecord": {"broker_id": "id", "broker_epoch": "epoch"},
    # A controller's id is a node id like any broker's.
    "RegisterControllerRecord": {"broker_id": "controllerId", "incarnation_id": "incarnationId"},
    "TopicRecord": {"topic": "name", "topic_id": "topicId"},
    "RemoveTopicRecord": {"topic_id": "topicId"},
    "PartitionRecord": {
        **_PARTITION,
        "leader_epoch": "leaderEpoch",
        "partition_epoch": "partitionEpoch",
    },
    "PartitionChangeRecord": _PARTITION,
    "ConfigRecord": {"name": "name", "value": "value"},
    "FeatureLevelRecord": {"name": "name", "value": "featureLevel"},
    "ProducerIdsRecord": {
        "broker_id": "brokerId",
        "broker_epoch": "brokerEpoch",
        "value": "nextProducerId",
    },
    "ClientQuotaRecord": {"name": "key", "value": "value"},
    "ZkMigrationStateRecord": {"value": "zkMigrationState"},
    "BeginTransactionRecord": {"name": "name"},
    "AbortTransactionRecord": {"value": "reason"},
    "ClearElrRecord": {"topic": "topicName"},
    "LeaderChangeMessage": {"leader": "leaderId"},
    "KRaftVersionRecord": {"value": "kRaftVersion"},
}

_TOPIC_RESOURCE: Final = 2
_BROKER_RESOURCE: Final = 4
_LEADER_UNCHANGED: Final = -2
_RECOVERY_UNCHANGED: Final = -1
_FENCING: Final = {-1: False, 1: True}
_SHUTDOWN: Final = {1: True}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataPiece:
    """The rows of a piece of a node's log, and what was met that should not be."""

    rows: pa.Table
    damages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    path: Path
    end_offset: int


def read_metadata_log(
    node: NodeName, data: Path, *, definitions: Definitions, kept: Path | None = None
) -> Iterator[MetadataPiece]:
    """The log of a node with this data directory, by the piece; first a snapshot, if it needs one.

    `kept`: the directory of what was cut off it. It never fails: what cannot be read is a damage.
    """
    directory = data / METADATA_DIRECTORY
    segments = segments_of(directory)
    if not segments:
        yield _only(f"no metadata log: there is no segment in {directory}")
        return
    topics: dict[str, str] = {}
    start = segments[0].base_offset
    end = 0
    for one in _kept_parts(kept, until=start):
        if one.is_snapshot:
            yield from _snapshot_rows(node, one.path, one.start, definitions, topics)
            end = one.start
        elif one.start == end:
            for piece in read_batches_file(one.path, piece_bytes=_PIECE_BYTES):
                yield _rows(node, piece, definitions, topics, end=one.end)
                end = min(one.end, piece.batches[-1].last_offset + 1) if piece.batches else end
    if end < start or not start:
        snapshot, damages = _snapshot_for(directory, start, definitions)
        if damages:
            yield _only(*damages)
        if snapshot is not None:
            # The log begins at a snapshot's end; what may still lie before it counts as deleted.
            start = snapshot.end_offset
            yield from _snapshot_rows(node, snapshot.path, start, definitions, topics)
    for piece in read_log(directory, from_offset=start, piece_bytes=_PIECE_BYTES):
        yield _rows(node, piece, definitions, topics, start=start)


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptPart:
    """A file of what was cut off a log: its records below `end` count, or it is a snapshot."""

    path: Path
    start: int
    end: int
    is_snapshot: bool


def _kept_parts(kept: Path | None, *, until: int) -> Iterator[_KeptPart]:
    """Yield the parts of a log before an offset, in order."""
    if kept is None:
        return
    found = [(one.end_offset, 0, one.path) for one in _snapshots(kept)]
    found += [(one.base_offset, 1, one.path) for one in segments_of(kept)]
    found = sorted(one for one in found if one[0] < until or one[:2] == (until, 0))
    for (start, is_log, path), (end, *_) in pairwise([*found, (until, 0, kept)]):
        yield _KeptPart(path=path, start=start, end=end, is_snapshot=not is_log)


def _snapshot_rows(
    node: NodeName, path: Path, end: int, definitions: Definitions, topics: dict[str, str]
) -> Iterator[MetadataPiece]:
    for piece in read_batches_file(path, piece_bytes=_PIECE_BYTES):
        yield _rows(node, piece, definitions, topics, snapshot_offset=end - 1)


def decoded(piece: BatchRun, index: int, definitions: Definitions) -> DecodedRecord:
    """Return one record of a piece of a metadata log."""
    records = piece.records
    if records.batches[records.batch_index[index]].control:
        return definitions.control_record(records.key(index), records.value(index))
    return definitions.metadata_record(records.value(index))


def columns_of(record: DecodedRecord, *, topics: Mapping[str, str]) -> dict[str, Any]:
    """The columns that come from the record itself; those of its batch and its bytes are not here.

    `topics` has the names of the topics by id, as far as the log has told them.
    """
    found = {
        column: record.fields.get(field) for column, field in _FIELDS.get(record.type, {}).items()
    }
    if special := _SPECIAL.get(record.type):
        found |= special(record.fields)
    if (topic_id := found.get("topic_id")) is not None:
        found.setdefault("topic", topics.get(topic_id))
    if found.get("value") is not None:
        found["value"] = str(found["value"])
    return found | {
        "type": record.type,
        "type_key": record.type_key,
        "version": record.version,
        "control": record.control,
        "detail": record.detail,
    }


def _snapshot_for(
    directory: Path, first_offset: int, definitions: Definitions
) -> tuple[_Snapshot | None, tuple[str, ...]]:
    damages: list[str] = []
    for snapshot in _snapshots(directory):
        # A log from 0 needs none; a snapshot at 0 holds the first voters (KIP-853).
        if snapshot.end_offset < first_offset or (first_offset == 0 < snapshot.end_offset):
            continue
        if (damage := _damage_of(snapshot, definitions)) is None:
            return snapshot, tuple(damages)
        damages.append(damage)
    if first_offset > 0:
        damages.append(f"the log begins at offset {first_offset} and no snapshot goes before it")
    return None, tuple(damages)


def _snapshots(directory: Path) -> list[_Snapshot]:
    try:
        paths = sorted(directory.iterdir())
    except OSError:
        return []  # its segments were listed a moment ago; that they are gone is noted with them
    return [
        _Snapshot(path=path, end_offset=int(found[1]))
        for path in paths
        if (found := _SNAPSHOT.fullmatch(path.name))
    ]


def _damage_of(snapshot: _Snapshot, definitions: Definitions) -> str | None:
    """Return why a snapshot cannot be used; None if it is whole, that is, ends with its footer."""
    last: BatchRun | None = None
    for piece in read_batches_file(snapshot.path):
        if piece.damage is not None:
            return piece.damage
        last = piece if len(piece.records) else last
    if last is None or decoded(last, len(last.records) - 1, definitions).type != _FOOTER:
        return f"{snapshot.path.name}: it has no footer"
    return None


def _rows(
    node: NodeName,
    piece: BatchRun,
    definitions: Definitions,
    topics: dict[str, str],
    *,
    snapshot_offset: int | None = None,
    start: int = 0,
    end: int | None = None,
) -> MetadataPiece:
    records = piece.records
    offsets, timestamps = records.offsets.tolist(), records.timestamps_ms.tolist()
    batch_of = records.batch_index.tolist()
    rows: list[dict[str, Any]] = []
    for index, offset in enumerate(offsets):
        if snapshot_offset is None and (offset < start or (end is not None and offset >= end)):
            continue
        record = decoded(piece, index, definitions)
        if record.type == "TopicRecord":
            topics[record.fields["topicId"]] = record.fields["name"]
        value = records.value(index)
        rows.append(
            {
                "node": node,
                "snapshot": snapshot_offset is not None,
                "metadata_offset": offset if snapshot_offset is None else snapshot_offset,
                "controller_epoch": records.batches[batch_of[index]].leader_epoch,
                "timestamp_ms": timestamps[index],
                "digest": _digest(value),
                "raw": None if record.known else value,
                **columns_of(record, topics=topics),
            }
        )
    damages = () if piece.damage is None else (piece.damage,)
    return MetadataPiece(rows=pa.Table.from_pylist(rows, schema=METADATA_LOG), damages=damages)


def _digest(value: bytes | None) -> int:
    return int.from_bytes(sha256(value or b"").digest()[:_DIGEST_BYTES], signed=True)


def _only(*damages: str) -> MetadataPiece:
    return MetadataPiece(rows=METADATA_LOG.empty_table(), damages=damages)


def _partition_change(fields: Fields) -> dict[str, Any]:
    leader, recovery = fields.get("leader"), fields.get("leaderRecoveryState")
    return {
        "leader": None if leader == _LEADER_UNCHANGED else leader,
        "leader_recovery_state": None if recovery == _RECOVERY_UNCHANGED else recovery,
    }


def _registration(fields: Fields) -> dict[str, Any]:
    supported = [
        f"{one['name']}={one['minSupportedVersion']}..{one['maxSupportedVersion']}"
        for one in fields.get("features") or ()
    ]
    return {"value": ",".join(supported)} if supported else {}


def _registration_change(fields: Fields) -> dict[str, Any]:
    return {
        "fenced": _FENCING.get(fields.get("fenced", 0)),
        "in_controlled_shutdown": _SHUTDOWN.get(fields.get("inControlledShutdown", 0)),
    }


def _config(fields: Fields) -> dict[str, Any]:
    resource, name = fields.get("resourceType"), fields.get("resourceName", "")
    if resource == _TOPIC_RESOURCE:
        return {"topic": name}
    # An empty name stands for all brokers.
    return {"broker_id": int(name)} if resource == _BROKER_RESOURCE and name.isdecimal() else {}


_SPECIAL: Final[Mapping[str, Callable[[Fields], dict[str, Any]]]] = {
    "PartitionChangeRecord": _partition_change,
    "RegisterBrokerRecord": _registration,
    "BrokerRegistrationChangeRecord": _registration_change,
    "FenceBrokerRecord": lambda _: {"fenced": True},
    "UnfenceBrokerRecord": lambda _: {"fenced": False},
    "ConfigRecord": _config,
    "KRaftVersionRecord": lambda _: {"name": "kraft.version"},
}
