"""AlterPartition: who may propose which ISR. E03 to E08."""

from collections.abc import Callable

import pytest
from desk import Desk

from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.errors import Error


def _shrunk(*off: str, level: int = 3) -> tuple[Desk, tuple[int, int]]:
    """Brokers 1, 2 and 3; of the partition's ISR 3 was left out. Its versions are (0, 1)."""
    desk = Desk(*off, level=level)
    desk.brokers(1, 2, 3)
    key = desk.topic((1, 2, 3))
    assert desk.propose(key, 1, 2).error == Error.NONE
    return desk, key


def test_a_proposal_is_answered_by_the_partition_as_it_is_then() -> None:
    desk, key = _shrunk()
    answer = desk.propose(key, 1, 2, 3)
    assert (answer.error, answer.isr, answer.leader_id) == (Error.NONE, (1, 2, 3), 1)
    now = desk.partition(key)
    assert (answer.leader_epoch, answer.partition_epoch) == (now.leader_epoch, now.partition_epoch)
    assert (now.leader_epoch, now.partition_epoch) == (0, 2)


def test_a_proposal_of_the_isr_as_it_is_writes_nothing() -> None:
    desk, key = _shrunk()
    end = desk.image.offset
    answer = desk.propose(key, 1, 2)
    assert (answer.error, answer.partition_epoch) == (Error.NONE, 1)
    assert desk.image.offset == end


@pytest.mark.rule(
    "partition_epoch_compared",
    "leader_epoch_compared",
    "sender_epoch_compared",
    "only_leader_alters",
    "member_epochs_checked",
)
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({"leader_epoch": -1}, Error.FENCED_LEADER_EPOCH, id="old-leader-epoch"),
        pytest.param({"leader_epoch": 1}, Error.NOT_CONTROLLER, id="later-leader-epoch"),
        pytest.param({"partition_epoch": 2}, Error.NOT_CONTROLLER, id="later-partition-epoch"),
        pytest.param({"partition_epoch": 0}, Error.INVALID_UPDATE_VERSION, id="overtaken"),
        pytest.param({"sender": 2}, Error.INVALID_REQUEST, id="not-the-leader"),
        pytest.param({"sender_epoch": 0}, Error.STALE_BROKER_EPOCH, id="old-sender"),
        pytest.param({"sender": 9}, Error.STALE_BROKER_EPOCH, id="unknown-sender"),
        pytest.param({"epochs": (0, 0, 0)}, Error.INELIGIBLE_REPLICA, id="e04-old-members"),
    ],
)
def test_a_proposal_is_refused(fields: dict[str, int], error: Error) -> None:
    desk, key = _shrunk()
    before = desk.partition(key)
    assert desk.propose(key, 1, 2, 3, **fields).error == error
    assert desk.partition(key) is before


@pytest.mark.parametrize(
    "isr",
    [(), (2, 3), (1, 1), (1, 4)],
    ids=["empty", "without-the-leader", "one-twice", "no-replica"],
)
def test_what_is_no_isr_of_the_partition_is_refused(isr: tuple[int, ...]) -> None:
    desk, key = _shrunk()
    desk.brokers(4)
    assert desk.propose(key, *isr).error == Error.INVALID_REQUEST


def test_a_proposal_for_a_topic_that_is_gone_is_refused_by_itself() -> None:
    desk, key = _shrunk()
    request = desk.proposal(key, 1, 2, 3)
    request.items[0].key = (7, 0)
    assert desk.ask(request, source=1).items[0].error == Error.UNKNOWN_TOPIC_ID


def test_a_partition_that_is_named_twice_is_changed_once() -> None:
    desk, key = _shrunk()
    request = desk.proposal(key, 1, 2, 3)
    request.items *= 2
    errors = [item.error for item in desk.ask(request, source=1).items]
    assert errors == [Error.NONE, Error.INVALID_REQUEST]
    assert desk.partition(key).partition_epoch == 2


def _fenced(desk: Desk) -> None:
    desk.heartbeat(3, BrokerState.FENCED)


def _leaving(desk: Desk) -> None:
    desk.heartbeat(3, BrokerState.PENDING_CONTROLLED_SHUTDOWN)


@pytest.mark.rule("members_eligible")
@pytest.mark.parametrize("happens", [_fenced, _leaving], ids=["fenced", "leaving"])
def test_a_replica_that_is_fenced_or_leaves_joins_no_isr(happens: Callable[[Desk], None]) -> None:
    desk, key = _shrunk()
    happens(desk)
    assert desk.propose(key, 1, 2, 3).error == Error.INELIGIBLE_REPLICA


@pytest.mark.parametrize("happens", [_fenced, _leaving], ids=["fenced", "leaving"])
def test_without_members_eligible_it_joins(happens: Callable[[Desk], None]) -> None:
    desk, key = _shrunk("members_eligible")
    happens(desk)
    assert desk.propose(key, 1, 2, 3).error == Error.NONE


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ("leader_epoch_compared", {"leader_epoch": -1}),
        ("partition_epoch_compared", {"partition_epoch": 0}),
        ("only_leader_alters", {"sender": 2}),
        ("sender_epoch_compared", {"sender_epoch": 0}),
        ("member_epochs_checked", {"epochs": (0, 0, 0)}),
    ],
    ids=["leader-epoch", "partition-epoch", "leader", "sender-epoch", "member-epochs"],
)
def test_without_its_rule_the_proposal_is_accepted(rule: str, fields: dict[str, int]) -> None:
    desk, key = _shrunk(rule)
    assert desk.propose(key, 1, 2, 3, **fields).error == Error.NONE
    assert desk.partition(key).isr == (1, 2, 3)


def test_e04_an_epoch_of_minus_one_is_not_checked() -> None:
    desk, key = _shrunk()
    assert desk.propose(key, 1, 2, 3, epochs=(-1, -1, -1)).error == Error.NONE


def _race(*off: str, epochs: bool) -> tuple[Desk, tuple[int, int]]:
    """KIP-903's six steps: a proposal was held while its subject was replaced."""
    desk = Desk(*off, level=2 if epochs else 1)
    desk.brokers(1, 2)
    key = desk.topic((1, 2))
    desk.propose(key, 1)
    held = desk.proposal(key, 1, 2, epochs=None if epochs else ())
    desk.outlast(1)
    assert desk.broker(2).fenced
    desk.depose()
    desk.elect()
    desk.outlast(1)
    assert desk.register(2, incarnation_id=777).error == Error.NONE
    desk.catch_up(1, 2)
    desk.ask(held, source=1)
    return desk, key


def test_e08_a_proposal_from_before_the_restart_of_its_subject_is_refused_from_level_2_on() -> None:
    desk, key = _race(epochs=True)
    assert desk.partition(key).isr == (1,)


def test_e07_below_level_2_the_hole_is_open() -> None:
    desk, key = _race(epochs=False)
    assert desk.partition(key).isr == (1, 2)


def test_e08_without_member_epochs_checked_the_hole_is_open() -> None:
    desk, key = _race("member_epochs_checked", epochs=True)
    assert desk.partition(key).isr == (1, 2)
