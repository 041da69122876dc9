"""Registration and leases: K01 to K04."""

from typing import Any

import pytest
from desk import LEASE, Desk

from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import AllocateProducerIdsRequest
from fencepost.clusters.reference.nodes.records import RegisterBrokerRecord


def test_k01_a_registration_tells_the_epoch_and_for_how_long_the_lease_is() -> None:
    desk = Desk()
    answer = desk.register(1)
    assert (answer.error, answer.lease_duration_ms) == (Error.NONE, LEASE // MS)
    assert answer.broker_epoch == desk.broker(1).broker_epoch
    assert desk.broker(1).fenced


def test_k02_the_broker_epoch_is_the_offset_of_the_registration_and_grows() -> None:
    desk = Desk()
    desk.brokers(1)
    desk.topic((1,))
    first = desk.broker(1).broker_epoch
    desk.pass_time(LEASE)
    second = desk.register(1, incarnation_id=2).broker_epoch
    assert first < second
    for offset, record in enumerate(desk.records()):
        if isinstance(record, RegisterBrokerRecord):
            assert record.broker_epoch == offset


def test_k02_without_epoch_from_offset_two_incarnations_have_one_epoch() -> None:
    desk = Desk("epoch_from_offset")
    first = desk.register(1, incarnation_id=1).broker_epoch
    desk.pass_time(LEASE)
    assert desk.register(1, incarnation_id=2).broker_epoch == first
    assert desk.broker(1).incarnation_id == 2


def test_a_registration_that_comes_twice_gets_the_same_answer_and_no_record() -> None:
    desk = Desk()
    first = desk.register(1, incarnation_id=5)
    end = desk.image.offset
    assert desk.register(1, incarnation_id=5) == first
    assert desk.image.offset == end


def test_a_registration_that_comes_twice_while_the_first_is_undecided_gets_one_epoch() -> None:
    desk = Desk()
    desk.commits = False
    assert desk.register(1, incarnation_id=5) is None
    assert desk.register(1, incarnation_id=5) is None
    desk.commit()
    answers = [answer.broker_epoch for source, answer in desk.answers() if source == 1]
    assert answers == [desk.broker(1).broker_epoch] * 2


def test_k04_a_broker_whose_lease_ran_out_gets_a_new_epoch_under_the_same_incarnation() -> None:
    desk = Desk()
    desk.brokers(1)
    old = desk.broker(1)
    desk.pass_time(LEASE)
    answer = desk.register(1, old.incarnation_id, broker_epoch=old.broker_epoch)
    assert answer.broker_epoch > old.broker_epoch


def test_k03_an_id_that_a_live_registration_holds_is_refused_until_its_lease_is_over() -> None:
    desk = Desk()
    desk.brokers(1)
    assert desk.register(1, incarnation_id=2).error == Error.REQUEST_TIMED_OUT
    desk.pass_time(LEASE)
    assert desk.register(1, incarnation_id=2).error == Error.NONE


def test_k03_a_registration_is_live_from_its_grant_though_the_broker_is_fenced_yet() -> None:
    desk = Desk()
    assert desk.register(1, incarnation_id=1).error == Error.NONE
    assert desk.broker(1).fenced
    assert desk.register(1, incarnation_id=2).error == Error.REQUEST_TIMED_OUT
    desk.pass_time(LEASE - 1)
    assert desk.heartbeat(1, BrokerState.FENCED).error == Error.NONE
    desk.pass_time(LEASE - 1)
    assert desk.register(1, incarnation_id=2).error == Error.REQUEST_TIMED_OUT
    desk.pass_time(1)
    assert desk.register(1, incarnation_id=2).error == Error.NONE


def test_k03_the_id_of_a_broker_that_was_let_go_is_free() -> None:
    desk = Desk()
    desk.brokers(1, 2)
    for _ in range(3):
        desk.heartbeat(1, BrokerState.PENDING_CONTROLLED_SHUTDOWN)
        desk.catch_up(2)
    assert desk.broker(1).fenced
    assert desk.register(1, incarnation_id=2).error == Error.NONE


def _contested(*after_ns: int) -> Desk:
    """Another process asks for the id of broker 1, which is heard of so long after that."""
    desk = Desk()
    desk.brokers(1)
    assert desk.register(1, incarnation_id=2).error == Error.REQUEST_TIMED_OUT
    for time_ns in after_ns:
        desk.pass_time(time_ns)
        assert desk.heartbeat(1).error == Error.NONE
    return desk


def test_k03_an_id_is_in_use_once_its_holder_was_heard_of_a_lease_later() -> None:
    desk = _contested(LEASE - 1, 2)
    assert desk.register(1, incarnation_id=2).error == Error.DUPLICATE_BROKER_REGISTRATION


def test_k03_a_heartbeat_that_was_late_by_up_to_a_lease_does_not_make_an_id_in_use() -> None:
    desk = _contested(LEASE - 1, 1)
    assert desk.register(1, incarnation_id=2).error == Error.REQUEST_TIMED_OUT
    desk.pass_time(LEASE)
    assert desk.register(1, incarnation_id=2).error == Error.NONE


def test_k03_each_process_that_asks_for_an_id_waits_by_itself() -> None:
    desk = _contested(LEASE - 1, 2)
    assert desk.register(1, incarnation_id=3).error == Error.REQUEST_TIMED_OUT


def test_k03_a_new_active_controller_knows_of_no_id_in_use() -> None:
    desk = _contested(LEASE - 1, 2)
    desk.depose()
    desk.elect()
    assert desk.register(1, incarnation_id=2).error == Error.REQUEST_TIMED_OUT


def test_k03_without_live_id_refused_a_second_incarnation_takes_the_id() -> None:
    desk = Desk("live_id_refused")
    desk.brokers(1)
    assert desk.register(1, incarnation_id=2).error == Error.NONE


def test_an_id_is_free_once_its_lease_is_over_though_nobody_was_fenced_yet() -> None:
    desk = Desk("controller_ends_leases")
    desk.brokers(1, 2)
    key = desk.topic((1, 2))
    desk.pass_time(LEASE)
    assert not desk.broker(1).fenced
    assert desk.register(1, incarnation_id=2).error == Error.NONE
    # The old incarnation was fenced first: it leads nothing, and is in no ISR.
    assert (desk.partition(key).leader, desk.partition(key).isr) == (-1, (2,))


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({"cluster_id": "another"}, Error.INCONSISTENT_CLUSTER_ID, id="cluster"),
        pytest.param(
            {"features": (("metadata.version", 1, 2),)}, Error.UNSUPPORTED_VERSION, id="too-low"
        ),
        pytest.param({"features": ()}, Error.UNSUPPORTED_VERSION, id="none"),
    ],
)
def test_k03_a_broker_that_does_not_fit_the_cluster_is_refused(
    fields: dict[str, Any], error: Error
) -> None:
    desk = Desk(level=3)
    assert desk.register(1, **fields).error == error
    assert 1 not in desk.image.brokers


