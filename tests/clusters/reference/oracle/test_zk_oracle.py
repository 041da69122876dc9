"""The oracle over brokers on ZooKeeper by hand: the smallest bad story, the nearest good one."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from fencepost.clusters.node_port import notes
from fencepost.clusters.node_port.effects import NOTE
from fencepost.clusters.protocol.controlled_states import ControlledState
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.oracle.world_view import WorldView
from fencepost.clusters.reference.oracle.zk_oracle import ZkOracle
from fencepost.clusters.reference.zk.messages import (
    IsrChange,
    IsrChangeRequest,
    IsrChangeResponse,
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
)

S = 1_000_000_000
CONTROLLER, BROKER = 1, 3
OLD, NEW = 452, 487
ACTIVE, INACTIVE = ControlledState.ACTIVE, ControlledState.INACTIVE


class Story:
    """An oracle and what happens before it: broker 1 controls, broker 3 leads t-0 and asks it."""

    def __init__(self, *, timeouts_ns: tuple[int, int] = (2 * S, 3 * S)) -> None:
        self.oracle = ZkOracle(
            WorldView({}),
            broker_epoch=lambda _: -1,
            speaks=lambda _: True,
            timeouts_ns=lambda _: timeouts_ns,
            controller_side_ns=2 * S,
            broker_side_ns=3 * S,
            refusal=int(Error.INVALID_INCARNATION_ID),
        )
        self.note(notes.CONTROLLER_ELECTED, 1)
        topic = {"topic_id": "A" * 22, "partitions": {"0": [BROKER, CONTROLLER]}}
        state = {"leader": BROKER, "leader_epoch": 5, "isr": [BROKER]}
        path = "/brokers/topics/t"
        told = ((path, topic), (f"{path}/partitions/0/state", state))
        changes = tuple((path, json.dumps(content).encode(), 0) for path, content in told)
        self.note(notes.ZNODES_CHANGED, 1, CONTROLLER, changes)

    @property
    def found(self) -> list[str]:
        return [one.anomaly for one in self.oracle.findings]

    def note(self, subject: str, *rest: object) -> None:
        self.oracle.note(0, CONTROLLER, (NOTE, subject, *rest))

    def knows(self, incarnation: int) -> None:
        self.note(notes.BROKER_CONTROLLED_STATE, BROKER, incarnation, INACTIVE)

    def registers(self, zxid: int, *, version: int | None) -> None:
        """The broker registers at this version, or is gone."""
        info = None if version is None else json.dumps({"version": version, "host": "h"}).encode()
        self.note(notes.ZNODES_CHANGED, zxid, BROKER, ((f"/brokers/ids/{BROKER}", info, 0),))

    def sent(self, message: Any) -> Any:
        self.oracle.sent(0, BROKER, CONTROLLER, message.kind, message)
        return message

    def arrived(self, message: Any) -> None:
        self.oracle.delivered(0, BROKER, CONTROLLER, message.kind, message)

    def answered(self, message: Any) -> None:
        self.oracle.sent(0, CONTROLLER, BROKER, message.kind, message)


def heartbeat(correlation: int, incarnation: int) -> MetadataHeartbeatRequest:
    return MetadataHeartbeatRequest(correlation, BROKER, incarnation, ACTIVE)


def activated(correlation: int) -> MetadataHeartbeatResponse:
    return MetadataHeartbeatResponse(correlation, Error.NONE, None, ACTIVE)


def change(correlation: int, incarnation: int) -> IsrChangeRequest:
    asked = (("t", (IsrChange(0, 5, (BROKER, CONTROLLER)),)),)
    return IsrChangeRequest(correlation, BROKER, incarnation, 0, asked)


def granted(correlation: int) -> IsrChangeResponse:
    return IsrChangeResponse(correlation, Error.NONE, None, ((Error.NONE, None),))


@pytest.mark.parametrize(
    ("timeouts_ns", "found"),
    [((2 * S, 2 * S), ["timeouts-out-of-order"]), ((2 * S, 2 * S + 1), [])],
)
def test_who_sends_heartbeats_fences_itself_later_than_the_controller_does(
    timeouts_ns: tuple[int, int], found: list[str]
) -> None:
    story = Story(timeouts_ns=timeouts_ns)
    story.sent(heartbeat(4, NEW))
    assert story.found == found


def test_a_legacy_broker_is_active_as_long_as_its_registration_is_read_and_there() -> None:
    story = Story()
    story.registers(NEW, version=4)
    story.knows(OLD)
    assert story.found == []
    story.knows(NEW)
    assert story.found == ["legacy-inactive"]
    gone = Story()
    gone.registers(NEW, version=4)
    gone.registers(NEW + 1, version=None)
    gone.knows(NEW)
    assert gone.found == []


def test_a_heartbeat_of_an_old_incarnation_may_not_be_answered_as_if_it_were_the_new_one() -> None:
    story = Story()
    story.knows(NEW)
    story.arrived(story.sent(heartbeat(4, OLD)))
    story.answered(activated(4))
    assert story.found == ["shared-identity"]


def test_a_change_of_an_old_incarnation_may_not_be_granted() -> None:
    story = Story()
    story.knows(NEW)
    story.arrived(story.sent(change(4, OLD)))
    story.answered(granted(4))
    assert story.found == ["epoch-check-bypassed"]


@pytest.mark.parametrize(("ask", "answer"), [(heartbeat, activated), (change, granted)])
def test_an_answer_is_not_to_an_earlier_process_that_used_the_same_number(
    ask: Callable[[int, int], Any], answer: Callable[[int], Any]
) -> None:
    """A broker was cut off and restarted; what both of its processes had sent arrives at once."""
    story = Story()
    earlier = story.sent(ask(4, OLD))
    story.knows(NEW)
    story.arrived(story.sent(ask(4, NEW)))
    story.arrived(earlier)
    story.answered(answer(4))
    assert story.found == []
