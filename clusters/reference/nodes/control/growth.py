"""Topics are given more partitions.

Source: KIP-195; Kafka's `ReplicationControlManager.createPartitions`: a topic's new partitions have
as many replicas as its first one.
"""

from clusters.reference.nodes.control.decision import Decision, DecisionView
from clusters.reference.nodes.control.placement import (
    Assignment,
    RefusedError,
    begun_partitions,
    check,
    refuse_twice,
    spread,
)
from clusters.reference.nodes.errors import Error
from clusters.reference.nodes.messages.control import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    NewPartitions,
)
from clusters.reference.nodes.records import PartitionRecord

__all__ = ["grown"]


def grown(view: DecisionView, request: CreatePartitionsRequest) -> Decision:
    """The partitions of the topics that may grow, and why the others may not."""
    records: list[PartitionRecord] = []
    answers: list[tuple[str, int, str]] = []
    names = [topic.name for topic in request.topics]
    for topic in request.topics:
        try:
            refuse_twice(topic.name, names)
            records += _grown(view, topic, view.offset + len(records))
        except RefusedError as refused:
            answers.append((topic.name, refused.error, refused.words))
        else:
            answers.append((topic.name, Error.NONE, ""))
    response = CreatePartitionsResponse(request.correlation, tuple(answers))
    return Decision(response=response, records=() if request.validate_only else tuple(records))


def _grown(view: DecisionView, topic: NewPartitions, offset: int) -> list[PartitionRecord]:
    topic_id = view.image.topics.get(topic.name)
    if topic_id is None:
        raise RefusedError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic.name!r}")
    count = len(view.image.partitions_of(topic_id))
    added = topic.count - count
    if added <= 0:
        words = f"topic {topic.name!r} has {count} partitions; it cannot have {topic.count}"
        raise RefusedError(Error.INVALID_PARTITIONS, words)
    factor = len(view.image.partitions[topic_id, 0].replicas)
    assignment = topic.assignment
    if assignment is None:
        assignment = spread(view, partitions=added, replication_factor=factor, begin=offset)
    else:
        _check(view, assignment, added=added, factor=factor, first=count)
    return begun_partitions(view, topic_id, assignment, first=count)


def _check(
    view: DecisionView, assignment: Assignment, *, added: int, factor: int, first: int
) -> None:
    if len(assignment) != added:
        words = f"expected replicas of {added} new partitions, found {len(assignment)}"
        raise RefusedError(Error.INVALID_REPLICA_ASSIGNMENT, words)
    check(view, assignment, first=first)
    if len(assignment[0]) != factor:
        words = f"expected {factor} replicas, as partition 0 has, found {len(assignment[0])}"
        raise RefusedError(Error.INVALID_REPLICA_ASSIGNMENT, words)
