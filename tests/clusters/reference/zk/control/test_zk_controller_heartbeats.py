"""Z02 to Z07, Z12, Z14: the states that the controller keeps of brokers."""

import pytest
from control_desk import CLIENT, LEGACY, READY, Desk

from fencepost.clusters.node_port.notes import BROKER_CONTROLLED_STATE, PARTITION_DECIDED
from fencepost.clusters.node_port.zookeeper import SetData
from fencepost.clusters.protocol.controlled_states import ControlledState
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import CreateTopicsRequest, NewTopic
from fencepost.clusters.reference.zk.messages import LeaderAndIsrRequest, StopReplicaRequest
from fencepost.clusters.reference.zk.znodes import BrokerInfo, broker_path

INITIAL, INACTIVE = ControlledState.INITIAL, ControlledState.INACTIVE
ACTIVE, STOPPING = ControlledState.ACTIVE, ControlledState.STOPPING
SECOND = 1_000
TIMEOUT = 9 * SECOND


def kept(desk: Desk, broker_id: int) -> int:
    """The state that the controller announced last of a broker."""
    states = [note[4] for note in desk.notes if note[1:3] == (BROKER_CONTROLLED_STATE, broker_id)]
    return int(states[-1])


def test_z01_the_incarnation_id_is_the_czxid_of_the_registration() -> None:
    desk = Desk()
    for broker_id, broker in desk.brokers.items():
        assert desk.context.image.brokers[broker_id].incarnation_id == broker.situation.broker_epoch
    before = desk.brokers[2].situation.broker_epoch
    desk.restart(2)
    assert desk.context.image.brokers[2].incarnation_id > before


def test_z01_without_the_rule_two_incarnations_are_one() -> None:
    desk = Desk(3, "incarnation_from_czxid", begins=False)
    desk.restart(2)
    assert desk.context.image.brokers[2].incarnation_id == 0


def test_z02_all_brokers_are_inactive_at_first() -> None:
    desk = Desk(begins=False)
    assert [kept(desk, one) for one in (1, 2, 3)] == [INACTIVE] * 3
    desk.heartbeat(1)
    assert desk.live(1) == (1,)
    assert desk.create("t", (2, 1)).topics[0][2] == Error.NONE
    assert (desk.state().leader, desk.state().isr) == (1, (1,))


def test_z02_without_inactive_at_first_a_broker_that_never_spoke_leads() -> None:
    desk = Desk(3, "inactive_at_first", begins=False)
    desk.create("t", (2, 1))
    assert desk.state().leader == 2


def test_z02_inactive_brokers_are_left_out_of_metadata_isrs_and_elections() -> None:
    desk = Desk()
    desk.create("t", (2, 1, 3))
    silence(desk, 2)
    assert (desk.state().leader, desk.state().isr) == (1, (1, 3))
    assert desk.live(1) == desk.live(3) == (1, 3)
    desk.create("u", (2, 3))
    assert desk.state("u").isr == (3,)


def test_z02_without_inactive_left_out_clients_are_sent_to_a_silent_broker() -> None:
    desk = Desk(3, "inactive_left_out")
    desk.create("t", (2, 1, 3))
    silence(desk, 2)
    assert kept(desk, 2) == INACTIVE
    assert desk.state().leader == 2
    assert desk.live(1) == (1, 2, 3)


def test_z02_a_new_controller_keeps_who_was_active_until_they_are_silent_for_too_long() -> None:
    desk = Desk()
    desk.create("t", (2, 3))
    desk.expire(1)
    assert desk.active.situation.node_id == 2
    assert [kept(desk, one) for one in (2, 3)] == [INITIAL, INITIAL]
    assert (desk.state().leader, desk.state().isr) == (2, (2, 3))
    desk.heartbeat(2)
    assert kept(desk, 2) == ACTIVE
    desk.advance(TIMEOUT - 1)
    desk.heartbeat(2)
    assert desk.state().isr == (2, 3)
    desk.advance(1)
    assert kept(desk, 3) == INACTIVE
    assert desk.state().isr == (2,)


def test_z04_a_heartbeat_of_an_older_incarnation_is_refused() -> None:
    desk = Desk()
    before = desk.brokers[2].situation.broker_epoch
    desk.restart(2)
    desk.heartbeat(2)
    answer = desk.heartbeat(2, incarnation=before)
    assert answer.error == Error.INVALID_INCARNATION_ID
    assert "heartbeat incarnation_id=" in answer.error_message


def test_z04_without_the_rule_an_older_incarnation_keeps_a_broker_active() -> None:
    desk = Desk(3, "old_incarnation_refused")
    before = desk.brokers[2].situation.broker_epoch
    desk.restart(2)
    desk.heartbeat(2)
    for _ in range(3):
        desk.advance(TIMEOUT - 1)
        for one in (1, 3):
            desk.heartbeat(one)
        assert desk.heartbeat(2, incarnation=before).error == Error.NONE
    assert kept(desk, 2) == ACTIVE


def unseen_restart(desk: Desk) -> None:
    """Broker 2 registers anew, and its heartbeat comes before any watch of it."""
    watching = desk.active.session
    assert watching is not None
    desk.double.forget(watching)
    desk.restart(2)


