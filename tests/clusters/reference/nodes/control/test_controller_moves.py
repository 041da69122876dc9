"""Reassignments and elections of leaders."""

from typing import Any

import pytest
from desk import Desk

from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.configuration import S
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import (
    AlterReassignmentsRequest,
    ElectLeadersRequest,
    ListReassignmentsRequest,
)


def _desk(*off: str, level: int = 2, count: int = 3, **settings: Any) -> Desk:
    desk = Desk(*off, level=level, **settings)
    desk.brokers(*range(1, count + 1))
    return desk


def _move(desk: Desk, *replicas: int) -> Any:
    """Ask for other replicas of t-0; none: cancel."""
    request = AlterReassignmentsRequest(0, (("t", 0, replicas or None),))
    return desk.ask(request).moves[0][2]


def test_a_partition_moves_once_the_added_replicas_are_in_the_isr() -> None:
    desk = _desk(count=4)
    key = desk.topic((1, 2))
    assert _move(desk, 3, 4) == Error.NONE
    moving = desk.partition(key)
    assert (moving.replicas, moving.adding, moving.removing) == ((3, 4, 1, 2), (3, 4), (1, 2))
    listed = desk.ask(ListReassignmentsRequest(0, None)).partitions
    assert listed == (("t", 0, (3, 4, 1, 2), (3, 4), (1, 2)),)
    assert desk.propose(key, 1, 2, 3).error == Error.NONE
    assert desk.partition(key).adding
    answer = desk.propose(key, 1, 2, 3, 4)
    assert answer.error == Error.NEW_LEADER_ELECTED
    moved = desk.partition(key)
    assert (moved.replicas, moved.isr, moved.leader) == ((3, 4), (3, 4), 3)
    assert (moved.adding, moved.removing, moved.leader_epoch) == ((), (), 1)
    assert desk.ask(ListReassignmentsRequest(0, (("t", 0),))).partitions == ()


@pytest.mark.rule("leader_epoch_bumped")
def test_a_leader_that_stays_has_a_new_leader_epoch_when_others_go() -> None:
    desk = _desk()
    key = desk.topic((1, 2))
    _move(desk, 1, 3)
    answer = desk.propose(key, 1, 2, 3)
    assert (answer.error, answer.leader_id, answer.leader_epoch) == (Error.NONE, 1, 1)
    assert desk.partition(key).isr == (1, 3)


def test_a_partition_that_only_grows_keeps_its_leader_epoch() -> None:
    desk = _desk()
    key = desk.topic((1, 2))
    _move(desk, 1, 2, 3)
    desk.propose(key, 1, 2, 3)
    now = desk.partition(key)
    assert (now.replicas, now.adding, now.leader_epoch) == ((1, 2, 3), (), 0)


def test_a_partition_that_only_shrinks_has_arrived_at_once() -> None:
    desk = _desk()
    key = desk.topic((1, 2, 3))
    assert _move(desk, 2) == Error.NONE
    now = desk.partition(key)
    assert (now.replicas, now.isr, now.leader, now.removing) == ((2,), (2,), 2, ())


def test_a_partition_does_not_lose_its_last_member_by_moving() -> None:
    desk = _desk()
    key = desk.topic((1, 2))
    desk.propose(key, 1)
    _move(desk, 2)
    now = desk.partition(key)
    assert (now.isr, now.leader, now.replicas, now.removing) == ((1,), 1, (2, 1), (1,))
    desk.propose(key, 1, 2)
    now = desk.partition(key)
    assert (now.isr, now.leader, now.replicas, now.removing) == ((2,), 2, (2,), ())


def test_another_reassignment_takes_the_place_of_one_under_way() -> None:
    desk = _desk(count=5)
    key = desk.topic((1, 2))
    _move(desk, 3, 4)
    _move(desk, 1, 5)
    now = desk.partition(key)
    assert (now.replicas, now.adding, now.removing) == ((1, 5, 3, 4, 2), (5,), (3, 4, 2))
    desk.propose(key, 1, 2, 5)
    now = desk.partition(key)
    assert (now.replicas, now.isr, now.leader) == ((1, 5), (1, 5), 1)


def test_a_reassignment_is_taken_back() -> None:
    desk = _desk()
    key = desk.topic((1, 2))
    assert _move(desk) == Error.NO_REASSIGNMENT_IN_PROGRESS
    _move(desk, 3)
    assert _move(desk) == Error.NONE
    now = desk.partition(key)
    assert (now.replicas, now.isr, now.leader, now.adding) == ((1, 2), (1, 2), 1, ())


@pytest.mark.parametrize("wanted", [(9,), (1, 1)], ids=["unknown", "twice"])
def test_an_impossible_assignment_is_refused(wanted: tuple[int, ...]) -> None:
    desk = _desk()
    desk.topic((1, 2))
    assert _move(desk, *wanted) == Error.INVALID_REPLICA_ASSIGNMENT


def _elect(desk: Desk, *partitions: tuple[str, int], unclean: bool = False) -> Any:
    return desk.ask(ElectLeadersRequest(0, unclean, partitions or None)).partitions


def test_the_preferred_replica_is_elected_if_it_can_be() -> None:
    desk = _desk()
    key = desk.topic((1, 2))
    assert _elect(desk, ("t", 0)) == (("t", 0, Error.ELECTION_NOT_NEEDED),)
    assert _elect(desk, ("n", 0)) == (("n", 0, Error.UNKNOWN_TOPIC_OR_PARTITION),)
    desk.heartbeat(1, BrokerState.FENCED)
    assert _elect(desk, ("t", 0)) == (("t", 0, Error.PREFERRED_LEADER_NOT_AVAILABLE),)
    desk.catch_up(1)
    assert _elect(desk, ("t", 0)) == (("t", 0, Error.PREFERRED_LEADER_NOT_AVAILABLE),)
    desk.propose(key, 1, 2)
    assert _elect(desk) == (("t", 0, Error.NONE),)
    assert (desk.partition(key).leader, desk.partition(key).leader_epoch) == (1, 2)
    assert _elect(desk) == ()


def test_an_unclean_election_takes_any_live_replica_where_nobody_leads() -> None:
    desk = _desk()
    key = desk.topic((1, 2))
    desk.propose(key, 1)
    assert _elect(desk, ("t", 0), unclean=True) == (("t", 0, Error.ELECTION_NOT_NEEDED),)
    desk.heartbeat(1, BrokerState.FENCED)
    assert _elect(desk, ("t", 0), unclean=True) == (("t", 0, Error.NONE),)
    now = desk.partition(key)
    assert (now.leader, now.isr, now.recovering) == (2, (2,), True)
    desk.heartbeat(2, BrokerState.FENCED)
    answer = _elect(desk, ("t", 0), unclean=True)
    assert answer == (("t", 0, Error.ELIGIBLE_LEADERS_NOT_AVAILABLE),)


def test_preferred_leaders_are_elected_from_time_to_time_if_that_is_configured() -> None:
    desk = _desk(auto_leader_rebalance_ns=5 * S)
    key = desk.topic((1, 2))
    desk.heartbeat(1, BrokerState.FENCED)
    desk.catch_up(1)
    desk.propose(key, 1, 2)
    assert desk.partition(key).leader == 2
    desk.pass_time(5 * S)
    assert desk.partition(key).leader == 1
