"""MetadataHeartbeat and IsrChange on the wire: named, decoded, held, answered."""

from collections.abc import Mapping
from typing import Any

import pytest
from wire_doubles import LINK, Line

from fencepost.clusters.protocol.controlled_states import ControlledState
from fencepost.clusters.reference.codec.api import ListenerType
from fencepost.clusters.reference.codec.codec import Codec
from fencepost.clusters.reference.codec.zk_apis import ZK_APIS
from fencepost.clusters.reference.nodes.image import MetadataImage
from fencepost.clusters.reference.zk import messages as zk
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

CODEC = Codec(apis=ZK_APIS, image=MetadataImage)
BEAT = zk.MetadataHeartbeatRequest(1, 3, 77, ControlledState.ACTIVE)
CHANGE = zk.IsrChangeRequest(
    1, 3, 77, 1, (("t", (zk.IsrChange(0, 5, (3, 2), (77, 66)), zk.IsrChange(1, 6, (3,), (77,)))),)
)


def framed(request: Any, correlation_id: int = 1) -> bytes:
    return CODEC.outgoing(request, correlation_id=correlation_id, client_id="3").frame


def answered(request: Any, response: Any) -> bytes:
    return CODEC.incoming(ListenerType.BROKER, framed(request)[4:], correlation=1).answer(response)


def taped(request: Any, response: Any) -> list[dict[str, Any]]:
    line = Line(LINK)
    line.ask(framed(request))
    line.tell(answered(request, response))
    return line.notes.rows


def holding(api: str, clauses: Mapping[tuple[str, Operator], Any], action: Action) -> Line:
    where = tuple(
        Clause(field=name, operator=operator, value=value)
        for (name, operator), value in clauses.items()
    )
    return Line(LINK, Rule(name="rule", action=action, match=Match(api=api, where=where)))


STATES = [
    ("INITIAL", True, False),
    ("INACTIVE", True, False),
    ("ACTIVE", False, False),
    ("STOPPING", False, True),
]


@pytest.mark.parametrize(("state", "fenced", "leaves"), STATES)
def test_a_heartbeat_is_on_the_tape_with_its_states(
    state: str, *, fenced: bool, leaves: bool
) -> None:
    current = ControlledState[state]
    asked, said = taped(BEAT, zk.MetadataHeartbeatResponse(1, 0, None, current))
    assert (asked["api"], asked["broker_id"], asked["broker_epoch"]) == ("MetadataHeartbeat", 3, 77)
    assert (asked["detail"], said["detail"], said["error"]) == ("ACTIVE", state, "NONE")
    assert (said["fenced"], said["shutting_down"]) == (fenced, leaves)


def test_an_isr_change_is_on_the_tape_partition_by_partition() -> None:
    asked, said = taped(CHANGE, zk.IsrChangeResponse(1, 0, None, ((0, None), (6, "moved"))))
    assert asked["broker_epoch"] == 77
    assert asked["items"] == [
        {"topic": "t", "partition": 0, "leader_epoch": 5, "isr": [3, 2], "isr_epochs": [77, 66]},
        {"topic": "t", "partition": 1, "leader_epoch": 6, "isr": [3], "isr_epochs": [77]},
    ]
    assert [one["error"] for one in said["items"]] == ["NONE", "NOT_LEADER_OR_FOLLOWER"]
    _, refused = taped(CHANGE, zk.IsrChangeResponse(1, 1000, "old", ()))
    assert (refused["error"], refused["detail"]) == ("INVALID_INCARNATION_ID", "old")


def test_an_isr_change_that_takes_a_broker_in_is_held_and_others_pass() -> None:
    clauses = {("key", Operator.IS): "t-0", ("isr", Operator.INCLUDES): 2}
    line = holding("IsrChange", clauses, Hold())
    shrink = framed(zk.IsrChangeRequest(1, 3, 77, 0, (("t", (zk.IsrChange(0, 5, (3,)),)),)))
    line.ask(shrink + framed(CHANGE, 2))
    assert line.far == shrink
    line.release("rule")
    assert line.far == shrink + framed(CHANGE, 2)


@pytest.mark.parametrize("request_", [BEAT, CHANGE], ids=["MetadataHeartbeat", "IsrChange"])
def test_the_proxy_answers_with_an_error_in_the_controllers_place(request_: Any) -> None:
    api = type(request_).__name__.removesuffix("Request")
    line = holding(api, {("broker_id", Operator.IS): 3}, Answer(error="NOT_CONTROLLER"))
    line.ask(framed(request_))
    assert (line.far, line.notes.fates()[0]) == (b"", (api, Direction.REQUEST, "answered"))
    version = getattr(request_, "version", 0)
    assert CODEC.answered(line.near[4:], request_, version=version, node=1).error == 41
