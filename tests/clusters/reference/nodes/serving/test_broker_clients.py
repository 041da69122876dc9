"""What any broker answers clients: metadata, settings, what it passes on, ids and offsets."""

from typing import Any

import pytest
from broker_world import World, batch, ready
from stage import CLOSED

from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.client import (
    ApiVersionsRequest,
    DescribeConfigsRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    PartitionMetadata,
)
from fencepost.clusters.reference.nodes.messages.control import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterConfigsRequest,
    CreateTopicsRequest,
    DescribeQuorumRequest,
    ListReassignmentsRequest,
    NewTopic,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from fencepost.clusters.reference.nodes.messages.data import FetchRequest, InitProducerIdRequest
from fencepost.clusters.reference.nodes.serving.groups import OFFSETS_TOPIC


def test_metadata_names_brokers_topics_and_partitions() -> None:
    world = ready()
    topic = world.create("t", (1, 2, 3), (2, 3, 1))
    answer = world.ask(3, MetadataRequest(9, None))
    assert (answer.correlation, answer.cluster_id) == (9, "test-cluster")
    assert sorted(answer.brokers) == [(one, f"broker-{one}", 9092, None) for one in (1, 2, 3)]
    assert answer.topics == (
        (
            "t",
            topic,
            0,
            (
                PartitionMetadata(0, 0, 1, 0, (1, 2, 3), (1, 2, 3)),
                PartitionMetadata(1, 0, 2, 0, (2, 3, 1), (2, 3, 1)),
            ),
        ),
    )
    assert answer.metadata_offset == world.nodes[3].visible.offset


def test_metadata_of_chosen_topics_of_none_and_of_unknown_ones() -> None:
    world = ready()
    topic = world.create("t", (1, 2))
    asked = world.ask(1, MetadataRequest(1, (("t", -1), ("", topic), ("u", -1), ("", 99))))
    assert [(name, error) for name, _, error, _ in asked.topics] == [
        ("t", 0),
        ("t", 0),
        ("u", Error.UNKNOWN_TOPIC_OR_PARTITION),
        ("", Error.UNKNOWN_TOPIC_ID),
    ]
    assert world.ask(1, MetadataRequest(1, ())).topics == ()


def test_metadata_shows_who_is_away_and_who_leads_nothing() -> None:
    world = ready()
    world.create("t", (3,), (1,))
    world.kill(3)
    key = (world.nodes[1].image.topics["t"], 0)
    world.until(lambda: world.partition(key).leader == -1)
    world.until(lambda: not world.nodes[1].server.visibility.is_behind)
    answer = world.ask(1, MetadataRequest(1, (("t", -1),)))
    first = answer.topics[0][3][0]
    assert (first.leader_id, first.error, first.offline) == (-1, Error.LEADER_NOT_AVAILABLE, (3,))
    assert sorted(one[0] for one in answer.brokers) == [1, 2]


def test_settings_are_a_topics_own_or_their_defaults() -> None:
    world = ready(settings={"topic_defaults": (("segment.ms", "5"),)})
    world.create("t", (1, 2), **{"min.insync.replicas": "2"})
    answer = world.ask(1, DescribeConfigsRequest(1, ((2, "t", None), (2, "u", None), (9, "", ()))))
    own, unknown, amiss = answer.resources
    assert ("min.insync.replicas", "2", False) in own[3]
    assert ("cleanup.policy", "delete", True) in own[3]
    assert ("segment.ms", "5", True) in own[3]
    assert unknown[2] == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert amiss[2] == Error.INVALID_REQUEST
    chosen = world.ask(1, DescribeConfigsRequest(1, ((2, "t", ("retention.ms",)),)))
    assert [one[0] for one in chosen.resources[0][3]] == ["retention.ms"]


def test_the_brokers_settings_hold_for_topics_that_do_not_say() -> None:
    world = ready()
    topic = world.create("t", (1, 2))
    change = AlterConfigsRequest(1, ((4, "", "min.insync.replicas", "2"),))
    assert world.ask(1, change).resources[0][2] == 0
    world.until(lambda: world.nodes[1].replicas.leaders[topic, 0].min_isr == 2)
    answer = world.ask(2, DescribeConfigsRequest(1, ((2, "t", ("min.insync.replicas",)),)))
    assert answer.resources[0][3] == (("min.insync.replicas", "2", True),)


def test_api_versions_name_the_level_and_what_is_supported() -> None:
    world = ready(settings={"level": 2})
    answer = world.ask(1, ApiVersionsRequest(4))
    assert (answer.correlation, answer.level) == (4, 2)
    assert answer.features == (("metadata.version", 1, 3),)


