"""Topics and settings."""

from typing import Any

import pytest
from desk import Desk

from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.configuration import S
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import (
    AlterConfigsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewTopic,
)


def _desk(*off: str, level: int = 2, count: int = 3, **settings: Any) -> Desk:
    desk = Desk(*off, level=level, **settings)
    desk.brokers(*range(1, count + 1))
    return desk


def _create(desk: Desk, *topics: NewTopic, validate_only: bool = False) -> Any:
    request = CreateTopicsRequest(0, topics, S, validate_only=validate_only)
    return desk.ask(request).topics


def test_replicas_are_spread_evenly_over_the_brokers() -> None:
    desk = _desk()
    _create(desk, NewTopic("t", 6, 2))
    partitions = [desk.partition(key) for key in desk.image.partitions_of(desk.image.topics["t"])]
    leaders = [one.leader for one in partitions]
    followers = [one.replicas[1] for one in partitions]
    assert sorted(leaders) == sorted(followers) == [1, 1, 2, 2, 3, 3]
    assert all(one.isr == one.replicas for one in partitions)


def test_replicas_of_a_partition_are_in_different_racks_where_there_are() -> None:
    desk = Desk(level=2)
    for broker_id, rack in ((1, "a"), (2, "a"), (3, "b"), (4, "b")):
        desk.register(broker_id, rack=rack)
        desk.catch_up(broker_id)
    _create(desk, NewTopic("t", 8, 2))
    for key in desk.image.partitions_of(desk.image.topics["t"]):
        racks = {desk.broker(one).rack for one in desk.partition(key).replicas}
        assert racks == {"a", "b"}


def test_no_two_topics_have_one_id_though_they_are_written_at_one_offset() -> None:
    """The first is never committed; the second one is, in the next epoch."""
    ids = []
    for epochs in (1, 2):
        desk = _desk()
        for _ in range(epochs):
            desk.depose()
            desk.quorum.epoch_start = -1
            desk.quorum.epoch += 1
            desk.quorum.is_leader, desk.quorum.leader_id = True, 1000
            desk.settle()
        offset = desk.image.offset
        ids.append((offset, _create(desk, NewTopic("t", 1, 1))[0][1]))
    assert ids[0][0] == ids[1][0]
    assert ids[0][1] != ids[1][1]
    assert all(0 < topic_id < 1 << 128 for _, topic_id in ids)


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewTopic("t", 1, 1), Error.TOPIC_ALREADY_EXISTS),
        (NewTopic("a/b", 1, 1), Error.INVALID_TOPIC_EXCEPTION),
        (NewTopic("", 1, 1), Error.INVALID_TOPIC_EXCEPTION),
        (NewTopic("..", 1, 1), Error.INVALID_TOPIC_EXCEPTION),
        (NewTopic("x" * 250, 1, 1), Error.INVALID_TOPIC_EXCEPTION),
        (NewTopic("n", 0, 1), Error.INVALID_PARTITIONS),
        (NewTopic("n", 1, 4), Error.INVALID_REPLICATION_FACTOR),
        (NewTopic("n", 1, 0), Error.INVALID_REPLICATION_FACTOR),
        (NewTopic("n", -1, -1, ()), Error.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("n", -1, -1, ((),)), Error.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("n", -1, -1, ((1, 1),)), Error.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("n", -1, -1, ((9,),)), Error.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("n", -1, -1, ((1,), (1, 2))), Error.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("n", 1, 1, None, (("retention.ms", "x"),)), Error.INVALID_CONFIG),
    ],
    ids=lambda one: one.name.replace("/", "-")[:8] if isinstance(one, NewTopic) else str(one),
)
def test_a_topic_is_refused_and_the_others_are_created(topic: NewTopic, error: Error) -> None:
    desk = _desk()
    _create(desk, NewTopic("t", 1, 1))
    answers = _create(desk, topic, NewTopic("fine", 1, 1))
    assert [one[2] for one in answers] == [error, Error.NONE]
    assert set(desk.image.topics) == {"t", "fine"}


