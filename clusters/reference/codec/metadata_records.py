"""Records of the metadata log as Kafka's: values of the core to framed bytes, and back.

A record is framed as KIP-631 says: frame version 1, type and version as varints, the fields.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from fencepost.clusters.protocol.message_decoder import DecodeError, Fields, decoder_of
from fencepost.clusters.protocol.message_definitions import Message
from fencepost.clusters.protocol.message_encoder import encoder_of
from fencepost.clusters.protocol.varints import VarintError, encoded_unsigned, read_unsigned
from fencepost.clusters.reference.codec.identifiers import id_of_text, text_of
from fencepost.clusters.reference.codec.record_definitions import MESSAGES, VERSIONS
from fencepost.clusters.reference.nodes.levels import KAFKA_LEVELS, METADATA_VERSION
from fencepost.clusters.reference.nodes.records import (
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

_FRAME_VERSION: Final = b"\x01"
_LEADER_UNCHANGED: Final = -2
_RECOVERY_UNCHANGED: Final = -1
_OWN_LEVELS: Final = {kafkas: own for own, kafkas in KAFKA_LEVELS.items()}
_BY_NAME: Final[Mapping[str, Message]] = {one.name: one for one in MESSAGES}


def encoded(record: MetadataRecord) -> bytes:
    """The value of a record that is not a control record, frame and all."""
    name = type(record).__name__
    frame, encode = _ENCODERS[name]
    return frame + encode(_FIELDS[name](record))


def record_in(value: bytes | None) -> MetadataRecord:
    """The record in such a value. Raises DecodeError."""
    try:
        frame_version, at = read_unsigned(value or b"", 0)
        type_key, at = read_unsigned(value or b"", at)
        version, at = read_unsigned(value or b"", at)
    except VarintError as error:
        raise DecodeError(f"no frame of a metadata record: {error}") from error
    found = _DECODERS.get((frame_version, type_key, version))
    if found is None:
        raise DecodeError(f"no metadata record of type {type_key}, version {version}")
    name, decode = found
    return _RECORDS[name](decode((value or b"")[at:]))


def leader_change_value(record: LeaderChangeMessage) -> bytes:
    """The value of the control record that begins a leader's epoch."""
    voters = [{"voterId": voter} for voter in record.voters]
    return _LEADER_CHANGE({"leaderId": record.leader_id, "voters": voters})


def leader_change(value: bytes) -> LeaderChangeMessage:
    """The same, read back. Raises DecodeError."""
    fields = _READ_LEADER_CHANGE(value)
    return LeaderChangeMessage(fields["leaderId"], tuple(v["voterId"] for v in fields["voters"]))


def _registration_fields(record: RegisterBrokerRecord) -> Fields:
    return {
        "brokerId": record.broker_id,
        "incarnationId": text_of(record.incarnation_id),
        "brokerEpoch": record.broker_epoch,
        "endPoints": [
            {"name": name, "host": host, "port": port, "securityProtocol": protocol}
            for name, host, port, protocol in record.listeners
        ],
        "features": [
            {
                "name": name,
                "minSupportedVersion": _kafkas_level(name, lowest),
                "maxSupportedVersion": _kafkas_level(name, highest),
            }
            for name, lowest, highest in record.features
        ],
        "rack": record.rack,
        "fenced": record.fenced,
        "inControlledShutdown": record.in_controlled_shutdown,
        "registrationOffset": record.offset,
    }


def _registration(fields: Fields) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=fields["brokerId"],
        broker_epoch=fields["brokerEpoch"],
        incarnation_id=id_of_text(fields["incarnationId"]),
        fenced=fields["fenced"],
        listeners=tuple(
            (one["name"], one["host"], one["port"], one["securityProtocol"])
            for one in fields["endPoints"]
        ),
        features=tuple(
            (
                one["name"],
                _own_level(one["name"], one["minSupportedVersion"]),
                _own_level(one["name"], one["maxSupportedVersion"]),
            )
            for one in fields["features"]
        ),
        rack=fields["rack"],
        in_controlled_shutdown=fields["inControlledShutdown"],
        offset=fields["registrationOffset"],
    )


def _registration_change_fields(record: BrokerRegistrationChangeRecord) -> Fields:
    """Kafka's numbers: 1 yes, -1 no, 0 not changed."""
    return {
        "brokerId": record.broker_id,
        "brokerEpoch": record.broker_epoch,
        "fenced": _changed(record.fenced),
        "inControlledShutdown": _changed(record.in_controlled_shutdown),
    }


def _registration_change(fields: Fields) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=fields["brokerId"],
        broker_epoch=fields["brokerEpoch"],
        fenced=_CHANGES.get(fields["fenced"]),
        in_controlled_shutdown=_CHANGES.get(fields["inControlledShutdown"]),
    )


_CHANGES: Final = {1: True, -1: False}


def _changed(value: bool | None) -> int:  # noqa: FBT001 -- three values, and none is a flag
    if value is None:
        return 0
    return 1 if value else -1


def _partition_fields(record: PartitionRecord) -> Fields:
    return {
        "partitionId": record.partition,
        "topicId": text_of(record.topic_id),
        "replicas": record.replicas,
        "isr": record.isr,
        "removingReplicas": record.removing,
        "addingReplicas": record.adding,
        "leader": record.leader,
        "leaderRecoveryState": int(record.recovering),
        "leaderEpoch": record.leader_epoch,
        "partitionEpoch": record.partition_epoch,
    }