def test_z04_a_heartbeat_of_a_newer_incarnation_is_taken_at_its_word() -> None:
    desk = Desk()
    unseen_restart(desk)
    assert desk.heartbeat(2).current_state == ACTIVE
    known = desk.context.image.brokers[2]
    assert known.incarnation_id == desk.brokers[2].situation.broker_epoch


def test_z04_without_the_rule_a_newer_incarnation_is_refused() -> None:
    desk = Desk(3, "newer_incarnation_taken")
    unseen_restart(desk)
    assert desk.heartbeat(2).error == Error.INVALID_INCARNATION_ID


def test_z04_a_new_incarnation_is_told_all_its_partitions() -> None:
    desk = Desk()
    desk.create("t", (2, 1, 3))
    desk.restart(2)
    assert desk.brokers[2].told == []
    assert desk.heartbeat(2).current_state == ACTIVE
    first = desk.brokers[2].told[0]
    assert isinstance(first, LeaderAndIsrRequest)
    assert first.is_full
    assert [one.topic for one in first.partitions] == ["t"]
    assert first.broker_epoch == desk.brokers[2].situation.broker_epoch


def test_z04_a_broker_with_a_new_incarnation_leaves_the_isrs_of_the_old_one() -> None:
    desk = Desk()
    desk.create("t", (2, 1, 3))
    desk.restart(2)
    assert (desk.state().leader, desk.state().isr) == (1, (1, 3))
    desk.heartbeat(2)
    assert (desk.state().leader, desk.state().isr) == (1, (1, 3))


def test_z04_without_the_rule_a_restarted_broker_never_learns_its_partitions() -> None:
    desk = Desk(3, "new_incarnation_told_all")
    desk.create("t", (2, 1, 3))
    desk.restart(2)
    assert desk.heartbeat(2).current_state == ACTIVE
    assert (desk.state().leader, desk.state().isr) == (2, (2, 1, 3))
    assert desk.led(2) is None


@pytest.mark.parametrize(("broker_id", "target"), [(-1, ACTIVE), (2, 7), (2, INITIAL)])
def test_z05_a_heartbeat_with_bad_fields_is_refused(broker_id: int, target: int) -> None:
    desk = Desk()
    answer = desk.heartbeat(broker_id, target, incarnation=desk.context.epoch)
    assert answer.error == Error.INVALID_REQUEST


@pytest.mark.parametrize(("broker_id", "target"), [(-1, ACTIVE), (2, 7)])
def test_z05_without_the_rule_bad_fields_are_taken(broker_id: int, target: int) -> None:
    desk = Desk(3, "bad_heartbeat_refused")
    incarnation = desk.brokers[2].situation.broker_epoch
    answer = desk.heartbeat(broker_id, target, incarnation=incarnation)
    assert answer.error == Error.NONE


def test_z06_the_answer_has_the_state_that_the_broker_has_to_be_in() -> None:
    desk = Desk()
    assert desk.heartbeat(2).current_state == ACTIVE
    assert desk.heartbeat(2, STOPPING).current_state == STOPPING
    assert desk.heartbeat(2, ACTIVE).current_state == ACTIVE


def test_z07_a_silent_broker_is_inactive_after_the_time_out_and_active_again_later() -> None:
    desk = Desk()
    desk.create("t", (2, 1, 3))
    desk.advance(TIMEOUT - 1)
    desk.heartbeat(1)
    desk.heartbeat(3)
    assert kept(desk, 2) == ACTIVE
    desk.advance(1)
    assert kept(desk, 2) == INACTIVE
    assert desk.state().isr == (1, 3)
    assert desk.heartbeat(2).current_state == ACTIVE
    assert desk.live(1) == (1, 2, 3)
    assert desk.isr_change(1, (1, 2, 3)).results == ((Error.NONE, None),)


def test_z07_without_the_rule_a_silent_broker_leads_on() -> None:
    desk = Desk(3, "controller_ends_silence")
    desk.create("t", (2, 1, 3))
    silence(desk, 2)
    assert desk.state().leader == 2


def test_z07_the_last_member_of_an_isr_stays_and_leads_again() -> None:
    desk = Desk()
    desk.create("t", (2,))
    silence(desk, 2)
    assert (desk.state().leader, desk.state().isr) == (-1, (2,))
    desk.heartbeat(2)
    assert (desk.state().leader, desk.state().isr) == (2, (2,))


@pytest.mark.rule("active_once_told")
def test_an_inactive_broker_is_active_once_it_has_taken_what_it_missed() -> None:
    desk = Desk()
    desk.create("t", (1, 2, 3))
    silence(desk, 2)
    desk.create("u", (1, 3))
    desk.brokers[2].is_deaf = True
    assert desk.heartbeat(2) is None
    assert kept(desk, 2) == INACTIVE
    desk.brokers[2].is_deaf = False
    desk.settle()
    assert kept(desk, 2) == ACTIVE
    assert desk.answers[-1].current_state == ACTIVE
    shown = [state.topic for one in desk.brokers[2].told[-4:] for state in one.partitions]
    assert "u" in shown


