"""Z09 and Z10: IsrChange; and the ISRs that leaders below the new protocol write by themselves."""

import pytest
from control_desk import LEGACY, Desk

from fencepost.clusters.node_port.zookeeper import Create
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.zk.messages import (
    IsrChange,
    IsrChangeRequest,
    LeaderAndIsrRequest,
    UpdateMetadataRequest,
)
from fencepost.clusters.reference.zk.znodes import (
    ISR_CHANGE_PREFIX,
    ISR_CHANGES,
    PartitionStateInfo,
    encoded_isr_change,
)


def desk_with_topic(*without: str) -> Desk:
    """Three brokers and a topic that the second one leads."""
    desk = Desk(3, *without)
    desk.create("t", (2, 1, 3))
    return desk


def error_of(answer: object) -> int:
    """The error of the one partition in an answer."""
    return int(answer.results[0][0])  # type: ignore[attr-defined]


def test_z09_an_isr_change_is_written_and_shown_in_the_same_leader_epoch() -> None:
    desk = desk_with_topic()
    assert error_of(desk.isr_change(2, (2, 1))) == Error.NONE
    assert (desk.state().isr, desk.state().leader_epoch) == ((2, 1), 0)
    assert desk.image().partition_epoch == 1
    told = desk.brokers[3].told
    assert isinstance(told[-1], UpdateMetadataRequest)
    assert told[-1].partitions[0].isr == (2, 1)
    assert sum(isinstance(one, LeaderAndIsrRequest) and not one.is_full for one in told) == 1


def test_z09_results_are_in_the_order_of_the_request() -> None:
    desk = desk_with_topic()
    desk.create("u", (2, 1), (3, 1))
    epoch = desk.brokers[2].situation.broker_epoch
    asked = (
        ("u", (IsrChange(1, 0, (3,)), IsrChange(0, 0, (2,)))),
        ("nowhere", (IsrChange(0, 0, (2,)),)),
        ("t", (IsrChange(0, 0, ()), IsrChange(0, 0, (2,)))),
    )
    answer = desk.ask(IsrChangeRequest(99, 2, epoch, 0, asked))
    assert [error for error, _ in answer.results] == [
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.NONE,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.INVALID_REQUEST,
        Error.NONE,
    ]


def test_z10_another_broker_than_the_controller_answers_not_controller() -> None:
    desk = desk_with_topic()
    answer = desk.ask(IsrChangeRequest(99, 2, 1, 0, ()), to=3)
    assert (answer.error, answer.results) == (Error.NOT_CONTROLLER, ())


def test_z10_an_isr_change_of_an_old_incarnation_is_refused() -> None:
    desk = desk_with_topic()
    before = desk.brokers[2].situation.broker_epoch
    desk.restart(2)
    desk.heartbeat(2)
    answer = desk.isr_change(2, (2,), incarnation=before)
    assert (answer.error, answer.results) == (Error.INVALID_INCARNATION_ID, ())


def test_z10_without_the_rule_a_process_that_was_replaced_changes_isrs() -> None:
    desk = desk_with_topic("isr_change_of_old_incarnation_refused", "new_incarnation_told_all")
    before = desk.brokers[2].situation.broker_epoch
    desk.restart(2)
    desk.heartbeat(2)
    assert desk.isr_change(2, (2,), incarnation=before).error == Error.NONE
    assert desk.state().isr == (2,)


@pytest.mark.parametrize(("sender", "leader_epoch"), [(1, 0), (2, -1), (2, 1)])
def test_z10_an_isr_change_of_another_than_the_leader_is_refused(
    sender: int, leader_epoch: int
) -> None:
    desk = desk_with_topic()
    answer = desk.isr_change(sender, (2, 1), leader_epoch=leader_epoch)
    assert error_of(answer) == Error.NOT_LEADER_OR_FOLLOWER
    assert desk.state().isr == (2, 1, 3)


def test_z10_without_the_rule_a_deposed_leader_changes_the_isr() -> None:
    desk = desk_with_topic("isr_change_of_leader_alone")
    assert error_of(desk.isr_change(3, (2, 3), leader_epoch=-1)) == Error.NONE
    assert desk.state().isr == (2, 3)


@pytest.mark.parametrize("isr", [(), (1, 3)])
def test_z10_an_isr_without_members_or_without_its_leader_is_refused(isr: tuple[int, ...]) -> None:
    desk = desk_with_topic()
    assert error_of(desk.isr_change(2, isr)) == Error.INVALID_REQUEST


