"""The types of metadata records that a Fetch response carries.

Only the types are read, from the front of each record's value (KIP-631: frame version, type and
version, all varints), so that no release's definitions are needed.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from clusters.protocol.record_batches import scan_batches
from clusters.protocol.records import records_of
from clusters.protocol.varints import VarintError, read_unsigned
from nemesis.wire.decoding.columns import METADATA_TOPIC, topic_columns

__all__ = ["RECORD_TYPES", "record_types"]

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
    if isinstance(known := getattr(response, "record_types", None), frozenset):
        return known  # a simulated frame, which has no bytes, says itself what it carries
    partitions = [
        partition
        for topic in getattr(response, "responses", ())
        if topic_columns(topic).get("topic") == METADATA_TOPIC
        for partition in topic.partitions
    ]
    return frozenset(
        name for partition in partitions for name in _types(bytes(partition.records or b""))
    )


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
