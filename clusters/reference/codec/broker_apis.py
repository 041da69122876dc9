"""The requests of brokers to the active controller for themselves, those of the dialect included.

The dialect's are registration and both heartbeats. On the wire is the last offset that a broker has
reached, in the core the end of what it has. The heartbeat with the lowest acknowledged offset says
what a broker is to be in three booleans.
"""

from dataclasses import replace
from typing import Final

from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.protocol.dialect import HEARTBEAT, HEARTBEAT_WITH_LOWEST, REGISTRATION
from fencepost.clusters.protocol.entities import Unreadable
from fencepost.clusters.protocol.message_decoder import Fields
from fencepost.clusters.protocol.rpcs.brokers import ALLOCATE_PRODUCER_IDS, ALTER_PARTITION
from fencepost.clusters.reference.codec.api import ListenerType, Traffic
from fencepost.clusters.reference.codec.identifiers import id_of_text, text_of
from fencepost.clusters.reference.codec.tables import between_nodes
from fencepost.clusters.reference.nodes.levels import LEVEL_VISIBILITY
from fencepost.clusters.reference.nodes.messages.control import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

_LOWEST: Final = 2
_EPOCHS_FROM: Final = 3
"""AlterPartition: the epochs of ISR members (KIP-903)."""
DIALECT: Final = {
    BrokerRegistrationRequest.kind: "BrokerRegistration",
    BrokerHeartbeatRequest.kind: "BrokerHeartbeat",
}
"""Kafka's names of the dialect's requests, by kind."""
DialectRequest = BrokerRegistrationRequest | BrokerHeartbeatRequest
DialectResponse = BrokerRegistrationResponse | BrokerHeartbeatResponse
_RUNNING: Final = int(BrokerState.RUNNING)
_FENCED: Final = int(BrokerState.FENCED)
_LEAVING: Final = int(BrokerState.PENDING_CONTROLLED_SHUTDOWN)
_GONE: Final = int(BrokerState.NOT_RUNNING)


def _lowered(request: AlterPartitionRequest, highest: int) -> AlterPartitionRequest:
    """Return the request in a version that a controller offers: below 3 it has no members' epochs.

    Raises Unreadable if no such version exists. Source: KIP-903, "the brokers can use the
    controller-supported version".
    """
    if request.version <= highest:
        return request
    if highest < _LOWEST:
        raise Unreadable(f"AlterPartition is offered up to version {highest}, needed is {_LOWEST}")
    items = tuple(replace(item, isr_epochs=()) for item in request.items)
    return replace(request, version=highest, items=items)


BROKER_APIS: Final = (
    between_nodes(
        ALTER_PARTITION,
        (_LOWEST, _EPOCHS_FROM),
        (ListenerType.CONTROLLER,),
        request=AlterPartitionRequest,
        response=AlterPartitionResponse,
        into={"items": AlterPartitionItem},
        answered_into={"items": AlterPartitionItem},
        traffic=Traffic.ALTER_PARTITION,
        lowered=_lowered,
    ),
    between_nodes(
        ALLOCATE_PRODUCER_IDS,
        (0, 0),
        (ListenerType.CONTROLLER,),
        request=AllocateProducerIdsRequest,
        response=AllocateProducerIdsResponse,
    ),
)


def address_of(request: DialectRequest) -> tuple[int, int]:
    """The key and the version by which it is asked."""
    if isinstance(request, BrokerRegistrationRequest):
        return REGISTRATION
    return HEARTBEAT_WITH_LOWEST if request.level >= LEVEL_VISIBILITY else HEARTBEAT


def request_fields(request: DialectRequest) -> Fields:
    """A request's fields, in the message that `address_of` names."""
    if isinstance(request, BrokerRegistrationRequest):
        return _registration_fields(request)
    shared = {
        "brokerId": request.broker_id,
        "brokerEpoch": request.broker_epoch,
        "currentMetadataOffset": request.current_metadata_offset - 1,
    }
    if request.level < LEVEL_VISIBILITY:
        return shared | {"targetState": request.target_state, "level": request.level}
    return shared | {
        "wantFence": request.target_state == _FENCED,
        "wantShutDown": request.target_state == _LEAVING,
    }


