"""What a controller of the ZooKeeper generation tells brokers, in Kafka's last versions.

LeaderAndIsr 7, StopReplica 4, UpdateMetadata 8. `LiveLeaders` is left empty: a broker finds another
one by UpdateMetadata, or by its registration.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from clusters.node_port.storage import PartitionKey
from clusters.reference.codec.api import Api, Asked, Door, Labels, grouped
from clusters.reference.codec.entities import Values
from clusters.reference.codec.identifiers import id_of_uuid, uuid_of
from clusters.reference.codec.keys import GIVEN_UP
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

_DOORS: Final = (Door.BROKER,)
_LEADER_AND_ISR: Final = 7
_STOP_REPLICA: Final = 4
_UPDATE_METADATA: Final = 8
_UNKNOWN: Final = 0
"""Of an UpdateMetadata that is not full, as Kafka's controllers on ZooKeeper send it."""
_INCREMENTAL: Final = 1
_FULL: Final = 2


def _controller(request: Any) -> dict[str, Any]:
    return {
        "controller_id": request.controller_id,
        "controller_epoch": request.controller_epoch,
        "broker_epoch": request.broker_epoch,
    }


def _by_topic(partitions: Iterable[PartitionState]) -> Iterator[Values]:
    """Yield the head of each topic's states, with the states in `partition_states`."""
    topics = grouped(((one.key[0], one.topic), one) for one in partitions)
    for (topic_id, name), states in topics.items():
        yield {"topic_name": name, "topic_id": uuid_of(topic_id), "partition_states": states}


def _shared(one: PartitionState) -> dict[str, Any]:
    return {
        "partition_index": one.key[1],
        "controller_epoch": one.controller_epoch,
        "leader": one.leader,
        "leader_epoch": one.leader_epoch,
        "isr": one.isr,
        "replicas": one.replicas,
    }


def _led_values(one: PartitionState) -> Values:
    return _shared(one) | {
        "partition_epoch": one.partition_epoch,
        "adding_replicas": one.adding,
        "removing_replicas": one.removing,
        "is_new": one.is_new,
        "leader_recovery_state": int(one.recovering),
    }


def _shown_values(one: PartitionState) -> Values:
    return _shared(one) | {"zk_version": one.partition_epoch, "offline_replicas": one.offline}


def _states(entity: Any) -> Iterator[tuple[str, PartitionKey, Any]]:
    for topic in entity.topic_states:
        for one in topic.partition_states:
            yield topic.topic_name, (id_of_uuid(topic.topic_id), one.partition_index), one


def _leader_and_isr_ask(request: LeaderAndIsrRequest, _: Labels) -> tuple[int, Values]:
    return _LEADER_AND_ISR, _controller(request) | {
        "type": _FULL if request.is_full else _INCREMENTAL,
        "topic_states": [
            {**topic, "partition_states": [_led_values(one) for one in topic["partition_states"]]}
            for topic in _by_topic(request.partitions)
        ],
    }


def _leader_and_isr_asked(entity: Any, correlation: int, _: Labels) -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(
        correlation,
        controller_id=entity.controller_id,
        controller_epoch=entity.controller_epoch,
        broker_epoch=entity.broker_epoch,
        is_full=entity.type == _FULL,
        partitions=tuple(
            PartitionState(
                key,
                topic,
                controller_epoch=one.controller_epoch,
                leader=one.leader,
                leader_epoch=one.leader_epoch,
                isr=tuple(one.isr),
                partition_epoch=one.partition_epoch,
                replicas=tuple(one.replicas),
                adding=tuple(one.adding_replicas),
                removing=tuple(one.removing_replicas),
                is_new=one.is_new,
                recovering=bool(one.leader_recovery_state),
            )
            for topic, key, one in _states(entity)
        ),
    )


def _leader_and_isr_answer(response: LeaderAndIsrResponse, _: Asked) -> Values:
    by_topic = grouped((key[0], (key[1], error)) for key, error in response.partitions)
    return {
        "error_code": response.error,
        "topics": [
            {
                "topic_id": uuid_of(topic_id),
                "partition_errors": [
                    {"partition_index": index, "error_code": error} for index, error in some
                ],
            }
            for topic_id, some in by_topic.items()
        ],
    }


def _leader_and_isr_answered(
    entity: Any, request: LeaderAndIsrRequest, _node: int, _: Labels
) -> LeaderAndIsrResponse:
    return LeaderAndIsrResponse(
        request.correlation,
        error=entity.error_code.value,
        partitions=tuple(
            ((id_of_uuid(topic.topic_id), one.partition_index), one.error_code.value)
            for topic in entity.topics
            for one in topic.partition_errors
        ),
    )


