"""The ghost of heartbeats by hand: whom a controller may let lead, and for how long.

The controller is broker 1, and brokers are silent to it from 2 s after their last heartbeat; beyond
that they have 0.3 s of slack, and 3 s until they lead no more.
"""

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from fencepost.clusters.node_port import notes
from fencepost.clusters.node_port.effects import NOTE
from fencepost.clusters.reference.oracle.world_view import WorldView
from fencepost.clusters.reference.oracle.zk_oracle import ZkOracle
from fencepost.clusters.reference.zk.messages import MetadataHeartbeatRequest

MS = 1_000_000
CONTROLLER, OTHER = 1, 2
SERVER = 2001
TOPIC_ID = 77
KEY = (TOPIC_ID, 0)


class Story:
    """Two brokers that are registered, of which one is elected at 0 s; times are in ms."""

    def __init__(self, *, loaded_ms: int = 0) -> None:
        self.oracle = ZkOracle(
            WorldView({}),
            broker_epoch=lambda _node: -1,
            speaks=lambda _node: True,
            timeouts_ns=lambda _node: (2_000 * MS, 3_000 * MS),
            controller_side_ns=2_000 * MS,
            broker_side_ns=3_000 * MS,
            refusal=1_000,
        )
        self._zxid = self._version = 0
        topic_id = urlsafe_b64encode(TOPIC_ID.to_bytes(16, "big")).decode().rstrip("=")
        topic = {"topic_id": topic_id, "partitions": {"0": [CONTROLLER, OTHER]}}
        for broker_id in (CONTROLLER, OTHER):
            self.register(0, broker_id)
        self.write(0, ("/controller", {"brokerid": CONTROLLER}), ("/controller_epoch", 1))
        self.note(0, CONTROLLER, notes.CONTROLLER_ELECTED, 1)
        self.note(loaded_ms, CONTROLLER, notes.ACTIVE, 1)
        self.write(loaded_ms, ("/brokers/topics/t", topic))

    def register(self, ms: int, broker_id: int) -> None:
        info = {"version": 5, "host": f"broker-{broker_id}"}
        self.write(ms, (f"/brokers/ids/{broker_id}", info), session=broker_id)

    def hear(self, ms: int, broker_id: int = OTHER) -> None:
        """A heartbeat arrives at the controller."""
        request = MetadataHeartbeatRequest(ms, broker_id, 1, 2)
        self.oracle.delivered(ms * MS, broker_id, CONTROLLER, request.kind, request)

    def go_on(self, from_ms: int, until_ms: int) -> None:
        """The controller does what it always does: its own broker sends it heartbeats."""
        for ms in range(from_ms, until_ms, 300):
            self.hear(ms, CONTROLLER)

    def ask(self, ms: int) -> None:
        self.note(ms, CONTROLLER, notes.DECISION_ASKED)

    def settle(self, ms: int) -> None:
        self.note(ms, CONTROLLER, notes.DECISION_SETTLED)

    def lead(self, ms: int, leader: int) -> None:
        """What was asked for is a state with this leader: ZooKeeper applies it, and that is known.

        The caller asks before it.
        """
        self._version += 1
        state = {"leader": leader, "leader_epoch": self._version, "isr": [CONTROLLER, OTHER]}
        self.write(ms, ("/brokers/topics/t/partitions/0/state", state))
        decided = (1, self._version, leader, self._version, (CONTROLLER, OTHER), (1, 1))
        self.note(ms, CONTROLLER, notes.PARTITION_DECIDED, KEY, *decided)
        self.settle(ms)

    def write(self, ms: int, *changes: tuple[str, Any], session: int = CONTROLLER) -> None:
        """A server applies a transaction."""
        self._zxid += 1
        content = tuple((path, json.dumps(data).encode(), 1) for path, data in changes)
        self.note(ms, SERVER, notes.ZNODES_CHANGED, self._zxid, session, content)

    def note(self, ms: int, node: int, subject: str, *values: Any) -> None:
        self.oracle.note(ms * MS, node, (NOTE, subject, *values))

    @property
    def found(self) -> list[str]:
        return [one.anomaly for one in self.oracle.findings]


def led_by_the_other(*, loaded_ms: int = 0) -> Story:
    story = Story(loaded_ms=loaded_ms)
    story.hear(loaded_ms)
    story.ask(loaded_ms)
    story.lead(loaded_ms, OTHER)
    return story


