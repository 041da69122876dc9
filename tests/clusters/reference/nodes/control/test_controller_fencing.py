"""What fencing, leaving and unfencing do to partitions: K06, K09, E06."""

import pytest
from desk import LEASE, Desk

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import AlterConfigsRequest
from fencepost.clusters.reference.nodes.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
)

LEAVING = BrokerState.PENDING_CONTROLLED_SHUTDOWN


def _fence(desk: Desk, *dead: int, alive: tuple[int, ...] = ()) -> None:
    """These are silent for a lease, those are not."""
    desk.pass_time(LEASE - 1)
    desk.catch_up(*alive)
    desk.pass_time(1)
    assert all(desk.broker(one).fenced for one in dead)
    desk.catch_up(*alive)


def test_k06_a_fenced_broker_leads_nothing_and_leaves_the_isr() -> None:
    desk = Desk()
    desk.brokers(1, 2, 3)
    key = desk.topic((1, 2, 3))
    before = desk.partition(key)
    _fence(desk, 1, alive=(2, 3))
    after = desk.partition(key)
    assert (after.leader, after.isr) == (2, (2, 3))
    assert after.leader_epoch == before.leader_epoch + 1
    assert after.partition_epoch == before.partition_epoch + 1


def test_k06_leaderships_are_moved_before_the_broker_is_fenced() -> None:
    desk = Desk()
    desk.brokers(1, 2)
    desk.topic((1, 2), (2, 1))
    end = desk.image.offset
    _fence(desk, 1, alive=(2,))
    kinds = [type(record) for record in desk.records(end)]
    assert kinds == [PartitionChangeRecord] * 2 + [BrokerRegistrationChangeRecord]


def test_a_member_that_is_fenced_leaves_without_a_new_leader_epoch() -> None:
    desk = Desk()
    desk.brokers(1, 2)
    key = desk.topic((1, 2))
    _fence(desk, 2, alive=(1,))
    after = desk.partition(key)
    assert (after.leader, after.isr, after.leader_epoch) == (1, (1,), 0)


def test_k06_without_fenced_leaves_isr_it_stays_a_member() -> None:
    desk = Desk("fenced_leaves_isr")
    desk.brokers(1, 2)
    key = desk.topic((1, 2))
    _fence(desk, 1, alive=(2,))
    assert (desk.partition(key).leader, desk.partition(key).isr) == (2, (1, 2))


def test_e06_the_last_member_stays_and_nobody_leads() -> None:
    desk = Desk()
    desk.brokers(1, 2)
    key = desk.topic((1, 2))
    _fence(desk, 2, alive=(1,))
    _fence(desk, 1)
    assert (desk.partition(key).leader, desk.partition(key).isr) == (-1, (1,))


def test_e06_without_last_member_stays_the_isr_is_empty() -> None:
    desk = Desk("last_member_stays")
    desk.brokers(1)
    key = desk.topic((1,))
    _fence(desk, 1)
    assert (desk.partition(key).leader, desk.partition(key).isr) == (-1, ())


def test_k06_without_fenced_leads_nothing_the_last_member_leads_on() -> None:
    desk = Desk("fenced_leads_nothing")
    desk.brokers(1, 2)
    key = desk.topic((1,))
    _fence(desk, 1, alive=(2,))
    assert (desk.partition(key).leader, desk.partition(key).isr) == (1, (1,))


def test_brokers_that_die_together_are_not_elected_for_each_other() -> None:
    desk = Desk()
    desk.brokers(1, 2, 3)
    key = desk.topic((1, 2, 3))
    end = desk.image.offset
    _fence(desk, 1, 2, alive=(3,))
    assert (desk.partition(key).leader, desk.partition(key).isr) == (3, (3,))
    leaders = [one.leader for one in desk.records(end) if isinstance(one, PartitionChangeRecord)]
    assert leaders == [3, None]


def test_a_broker_that_is_unfenced_leads_what_nobody_leads_once_more() -> None:
    desk = Desk()
    desk.brokers(1, 2)
    key = desk.topic((1, 2))
    _fence(desk, 2, alive=(1,))
    _fence(desk, 1)
    gone = desk.partition(key)
    desk.register(2, incarnation_id=7)
    desk.catch_up(2)
    # It is no member of the ISR.
    assert desk.partition(key).leader == -1
    desk.register(1, incarnation_id=8)
    desk.catch_up(1)
    assert (desk.partition(key).leader, desk.partition(key).isr) == (1, (1,))
    assert desk.partition(key).leader_epoch == gone.leader_epoch + 1


def test_without_leader_from_isr_a_replica_without_the_records_leads() -> None:
    desk = Desk("leader_from_isr")
    desk.brokers(1, 2)
    key = desk.topic((1, 2))
    _fence(desk, 2, alive=(1,))
    desk.register(2, incarnation_id=7)
    desk.catch_up(1, 2)
    _fence(desk, 1, alive=(2,))
    assert (desk.partition(key).leader, desk.partition(key).isr) == (2, (2,))


def test_without_leader_epoch_bumped_two_brokers_lead_in_one_leader_epoch() -> None:
    desk = Desk("leader_epoch_bumped")
    desk.brokers(1, 2)
    key = desk.topic((1, 2))
    _fence(desk, 1, alive=(2,))
    assert (desk.partition(key).leader, desk.partition(key).leader_epoch) == (2, 0)


