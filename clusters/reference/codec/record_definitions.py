"""The records of the metadata log as this cluster writes them: Kafka's types, fields and numbers.

Versions are the ones that Kafka 3.4 writes, so that its tools read them. The core's fields beyond
Kafka's are tagged from 100 on: others skip it.
"""

from typing import Final

from fencepost.clusters.protocol.message_definitions import Message, field, message, since
from fencepost.clusters.protocol.metadata_records import Definitions

MESSAGES: Final[tuple[Message, ...]] = (
    message(
        "RegisterBrokerRecord",
        "metadata",
        field("brokerId", "int32"),
        field("isMigratingZkBroker", "bool", versions=since(2)),
        field("incarnationId", "uuid"),
        field("brokerEpoch", "int64"),
        field(
            "endPoints",
            "[]BrokerEndpoint",
            field("name", "string"),
            field("host", "string"),
            field("port", "uint16"),
            field("securityProtocol", "int16"),
        ),
        field(
            "features",
            "[]BrokerFeature",
            field("name", "string"),
            field("minSupportedVersion", "int16"),
            field("maxSupportedVersion", "int16"),
        ),
        field("rack", "string", nullable=True),
        field("fenced", "bool", default="true"),
        field("inControlledShutdown", "bool", versions=since(1)),
        field("registrationOffset", "int64", tag=100, default="-1"),
        key=0,
    ),
    message(
        "UnregisterBrokerRecord",
        "metadata",
        field("brokerId", "int32"),
        field("brokerEpoch", "int64"),
        key=1,
    ),
    message("TopicRecord", "metadata", field("name", "string"), field("topicId", "uuid"), key=2),
    message(
        "PartitionRecord",
        "metadata",
        field("partitionId", "int32", default="-1"),
        field("topicId", "uuid"),
        field("replicas", "[]int32"),
        field("isr", "[]int32"),
        field("removingReplicas", "[]int32"),
        field("addingReplicas", "[]int32"),
        field("leader", "int32", default="-1"),
        field("leaderRecoveryState", "int8", tag=0),
        field("leaderEpoch", "int32", default="-1"),
        field("partitionEpoch", "int32", default="-1"),
        key=3,
    ),
    message(
        "ConfigRecord",
        "metadata",
        field("resourceType", "int8"),
        field("resourceName", "string"),
        field("name", "string"),
        field("value", "string", nullable=True),
        key=4,
    ),
    message(
        "PartitionChangeRecord",
        "metadata",
        field("partitionId", "int32", default="-1"),
        field("topicId", "uuid"),
        field("isr", "[]int32", tag=0, nullable=True, default="null"),
        field("leader", "int32", tag=1, default="-2"),
        field("replicas", "[]int32", tag=2, nullable=True, default="null"),
        field("removingReplicas", "[]int32", tag=3, nullable=True, default="null"),
        field("addingReplicas", "[]int32", tag=4, nullable=True, default="null"),
        field("leaderRecoveryState", "int8", tag=5, default="-1"),
        field("keepsLeaderEpoch", "bool", tag=100),
        key=5,
    ),
    message("RemoveTopicRecord", "metadata", field("topicId", "uuid"), key=9),
    message(
        "FeatureLevelRecord",
        "metadata",
        field("name", "string"),
        field("featureLevel", "int16"),
        key=12,
    ),
    message(
        "ProducerIdsRecord",
        "metadata",
        field("brokerId", "int32"),
        field("brokerEpoch", "int64", default="-1"),
        field("nextProducerId", "int64"),
        key=15,
    ),
    message(
        "BrokerRegistrationChangeRecord",
        "metadata",
        field("brokerId", "int32"),
        field("brokerEpoch", "int64"),
        field("fenced", "int8", tag=0),
        field("inControlledShutdown", "int8", versions=since(1), tag=1),
        key=17,
    ),
    message("NoOpRecord", "metadata", key=20),
    message(
        "LeaderChangeMessage",
        "data",
        field("version", "int16"),
        field("leaderId", "int32"),
        field("voters", "[]Voter", field("voterId", "int32")),
        field("grantingVoters", "[]Voter", field("voterId", "int32")),
    ),
    message(
        "SnapshotHeaderRecord",
        "data",
        field("version", "int16"),
        field("lastContainedLogTimestamp", "int64"),
    ),
    message("SnapshotFooterRecord", "data", field("version", "int16")),
)
"""Metadata records by `key`, then the control records of the log (KIP-595, KIP-630)."""

VERSIONS: Final = {
    "RegisterBrokerRecord": 1,
    "BrokerRegistrationChangeRecord": 1,
}
"""The version that is written; 0 of all others."""


def definitions() -> Definitions:
    """Return the definitions that read these records, as a witness of the disks uses them."""
    return Definitions(MESSAGES)
