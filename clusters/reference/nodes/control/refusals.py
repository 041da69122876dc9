"""The answers to requests that are not decided: not by this controller, or not in time."""

from collections.abc import Callable
from typing import Any, Final

from clusters.reference.nodes.errors import Error
from clusters.reference.nodes.messages.control import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterReassignmentsRequest,
    AlterReassignmentsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListReassignmentsRequest,
    ListReassignmentsResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from clusters.reference.nodes.states import BrokerState

__all__ = ["refused"]


def refused(request: Any, error: Error, leader_id: int) -> Any:
    """Return the response to a request of kinds 20 to 40 and 44 that holds only this error.

    `leader_id` is the node that may know better, -1 if none is known; a response without a place
    for an error of its own repeats it for each topic or resource.
    """
    return _REFUSALS[request.kind](request, error, leader_id)


def _registration(
    request: BrokerRegistrationRequest, error: Error, leader_id: int
) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(request.correlation, error, leader_id, -1, 0)


def _heartbeat(
    request: BrokerHeartbeatRequest, error: Error, leader_id: int
) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(
        request.correlation,
        error,
        leader_id,
        BrokerState.FENCED,
        is_caught_up=False,
        lease_duration_ms=0,
        lowest_acknowledged_offset=-1,
    )


def _partitions(request: AlterPartitionRequest, error: Error, _: int) -> AlterPartitionResponse:
    return AlterPartitionResponse(request.correlation, error, ())


def _topics(request: CreateTopicsRequest, error: Error, _: int) -> CreateTopicsResponse:
    topics = tuple((one.name, -1, int(error), error.name) for one in request.topics)
    return CreateTopicsResponse(request.correlation, topics)


def _growths(request: CreatePartitionsRequest, error: Error, _: int) -> CreatePartitionsResponse:
    topics = tuple((one.name, int(error), error.name) for one in request.topics)
    return CreatePartitionsResponse(request.correlation, topics)


def _deletions(request: DeleteTopicsRequest, error: Error, _: int) -> DeleteTopicsResponse:
    topics = tuple((name, topic_id, int(error)) for name, topic_id in request.topics)
    return DeleteTopicsResponse(request.correlation, topics)


def _settings(request: AlterConfigsRequest, error: Error, _: int) -> AlterConfigsResponse:
    resources = dict.fromkeys(change[:2] for change in request.changes)
    return AlterConfigsResponse(
        request.correlation,
        tuple((kind, name, int(error), error.name) for kind, name in resources),
    )


def _reassignments(
    request: AlterReassignmentsRequest, error: Error, _: int
) -> AlterReassignmentsResponse:
    return AlterReassignmentsResponse(request.correlation, error, ())


def _elections(request: ElectLeadersRequest, error: Error, _: int) -> ElectLeadersResponse:
    return ElectLeadersResponse(request.correlation, error, ())


def _producer_ids(
    request: AllocateProducerIdsRequest, error: Error, _: int
) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(request.correlation, error, -1, 0)


def _features(request: UpdateFeaturesRequest, error: Error, _: int) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(request.correlation, error, error.name)


def _moving(request: ListReassignmentsRequest, error: Error, _: int) -> ListReassignmentsResponse:
    return ListReassignmentsResponse(request.correlation, error, ())


_REFUSALS: Final[dict[int, Callable[[Any, Error, int], Any]]] = {
    BrokerRegistrationRequest.kind: _registration,
    BrokerHeartbeatRequest.kind: _heartbeat,
    AlterPartitionRequest.kind: _partitions,
    CreateTopicsRequest.kind: _topics,
    CreatePartitionsRequest.kind: _growths,
    DeleteTopicsRequest.kind: _deletions,
    AlterConfigsRequest.kind: _settings,
    AlterReassignmentsRequest.kind: _reassignments,
    ElectLeadersRequest.kind: _elections,
    AllocateProducerIdsRequest.kind: _producer_ids,
    UpdateFeaturesRequest.kind: _features,
    ListReassignmentsRequest.kind: _moving,
}
