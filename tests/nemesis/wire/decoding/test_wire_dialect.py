"""The reference cluster's own messages on the wire: named, decoded, held, answered as Kafka's."""

from typing import Any

import pytest
from wire_doubles import LINK, Notes

from fencepost.clusters.reference.codec.api import ListenerType
from fencepost.clusters.reference.codec.codec import Codec, kraft_apis
from fencepost.clusters.reference.nodes.image import MetadataImage
from fencepost.clusters.reference.nodes.messages.control import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    UpdateFeaturesRequest,
)
from fencepost.nemesis.wire.decoding.reference import meant
from fencepost.nemesis.wire.effects import Effect, Send, Side
from fencepost.nemesis.wire.frame import TopicNames
from fencepost.nemesis.wire.pipe import HeldFrame
from fencepost.nemesis.wire.rulebook import Rulebook
from fencepost.nemesis.wire.rules import (
    Action,
    Answer,
    Clause,
    Direction,
    Hold,
    Match,
    Operator,
    Rule,
)
from fencepost.nemesis.wire.sessions import Common, Session
from fencepost.nemesis.wire.streams import proxied
from fencepost.nemesis.wire.tape import Tape

CODEC = Codec(apis=kraft_apis((1001,)), image=MetadataImage)
REGISTRATION = BrokerRegistrationRequest(
    1,
    broker_id=1,
    incarnation_id=77,
    broker_epoch=-1,
    current_metadata_offset=0,
    listeners=(("REPL", "broker-1.repl", 9093, 0),),
    features=(("metadata.version", 1, 3),),
    rack=None,
    cluster_id="c",
)
BEATS = {
    level: BrokerHeartbeatRequest(1, 1, 7, 42, target_state=4, level=level) for level in (2, 3)
}


class Link:
    """A session between a broker and a controller that speak the dialect."""

    def __init__(self, action: Action | None = None, match: Match | None = None) -> None:
        self.notes = Notes()
        self.sent: dict[Side, bytes] = {Side.NEAR: b"", Side.FAR: b""}
        book: Rulebook[HeldFrame] = Rulebook()
        common = Common(
            book=book, tape=Tape(self.notes), names=TopicNames(), act=self._act, meant=meant
        )
        self.session = proxied(0, LINK, common)
        if action is not None and match is not None:
            book.add(Rule(name="rule", action=action, match=match))

    def _act(self, _: Session, effect: Effect) -> None:
        if isinstance(effect, Send):
            self.sent[effect.side] += bytes(effect.data)

    def ask(self, request: Any) -> bytes:
        frame = CODEC.outgoing(request, correlation_id=5, client_id="1").frame
        self.session.receive(Side.NEAR, memoryview(frame), 1)
        return frame

    def tell(self, frame: bytes) -> None:
        self.session.receive(Side.FAR, memoryview(frame), 2)


def answer(request: bytes, response: Any) -> bytes:
    return CODEC.incoming(ListenerType.CONTROLLER, request[4:], correlation=1).answer(response)


def test_a_registration_is_named_and_keeps_its_own_key() -> None:
    link = Link()
    asked = link.ask(REGISTRATION)
    link.tell(answer(asked, BrokerRegistrationResponse(1, 101, 1001, 9, 18_000)))
    request, response = link.notes.rows
    assert (request["api"], request["api_key"], request["api_version"]) == (
        "BrokerRegistration",
        57,
        0,
    )
    assert request["broker_id"] == 1
    assert "REPL://broker-1.repl:9093; metadata.version 1-3" in request["detail"]
    assert (response["error"], response["broker_epoch"]) == ("DUPLICATE_BROKER_REGISTRATION", 9)


@pytest.mark.parametrize(("level", "api_versions"), [(2, (58, 0)), (3, (63, 1))])
def test_a_heartbeat_says_the_same_at_every_level(
    level: int, api_versions: tuple[int, int]
) -> None:
    link = Link()
    asked = link.ask(BEATS[level])
    told = BrokerHeartbeatResponse(1, 0, 1001, 4, False, 18_000, 40 if level > 2 else -1)
    link.tell(answer(asked, told))
    request, response = link.notes.rows
    assert request["api"] == response["api"] == "BrokerHeartbeat"
    assert (request["api_key"], request["api_version"]) == api_versions
    assert (request["broker_epoch"], request["fetch_offset"]) == (7, 41)
    assert request["fenced"]
    assert response["fenced"]
    assert not response["shutting_down"]
    assert response["detail"].startswith("not caught up")
    assert ("lowest acknowledged offset 39" in response["detail"]) is (level > 2)
    assert response.get("lowest_acknowledged_offset") == (39 if level > 2 else None)


def test_features_are_not_taken_for_a_registration() -> None:
    link = Link()
    link.ask(UpdateFeaturesRequest(1, (("metadata.version", 2),)))
    assert [row["api"] for row in link.notes.rows] == ["UpdateFeatures"]


@pytest.mark.parametrize("level", [2, 3])
def test_a_heartbeat_is_held_by_what_it_says(level: int) -> None:
    where = (Clause(field="broker_epoch", operator=Operator.IS, value=7),)
    link = Link(Hold(), Match(api="BrokerHeartbeat", where=where))
    link.ask(BEATS[level])
    assert link.sent[Side.FAR] == b""


def test_a_registration_is_answered_in_the_controllers_place() -> None:
    link = Link(Answer(error="NOT_CONTROLLER"), Match(api="BrokerRegistration"))
    link.ask(REGISTRATION)
    assert link.sent[Side.FAR] == b""
    found = CODEC.answered(link.sent[Side.NEAR][4:], REGISTRATION, version=0, node=1001)
    assert (found.error, found.broker_epoch) == (41, -1)


def test_what_is_not_the_dialect_is_said_to_be_undecoded() -> None:
    link = Link()
    frame = bytearray(link.ask(REGISTRATION))
    other = Link()
    cut = bytes(frame[:-9])
    other.session.receive(Side.NEAR, memoryview((len(cut) - 4).to_bytes(4) + cut[4:]), 1)
    (row,) = other.notes.rows
    assert row["detail"].startswith("not decoded: ")
    assert row["direction"] is Direction.REQUEST