def _led_uncleanly() -> tuple[Desk, PartitionKey]:
    """Broker 2 leads the partition of brokers 1 and 2, though only 1 was in its ISR."""
    desk = Desk()
    desk.brokers(1, 2)
    key = desk.topic((1, 2))
    _fence(desk, 2, alive=(1,))
    desk.register(2, incarnation_id=7)
    desk.catch_up(1, 2)
    _fence(desk, 1, alive=(2,))
    assert desk.partition(key).leader == -1
    change = (2, "t", "unclean.leader.election.enable", "true")
    desk.ask(AlterConfigsRequest(0, (change,)))
    after = desk.partition(key)
    assert (after.leader, after.isr, after.recovering) == (2, (2,), True)
    return desk, key


@pytest.mark.rule("leader_from_isr")
def test_an_unclean_election_is_made_only_where_the_topic_allows_it_and_is_said_to_be() -> None:
    desk, key = _led_uncleanly()
    assert not desk.propose(key, 2).recovering
    assert not desk.partition(key).recovering


def test_a_partition_recovers_until_its_leader_says_that_it_has_recovered() -> None:
    desk, key = _led_uncleanly()
    end = desk.image.offset
    answer = desk.propose(key, 2, recovering=True)
    assert (answer.error, answer.recovering) == (Error.NONE, True)
    assert desk.partition(key).recovering
    assert desk.image.offset == end
    desk.propose(key, 2)
    assert not desk.partition(key).recovering


def test_a_leader_that_recovers_is_alone_and_recovers_once() -> None:
    desk, key = _led_uncleanly()
    desk.register(1, incarnation_id=8)
    desk.catch_up(1, 2)
    assert desk.propose(key, 2, 1, recovering=True).error == Error.INVALID_REQUEST
    assert desk.propose(key, 2).error == Error.NONE
    assert desk.propose(key, 2, recovering=True).error == Error.INVALID_REQUEST


def test_k09_a_broker_that_leaves_is_let_go_once_it_leads_nothing_and_the_others_know() -> None:
    desk = Desk()
    desk.brokers(1, 2)
    key = desk.topic((1, 2))
    before = desk.image.offset
    assert desk.heartbeat(1, LEAVING).next_state == LEAVING
    assert (desk.partition(key).leader, desk.partition(key).isr) == (2, (2,))
    assert desk.broker(1).in_controlled_shutdown
    desk.heartbeat(2, offset=before)
    assert desk.heartbeat(1, LEAVING).next_state == LEAVING
    desk.catch_up(2)
    assert desk.heartbeat(1, LEAVING).next_state == BrokerState.NOT_RUNNING
    assert desk.broker(1).fenced


def test_k09_a_broker_on_its_own_is_let_go_and_stays_the_last_member() -> None:
    desk = Desk()
    desk.brokers(1)
    key = desk.topic((1,))
    assert desk.heartbeat(1, LEAVING).next_state == BrokerState.NOT_RUNNING
    assert (desk.partition(key).leader, desk.partition(key).isr) == (-1, (1,))


def test_k09_without_leaderships_moved_first_a_broker_goes_that_still_leads() -> None:
    desk = Desk("leaderships_moved_first")
    desk.brokers(1, 2)
    key = desk.topic((1, 2))
    assert desk.heartbeat(1, LEAVING).next_state == BrokerState.NOT_RUNNING
    assert desk.partition(key).leader == 1


def test_k09_who_was_let_go_is_not_unfenced_but_by_a_new_registration() -> None:
    desk = Desk()
    desk.brokers(1)
    desk.heartbeat(1, LEAVING)
    assert desk.heartbeat(1).next_state == BrokerState.NOT_RUNNING
    desk.register(1, incarnation_id=7)
    assert desk.heartbeat(1).next_state == BrokerState.RUNNING


def test_k09_a_new_controller_lets_a_leaving_broker_go_only_once_the_others_have_told_it() -> None:
    desk = Desk()
    desk.brokers(1, 2)
    desk.heartbeat(1, LEAVING)
    desk.depose()
    desk.elect()
    assert desk.heartbeat(1, LEAVING).next_state == LEAVING
    desk.catch_up(2)
    assert desk.heartbeat(1, LEAVING).next_state == BrokerState.NOT_RUNNING


@pytest.mark.parametrize("target", [LEAVING, BrokerState.FENCED], ids=["leaving", "fenced"])
def test_a_fenced_broker_gets_its_wish_without_a_record(target: BrokerState) -> None:
    desk = Desk()
    desk.register(1)
    end = desk.image.offset
    expected = BrokerState.NOT_RUNNING if target == LEAVING else BrokerState.FENCED
    assert desk.heartbeat(1, target).next_state == expected
    assert desk.image.offset == end


def test_a_broker_that_wants_to_be_fenced_is() -> None:
    desk = Desk()
    desk.brokers(1, 2)
    key = desk.topic((1, 2))
    assert desk.heartbeat(1, BrokerState.FENCED).next_state == BrokerState.FENCED
    assert desk.partition(key).leader == 2


def test_a_heartbeat_that_waited_longer_than_a_lease_unfences_nobody() -> None:
    desk = Desk(request_timeout_ns=10 * LEASE)
    desk.brokers(1)
    desk.register(2)
    desk.commits = False
    desk.heartbeat(1, BrokerState.FENCED)
    assert desk.heartbeat(2) is None
    desk.pass_time(LEASE)
    desk.commits = True
    desk.settle()
    assert desk.broker(2).fenced
    assert dict(desk.answers())[2].error == Error.REQUEST_TIMED_OUT
