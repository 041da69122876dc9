"""The answers of a rule in the place of a node: responses of the right kind with one error."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from clusters.reference.nodes.errors import Error
from clusters.reference.nodes.messages import client, control, data, quorum
from nemesis.simulated.frames import API_NAMES
from nemesis.wire.rules import Action, Answer, LowerVersion, Match

__all__ = ["refusal", "why_no_such_rule"]


def refusal(request: Any, error: str) -> Any:
    """Return the response to a request, with this error in it.

    Raises KeyError if no refusal of this kind of request is known.
    """
    return _REFUSALS[request.kind](request, int(Error[error]))


def why_no_such_rule(action: Action, match: Match) -> str | None:
    """Return why a simulated wire cannot do this to frames, or None if it can."""
    if isinstance(action, LowerVersion):
        return "a simulated cluster negotiates no versions"
    if isinstance(action, Answer) and match.api not in _NAMES:
        return f"no answer of {match.api} can be made up here"
    return None


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


_Refuse = Callable[[Any, int], Any]
_REFUSALS: Final[Mapping[int, _Refuse]] = {
    control.BrokerRegistrationRequest.kind: lambda asked, error: control.BrokerRegistrationResponse(
        asked.correlation, error, -1, -1, 0
    ),
    control.BrokerHeartbeatRequest.kind: _heartbeat,
    control.AlterPartitionRequest.kind: _alter_partition,
    quorum.MetadataFetchRequest.kind: lambda asked, error: quorum.MetadataFetchResponse(
        asked.correlation, error, asked.epoch, -1
    ),
    data.FetchRequest.kind: _fetch,
    data.ProduceRequest.kind: _produce,
    control.CreateTopicsRequest.kind: _create_topics,
    control.DeleteTopicsRequest.kind: _delete_topics,
    control.AllocateProducerIdsRequest.kind: lambda asked, error: (
        control.AllocateProducerIdsResponse(asked.correlation, error, -1, 0)
    ),
    data.InitProducerIdRequest.kind: lambda asked, error: data.InitProducerIdResponse(
        asked.correlation, error, -1, -1
    ),
    client.MetadataRequest.kind: lambda asked, error: client.MetadataResponse(
        asked.correlation, "", -1, (), (), error=error
    ),
}
_NAMES: Final = frozenset(API_NAMES[kind] for kind in _REFUSALS)
