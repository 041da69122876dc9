"""The writes of clients, which brokers pass on: which requests they are, and in words."""

from collections.abc import Iterable
from typing import Any, Final

from clusters.reference.nodes.messages.control import (
    AlterConfigsRequest,
    AlterReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    UpdateFeaturesRequest,
)

__all__ = ["CLIENT_WRITES", "described"]

CLIENT_WRITES: Final[dict[int, str]] = {
    CreateTopicsRequest.kind: "CreateTopics",
    CreatePartitionsRequest.kind: "CreatePartitions",
    DeleteTopicsRequest.kind: "DeleteTopics",
    AlterConfigsRequest.kind: "AlterConfigs",
    AlterReassignmentsRequest.kind: "AlterReassignments",
    ElectLeadersRequest.kind: "ElectLeaders",
    UpdateFeaturesRequest.kind: "UpdateFeatures",
}
"""Their names by kind."""


def described(request: Any) -> str:
    """Return the subject of a write, for observers: its name, and what it names."""
    return f"{CLIENT_WRITES[request.kind]} {', '.join(_subjects(request))}"


def _subjects(request: Any) -> Iterable[str]:
    match request:
        case CreateTopicsRequest():
            return (topic.name for topic in request.topics)
        case CreatePartitionsRequest():
            return (f"{topic.name}: {topic.count}" for topic in request.topics)
        case DeleteTopicsRequest():
            return (name or f"{topic_id:032x}" for name, topic_id in request.topics)
        case AlterConfigsRequest():
            return (f"{where}: {name}={value}" for _, where, name, value in request.changes)
        case AlterReassignmentsRequest():
            return (f"{topic}-{partition}" for topic, partition, _ in request.moves)
        case ElectLeadersRequest():
            return (f"{topic}-{partition}" for topic, partition in request.partitions or ())
        case _:
            return (f"{name}={level}" for name, level in request.updates)