def _partition(fields: Fields) -> PartitionRecord:
    return PartitionRecord(
        topic_id=id_of_text(fields["topicId"]),
        partition=fields["partitionId"],
        replicas=tuple(fields["replicas"]),
        isr=tuple(fields["isr"]),
        leader=fields["leader"],
        leader_epoch=fields["leaderEpoch"],
        partition_epoch=fields["partitionEpoch"],
        adding=tuple(fields["addingReplicas"]),
        removing=tuple(fields["removingReplicas"]),
        recovering=bool(fields["leaderRecoveryState"]),
    )


def _partition_change_fields(record: PartitionChangeRecord) -> Fields:
    return {
        "partitionId": record.partition,
        "topicId": text_of(record.topic_id),
        "isr": record.isr,
        "leader": _LEADER_UNCHANGED if record.leader is None else record.leader,
        "replicas": record.replicas,
        "removingReplicas": record.removing,
        "addingReplicas": record.adding,
        "leaderRecoveryState": _RECOVERY_UNCHANGED
        if record.recovering is None
        else int(record.recovering),
        "keepsLeaderEpoch": not record.bumps_leader_epoch,
    }


def _partition_change(fields: Fields) -> PartitionChangeRecord:
    leader, recovery = fields["leader"], fields["leaderRecoveryState"]
    return PartitionChangeRecord(
        topic_id=id_of_text(fields["topicId"]),
        partition=fields["partitionId"],
        isr=_ids(fields["isr"]),
        leader=None if leader == _LEADER_UNCHANGED else leader,
        bumps_leader_epoch=not fields["keepsLeaderEpoch"],
        replicas=_ids(fields["replicas"]),
        adding=_ids(fields["addingReplicas"]),
        removing=_ids(fields["removingReplicas"]),
        recovering=None if recovery == _RECOVERY_UNCHANGED else bool(recovery),
    )


def _feature_fields(record: FeatureLevelRecord) -> Fields:
    return {"name": record.name, "featureLevel": _kafkas_level(record.name, record.level)}


def _feature(fields: Fields) -> FeatureLevelRecord:
    name = fields["name"]
    return FeatureLevelRecord(name, _own_level(name, fields["featureLevel"]))


def _kafkas_level(name: str, level: int) -> int:
    """Return the level on disks: the metadata.version of Kafka's whose records it has."""
    return KAFKA_LEVELS.get(level, level) if name == METADATA_VERSION else level


def _own_level(name: str, level: int) -> int:
    return _OWN_LEVELS.get(level, level) if name == METADATA_VERSION else level


def _ids(found: list[int] | None) -> tuple[int, ...] | None:
    return None if found is None else tuple(found)


_FIELDS: Final[Mapping[str, Callable[[Any], Fields]]] = {
    "FeatureLevelRecord": _feature_fields,
    "RegisterBrokerRecord": _registration_fields,
    "UnregisterBrokerRecord": lambda one: {
        "brokerId": one.broker_id,
        "brokerEpoch": one.broker_epoch,
    },
    "BrokerRegistrationChangeRecord": _registration_change_fields,
    "TopicRecord": lambda one: {"name": one.name, "topicId": text_of(one.topic_id)},
    "RemoveTopicRecord": lambda one: {"topicId": text_of(one.topic_id)},
    "PartitionRecord": _partition_fields,
    "PartitionChangeRecord": _partition_change_fields,
    "ConfigRecord": lambda one: {
        "resourceType": one.resource_type,
        "resourceName": one.resource_name,
        "name": one.name,
        "value": one.value,
    },
    "ProducerIdsRecord": lambda one: {
        "brokerId": one.broker_id,
        "brokerEpoch": one.broker_epoch,
        "nextProducerId": one.next_producer_id,
    },
    "NoOpRecord": lambda _: {},
}

_RECORDS: Final[Mapping[str, Callable[[Fields], MetadataRecord]]] = {
    "FeatureLevelRecord": _feature,
    "RegisterBrokerRecord": _registration,
    "UnregisterBrokerRecord": lambda found: UnregisterBrokerRecord(
        found["brokerId"], found["brokerEpoch"]
    ),
    "BrokerRegistrationChangeRecord": _registration_change,
    "TopicRecord": lambda found: TopicRecord(found["name"], id_of_text(found["topicId"])),
    "RemoveTopicRecord": lambda found: RemoveTopicRecord(id_of_text(found["topicId"])),
    "PartitionRecord": _partition,
    "PartitionChangeRecord": _partition_change,
    "ConfigRecord": lambda found: ConfigRecord(
        found["resourceType"], found["resourceName"], found["name"], found["value"]
    ),
    "ProducerIdsRecord": lambda found: ProducerIdsRecord(
        found["brokerId"], found["brokerEpoch"], found["nextProducerId"]
    ),
    "NoOpRecord": lambda _: NoOpRecord(),
}


def _frame(message: Message) -> bytes:
    version = VERSIONS.get(message.name, 0)
    return _FRAME_VERSION + encoded_unsigned(message.type_key or 0) + encoded_unsigned(version)


_ENCODERS: Final = {
    name: (_frame(_BY_NAME[name]), encoder_of(_BY_NAME[name], VERSIONS.get(name, 0)))
    for name in _FIELDS
}
_DECODERS: Final = {
    (1, _BY_NAME[name].type_key, VERSIONS.get(name, 0)): (
        name,
        decoder_of(_BY_NAME[name], VERSIONS.get(name, 0)),
    )
    for name in _RECORDS
}
_LEADER_CHANGE: Final = encoder_of(_BY_NAME["LeaderChangeMessage"], 0)
_READ_LEADER_CHANGE: Final = decoder_of(_BY_NAME["LeaderChangeMessage"], 0)