@pytest.mark.parametrize(("at_ms", "found"), [(5_300, []), (5_301, ["inactive-leader"])])
def test_a_silent_broker_that_leads_on_is_found(at_ms: int, found: list[str]) -> None:
    story = led_by_the_other()
    story.go_on(0, at_ms)
    story.ask(at_ms)
    story.write(at_ms, ("/config/topics/t", {}))
    assert story.found == found


def test_a_broker_that_is_heard_of_leads_on() -> None:
    story = led_by_the_other()
    story.go_on(0, 3_000)
    story.hear(3_000)
    story.go_on(3_000, 6_000)
    story.ask(6_000)
    story.write(6_000, ("/config/topics/t", {}))
    assert story.found == []


@pytest.mark.parametrize(("settled_ms", "found"), [(3_000, []), (2_999, ["inactive-leader"])])
def test_a_silent_broker_may_lead_while_the_controller_waits_for_zookeeper(
    settled_ms: int, found: list[str]
) -> None:
    """It is silent from 2.3 s on, and what the controller decides next asked for at 6 s."""
    story = led_by_the_other()
    story.ask(1_000)
    story.write(1_000, ("/config/topics/t", {}))
    story.go_on(1_000, settled_ms)
    story.settle(settled_ms)
    story.go_on(settled_ms, 6_000)
    story.ask(6_000)
    story.write(6_000, ("/config/topics/t", {}))
    assert story.found == found


@pytest.mark.parametrize(("awake_ms", "found"), [(7_000, []), (6_999, ["inactive-leader"])])
def test_a_silent_broker_may_lead_while_the_controller_stands_still(
    awake_ms: int, found: list[str]
) -> None:
    """It is silent from 2.3 s on; the controller stands still from before that on."""
    story = led_by_the_other()
    story.go_on(0, 2_000)
    story.go_on(awake_ms, 10_000)
    story.ask(10_000)
    story.write(10_000, ("/config/topics/t", {}))
    assert story.found == found


def test_what_is_decided_behind_an_outage_is_written_one_after_the_other() -> None:
    """A write that waited makes it lead, and the next one, of several, has it lead no more."""
    story = Story()
    story.hear(0)
    story.ask(1_000)
    story.go_on(1_000, 9_000)
    story.lead(9_000, OTHER)
    story.ask(9_000)
    story.write(
        9_001,
        ("/brokers/topics/t/partitions/1/state", {"leader": -1, "leader_epoch": 0, "isr": [OTHER]}),
    )
    story.lead(9_002, CONTROLLER)
    assert story.found == []


def test_a_decision_that_is_planned_anew_waits_from_its_first_plan_on() -> None:
    story = led_by_the_other()
    story.ask(1_000)
    story.go_on(1_000, 8_000)
    story.ask(8_000)
    story.write(8_000, ("/config/topics/t", {}))
    assert story.found == []


@pytest.mark.parametrize(("asked_ms", "found"), [(2_300, []), (2_301, ["inactive-leader"])])
def test_no_silent_broker_is_elected(asked_ms: int, found: list[str]) -> None:
    story = Story()
    story.hear(0)
    story.ask(asked_ms)
    story.lead(4_000, OTHER)
    assert story.found == found


@pytest.mark.parametrize(("asked_ms", "found"), [(8_300, []), (8_301, ["inactive-leader"])])
def test_a_new_controller_waits_for_heartbeats_once_it_has_read_everything(
    asked_ms: int, found: list[str]
) -> None:
    story = Story(loaded_ms=6_000)
    story.ask(asked_ms)
    story.lead(asked_ms, OTHER)
    assert story.found == found


@pytest.mark.parametrize("read", [False, True])
def test_a_broker_that_registers_is_not_elected_before_it_is_heard_of(*, read: bool) -> None:
    """The registration of a moment ago may not have been read: the one before counts until then."""
    for asked_ms, heard, found in (
        (120, False, ["inactive-leader"] if read else []),
        (120, True, []),
        (3_101, False, ["inactive-leader"]),
    ):
        story = Story()
        story.oracle.decided.brokers[OTHER].fenced = True
        story.register(100, OTHER)
        if read:
            newest = story.oracle.decided.brokers[OTHER].incarnation_id
            story.note(105, CONTROLLER, notes.BROKER_CONTROLLED_STATE, OTHER, newest, 1)
        if heard:
            story.hear(110)
        story.ask(asked_ms)
        story.lead(asked_ms + 10, OTHER)
        assert story.found == found, (asked_ms, heard)
