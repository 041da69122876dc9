"""IsrChange: what a leader asks the controller for, and what it makes of the answers."""

import pytest
from isr_asker import RETRY, TIMEOUT, Asker

from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.zk.messages import IsrChange


def test_z09_a_request_names_the_sender_and_each_partition_with_its_leader_epoch() -> None:
    asker = Asker()
    asker.propose()
    (request,) = asker.sent()
    assert (request.broker_id, request.incarnation_id, request.version) == (1, 100, 0)
    assert request.topics == (("t", (IsrChange(0, 3, (1, 2), ()),)),)


def test_z09_one_request_is_under_way_and_the_next_one_has_all_that_waits() -> None:
    asker = Asker()
    asker.propose(0)
    asker.propose(1)
    assert len(asker.sent()) == 1
    asker.answer(Error.NONE)
    assert [one.partition for one in asker.sent()[1].topics[0][1]] == [1]


def test_z09_results_belong_to_the_partitions_in_the_order_of_the_request() -> None:
    asker = Asker()
    asker.situation.controller_id = -1
    asker.propose(0)
    asker.propose(1)
    asker.situation.controller_id = 9
    asker.tick(0)
    asker.answer(Error.NOT_LEADER_OR_FOLLOWER, Error.NONE)
    assert [one.isr for one in asker.leaders] == [(1,), (1, 2)]
    assert [one.proposed for one in asker.leaders] == [(1, 2), None]


def test_z10_not_controller_is_asked_again_of_the_controller_to_come() -> None:
    asker = Asker()
    asker.propose()
    asker.answer(whole=Error.NOT_CONTROLLER)
    asker.situation.controller_id = 8
    asker.tick(1 + RETRY)
    first, second = asker.sent()
    assert (first.topics, first.incarnation_id) == (second.topics, second.incarnation_id)
    assert asker.effects[-1][1] == 8


def test_z10_a_refused_incarnation_asks_for_nothing_until_it_is_registered_anew() -> None:
    asker = Asker()
    asker.propose()
    asker.answer(whole=Error.INVALID_INCARNATION_ID)
    asker.tick(10 * RETRY)
    assert len(asker.sent()) == 1
    asker.situation.broker_epoch = 101
    asker.tick(11 * RETRY)
    assert asker.sent()[-1].incarnation_id == 101


def test_an_isr_that_may_be_in_force_counts_until_the_controller_knows_better() -> None:
    asker = Asker()
    asker.propose()
    asker.answer(Error.INVALID_UPDATE_VERSION)
    assert (asker.leaders[0].isr, asker.leaders[0].proposed) == ((1,), (1, 2))
    asker.tick(10 * RETRY)
    assert len(asker.sent()) == 2


def test_a_request_without_an_answer_is_repeated_word_for_word() -> None:
    asker = Asker()
    asker.propose()
    asker.situation.broker_epoch = 101
    asker.tick(TIMEOUT - 1)
    assert len(asker.sent()) == 1
    asker.tick(TIMEOUT)
    first, second = asker.sent()
    assert (first.topics, first.incarnation_id) == (second.topics, second.incarnation_id)
    assert second.correlation > first.correlation


def test_a_request_that_came_back_is_repeated_after_a_pause() -> None:
    asker = Asker()
    asker.propose()
    asker.changes.unreachable(5, asker.sent()[0], asker.effects)
    asker.tick(6)
    assert len(asker.sent()) == 1
    asker.tick(5 + RETRY)
    assert len(asker.sent()) == 2


@pytest.mark.parametrize(
    ("error", "isr", "proposed"),
    [
        (Error.NONE, (1, 2), None),
        (Error.NOT_LEADER_OR_FOLLOWER, (1,), (1, 2)),
        (Error.INVALID_REQUEST, (1,), (1, 2)),
        (Error.INELIGIBLE_REPLICA, (1,), None),
    ],
)
def test_z10_what_a_leader_makes_of_the_result_of_its_partition(
    error: Error, isr: tuple[int, ...], proposed: tuple[int, ...] | None
) -> None:
    asker = Asker()
    asker.propose()
    asker.answer(error)
    assert (asker.leaders[0].isr, asker.leaders[0].proposed) == (isr, proposed)
    asker.tick(10 * RETRY)
    assert len(asker.sent()) == 1


def test_another_error_is_asked_again() -> None:
    asker = Asker()
    asker.propose()
    asker.answer(Error.UNKNOWN_SERVER_ERROR)
    asker.tick(10 * RETRY)
    assert len(asker.sent()) == 2


def test_a_leader_that_is_none_any_more_takes_no_answer() -> None:
    asker = Asker()
    asker.propose()
    asker.leaders[0].end(asker.effects)
    del asker.situation.assigned[7, 0]
    asker.answer(Error.NONE)
    assert asker.leaders[0].isr == (1,)


def test_version_1_names_the_incarnations_that_the_leader_saw_fetch() -> None:
    asker = Asker(member_incarnations_checked=True)
    asker.propose()
    (request,) = asker.sent()
    assert request.version == 1
    assert request.topics[0][1][0].incarnations == (100, 55)