def test_k03_without_features_checked_a_broker_registers_that_lacks_a_level() -> None:
    desk = Desk("features_checked", level=3)
    assert desk.register(1, features=(("metadata.version", 1, 2),)).error == Error.NONE


def test_k04_a_lease_that_runs_out_is_ended_by_the_controller() -> None:
    desk = Desk()
    desk.brokers(1, 2)
    desk.pass_time(LEASE - 1)
    assert not desk.broker(1).fenced
    desk.heartbeat(2)
    desk.pass_time(1)
    assert (desk.broker(1).fenced, desk.broker(2).fenced) == (True, False)


def test_k04_without_controller_ends_leases_a_dead_broker_leads_on() -> None:
    desk = Desk("controller_ends_leases")
    desk.brokers(1, 2)
    key = desk.topic((1, 2))
    desk.pass_time(10 * LEASE)
    assert not desk.broker(1).fenced
    assert desk.partition(key).leader == 1


def test_a_new_active_controller_gives_every_unfenced_broker_a_whole_lease() -> None:
    desk = Desk()
    desk.brokers(1, 2)
    desk.pass_time(LEASE - 1)
    desk.depose()
    desk.elect()
    desk.pass_time(LEASE - 1)
    assert not desk.broker(1).fenced
    desk.pass_time(1)
    assert desk.broker(1).fenced


def test_k05_a_heartbeat_of_another_epoch_is_refused_and_renews_nothing() -> None:
    desk = Desk()
    desk.brokers(1)
    old = desk.broker(1).broker_epoch
    desk.pass_time(LEASE)
    desk.register(1, incarnation_id=2)
    assert desk.heartbeat(1, epoch=old).error == Error.STALE_BROKER_EPOCH
    assert desk.heartbeat(9, epoch=old).error == Error.STALE_BROKER_EPOCH


def test_k05_without_stale_heartbeat_refused_the_dead_keep_the_living_alive() -> None:
    desk = Desk("stale_heartbeat_refused")
    desk.brokers(1)
    old = desk.broker(1).broker_epoch
    desk.pass_time(LEASE)
    desk.register(1, incarnation_id=2)
    desk.heartbeat(1)
    desk.pass_time(LEASE - 1)
    assert desk.heartbeat(1, epoch=old).error == Error.NONE
    desk.pass_time(LEASE - 1)
    assert not desk.broker(1).fenced


def test_k08_a_broker_is_unfenced_once_it_wants_it_and_has_its_own_registration() -> None:
    desk = Desk(level=2)
    epoch = desk.register(1).broker_epoch
    assert desk.heartbeat(1, BrokerState.FENCED).next_state == BrokerState.FENCED
    behind = desk.heartbeat(1, offset=epoch)
    assert (behind.next_state, behind.is_caught_up) == (BrokerState.FENCED, False)
    level = desk.heartbeat(1, offset=epoch + 1)
    assert (level.next_state, level.is_caught_up) == (BrokerState.RUNNING, True)


def test_k08_without_unfenced_when_caught_up_a_broker_serves_by_old_metadata() -> None:
    desk = Desk("unfenced_when_caught_up")
    desk.register(1)
    assert desk.heartbeat(1, offset=0).next_state == BrokerState.RUNNING


def test_v04_from_level_3_on_a_broker_has_all_that_was_committed_when_it_asked() -> None:
    desk = Desk(level=3)
    desk.brokers(1)
    epoch = desk.register(2).broker_epoch
    desk.topic((1,))
    assert desk.heartbeat(2, offset=epoch + 1).next_state == BrokerState.FENCED
    assert desk.heartbeat(2).next_state == BrokerState.RUNNING


def test_v04_a_broker_that_waits_for_its_unfencing_does_not_miss_it_for_a_batch_meanwhile() -> None:
    desk = Desk(level=3)
    desk.brokers(1)
    desk.register(2)
    desk.commits = False
    asked = desk.image.offset
    desk.ask(AllocateProducerIdsRequest(0, 1, desk.broker(1).broker_epoch), source=-9)
    assert desk.heartbeat(2, offset=asked) is None
    desk.commit()
    desk.commit()
    assert dict(desk.answers())[2].next_state == BrokerState.RUNNING
