"""The messages of the quorum of controllers; Fetch, of the metadata log and of data if asked.

Of the metadata records in a Fetch response only the types are read, from the front of each record's
value (KIP-631: frame version, type and version, all varints): no release's definitions are needed.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fencepost.clusters.protocol.columns import (
    METADATA_TOPIC,
    Parts,
    carried,
    failed,
    partition_items,
    topic_columns,
    uuid_text,
)
from fencepost.clusters.protocol.record_batches import scan_batches
from fencepost.clusters.protocol.records import records_of
from fencepost.clusters.protocol.rpcs.quorum import (
    leader_stated,
)
from fencepost.clusters.protocol.varints import VarintError, read_unsigned
from fencepost.nemesis.wire.rules import Direction

RECORD_TYPES: Final[Mapping[int, str]] = {
    0: "RegisterBrokerRecord",
    1: "UnregisterBrokerRecord",
    2: "TopicRecord",
    3: "PartitionRecord",
    4: "ConfigRecord",
    5: "PartitionChangeRecord",
    6: "AccessControlRecord",
    7: "FenceBrokerRecord",
    8: "UnfenceBrokerRecord",
    9: "RemoveTopicRecord",
    10: "DelegationTokenRecord",
    11: "UserScramCredentialRecord",
    12: "FeatureLevelRecord",
    14: "ClientQuotaRecord",
    15: "ProducerIdsRecord",
    16: "RemoveAccessControlEntryRecord",
    17: "BrokerRegistrationChangeRecord",
    18: "RemoveUserScramCredentialRecord",
    20: "NoOpRecord",
    21: "ZkMigrationStateRecord",
    22: "RemoveDelegationTokenRecord",
    23: "BeginTransactionRecord",
    24: "EndTransactionRecord",
    25: "AbortTransactionRecord",
    27: "RegisterControllerRecord",
    28: "ClearElrRecord",
}
"""Kafka's `metadata/src/main/resources/common/metadata/*.json`, by `apiKey`."""


def record_types(response: Any) -> frozenset[str]:
    """Return the names of the types in a decoded Fetch response; none of anything else."""
    partitions = [
        partition
        for topic in getattr(response, "responses", ())
        if topic_columns(topic).get("topic") == METADATA_TOPIC
        for partition in topic.partitions
    ]
    return frozenset(
        name for partition in partitions for name in _types(bytes(partition.records or b""))
    )


def _fetch_request(request: Any) -> Parts:
    state = getattr(request, "replica_state", None)  # KIP-903, since version 15
    columns = {"broker_id": request.replica_id if state is None else state.replica_id}
    if state is not None:
        columns["broker_epoch"] = state.replica_epoch
    if hasattr(request, "session_id"):  # KIP-227, since version 7
        columns["session_epoch"] = request.session_epoch
        columns["detail"] = f"session {request.session_id} epoch {request.session_epoch}"
    items = [
        {
            **where,
            "fetch_offset": partition.fetch_offset,
            "leader_epoch": getattr(partition, "current_leader_epoch", None),
        }
        for where, partition in partition_items(request.topics)
    ]
    return columns, items


def _fetch_response(response: Any) -> Parts:
    items = [
        {
            **where,
            **failed(partition),
            "high_watermark": partition.high_watermark,
            **leader_stated(partition),
            "detail": _fetched(partition),
        }
        for where, partition in partition_items(response.responses)
    ]
    columns = failed(response) if hasattr(response, "error_code") else {}
    return columns, items


def _fetched(partition: Any) -> str:
    parts = [carried(partition.records)]
    diverging = getattr(partition, "diverging_epoch", None)
    if diverging is not None and diverging.epoch >= 0:
        parts.append(f"diverging epoch {diverging.epoch} ends at {diverging.end_offset}")
    snapshot = getattr(partition, "snapshot_id", None)
    if snapshot is not None and snapshot.end_offset >= 0:
        parts.append(f"snapshot {snapshot.end_offset}-{snapshot.epoch}")
    return ", ".join(parts)


def _voter_request(request: Any) -> Parts:
    return {
        "broker_id": request.voter_id,
        "detail": f"directory {uuid_text(request.voter_directory_id)}",
    }, ()


def _failed(response: Any) -> Parts:
    return failed(response), ()


EXTRACTORS: Final[Mapping[tuple[str, Direction], Callable[[Any], Parts]]] = {
    ("Fetch", Direction.REQUEST): _fetch_request,
    ("Fetch", Direction.RESPONSE): _fetch_response,
    ("AddRaftVoter", Direction.REQUEST): _voter_request,
    ("AddRaftVoter", Direction.RESPONSE): _failed,
    ("RemoveRaftVoter", Direction.REQUEST): _voter_request,
    ("RemoveRaftVoter", Direction.RESPONSE): _failed,
}


def _types(records: bytes) -> Iterator[str]:
    batches = [batch for batch in scan_batches(records).batches if not batch.control]
    found = records_of(records, batches)
    for index in range(len(found)):
        try:
            _, at = read_unsigned(found.value(index) or b"", 0)
            key, _ = read_unsigned(found.value(index) or b"", at)
        except VarintError:
            continue
        if key in RECORD_TYPES:
            yield RECORD_TYPES[key]
