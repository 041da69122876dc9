"""Topics are created and deleted.

Source: KIP-516 (topic ids); Kafka's `ReplicationControlManager.createTopics`, `deleteTopics`.
"""

import re
from hashlib import blake2b
from typing import Final

from clusters.reference.control.decision import Decision, View
from clusters.reference.control.placement import placed, usable
from clusters.reference.control.settings import is_sound
from clusters.reference.errors import Error
from clusters.reference.messages.control import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    NewTopic,
)
from clusters.reference.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

__all__ = ["created", "deleted"]

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_TOPIC: Final = 2
_NO_ID: Final = -1
_DEFAULT: Final = -1
"""Of the counts of a new topic: the cluster's own, which is one partition with one replica."""

_Assignment = tuple[tuple[int, ...], ...]


class _RefusedError(Exception):
    """A topic is not created; the error and the words say why."""

    def __init__(self, error: Error, words: str) -> None:
        super().__init__(words)
        self.error = error
        self.words = words


def created(view: View, request: CreateTopicsRequest) -> Decision:
    """The topics that may be created, with all their partitions, and why the others may not."""
    records: list[MetadataRecord] = []
    answers: list[tuple[str, int, int, str]] = []
    names = [topic.name for topic in request.topics]
    for topic in request.topics:
        try:
            _check_name(view, topic.name, count=names.count(topic.name))
            topic_id, new = _created(view, topic, view.offset + len(records))
        except _RefusedError as refused:
            answers.append((topic.name, _NO_ID, refused.error, refused.words))
        else:
            answers.append((topic.name, topic_id, Error.NONE, ""))
            records += new
    response = CreateTopicsResponse(request.correlation, tuple(answers))
    return Decision(response=response, records=() if request.validate_only else tuple(records))


def _created(view: View, topic: NewTopic, offset: int) -> tuple[int, list[MetadataRecord]]:
    assignment = _spread(view, topic, offset) if topic.assignment is None else _checked(view, topic)
    for name, value in topic.settings:
        if not is_sound(name, value):
            raise _RefusedError(Error.INVALID_CONFIG, f"{name} cannot be {value!r}")
    able = {one.broker_id for one in usable(view)}
    topic_id = _topic_id(view, offset)
    records: list[MetadataRecord] = [TopicRecord(topic.name, topic_id)]
    for partition, replicas in enumerate(assignment):
        isr = tuple(one for one in replicas if one in able)
        records.append(PartitionRecord(topic_id, partition, replicas, isr, isr[0], 0, 0))
    records += [ConfigRecord(_TOPIC, topic.name, name, value) for name, value in topic.settings]
    return topic_id, records


def _check_name(view: View, name: str, *, count: int) -> None:
    if count > 1:
        raise _RefusedError(Error.INVALID_REQUEST, "the topic is named twice")
    if not _NAME.fullmatch(name) or name in {".", ".."}:
        raise _RefusedError(Error.INVALID_TOPIC_EXCEPTION, f"a topic cannot be named {name!r}")
    if name in view.image.topics:
        raise _RefusedError(Error.TOPIC_ALREADY_EXISTS, f"topic {name!r} already exists")


def _spread(view: View, topic: NewTopic, offset: int) -> _Assignment:
    partitions = 1 if topic.partitions == _DEFAULT else topic.partitions
    factor = 1 if topic.replication_factor == _DEFAULT else topic.replication_factor
    brokers = usable(view)
    if partitions < 1:
        raise _RefusedError(Error.INVALID_PARTITIONS, f"expected partitions, found {partitions}")
    if not 1 <= factor <= len(brokers):
        words = f"expected a replication factor of 1 to {len(brokers)} (unfenced), found {factor}"
        raise _RefusedError(Error.INVALID_REPLICATION_FACTOR, words)
    return placed(brokers, partitions=partitions, replication_factor=factor, begin=offset)


def _checked(view: View, topic: NewTopic) -> _Assignment:
    """The assignment as it was asked for, if every partition can be led from its first moment."""
    assert topic.assignment is not None
    able = {one.broker_id for one in usable(view)}
    wrong = ""
    if not topic.assignment or len({len(one) for one in topic.assignment}) != 1:
        wrong = "expected the same number of replicas for each partition"
    for partition, replicas in enumerate(topic.assignment):
        if not replicas or len(set(replicas)) != len(replicas):
            wrong = f"partition {partition} has no replicas, or one of them twice"
        elif unknown := [one for one in replicas if one not in view.image.brokers]:
            wrong = f"partition {partition} has replicas on unknown brokers {unknown}"
        elif able.isdisjoint(replicas):
            wrong = f"all brokers of partition {partition} are fenced or leaving"
    if wrong:
        raise _RefusedError(Error.INVALID_REPLICA_ASSIGNMENT, wrong)
    return topic.assignment


def _topic_id(view: View, offset: int) -> int:
    """128 bits that no other topic has.

    The epoch is in it, since a record that was never committed may have been at the same offset.
    """
    place = f"{view.configuration.cluster_id}/{view.epoch}/{offset}"
    return int.from_bytes(blake2b(place.encode(), digest_size=16).digest(), "big")


def deleted(view: View, request: DeleteTopicsRequest) -> Decision:
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