@pytest.mark.parametrize("error", [Error.STALE_CONTROLLER_EPOCH, Error.STALE_BROKER_EPOCH])
def test_an_inactive_broker_that_takes_nothing_is_not_active(error: Error) -> None:
    """A controller that stood still has a successor, of which the broker knows."""
    desk = Desk()
    desk.create("t", (1, 2, 3))
    silence(desk, 2)
    desk.brokers[2].error = error
    assert desk.heartbeat(2) is None
    assert kept(desk, 2) == INACTIVE


def test_without_active_once_told_a_broker_is_active_with_what_it_showed_before() -> None:
    desk = Desk(3, "active_once_told")
    silence(desk, 2)
    desk.create("u", (1, 3))
    desk.brokers[2].is_deaf = True
    assert desk.heartbeat(2).current_state == ACTIVE


def test_z12_a_legacy_registration_is_active_without_heartbeats() -> None:
    desk = Desk()
    desk.start(4, version=LEGACY)
    assert kept(desk, 4) == ACTIVE
    for _ in range(3):
        desk.advance(TIMEOUT - 1)
        for one in (1, 2, 3):
            desk.heartbeat(one)
    assert desk.live(1) == (1, 2, 3, 4)


def test_z12_without_the_rule_a_legacy_registration_is_left_out() -> None:
    desk = Desk(3, "legacy_always_active")
    desk.start(4, version=LEGACY)
    assert kept(desk, 4) == INACTIVE
    assert desk.live(1) == (1, 2, 3)


def test_z12_a_registration_that_becomes_ready_keeps_its_state() -> None:
    desk = Desk()
    info = BrokerInfo(2, (("CLIENT", "elsewhere", 9092, 0),), None, READY)
    desk.double.write(SetData(broker_path(2), info.encoded()))
    desk.settle()
    assert desk.context.image.brokers[2].listeners[0][1] == "elsewhere"
    assert desk.live(1) == (1, 2, 3)


def test_z14_a_stopping_broker_leads_nothing_and_serves_until_it_ends() -> None:
    desk = Desk()
    desk.create("t", (2, 1, 3))
    desk.create("u", (1, 2))
    assert desk.heartbeat(2, STOPPING).current_state == STOPPING
    assert (desk.state().leader, desk.state().isr) == (1, (1, 3))
    assert desk.state("u").isr == (1,)
    assert desk.live(1) == (1, 2, 3)
    stops = [one for one in desk.brokers[2].told if isinstance(one, StopReplicaRequest)]
    assert {(one.topic, one.delete) for stop in stops for one in stop.partitions} == {
        ("t", False),
        ("u", False),
    }
    assert desk.isr_change(1, (1, 3, 2)).results[0][0] == Error.INELIGIBLE_REPLICA
    desk.kill(2)
    assert desk.live(1) == (1, 3)


def test_old_software_does_not_understand_heartbeats_and_takes_all_for_active() -> None:
    desk = Desk(2, begins=False, inter_broker_protocol_max=1, inter_broker_protocol=1)
    assert kept(desk, 2) == ACTIVE
    assert desk.heartbeat(2).error == Error.UNSUPPORTED_VERSION


def test_a_broker_that_is_not_the_controller_says_so() -> None:
    desk = Desk()
    assert desk.heartbeat(2, to=3).error == Error.NOT_CONTROLLER


def silence(desk: Desk, broker_id: int) -> None:
    """All but one broker send heartbeats until it is silent for the controller-side time-out."""
    for step in (TIMEOUT - 1, 1):
        desk.advance(step)
        for one in desk.brokers:
            if one != broker_id:
                desk.heartbeat(one)


def test_z07_a_heartbeat_that_comes_while_a_broker_is_made_inactive_makes_it_active_again() -> None:
    desk = Desk()
    desk.create("t", (2,))
    desk.now += TIMEOUT * MS
    broker = desk.active
    desk._do(broker, broker.controller.tick)
    desk.heartbeat(2)
    assert kept(desk, 2) == ACTIVE
    assert (desk.state().leader, desk.state().isr) == (2, (2,))


def test_z07_a_broker_that_falls_silent_behind_other_decisions_is_not_elected() -> None:
    desk = Desk()
    desk.create("t", (2, 3, 1))
    for heard in (1, 3), (1,):
        desk.advance(SECOND)
        for one in heard:
            desk.heartbeat(one)
    broker, key = desk.active, desk.key()
    request = CreateTopicsRequest(99, (NewTopic("u", -1, -1, ((1,),)),), SECOND * MS)
    desk._do(broker, broker.controller.request, CLIENT, request)
    for step in (TIMEOUT - 2 * SECOND, SECOND):
        desk.now += step * MS
        desk._do(broker, broker.controller.tick)
    assert [kept(desk, one) for one in (2, 3)] == [INACTIVE, INACTIVE]
    desk.settle()
    leaders = {note[5] for note in desk.notes if note[1:3] == (PARTITION_DECIDED, key)}
    assert 3 not in leaders
    assert desk.state().isr == (1,)
