"""What brokers of the ZooKeeper generation ask their controller, and all that such a broker takes.

ControlledShutdown is Kafka's in its last version, 3; MetadataHeartbeat and IsrChange are laid out
as the draft "Controller heartbeats" says.
"""

from typing import Any, Final

from clusters.reference.codec.api import Api, Asked, Door, Labels
from clusters.reference.codec.client_apis import CLIENT_APIS
from clusters.reference.codec.data_apis import DATA_APIS
from clusters.reference.codec.entities import Values
from clusters.reference.codec.keys import GIVEN_UP, OF_DRAFT
from clusters.reference.codec.operator_apis import OPERATOR_APIS
from clusters.reference.codec.write_apis import WRITE_APIS
from clusters.reference.codec.zk_controller_apis import ZK_CONTROLLER_APIS
from clusters.reference.nodes.messages.control import UpdateFeaturesRequest
from clusters.reference.zk.messages import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    IsrChange,
    IsrChangeRequest,
    IsrChangeResponse,
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
)

__all__ = ["ZK_APIS", "ZK_BROKER_APIS"]

_DOORS: Final = (Door.BROKER,)
_CONTROLLED_SHUTDOWN: Final = 3
_HEARTBEAT: Final = 0
_ISR_CHANGES: Final = (0, 1)


def _shutdown_answer(response: ControlledShutdownResponse, _: Asked) -> Values:
    return {
        "error_code": response.error,
        "remaining_partitions": [
            {"topic_name": topic, "partition_index": partition}
            for topic, partition in response.remaining
        ],
    }


def _shutdown_answered(
    entity: Any, request: ControlledShutdownRequest, _node: int, _: Labels
) -> ControlledShutdownResponse:
    remaining = tuple((one.topic_name, one.partition_index) for one in entity.remaining_partitions)
    return ControlledShutdownResponse(request.correlation, entity.error_code.value, remaining)


def _isr_change_ask(request: IsrChangeRequest, _: Labels) -> tuple[int, Values]:
    return request.version, {
        "broker_id": request.broker_id,
        "incarnation_id": request.incarnation_id,
        "topics": [
            {
                "topic_name": topic,
                "partitions": [
                    {
                        "leader_epoch": one.leader_epoch,
                        "partition_index": one.partition,
                        "isr_nodes": one.isr,
                        "incarnations": one.incarnations,
                    }
                    for one in some
                ],
            }
            for topic, some in request.topics
        ],
    }


def _isr_change_asked(entity: Any, correlation: int, _: Labels) -> IsrChangeRequest:
    return IsrChangeRequest(
        correlation,
        broker_id=entity.broker_id,
        incarnation_id=entity.incarnation_id,
        version=int(entity.__version__),
        topics=tuple(
            (
                topic.topic_name,
                tuple(
                    IsrChange(
                        one.partition_index,
                        one.leader_epoch,
                        tuple(one.isr_nodes),
                        tuple(getattr(one, "incarnations", ())),
                    )
                    for one in topic.partitions
                ),
            )
            for topic in entity.topics
        ),
    )


def _isr_change_answer(response: IsrChangeResponse, _: Asked) -> Values:
    return {
        "top_level_error_code": response.error,
        "top_level_error_message": response.error_message,
        "results": [
            {"error_code": error, "error_message": words} for error, words in response.results
        ],
    }


def _isr_change_answered(
    entity: Any, request: IsrChangeRequest, _node: int, _: Labels
) -> IsrChangeResponse:
    return IsrChangeResponse(
        request.correlation,
        error=entity.top_level_error_code,
        error_message=entity.top_level_error_message,
        results=tuple((one.error_code, one.error_message) for one in entity.results),
    )


_OF_BROKERS: Final = (
    Api(
        name="ControlledShutdown",
        key=GIVEN_UP["ControlledShutdown"],
        kind=ControlledShutdownRequest.kind,
        versions=(_CONTROLLED_SHUTDOWN, _CONTROLLED_SHUTDOWN),
        doors=_DOORS,
        asked=lambda entity, correlation, _: ControlledShutdownRequest(
            correlation, entity.broker_id, entity.broker_epoch
        ),
        answer=_shutdown_answer,
        ask=lambda request, _: (
            _CONTROLLED_SHUTDOWN,
            {"broker_id": request.broker_id, "broker_epoch": request.broker_epoch},
        ),
        answered=_shutdown_answered,
    ),
    Api(
        name="MetadataHeartbeat",
        key=OF_DRAFT["MetadataHeartbeat"],
        kind=MetadataHeartbeatRequest.kind,
        versions=(_HEARTBEAT, _HEARTBEAT),
        doors=_DOORS,
        asked=lambda entity, correlation, _: MetadataHeartbeatRequest(
            correlation, entity.broker_id, entity.incarnation_id, entity.target_state
        ),
        answer=lambda response, _: {
            "error_code": response.error,
            "error_string": response.error_message,
            "current_state": response.current_state,
        },
        ask=lambda request, _: (
            _HEARTBEAT,
            {
                "broker_id": request.broker_id,
                "incarnation_id": request.incarnation_id,
                "target_state": request.target_state,
            },
        ),
        answered=lambda entity, request, _node, _: MetadataHeartbeatResponse(
            request.correlation, entity.error_code, entity.error_string, entity.current_state
        ),
    ),
    Api(
        name="IsrChange",
        key=OF_DRAFT["IsrChange"],
        kind=IsrChangeRequest.kind,
        versions=_ISR_CHANGES,
        doors=_DOORS,
        asked=_isr_change_asked,
        answer=_isr_change_answer,
        ask=_isr_change_ask,
        answered=_isr_change_answered,
    ),
)
ZK_BROKER_APIS: Final = (*ZK_CONTROLLER_APIS, *_OF_BROKERS)
"""Those that nodes of this generation alone ask each other."""
ZK_APIS: Final = (
    *ZK_BROKER_APIS,
    *(one for one in WRITE_APIS if one.kind != UpdateFeaturesRequest.kind),
    *OPERATOR_APIS,
    *DATA_APIS,
    *CLIENT_APIS,
)
"""All that a broker of this generation takes: it has no metadata.version to raise."""
