"""What a rule answers in the place of a node: a response of the right kind with one error."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from clusters.reference.nodes.errors import Error
from clusters.reference.nodes.messages import client, control, data, quorum

__all__ = ["answerable", "refusal"]


def refusal(request: Any, error: str) -> Any:
    """The response to a request, with this error in it. KeyError: nobody here answers that."""
    return _REFUSALS[request.kind](request, int(Error[error]))


def answerable(api: str | None) -> bool:
    """Whether requests of this API can be answered so."""
    return api in _NAMES


def _registration(request: Any, error: int) -> Any:
    return control.BrokerRegistrationResponse(request.correlation, error, -1, -1, 0)


def _heartbeat(request: Any, error: int) -> Any:
    return control.BrokerHeartbeatResponse(
        request.correlation,
        error,
        -1,
        int(request.target_state),
        is_caught_up=False,
        lease_duration_ms=0,
        lowest_acknowledged_offset=-1,
    )


_WHOLE: Final = frozenset(
    {Error.NOT_CONTROLLER, Error.STALE_BROKER_EPOCH, Error.BROKER_ID_NOT_REGISTERED}
)
"""Errors of a whole AlterPartition, not of its items."""


def _alter_partition(request: Any, error: int) -> Any:
    if error in _WHOLE:
        return control.AlterPartitionResponse(request.correlation, error, ())
    items = tuple(replace(item, error=error) for item in request.items)
    return control.AlterPartitionResponse(request.correlation, 0, items)


def _metadata_fetch(request: Any, error: int) -> Any:
    return quorum.MetadataFetchResponse(request.correlation, error, request.epoch, -1)


def _fetch(request: Any, error: int) -> Any:
    partitions = tuple(
        data.FetchedPartition(key, error, leader_epoch, -1, 0, ())
        for key, _offset, leader_epoch, _last in request.partitions
    )
    return data.FetchResponse(request.correlation, 0, partitions)


def _produce(request: Any, error: int) -> Any:
    partitions = tuple((key, error, -1) for key, _ in request.partitions)
    return data.ProduceResponse(request.correlation, partitions)


def _create_topics(request: Any, error: int) -> Any:
    topics = tuple((topic.name, -1, error, "") for topic in request.topics)
    return control.CreateTopicsResponse(request.correlation, topics)


def _delete_topics(request: Any, error: int) -> Any:
    topics = tuple((name, topic_id, error) for name, topic_id in request.topics)
    return control.DeleteTopicsResponse(request.correlation, topics)


def _producer_ids(request: Any, error: int) -> Any:
    return control.AllocateProducerIdsResponse(request.correlation, error, -1, 0)


def _init_producer_id(request: Any, error: int) -> Any:
    return data.InitProducerIdResponse(request.correlation, error, -1, -1)


def _metadata(request: Any, error: int) -> Any:
    return client.MetadataResponse(request.correlation, "", -1, (), (), error=error)


_Refuse = Callable[[Any, int], Any]
_REFUSALS: Final[Mapping[int, _Refuse]] = {
    control.BrokerRegistrationRequest.kind: _registration,
    control.BrokerHeartbeatRequest.kind: _heartbeat,
    control.AlterPartitionRequest.kind: _alter_partition,
    quorum.MetadataFetchRequest.kind: _metadata_fetch,
    data.FetchRequest.kind: _fetch,
    data.ProduceRequest.kind: _produce,
    control.CreateTopicsRequest.kind: _create_topics,
    control.DeleteTopicsRequest.kind: _delete_topics,
    control.AllocateProducerIdsRequest.kind: _producer_ids,
    data.InitProducerIdRequest.kind: _init_producer_id,
    client.MetadataRequest.kind: _metadata,
}
_NAMES: Final = frozenset(
    {
        "AllocateProducerIds",
        "AlterPartition",
        "BrokerHeartbeat",
        "BrokerRegistration",
        "CreateTopics",
        "DeleteTopics",
        "Fetch",
        "InitProducerId",
        "Metadata",
        "Produce",
    }
)
