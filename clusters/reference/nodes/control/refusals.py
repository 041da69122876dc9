"""The answers to requests that are not decided: not by this controller, or not in time."""

from collections.abc import Callable
from typing import Any, Final

from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import (
    AllocateProducerIdsResponse,
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterPartitionResponse,
    AlterReassignmentsResponse,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectLeadersResponse,
    ListReassignmentsResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


def refused(request: Any, error: Error, leader_id: int) -> Any:
    """Return the response to a request of the controller's that holds only this error.

    `leader_id` is the node that may know better, -1 if none is known; a response without a place
    for an error of its own repeats it for each topic or resource.
    """
    of_all = _OF_ALL.get(request.kind)
    if of_all is not None:
        return of_all(request.correlation, error)
    if request.kind in _OF_LIFE:
        return _OF_LIFE[request.kind](request.correlation, error, leader_id)
    return _OF_EACH[request.kind](request, error)


_OF_ALL: Final[dict[int, Callable[[int, int], Any]]] = {
    one.kind - 1: one
    for one in (
        AllocateProducerIdsResponse,
        AlterPartitionResponse,
        AlterReassignmentsResponse,
        ElectLeadersResponse,
        ListReassignmentsResponse,
    )
}
"""The responses with a place for the error, by the kinds of their requests."""
_OF_LIFE: Final[dict[int, Callable[[int, int, int], Any]]] = {
    BrokerRegistrationResponse.kind - 1: BrokerRegistrationResponse,
    BrokerHeartbeatResponse.kind - 1: BrokerHeartbeatResponse,
}
"""Those which also name the node that may know better."""


def _topics(request: CreateTopicsRequest, error: Error) -> CreateTopicsResponse:
    topics = tuple((one.name, -1, int(error), error.name) for one in request.topics)
    return CreateTopicsResponse(request.correlation, topics)


def _growths(request: CreatePartitionsRequest, error: Error) -> CreatePartitionsResponse:
    topics = tuple((one.name, int(error), error.name) for one in request.topics)
    return CreatePartitionsResponse(request.correlation, topics)


def _deletions(request: DeleteTopicsRequest, error: Error) -> DeleteTopicsResponse:
    topics = tuple((name, topic_id, int(error)) for name, topic_id in request.topics)
    return DeleteTopicsResponse(request.correlation, topics)


def _settings(request: AlterConfigsRequest, error: Error) -> AlterConfigsResponse:
    resources = dict.fromkeys(change[:2] for change in request.changes)
    return AlterConfigsResponse(
        request.correlation,
        tuple((kind, name, int(error), error.name) for kind, name in resources),
    )


def _features(request: UpdateFeaturesRequest, error: Error) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(request.correlation, error, error.name)


_OF_EACH: Final[dict[int, Callable[[Any, Error], Any]]] = {
    CreateTopicsRequest.kind: _topics,
    CreatePartitionsRequest.kind: _growths,
    DeleteTopicsRequest.kind: _deletions,
    AlterConfigsRequest.kind: _settings,
    UpdateFeaturesRequest.kind: _features,
}
"""The refusals that say more than the error."""
