"""The election of the controller, and what it takes over."""

from control_desk import Desk

from clusters.reference.nodes.errors import Error


def test_the_first_broker_is_elected_in_epoch_1() -> None:
    desk = Desk()
    assert desk.active.situation.node_id == 1
    assert desk.double.data("/controller_epoch") == b"1"
    assert [one.situation.controller_id for one in desk.brokers.values()] == [1, 1, 1]


def test_a_topic_is_created_and_told() -> None:
    desk = Desk()
    answer = desk.create("t", (1, 2, 3))
    assert answer.topics[0][2] == Error.NONE
    state = desk.state()
    assert (state.leader, state.isr, state.leader_epoch) == (1, (1, 2, 3), 0)
    assert [desk.led(one).leader for one in (1, 2, 3)] == [1, 1, 1]
    assert desk.live(3) == (1, 2, 3)
