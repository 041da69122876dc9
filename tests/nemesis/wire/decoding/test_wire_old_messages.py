"""The messages of controllers that keep their state in ZooKeeper: read, matched, held, taped."""

import uuid
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from wire_doubles import LINK, Line, response_frame

from fencepost.clusters.protocol.api_keys import GIVEN_UP
from fencepost.clusters.protocol.defined_entities import defined_versions
from fencepost.clusters.protocol.framing import request_frame
from fencepost.nemesis.wire.apis import API_KEYS
from fencepost.nemesis.wire.decoding.entities import decoded, entity_type
from fencepost.nemesis.wire.effects import Side
from fencepost.nemesis.wire.frames import Header
from fencepost.nemesis.wire.rules import Clause, Direction, Hold, Match, Operator, Rule
from fencepost.nemesis.wire.streams import proxied

REQUEST, RESPONSE = Direction.REQUEST, Direction.RESPONSE
OLD = [
    (api, version)
    for api in (*GIVEN_UP, "AlterPartition")
    for version in defined_versions(API_KEYS[api])
]
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    str: st.text(max_size=8),
    ErrorCode: st.sampled_from(ErrorCode),
    i32Timedelta: st.integers(0, 1000).map(lambda ms: timedelta(milliseconds=ms)),
    uuid.UUID | None: st.integers(1, (1 << 128) - 1).map(lambda number: uuid.UUID(int=number)),
    str | None: st.none() | st.text(max_size=8),
    **{
        kind: st.integers(-1 << (bits - 1), (1 << (bits - 1)) - 1)
        for kind, bits in ((i8, 8), (i16, 16), (i32, 32), (i64, 64))
    },
}