def test_any_broker_passes_on_what_the_controller_decides() -> None:
    world = ready(controllers=3)
    topic = NewTopic("t", 1, 2)
    answer = world.ask(2, CreateTopicsRequest(77, (topic,), 1_000 * MS))
    assert answer.correlation == 77
    assert answer.topics[0][2] == 0
    assert world.ask(3, ListReassignmentsRequest(5, None)).correlation == 5
    assert world.ask(1, DescribeQuorumRequest(6)).correlation == 6


def test_a_request_waits_for_a_controller_and_no_longer_than_it_may() -> None:
    world = ready(settings={"lease_timeout_ns": 60_000 * MS})
    world.kill(1000)
    world.until(lambda: world.nodes[1].situation.controller_id == -1)
    waiting = world.send(1, CreateTopicsRequest(1, (NewTopic("t", 1, 1),), 1_000 * MS))
    world.run(500 * MS)
    assert waiting not in world.answers
    world.start(1000)
    world.until(lambda: waiting in world.answers)
    assert world.answers[waiting].topics[0][2] == 0
    world.kill(1000)
    world.until(lambda: world.nodes[1].situation.controller_id == -1)
    assert world.ask(1, CreateTopicsRequest(1, (NewTopic("u", 1, 1),), 1_000 * MS)) == CLOSED


def test_a_request_that_may_have_been_decided_is_not_sent_again() -> None:
    world = ready()
    world.catches = lambda s, t, m: (s, t) == (1000, 1) and m.kind == 27
    waiting = world.send(1, CreateTopicsRequest(1, (NewTopic("t", 1, 3),), 1_000 * MS))
    world.until(lambda: world.held)
    sent = [m for s, t, m in world.sent if (s, t) == (1, 1000) and m.kind == 26]
    world.feed(1, 1000, 3, sent[0])
    world.run(50 * MS)
    assert world.answers[waiting] == CLOSED
    assert len([1 for s, t, m in world.sent if (s, t) == (1, 1000) and m.kind == 26]) == 1


def test_a_controller_that_is_not_active_is_asked_again() -> None:
    world = ready()
    world.catches = lambda s, _t, m: s == 1 and m.kind == 38
    waiting = world.send(1, UpdateFeaturesRequest(3, (("metadata.version", 3),)))
    world.until(lambda: world.held)
    amiss = UpdateFeaturesResponse(world.held[0][2].correlation, int(Error.NOT_CONTROLLER))
    world.held.clear()
    world.feed(1, 1000, amiss.kind, amiss)
    world.until(lambda: world.held)
    world.release()
    world.until(lambda: waiting in world.answers)
    assert world.answers[waiting].correlation == 3


def test_every_idempotent_producer_gets_an_id_of_its_own() -> None:
    world = ready()
    found = [world.ask(broker, InitProducerIdRequest(1)) for broker in (1, 2, 1, 3, 2)]
    assert all((one.error, one.producer_epoch) == (0, 0) for one in found)
    assert len({one.producer_id for one in found}) == len(found)
    asked = [m for _, _, m in world.sent if isinstance(m, AllocateProducerIdsRequest)]
    assert len(asked) == 3


def test_transactions_are_refused() -> None:
    world = ready(brokers=1)
    assert world.ask(1, InitProducerIdRequest(1, "mine")).error == Error.INVALID_REQUEST


def test_a_block_of_ids_that_never_comes_is_asked_for_again() -> None:
    world = ready()
    world.catches = lambda _s, t, m: t == 1 and isinstance(m, AllocateProducerIdsResponse)
    waiting = world.send(1, InitProducerIdRequest(1))
    world.until(lambda: world.held)
    world.catches = None
    world.held.clear()
    assert world.ask(2, InitProducerIdRequest(1)).error == 0
    again = world.send(1, InitProducerIdRequest(2))
    world.until(lambda: again in world.answers)
    assert [world.answers[one].error for one in (waiting, again)] == [0, 0]


# Groups.


def coordinator(world: World) -> int:
    """Who keeps offsets, once somebody does."""

    def found() -> Any:
        answer = world.ask(1, FindCoordinatorRequest(1, ("g",)))
        return answer.groups[0] if answer.groups[0][1] == 0 else None

    for _ in range(100):
        group = found()
        if group:
            assert group[3:] == (f"broker-{group[2]}", 9092)
            return int(group[2])
        world.run(50 * MS)
    raise AssertionError("no coordinator")


