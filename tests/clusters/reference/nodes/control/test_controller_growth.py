"""Topics are given more partitions (KIP-195)."""

from typing import Any

import pytest
from desk import Desk

from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.configuration import S
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    NewPartitions,
    NewTopic,
)


def _desk(*, level: int = 2) -> Desk:
    desk = Desk(level=level)
    desk.brokers(1, 2, 3)
    desk.ask(CreateTopicsRequest(0, (NewTopic("t", 2, 2),), S))
    return desk


def _grow(desk: Desk, *topics: NewPartitions, validate_only: bool = False) -> Any:
    return desk.ask(CreatePartitionsRequest(0, topics, S, validate_only=validate_only)).topics


def _count(desk: Desk) -> int:
    return len(desk.image.partitions_of(desk.image.topics["t"]))


def test_new_partitions_have_as_many_replicas_as_the_first_one_and_are_led() -> None:
    desk = _desk()
    assert _grow(desk, NewPartitions("t", 5)) == (("t", Error.NONE, ""),)
    assert _count(desk) == 5
    for key in desk.image.partitions_of(desk.image.topics["t"]):
        one = desk.partition(key)
        assert len(set(one.replicas)) == 2
        assert one.isr == one.replicas
        assert one.leader == one.replicas[0]


def test_replicas_that_are_asked_for_are_taken() -> None:
    desk = _desk()
    _grow(desk, NewPartitions("t", 4, ((3, 1), (1, 3))))
    topic_id = desk.image.topics["t"]
    assert [desk.partition((topic_id, index)).replicas for index in (2, 3)] == [(3, 1), (1, 3)]


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewPartitions("nobody", 2), Error.UNKNOWN_TOPIC_OR_PARTITION),
        (NewPartitions("t", 2), Error.INVALID_PARTITIONS),
        (NewPartitions("t", 1), Error.INVALID_PARTITIONS),
        (NewPartitions("t", 4, ((1, 2),)), Error.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, ((1, 2, 3),)), Error.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, ((1, 9),)), Error.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=["unknown", "as-many", "fewer", "too-few-assigned", "more-replicas", "no-such-broker"],
)
def test_what_cannot_be_is_refused_and_the_rest_is_done(topic: NewPartitions, error: Error) -> None:
    desk = _desk()
    desk.ask(CreateTopicsRequest(0, (NewTopic("u", 1, 1),), S))
    answers = _grow(desk, topic, NewPartitions("u", 2))
    assert [code for _, code, _ in answers] == [error, Error.NONE]
    assert _count(desk) == 2
    assert len(desk.image.partitions_of(desk.image.topics["u"])) == 2


def test_with_too_few_brokers_it_is_refused() -> None:
    desk = _desk()
    for broker_id in (1, 2):
        desk.heartbeat(broker_id, BrokerState.FENCED)
    ((_, error, _),) = _grow(desk, NewPartitions("t", 3))
    assert error == Error.INVALID_REPLICATION_FACTOR


def test_to_try_it_changes_nothing_and_a_topic_is_named_once() -> None:
    desk = _desk()
    assert _grow(desk, NewPartitions("t", 3), validate_only=True)[0][1] == Error.NONE
    twice = _grow(desk, NewPartitions("t", 3), NewPartitions("t", 4))
    assert [code for _, code, _ in twice] == [Error.INVALID_REQUEST] * 2
    assert _count(desk) == 2
