"""The network of the world: what is blocked, lost, kept back, or reordered."""

from typing import Any

import pytest
from world_toys import ANSWERED, ASKED, REFUSED, Stage, Streamed

from fencepost.clusters.node_port.effects import SEND
from fencepost.clusters.simulation.host import Channel
from fencepost.clusters.simulation.kinds import NOTHING
from fencepost.clusters.simulation.network import Trouble


class Keeper:
    """Keeps every Ask that it sees."""

    def __init__(self) -> None:
        self.kept: list[tuple[Channel, Any, int]] = []

    def wanted(self, _link: Channel) -> bytearray:
        table = bytearray(NOTHING)
        table[ASKED] = 1
        return table

    def take(self, link: Channel, message: Any, _request: Any) -> bool:
        self.kept.append((link, message, link.receiver.incarnation))
        return True


def test_a_blocked_flow_passes_on_in_its_order_once_it_is_free_and_one_way_alone() -> None:
    stage = Stage()
    stage.world.network.block([(0, 1)])
    for number in range(3):
        stage.ask(0, 1, number, f"there {number}")
        stage.ask(1, 0, number, f"back {number}")
    stage.run(100)
    assert stage.words(1) == []
    assert len(stage.words(0)) == 3
    assert stage.world.network.waiting_count((0, 1)) == 6  # with the answers to the others
    stage.world.network.unblock([(0, 1)])
    stage.run(5)
    assert stage.words(1) == ["there 0", "there 1", "there 2"]
    assert stage.words(1, ANSWERED) == ["back 0", "back 1", "back 2"]


def test_that_a_host_died_is_not_heard_through_a_blocked_flow() -> None:
    stage = Stage(quiet=(1,))
    stage.ask(0, 1, 1)
    stage.run(5)
    stage.world.network.block([(1, 0)])
    stage.world.kill(stage.hosts[1])
    stage.run(100)
    assert stage.kinds(0) == []
    stage.world.network.unblock([(1, 0)])
    stage.run(5)
    assert stage.kinds(0) == [REFUSED]


@pytest.mark.parametrize("starts", [0, 1], ids=["is down", "started again"])
def test_a_host_that_died_meanwhile_does_not_hear_of_it_either(starts: int) -> None:
    stage = Stage(quiet=(1,))
    stage.ask(0, 1, 1)
    stage.run(5)
    stage.world.network.block([(1, 0)])
    stage.world.kill(stage.hosts[1])
    stage.world.kill(stage.hosts[0])
    if starts:
        stage.world.start(stage.hosts[0])
    stage.run(100)
    stage.forget()
    stage.world.network.unblock([(1, 0)])
    stage.run(5)
    assert stage.kinds(0) == []


def test_an_interceptor_keeps_the_very_frame_that_it_saw() -> None:
    stage, keeper = Stage(), Keeper()
    stage.world.network.intercept(keeper)
    message = stage.ask(0, 1, 1)
    assert [kept for _, kept, _ in keeper.kept] == [message]  # inside the send, not after it
    stage.run(100)
    assert stage.heard[1] == []


def test_a_kept_frame_outlives_its_sender_and_arrives_when_it_is_released() -> None:
    stage, keeper = Stage(), Keeper()
    stage.world.network.intercept(keeper)
    stage.ask(0, 1, 1, "late")
    stage.world.kill(stage.hosts[0])
    stage.run(100)
    link, message, incarnation = keeper.kept[0]
    assert stage.world.network.transmit(link, message, incarnation=incarnation)
    stage.run(5)
    assert stage.words(1) == ["late"]


def test_a_kept_frame_is_undeliverable_to_the_next_incarnation() -> None:
    stage, keeper = Stage(), Keeper()
    stage.world.network.intercept(keeper)
    stage.ask(0, 1, 1)
    stage.world.kill(stage.hosts[1])
    stage.world.start(stage.hosts[1])
    link, message, incarnation = keeper.kept[0]
    assert not stage.world.network.transmit(link, message, incarnation=incarnation)


def test_the_interceptor_is_asked_again_where_it_was_not_before() -> None:
    stage, keeper = Stage(), Keeper()
    stage.ask(0, 1, 1)  # the link is there
    stage.run(5)
    stage.world.network.intercept(keeper)
    stage.ask(0, 1, 2)
    stage.world.network.intercept(None)
    stage.ask(0, 1, 3)
    stage.run(5)
    assert len(keeper.kept) == 1
    assert len(stage.words(1)) == 2


def test_a_bad_network_loses_doubles_and_reorders() -> None:
    stage = Stage(quiet=(1,))
    stage.world.network.trouble(Trouble(loss=0.3, duplication=0.3, reordering=0.3))
    sent = [str(number) for number in range(300)]
    for number, words in enumerate(sent):
        stage.ask(0, 1, number, words)
    stage.run(100)
    found = stage.words(1)
    assert 150 < len(set(found)) < 270
    assert len(found) > len(set(found))
    assert found != sorted(found, key=int)
    stage.world.network.trouble(None)
    stage.forget()
    stage.ask(0, 1, 1000, "good again")
    stage.run(5)
    assert stage.words(1) == ["good again"]


def test_a_bad_network_delivers_what_tcp_carries_late_and_once() -> None:
    stage = Stage(quiet=(1,))
    stage.world.network.trouble(Trouble(loss=0.3, duplication=0.3, reordering=0.3))
    sent = [Streamed(number) for number in range(300)]
    for message in sent:
        stage.do(0, (SEND, 1, message))
    stage.run(500)
    assert sorted(message.correlation for _, _, message in stage.heard[1]) == list(range(300))