def committed(world: World, broker: int, *offsets: tuple[str, int, int]) -> list[int]:
    places = tuple((topic, partition, offset, -1, "") for topic, partition, offset in offsets)
    answer = world.ask(broker, OffsetCommitRequest(1, "g", places))
    return [error for _, _, error in answer.offsets]


def test_offsets_are_kept_in_a_topic_that_is_created_when_it_is_needed() -> None:
    world = ready()
    assert OFFSETS_TOPIC not in world.nodes[1].image.topics
    leader = coordinator(world)
    topic = world.nodes[1].image.topics[OFFSETS_TOPIC]
    assert len(world.partition((topic, 0)).replicas) == 3
    assert committed(world, leader, ("t", 0, 5), ("t", 1, 6)) == [0, 0]
    answer = world.ask(leader, OffsetFetchRequest(1, "g", (("t", 1), ("t", 7))))
    assert answer.offsets == (("t", 1, 6, -1, "", 0), ("t", 7, -1, -1, "", 0))


def test_a_commit_that_was_acknowledged_is_found_through_the_next_coordinator() -> None:
    world = ready()
    leader = coordinator(world)
    for offset in (5, 6):
        assert committed(world, leader, ("t", 0, offset)) == [0]
    world.kill(leader)
    others = [one for one in (1, 2, 3) if one != leader]
    topic = world.nodes[others[0]].image.topics[OFFSETS_TOPIC]
    world.until(lambda: world.leader((topic, 0)) in others)
    new = world.leader((topic, 0))
    answer = world.ask(new, OffsetFetchRequest(1, "g", None))
    while answer.error == Error.COORDINATOR_LOAD_IN_PROGRESS:
        world.run(50 * MS)
        answer = world.ask(new, OffsetFetchRequest(1, "g", None))
    assert answer.offsets == (("t", 0, 6, -1, "", 0),)


def test_only_the_coordinator_takes_commits_and_reads() -> None:
    world = ready()
    other = next(one for one in (1, 2, 3) if one != coordinator(world))
    assert committed(world, other, ("t", 0, 5)) == [Error.NOT_COORDINATOR]
    assert world.ask(other, OffsetFetchRequest(1, "g", None)).error == Error.NOT_COORDINATOR


def test_the_coordinator_lists_the_groups_that_have_committed() -> None:
    world = ready()
    leader = coordinator(world)
    assert world.ask(leader, ListGroupsRequest(1)).groups == ()
    assert committed(world, leader, ("t", 0, 5)) == [0]
    assert world.ask(leader, ListGroupsRequest(1)).groups == ("g",)
    assert world.ask(leader, ListGroupsRequest(1, ("empty",), ("Classic",))).groups == ("g",)
    for narrowed in (ListGroupsRequest(1, ("Stable",)), ListGroupsRequest(1, (), ("share",))):
        assert world.ask(leader, narrowed).groups == ()
    other = next(one for one in (1, 2, 3) if one != leader)
    answer = world.ask(other, ListGroupsRequest(1))
    assert (answer.error, answer.groups) == (Error.NONE, ())


def test_a_commit_that_is_not_acknowledged_is_not_returned() -> None:
    world = ready(settings={"replica_lag_max_ns": 60_000 * MS})
    leader = coordinator(world)
    assert committed(world, leader, ("t", 0, 5)) == [0]
    world.catches = lambda _s, t, m: t == leader and isinstance(m, FetchRequest)
    world.run(600 * MS)
    assert committed(world, leader, ("t", 0, 9)) == [Error.REQUEST_TIMED_OUT]
    answer = world.ask(leader, OffsetFetchRequest(1, "g", None))
    assert answer.offsets == (("t", 0, 5, -1, "", 0),)
    world.release()
    assert committed(world, leader, ("t", 0, 10)) == [0]


def test_a_commit_needs_as_many_replicas_as_any_record() -> None:
    world = ready(settings={"min_insync_replicas": 2})
    leader = coordinator(world)
    others = [one for one in (1, 2, 3) if one != leader]
    for one in others:
        world.kill(one)
    topic = world.nodes[leader].image.topics[OFFSETS_TOPIC]
    world.until(lambda: world.partition((topic, 0)).isr == (leader,))
    assert committed(world, leader, ("t", 0, 5)) == [Error.COORDINATOR_NOT_AVAILABLE]


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_cluster_of_any_level_serves_clients(level: int) -> None:
    world = ready(settings={"level": level})
    key = (world.create("t", (1, 2, 3)), 0)
    assert world.produce(key, batch("a")) == (0, 0)
    assert world.consume(key, 0).batches[0].payload == ("a",)
