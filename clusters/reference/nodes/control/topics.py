"""Topics are created, given more partitions, and deleted.

Source: KIP-516 (topic ids), KIP-195 (partitions); Kafka's `ReplicationControlManager`:
`createTopics`, `createPartitions`, `deleteTopics`.
"""

import re
from hashlib import blake2b
from typing import Final

from fencepost.clusters.reference.nodes.control.decision import Decision, DecisionView
from fencepost.clusters.reference.nodes.control.placement import (
    Assignment,
    RefusedError,
    begun_partitions,
    check,
    refuse_twice,
    spread,
)
from fencepost.clusters.reference.nodes.control.settings import is_sound
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    NewPartitions,
    NewTopic,
)
from fencepost.clusters.reference.nodes.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_TOPIC: Final = 2
_NO_ID: Final = -1
_DEFAULT: Final = -1
"""The default for the counts of a new topic: one partition with one replica."""


def created(view: DecisionView, request: CreateTopicsRequest) -> Decision:
    """The topics that may be created, with all their partitions, and why the others may not."""
    records: list[MetadataRecord] = []
    answers: list[tuple[str, int, int, str]] = []
    names = [topic.name for topic in request.topics]
    for topic in request.topics:
        try:
            refuse_twice(topic.name, names)
            _check_name(view, topic.name)
            topic_id, new = _created(view, topic, view.offset + len(records))
        except RefusedError as refused:
            answers.append((topic.name, _NO_ID, refused.error, refused.words))
        else:
            answers.append((topic.name, topic_id, Error.NONE, ""))
            records += new
    response = CreateTopicsResponse(request.correlation, tuple(answers))
    return Decision(response=response, records=() if request.validate_only else tuple(records))


def _created(view: DecisionView, topic: NewTopic, offset: int) -> tuple[int, list[MetadataRecord]]:
    assignment = topic.assignment
    if assignment is None:
        partitions = 1 if topic.partitions == _DEFAULT else topic.partitions
        factor = 1 if topic.replication_factor == _DEFAULT else topic.replication_factor
        assignment = spread(view, partitions=partitions, replication_factor=factor, begin=offset)
    else:
        check(view, assignment)
    for name, value in topic.settings:
        if not is_sound(name, value):
            raise RefusedError(Error.INVALID_CONFIG, f"{name} cannot be {value!r}")
    topic_id = _topic_id(view, offset)
    records: list[MetadataRecord] = [TopicRecord(topic.name, topic_id)]
    records += begun_partitions(view, topic_id, assignment)
    records += [ConfigRecord(_TOPIC, topic.name, name, value) for name, value in topic.settings]
    return topic_id, records


def _check_name(view: DecisionView, name: str) -> None:
    if not _NAME.fullmatch(name) or name in {".", ".."}:
        raise RefusedError(Error.INVALID_TOPIC_EXCEPTION, f"a topic cannot be named {name!r}")
    if name in view.image.topics:
        raise RefusedError(Error.TOPIC_ALREADY_EXISTS, f"topic {name!r} already exists")


def _topic_id(view: DecisionView, offset: int) -> int:
    """Return 128 bits that no other topic has.

    The epoch is in it, since a record that was never committed may have been at the same offset.
    """
    place = f"{view.configuration.cluster_id}/{view.epoch}/{offset}"
    return int.from_bytes(blake2b(place.encode(), digest_size=16).digest(), "big")


def deleted(view: DecisionView, request: DeleteTopicsRequest) -> Decision:
    """The topics that exist are removed, each once."""
    records: dict[int, MetadataRecord] = {}
    answers: list[tuple[str, int, int]] = []
    for name, asked_id in request.topics:
        topic_id = view.image.topics.get(name, _NO_ID) if name else asked_id
        error = Error.NONE
        if topic_id not in view.image.names:
            error = Error.UNKNOWN_TOPIC_OR_PARTITION if name else Error.UNKNOWN_TOPIC_ID
        elif topic_id in records:
            error = Error.INVALID_REQUEST
        else:
            records[topic_id] = RemoveTopicRecord(topic_id)
        answers.append((name or view.image.names.get(topic_id, ""), topic_id, error))
    response = DeleteTopicsResponse(request.correlation, tuple(answers))
    return Decision(response=response, records=tuple(records.values()))


def grown(view: DecisionView, request: CreatePartitionsRequest) -> Decision:
    """The partitions of the topics that may grow, and why the others may not.

    They have as many replicas as a topic's first one.
    """
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