def request_in(address: tuple[int, int], fields: Fields, correlation: int) -> DialectRequest:
    """The request with these fields."""
    if address == REGISTRATION:
        return _registration(fields, correlation)
    if address == HEARTBEAT:
        target, level = fields["targetState"], fields["level"]
    else:
        target, level = _wanted(fields), LEVEL_VISIBILITY
    return BrokerHeartbeatRequest(
        correlation,
        broker_id=fields["brokerId"],
        broker_epoch=fields["brokerEpoch"],
        current_metadata_offset=fields["currentMetadataOffset"] + 1,
        target_state=target,
        level=level,
    )


def response_fields(address: tuple[int, int], response: DialectResponse) -> Fields:
    """A response's fields, in the message of this key and version."""
    shared = {
        "errorCode": response.error,
        "activeControllerId": response.active_controller_id,
        "leaseDurationMs": response.lease_duration_ms,
    }
    if isinstance(response, BrokerRegistrationResponse):
        return shared | {"brokerEpoch": response.broker_epoch}
    shared["isCaughtUp"] = response.is_caught_up
    if address == HEARTBEAT:
        return shared | {"nextState": response.next_state}
    return shared | {
        "isFenced": response.next_state == _FENCED,
        "shouldShutDown": response.next_state == _GONE,
        "lowestAcknowledgedOffset": response.lowest_acknowledged_offset - 1,
    }


def response_in(request: DialectRequest, fields: Fields) -> DialectResponse:
    """The response to this request with these fields."""
    error, controller = fields["errorCode"], fields["activeControllerId"]
    lease_ms = fields["leaseDurationMs"]
    if isinstance(request, BrokerRegistrationRequest):
        return BrokerRegistrationResponse(
            request.correlation, error, controller, fields["brokerEpoch"], lease_ms
        )
    if address_of(request) == HEARTBEAT:
        next_state, lowest = fields["nextState"], -1
    else:
        next_state = _next_state(fields, request)
        lowest = fields["lowestAcknowledgedOffset"] + 1
    return BrokerHeartbeatResponse(
        request.correlation,
        error=error,
        active_controller_id=controller,
        next_state=next_state,
        is_caught_up=fields["isCaughtUp"],
        lease_duration_ms=lease_ms,
        lowest_acknowledged_offset=lowest,
    )


def _registration_fields(request: BrokerRegistrationRequest) -> Fields:
    return {
        "brokerId": request.broker_id,
        "brokerEpoch": request.broker_epoch,
        "curMetadataOffset": request.current_metadata_offset - 1,
        "listeners": [
            {"name": name, "host": host, "port": port, "securityProtocol": protocol}
            for name, host, port, protocol in request.listeners
        ],
        "features": [
            {"name": name, "minSupportedVersion": lowest, "maxSupportedVersion": highest}
            for name, lowest, highest in request.features
        ],
        "rack": request.rack,
        "incarnationId": text_of(request.incarnation_id),
        "clusterId": request.cluster_id,
    }


def _registration(fields: Fields, correlation: int) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        correlation,
        broker_id=fields["brokerId"],
        incarnation_id=id_of_text(fields["incarnationId"]),
        broker_epoch=fields["brokerEpoch"],
        current_metadata_offset=fields["curMetadataOffset"] + 1,
        listeners=tuple(
            (one["name"], one["host"], one["port"], one["securityProtocol"])
            for one in fields["listeners"]
        ),
        features=tuple(
            (one["name"], one["minSupportedVersion"], one["maxSupportedVersion"])
            for one in fields["features"]
        ),
        rack=fields["rack"],
        cluster_id=fields["clusterId"],
    )


def _wanted(fields: Fields) -> int:
    if fields["wantShutDown"]:
        return _LEAVING
    return _FENCED if fields["wantFence"] else _RUNNING


def _next_state(fields: Fields, request: BrokerHeartbeatRequest) -> int:
    """A broker that takes its leave goes on doing so until it is let go."""
    if fields["shouldShutDown"]:
        return _GONE
    if fields["isFenced"]:
        return _FENCED
    return _LEAVING if request.target_state == _LEAVING else _RUNNING