def test_a_topic_that_is_named_twice_is_not_created() -> None:
    desk = _desk()
    answers = _create(desk, NewTopic("t", 1, 1), NewTopic("t", 2, 1))
    assert [one[2] for one in answers] == [Error.INVALID_REQUEST] * 2
    assert desk.image.topics == {}


def test_a_fenced_replica_of_a_new_topic_is_not_in_its_isr_and_not_chosen_for_it() -> None:
    desk = _desk()
    desk.heartbeat(1, BrokerState.FENCED)
    key = desk.topic((1, 2))
    assert (desk.partition(key).isr, desk.partition(key).leader) == ((2,), 2)
    answers = _create(desk, NewTopic("n", 1, 3), NewTopic("m", -1, -1, ((1,),)))
    assert [one[2] for one in answers] == [
        Error.INVALID_REPLICATION_FACTOR,
        Error.INVALID_REPLICA_ASSIGNMENT,
    ]


def test_validating_a_topic_writes_nothing() -> None:
    desk = _desk()
    end = desk.image.offset
    assert _create(desk, NewTopic("t", 1, 1), validate_only=True)[0][2] == Error.NONE
    assert desk.image.offset == end


def test_a_topic_is_deleted_by_name_or_by_id_with_its_settings() -> None:
    desk = _desk()
    _create(desk, NewTopic("a", 1, 1, None, (("retention.ms", "5"),)), NewTopic("b", 2, 1))
    asked = (("a", -1), ("", desk.image.topics["b"]), ("c", -1), ("", 7), ("a", -1))
    answers = desk.ask(DeleteTopicsRequest(0, asked, S)).topics
    assert [one[2] for one in answers] == [
        Error.NONE,
        Error.NONE,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
        Error.INVALID_REQUEST,
    ]
    image = desk.image
    assert (image.topics, image.names, image.partitions, image.configs) == ({}, {}, {}, {})


def test_settings_are_kept_changed_and_taken_back_and_no_change_writes_nothing() -> None:
    desk = _desk()
    desk.topic((1,))
    changes = ((2, "t", "min.insync.replicas", "2"), (2, "t", "anything", "kept"))
    assert desk.ask(AlterConfigsRequest(0, changes)).resources == ((2, "t", 0, ""),)
    assert desk.image.setting("t", "anything") == "kept"
    end = desk.image.offset
    desk.ask(AlterConfigsRequest(0, changes))
    assert desk.image.offset == end
    desk.ask(AlterConfigsRequest(0, ((2, "t", "anything", None),)))
    assert desk.image.setting("t", "anything") is None


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ((2, "n", "retention.ms", "5"), Error.UNKNOWN_TOPIC_OR_PARTITION),
        ((2, "t", "retention.ms", "-2"), Error.INVALID_CONFIG),
        ((2, "t", "min.insync.replicas", "0"), Error.INVALID_CONFIG),
        ((2, "t", "min.insync.replicas", "many"), Error.INVALID_CONFIG),
        ((2, "t", "unclean.leader.election.enable", "yes"), Error.INVALID_CONFIG),
        ((2, "t", "cleanup.policy", "burn"), Error.INVALID_CONFIG),
        ((2, "t", "", "x"), Error.INVALID_CONFIG),
        ((4, "one", "retention.ms", "5"), Error.INVALID_REQUEST),
        ((8, "1", "retention.ms", "5"), Error.INVALID_REQUEST),
    ],
    ids=lambda one: "-".join(map(str, one)) if isinstance(one, tuple) else str(one),
)
def test_one_impossible_change_refuses_its_whole_resource_and_no_other(
    change: tuple[int, str, str, str], error: Error
) -> None:
    desk = _desk()
    desk.topic((1,))
    fine = (change[0], change[1], "another", "x")
    other = (4, "", "retention.ms", "5")
    answers = desk.ask(AlterConfigsRequest(0, (fine, change, other))).resources
    assert [one[2] for one in answers] == [error, Error.NONE]
    assert desk.image.configs == {(4, ""): {"retention.ms": "5"}}
