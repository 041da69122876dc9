"""A decoded metadata record as a row of METADATA_LOG: which field of which record is which column.

Kafka's records say "nothing changed" by values of their own (leader -2, recovery state -1); the
table says it by null.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from clusters.protocol.message_decoder import Fields
from clusters.protocol.metadata_records import MetadataRecord

__all__ = ["columns_of"]

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


def columns_of(record: MetadataRecord, *, topics: Mapping[str, str]) -> dict[str, Any]:
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