def drawn(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a field of this type; an entity of any values."""
    if get_origin(kind) is tuple:
        return st.lists(drawn(get_args(kind)[0]), max_size=3).map(tuple)
    if not is_dataclass(kind):
        return _PLAIN[kind]
    hints = get_type_hints(kind)
    return st.builds(kind, **{one.name: drawn(hints[one.name]) for one in fields(kind)})


def whole(entity: Any, direction: Direction) -> bytes:
    if direction is REQUEST:
        return request_frame(entity, correlation_id=1, client_id="1")
    return response_frame(entity, 1)


@pytest.mark.parametrize("direction", [REQUEST, RESPONSE])
@pytest.mark.parametrize(("api", "version"), OLD)
@settings(max_examples=settings().max_examples // 5)
@given(data=st.data())
def test_what_is_written_is_read(
    api: str, version: int, direction: Direction, data: st.DataObject
) -> None:
    key = API_KEYS[api]
    entity = data.draw(drawn(entity_type(key, version, direction)))
    head = Header(key, version, 1, "1", answered=True)
    assert decoded(head, direction, whole(entity, direction)).entity == entity


def filled(api: str, version: int, direction: Direction = REQUEST, **stated: Any) -> Any:
    """A message with these fields, wherever they stand, and one of each struct in its lists."""
    return _filled(entity_type(API_KEYS[api], version, direction), stated)


def _filled(kind: Any, stated: dict[str, Any]) -> Any:
    hints = get_type_hints(kind)
    return kind(**{one.name: _value(one.name, hints[one.name], stated) for one in fields(kind)})


def _value(name: str, hint: Any, stated: dict[str, Any]) -> Any:
    if get_origin(hint) is tuple and is_dataclass(inner := get_args(hint)[0]):
        return (_filled(inner, stated),)
    if name in stated:
        return stated[name]
    if get_origin(hint) is tuple:
        return ()
    empty = {bool: False, str: "", uuid.UUID | None: None, str | None: None}
    empty |= {ErrorCode: ErrorCode.none, i32Timedelta: timedelta()}
    return empty.get(hint, 0)


def rows(api: str, version: int, entity: Any, direction: Direction = REQUEST) -> Any:
    head = Header(API_KEYS[api], version, 1, "1", answered=True)
    return decoded(head, direction, whole(entity, direction)).rows


@pytest.mark.parametrize("version", defined_versions(API_KEYS["StopReplica"]))
def test_a_stop_replica_says_of_each_partition_whether_it_is_deleted(version: int) -> None:
    place = {"topic_name": "t", "name": "t", "partition_index": 3, "partition_indexes": (3,)}
    deletes = {"delete_partition": True, "delete_partitions": True}
    entity = filled("StopReplica", version, controller_epoch=4, **place, **deletes)
    [row] = rows("StopReplica", version, entity)
    assert (row["topic"], row["partition"], row["delete"]) == ("t", 3, True)
    assert row["controller_epoch"] == 4
    assert ("broker_epoch" in row) is (version >= 1)


@pytest.mark.parametrize(
    ("api", "version"), [one for one in OLD if one[0] in ("LeaderAndIsr", "UpdateMetadata")]
)
def test_the_state_of_a_partition_has_the_columns_of_an_isr_change(api: str, version: int) -> None:
    said = {"isr": (1, 2), "leader": 1, "leader_epoch": 7, "partition_index": 3}
    entity = filled(api, version, topic_name="t", partition_epoch=9, zk_version=9, **said)
    [row] = rows(api, version, entity)
    assert (row["topic"], row["partition"], row["isr"]) == ("t", 3, [1, 2])
    assert (row["leader_id"], row["leader_epoch"], row["partition_epoch"]) == (1, 7, 9)


@pytest.mark.parametrize(("api", "version"), OLD)
def test_errors_of_responses_are_named(api: str, version: int) -> None:
    entity = filled(api, version, RESPONSE, error_code=ErrorCode.stale_controller_epoch)
    found = rows(api, version, entity, RESPONSE)
    assert {row["error"] for row in found} == {"STALE_CONTROLLER_EPOCH"}


@pytest.mark.parametrize(("api", "version"), OLD)
def test_an_answer_is_held_while_requests_and_other_answers_pass(api: str, version: int) -> None:
    match = Match(api=api, direction=RESPONSE, times=1)
    line = Line(LINK, Rule(name="late", action=Hold(), match=match))
    asked = request_frame(filled(api, version), correlation_id=1, client_id="1")
    told = whole(filled(api, version, RESPONSE), RESPONSE)
    line.ask(asked)
    line.tell(told)
    again = proxied(1, LINK, line.session.common)
    again.receive(Side.NEAR, memoryview(asked), 2)
    again.receive(Side.FAR, memoryview(told), 2)
    assert line.far == asked + asked
    assert line.near == told, "the answer to the repeat"
    line.release("late")
    assert line.near == told + told
    assert line.notes.fates() == [
        *((api, "request", "forwarded"), (api, "response", "released")),
        *((api, "request", "forwarded"), (api, "response", "forwarded")),
    ]


def test_the_first_stop_replica_that_deletes_is_held_and_its_repeat_passes() -> None:
    where = tuple(
        Clause(field=name, operator=Operator.IS, value=value)
        for name, value in (("topic", "t"), ("delete", True))
    )
    match = Match(api="StopReplica", where=where, times=1)
    line = Line(LINK, Rule(name="late", action=Hold(), match=match))
    stops, deletes = (
        request_frame(
            filled("StopReplica", 3, topic_name="t", delete_partition=delete),
            correlation_id=number,
            client_id="1",
        )
        for number, delete in ((1, False), (2, True))
    )
    line.ask(stops + deletes)
    assert line.far == stops
    again = proxied(1, LINK, line.session.common)
    again.receive(Side.NEAR, memoryview(deletes), 2)
    assert line.far == stops + deletes, "the repeat, over a connection of its own"
    line.release("late")
    assert line.far == stops + deletes + deletes
    assert [(row["action"], row["items"][0]["delete"]) for row in line.notes.rows] == [
        *(("forwarded", False), ("released", True), ("forwarded", True)),
    ]
