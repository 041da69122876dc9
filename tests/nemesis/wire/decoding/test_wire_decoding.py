"""What frames say, as columns: every API and version that kio knows, and what it does not."""

import struct
from typing import Any

import pytest
from kio.schema.index import api_key_map, schema_name_map
from wire_doubles import (
    LINK,
    TOPIC_ID_TEXT,
    beat_request,
    beat_response,
    example,
    join_request,
    join_response,
    response_frame,
)

from fencepost.clusters.protocol.defined_entities import defined_versions
from fencepost.clusters.protocol.framing import request_frame
from fencepost.history.cluster_schema import WIRE
from fencepost.nemesis.wire.apis import API_KEYS
from fencepost.nemesis.wire.decoding.entities import TAPED, decoded, entity_type
from fencepost.nemesis.wire.frame import Frame, TopicNames
from fencepost.nemesis.wire.frames import Header
from fencepost.nemesis.wire.rules import Direction

DECODED = sorted(TAPED | {API_KEYS["Fetch"], API_KEYS["Produce"]})
MESSAGES = [
    (key, version, direction)
    for key in DECODED
    for version in (*schema_name_map.get(api_key_map.get(key, ""), ()), *defined_versions(key))
    for direction in Direction
]


def header(api: str, version: int) -> Header:
    return Header(API_KEYS[api], version, 1, "1", answered=True)


def of(data: bytes, api: str, version: int, direction: Direction) -> Frame:
    return Frame(
        connection=0,
        link=LINK,
        direction=direction,
        header=header(api, version),
        data=data,
        time_ns=0,
        names=TopicNames({TOPIC_ID_TEXT: "t"}),
    )


def whole(entity: Any, direction: Direction) -> bytes:
    if direction is Direction.REQUEST:
        return request_frame(entity, correlation_id=1, client_id="1")
    return response_frame(entity, 1)


@pytest.mark.parametrize(("key", "version", "direction"), MESSAGES)
def test_every_version_of_every_taped_api_is_decoded_to_columns_of_the_table(
    key: int, version: int, direction: Direction
) -> None:
    entity = example(entity_type(key, version, direction))
    head = Header(key, version, 1, "1", answered=True)
    found = decoded(head, direction, whole(entity, direction))
    assert found.entity == entity
    for row in found.rows:
        assert row.keys() <= set(WIRE.names)
        for name, value in row.items():
            pa_type = WIRE.field(name).type
            assert value is None or _fits(value, str(pa_type)), (name, value)


def _fits(value: Any, kind: str) -> bool:
    if kind.startswith("list"):
        return isinstance(value, list) and all(isinstance(one, int) for one in value)
    return isinstance(value, {"bool": bool, "string": str}.get(kind, int))


def test_an_isr_change_names_its_members_with_their_epochs() -> None:
    [row] = of(join_request(), "AlterPartition", 3, Direction.REQUEST).rows
    assert row == {
        "broker_id": 1,
        "broker_epoch": 11,
        "topic_id": TOPIC_ID_TEXT,
        "topic": "t",
        "partition": 0,
        "leader_epoch": 4,
        "partition_epoch": 5,
        "isr": [1, 2],
        "isr_epochs": [11, 12],
    }


def test_the_answer_to_an_isr_change_has_the_items_error_and_state() -> None:
    [row] = of(join_response(), "AlterPartition", 3, Direction.RESPONSE).rows
    assert row["error"] == "NONE"
    assert (row["leader_id"], row["leader_epoch"], row["partition_epoch"]) == (1, 4, 6)
    assert row["isr"] == [1, 2]


def test_heartbeats_say_what_the_broker_wants_and_what_it_is_told() -> None:
    [asked] = of(beat_request(offset=7), "BrokerHeartbeat", 1, Direction.REQUEST).rows
    assert (asked["broker_id"], asked["broker_epoch"], asked["fetch_offset"]) == (1, 11, 7)
    assert (asked["fenced"], asked["shutting_down"]) == (False, False)
    [told] = of(beat_response(), "BrokerHeartbeat", 1, Direction.RESPONSE).rows
    assert (told["error"], told["fenced"], told["detail"]) == ("NONE", False, "caught up")


def test_a_version_that_nobody_knows_has_its_header_alone() -> None:
    found = decoded(header("AlterPartition", 99), Direction.REQUEST, join_request())
    assert found.entity is None
    assert list(found.columns) == ["detail"]
    assert "not decoded" in found.columns["detail"]


@pytest.mark.parametrize("cut", range(4, 80, 7))
def test_a_frame_that_is_cut_short_has_its_header_alone(cut: int) -> None:
    data = join_request()[:cut]
    found = decoded(header("AlterPartition", 3), Direction.REQUEST, data)
    assert found.entity is None


def test_an_api_that_is_not_of_the_tape_says_nothing() -> None:
    assert decoded(header("Metadata", 12), Direction.REQUEST, b"").rows == ({},)


def test_a_broker_too_old_for_the_version_answers_api_versions_as_version_0() -> None:
    offered = struct.pack(">hihhh", 35, 1, 18, 0, 3)
    data = struct.pack(">ii", len(offered) + 4, 1) + offered
    [row] = of(data, "ApiVersions", 4, Direction.RESPONSE).rows
    assert row["error"] == "UNSUPPORTED_VERSION"
    assert "ApiVersions 3" in row["detail"]


def test_the_first_item_is_said_in_one_line() -> None:
    asked = of(join_request(), "AlterPartition", 3, Direction.REQUEST)
    assert str(asked) == "AlterPartition v3 broker-1 → controller-1, t-0 isr [1, 2]"
    told = of(join_response(), "AlterPartition", 3, Direction.RESPONSE)
    assert str(told) == "AlterPartition v3 broker-1 ← controller-1, t-0 isr [1, 2] NONE"
