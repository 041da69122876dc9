"""The requests of a controller of the ZooKeeper generation to brokers, in Kafka's last versions.

LeaderAndIsr 7, StopReplica 4, UpdateMetadata 8. `LiveLeaders` is left empty: a broker finds another
one by UpdateMetadata, or by its registration.
"""

from typing import Final

from clusters.protocol.api_keys import GIVEN_UP
from clusters.reference.codec.api import Api, Door, Traffic
from clusters.reference.codec.layout import (
    ERROR,
    FLAG,
    NUMBERS,
    TOPIC_ID,
    Conversion,
    Part,
    between_nodes,
    by_topic,
    each,
    field,
)
from clusters.reference.zk.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LiveBroker,
    PartitionState,
    StoppedPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

__all__ = ["ZK_CONTROLLER_APIS"]

_INCREMENTAL: Final = 1
_UNKNOWN: Final = 0
"""Of an UpdateMetadata that is not full, as Kafka's controllers on ZooKeeper send it."""
_FULL: Final = 2

_CONTROLLER: Final = (field("controller_id"), field("controller_epoch"), field("broker_epoch"))
_ERROR: Final = field("error", "error_code", ERROR)
_INDEX: Final = field("partition", "partition_index")
_TOPIC_ID: Final = field("topic_id", way=TOPIC_ID)
_TOPIC: Final = field("topic", "topic_name")


def _is_full(otherwise: int) -> Part:
    way = Conversion(lambda kind, _: kind == _FULL, lambda full, _: _FULL if full else otherwise)
    return field("is_full", "type", way)


def _states(*parts: Part) -> Part:
    """Return the part of partitions' states, of the fields that all of them have and of these."""
    shared = (
        _INDEX,
        field("controller_epoch"),
        field("leader"),
        field("leader_epoch"),
        field("isr", way=NUMBERS),
        field("replicas", way=NUMBERS),
    )
    topic = (_TOPIC_ID, _TOPIC)
    way = by_topic(topic, "partition_states", *shared, *parts, into=PartitionState)
    return field("partitions", "topic_states", way)


_LISTENERS: Final = each(
    field("listener"), field("host"), field("port"), field("security_protocol")
)


def _api(
    name: str,
    version: int,
    *,
    request: type,
    asks: tuple[Part, ...],
    response: type,
    answers: tuple[Part, ...],
) -> Api:
    return between_nodes(
        name,
        GIVEN_UP[name],
        (version, version),
        (Door.BROKER,),
        request=request,
        asks=(*_CONTROLLER, *asks),
        response=response,
        answers=(_ERROR, *answers),
        traffic=Traffic.CONTROLLER,
    )


ZK_CONTROLLER_APIS: Final = (
    _api(
        "LeaderAndIsr",
        7,
        request=LeaderAndIsrRequest,
        asks=(
            _is_full(_INCREMENTAL),
            _states(
                field("partition_epoch"),
                field("adding", "adding_replicas", NUMBERS),
                field("removing", "removing_replicas", NUMBERS),
                field("is_new"),
                field("recovering", "leader_recovery_state", FLAG),
            ),
        ),
        response=LeaderAndIsrResponse,
        answers=(
            field(
                "partitions", "topics", by_topic((_TOPIC_ID,), "partition_errors", _INDEX, _ERROR)
            ),
        ),
    ),
    _api(
        "StopReplica",
        4,
        request=StopReplicaRequest,
        asks=(
            field(
                "partitions",
                "topic_states",
                by_topic(
                    (_TOPIC,),
                    "partition_states",
                    _INDEX,
                    field("leader_epoch"),
                    field("delete", "delete_partition"),
                    into=StoppedPartition,
                ),
            ),
        ),
        response=StopReplicaResponse,
        answers=(field("partitions", "partition_errors", each(_TOPIC, _INDEX, _ERROR)),),
    ),
    _api(
        "UpdateMetadata",
        8,
        request=UpdateMetadataRequest,
        asks=(
            _is_full(_UNKNOWN),
            _states(
                field("partition_epoch", "zk_version"),
                field("offline", "offline_replicas", NUMBERS),
            ),
            field(
                "brokers",
                "live_brokers",
                each(
                    field("broker_id", "id"),
                    field("listeners", "endpoints", _LISTENERS),
                    field("rack"),
                    into=LiveBroker,
                ),
            ),
        ),
        response=UpdateMetadataResponse,
        answers=(),
    ),
)
