"""The election of the controller, what it takes over, and how a deposed one is stopped."""

import pytest
from control_desk import CLIENT, Desk

from fencepost.clusters.node_port.notes import ACTIVE, CONTROLLER_ELECTED, RESIGNED
from fencepost.clusters.node_port.zookeeper import (
    Create,
    Delete,
    SessionEvent,
    SessionState,
    SetData,
    ZkRequest,
)
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.zk.messages import LeaderAndIsrRequest
from fencepost.clusters.reference.zk.znodes import CONTROLLER, CONTROLLER_EPOCH


def noted(desk: Desk, subject: str) -> list[tuple[int, int]]:
    """(broker id, controller epoch) of the notes on a subject."""
    return [(note[0], note[2]) for note in desk.notes if note[1] == subject]


def test_the_first_broker_is_elected_in_epoch_1() -> None:
    desk = Desk()
    assert desk.active.situation.node_id == 1
    assert desk.double.data(CONTROLLER_EPOCH) == b"1"
    for broker in desk.brokers.values():
        assert broker.situation.controller_id == 1
        assert broker.situation.controller_epoch == 1


def test_another_broker_is_elected_in_the_next_epoch_when_the_session_ends() -> None:
    desk = Desk()
    desk.expire(1)
    assert desk.active.situation.node_id == 2
    assert desk.brokers[3].situation.controller_id == 2
    assert noted(desk, CONTROLLER_ELECTED) == [(1, 1), (2, 2)]
    assert noted(desk, ACTIVE) == [(1, 1), (2, 2)]
    assert noted(desk, RESIGNED) == [(1, 1)]


def test_a_controller_whose_znode_is_removed_resigns_and_stands_again() -> None:
    desk = Desk()
    desk.double.write(Delete(CONTROLLER))
    desk.settle()
    assert desk.double.data(CONTROLLER_EPOCH) == b"2"
    assert noted(desk, RESIGNED) == [(1, 1)]


def test_a_broker_that_did_not_hear_that_it_was_elected_finds_it_out() -> None:
    desk = Desk(1, begins=False)
    desk.expire(1)
    lost: list[ZkRequest] = []

    def loses(request: ZkRequest) -> bool:
        is_first = isinstance(request.operations[0], Create) and not lost
        lost.extend([request] * is_first)
        return is_first

    desk.double.loses = loses
    desk.connect(desk.brokers[1])
    assert lost[0].operations[0].path == CONTROLLER
    assert desk.active is desk.brokers[1]
    assert desk.double.data(CONTROLLER_EPOCH) == b"2"


def depose(desk: Desk) -> None:
    """Another session is elected, without the active controller's having heard of it."""
    other = desk.double.open()
    desk.double.write(Delete(CONTROLLER))
    desk.double.write(Create(CONTROLLER, b'{"brokerid":9}', ephemeral=True), session=other)
    desk.double.write(SetData(CONTROLLER_EPOCH, b"7"))
    for broker in desk.brokers.values():
        assert broker.session is not None
        broker.session.inbox.clear()


@pytest.mark.rule("controller_epoch_fences_writes")
def test_a_deposed_controller_writes_nothing() -> None:
    desk = Desk()
    desk.create("t", (2, 1))
    depose(desk)
    assert desk.create("u", (1, 2)) is None
    assert desk.closed == [CLIENT]
    assert "u" not in desk.double.children("/brokers/topics")
    assert not any(one.controller.is_active for one in desk.brokers.values())
    assert desk.brokers[1].situation.controller_id == 9


def test_without_the_rule_a_deposed_controller_decides_on() -> None:
    desk = Desk(3, "controller_epoch_fences_writes")
    depose(desk)
    assert desk.create("u", (1, 2)).topics[0][2] == Error.NONE
    assert desk.state("u").controller_epoch == 1


def test_a_new_controller_removes_those_that_went_while_there_was_none() -> None:
    desk = Desk()
    desk.create("t", (3, 2))
    desk.create("u", (3,))
    gone = desk.brokers.pop(3)
    first = desk.brokers.pop(1)
    for broker in (first, gone):
        assert broker.session is not None
        desk.double.expire(broker.session)
    desk.settle()
    assert desk.active.situation.node_id == 2
    assert (desk.state().leader, desk.state().isr, desk.state().leader_epoch) == (2, (2,), 1)
    assert (desk.state("u").leader, desk.state("u").isr) == (-1, (3,))
    full = [one for one in desk.brokers[2].told if isinstance(one, LeaderAndIsrRequest)]
    assert any(one.is_full and one.controller_epoch == 2 for one in full)


def test_requests_to_brokers_are_repeated_until_they_are_answered() -> None:
    desk = Desk(2, request_timeout_ns=2_000_000_000)
    desk.brokers[2].is_deaf = True
    desk.create("t", (2, 1))
    assert desk.led(2) is None
    first = desk._asked[0][2]
    desk.advance(2_000)
    repeated = [request for _, target, request in desk._asked if target == 2]
    assert len(repeated) == 2
    assert repeated[1].partitions == first.partitions
    assert repeated[1].correlation != first.correlation
    desk.brokers[2].is_deaf = False
    desk.settle()
    assert desk.led(2).leader == 2


def test_a_request_that_is_lost_is_repeated_after_a_while() -> None:
    desk = Desk(2)
    desk.brokers[2].is_deaf = True
    desk.create("t", (2, 1))
    _, _, request = desk._asked.pop()
    desk._do(desk.active, desk.active.controller.unreachable, request)
    assert desk._asked == []
    desk.brokers[2].is_deaf = False
    desk.advance(20)
    assert desk.led(2).leader == 2


def test_while_it_is_disconnected_the_controller_waits_and_goes_on_afterwards() -> None:
    desk = Desk()
    session = desk.active.session
    assert session is not None
    zookeeper = desk.active.situation.zookeeper
    desk._do(
        desk.active, zookeeper.session, SessionEvent(-1, SessionState.SUSPENDED, session.number)
    )
    assert desk.create("t", (1, 2)) is None
    desk._do(
        desk.active, zookeeper.session, SessionEvent(-1, SessionState.CONNECTED, session.number)
    )
    desk.settle()
    assert desk.answers[-1].topics[0][2] == Error.NONE


@pytest.mark.parametrize("kind", ["queued", "under way"])
def test_who_waits_when_the_session_ends_is_not_told_that_nothing_happened(kind: str) -> None:
    desk = Desk()
    session = desk.active.session
    assert session is not None
    broker = desk.active
    zookeeper = broker.situation.zookeeper
    desk._do(broker, zookeeper.session, SessionEvent(-1, SessionState.SUSPENDED, session.number))
    desk.create("t", (1, 2))
    if kind == "queued":
        desk.create("u", (1, 2))
    desk.expire(1)
    assert desk.closed == [CLIENT]
    refused = [one for one in desk.answers if getattr(one, "topics", ())]
    assert [one.topics[0][2] for one in refused] == [Error.NOT_CONTROLLER] * (kind == "queued")