def test_z10_without_the_rule_an_isr_may_be_empty() -> None:
    desk = desk_with_topic("empty_isr_refused")
    assert error_of(desk.isr_change(2, ())) == Error.NONE
    assert desk.state().isr == ()


@pytest.mark.parametrize("isr", [(2, 2), (2, 9)])
def test_z10_an_isr_of_others_than_the_replicas_is_refused(isr: tuple[int, ...]) -> None:
    desk = desk_with_topic()
    assert error_of(desk.isr_change(2, isr)) == Error.INVALID_REQUEST


def restarted_follower(desk: Desk) -> int:
    """Broker 3 restarts and is active again; returns its incarnation id of before."""
    before = desk.brokers[3].situation.broker_epoch
    desk.restart(3)
    desk.heartbeat(3)
    assert desk.state().isr == (2, 1)
    return before


def test_an_isr_change_that_means_an_old_incarnation_of_a_follower_passes_in_the_draft() -> None:
    desk = desk_with_topic()
    epoch = desk.state().leader_epoch
    before = restarted_follower(desk)
    assert desk.state().leader_epoch == epoch + 1
    answer = desk.isr_change(2, (2, 1, 3), incarnations=(-1, -1, before))
    assert error_of(answer) == Error.NONE
    assert desk.state().isr == (2, 1, 3)


def test_member_incarnations_are_checked_by_the_rule_beyond_the_draft() -> None:
    desk = desk_with_topic()
    for broker in desk.brokers.values():
        broker.situation.rules.member_incarnations_checked = True
    before = restarted_follower(desk)
    answer = desk.isr_change(2, (2, 1, 3), incarnations=(-1, -1, before))
    assert error_of(answer) == Error.INELIGIBLE_REPLICA
    assert desk.state().isr == (2, 1)
    now = desk.brokers[3].situation.broker_epoch
    answer = desk.isr_change(2, (2, 1, 3), incarnations=(-1, -1, now))
    assert error_of(answer) == Error.NONE


def test_a_repeated_isr_change_is_accepted_without_a_write() -> None:
    desk = desk_with_topic()
    desk.isr_change(2, (2, 1))
    assert error_of(desk.isr_change(2, (2, 1))) == Error.NONE
    assert desk.image().partition_epoch == 1


def test_z11_an_isr_that_a_legacy_leader_wrote_is_read_by_its_notification() -> None:
    desk = Desk(2)
    desk.start(3, version=LEGACY)
    desk.create("t", (3, 1, 2))
    desk.overwrite(PartitionStateInfo(1, 3, 0, (3, 1)))
    desk.double.write(Create(ISR_CHANGE_PREFIX, encoded_isr_change([("t", 0)]), sequential=True))
    desk.settle()
    assert desk.image().isr == (3, 1)
    assert desk.image().partition_epoch == 1
    assert desk.double.children(ISR_CHANGES) == ()
    assert desk.brokers[2].told[-1].partitions[0].isr == (3, 1)


def test_z11_a_notification_that_was_written_without_a_controller_is_read_by_the_next() -> None:
    desk = desk_with_topic()
    controller = desk.brokers.pop(1)
    desk.overwrite(PartitionStateInfo(1, 2, 0, (2, 3)))
    desk.double.write(Create(ISR_CHANGE_PREFIX, encoded_isr_change([("t", 0)]), sequential=True))
    assert controller.session is not None
    desk.double.expire(controller.session)
    desk.settle()
    assert desk.double.children(ISR_CHANGES) == ()
    assert desk.image().isr == (2, 3)


def test_a_repeated_isr_change_is_not_said_to_be_void_though_a_member_has_gone_since() -> None:
    desk = desk_with_topic()
    for broker in desk.brokers.values():
        broker.situation.rules.member_incarnations_checked = True
    now = desk.brokers[3].situation.broker_epoch
    assert error_of(desk.isr_change(2, (2, 1, 3), incarnations=(-1, -1, now))) == Error.NONE
    # What is refused with INELIGIBLE_REPLICA was never so: its sender goes back to its old ISR.
    answer = desk.isr_change(2, (2, 1, 3), incarnations=(-1, -1, now - 1))
    assert error_of(answer) == Error.INVALID_UPDATE_VERSION
    assert desk.state().isr == (2, 1, 3)