def _update_metadata_ask(request: UpdateMetadataRequest, _: Labels) -> tuple[int, Values]:
    return _UPDATE_METADATA, _controller(request) | {
        "type": _FULL if request.is_full else _UNKNOWN,
        "topic_states": [
            {**topic, "partition_states": [_shown_values(one) for one in topic["partition_states"]]}
            for topic in _by_topic(request.partitions)
        ],
        "live_brokers": [
            {
                "id": one.broker_id,
                "endpoints": [
                    {"listener": name, "host": host, "port": port, "security_protocol": protocol}
                    for name, host, port, protocol in one.listeners
                ],
                "rack": one.rack,
            }
            for one in request.brokers
        ],
    }


def _update_metadata_asked(entity: Any, correlation: int, _: Labels) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(
        correlation,
        controller_id=entity.controller_id,
        controller_epoch=entity.controller_epoch,
        broker_epoch=entity.broker_epoch,
        partitions=tuple(
            PartitionState(
                key,
                topic,
                controller_epoch=one.controller_epoch,
                leader=one.leader,
                leader_epoch=one.leader_epoch,
                isr=tuple(one.isr),
                partition_epoch=one.zk_version,
                replicas=tuple(one.replicas),
                offline=tuple(one.offline_replicas),
            )
            for topic, key, one in _states(entity)
        ),
        brokers=tuple(
            LiveBroker(
                broker.id,
                tuple(
                    (one.listener, one.host, one.port, one.security_protocol)
                    for one in broker.endpoints
                ),
                broker.rack,
            )
            for broker in entity.live_brokers
        ),
        is_full=entity.type == _FULL,
    )


def _stop_replica_ask(request: StopReplicaRequest, _: Labels) -> tuple[int, Values]:
    by_topic = grouped((one.topic, one) for one in request.partitions)
    return _STOP_REPLICA, _controller(request) | {
        "topic_states": [
            {
                "topic_name": topic,
                "partition_states": [
                    {
                        "partition_index": one.partition,
                        "leader_epoch": one.leader_epoch,
                        "delete_partition": one.delete,
                    }
                    for one in some
                ],
            }
            for topic, some in by_topic.items()
        ],
    }


def _stop_replica_asked(entity: Any, correlation: int, _: Labels) -> StopReplicaRequest:
    return StopReplicaRequest(
        correlation,
        controller_id=entity.controller_id,
        controller_epoch=entity.controller_epoch,
        broker_epoch=entity.broker_epoch,
        partitions=tuple(
            StoppedPartition(
                topic.topic_name, one.partition_index, one.leader_epoch, one.delete_partition
            )
            for topic in entity.topic_states
            for one in topic.partition_states
        ),
    )


def _stop_replica_answer(response: StopReplicaResponse, _: Asked) -> Values:
    return {
        "error_code": response.error,
        "partition_errors": [
            {"topic_name": topic, "partition_index": partition, "error_code": error}
            for topic, partition, error in response.partitions
        ],
    }


def _stop_replica_answered(
    entity: Any, request: StopReplicaRequest, _node: int, _: Labels
) -> StopReplicaResponse:
    return StopReplicaResponse(
        request.correlation,
        error=entity.error_code.value,
        partitions=tuple(
            (one.topic_name, one.partition_index, one.error_code.value)
            for one in entity.partition_errors
        ),
    )


ZK_CONTROLLER_APIS: Final = (
    Api(
        name="LeaderAndIsr",
        key=GIVEN_UP["LeaderAndIsr"],
        kind=LeaderAndIsrRequest.kind,
        versions=(_LEADER_AND_ISR, _LEADER_AND_ISR),
        doors=_DOORS,
        asked=_leader_and_isr_asked,
        answer=_leader_and_isr_answer,
        ask=_leader_and_isr_ask,
        answered=_leader_and_isr_answered,
    ),
    Api(
        name="StopReplica",
        key=GIVEN_UP["StopReplica"],
        kind=StopReplicaRequest.kind,
        versions=(_STOP_REPLICA, _STOP_REPLICA),
        doors=_DOORS,
        asked=_stop_replica_asked,
        answer=_stop_replica_answer,
        ask=_stop_replica_ask,
        answered=_stop_replica_answered,
    ),
    Api(
        name="UpdateMetadata",
        key=GIVEN_UP["UpdateMetadata"],
        kind=UpdateMetadataRequest.kind,
        versions=(_UPDATE_METADATA, _UPDATE_METADATA),
        doors=_DOORS,
        asked=_update_metadata_asked,
        answer=lambda response, _: {"error_code": response.error},
        ask=_update_metadata_ask,
        answered=lambda entity, request, _node, _: UpdateMetadataResponse(
            request.correlation, entity.error_code.value
        ),
    ),
)
