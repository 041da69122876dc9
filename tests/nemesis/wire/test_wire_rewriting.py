"""ApiVersions responses that offer less, in every version, and nothing else changed."""

import struct
from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16
from wire_doubles import LINK, response_frame

from fencepost.nemesis.wire.actions import lowered
from fencepost.nemesis.wire.decoding.entities import entity_of, entity_type
from fencepost.nemesis.wire.frame import Frame, TopicNames
from fencepost.nemesis.wire.frames import Header
from fencepost.nemesis.wire.rules import Direction


def told(version: int, data: bytes) -> Frame:
    return Frame(
        connection=0,
        link=LINK,
        direction=Direction.RESPONSE,
        header=Header(18, version, 1, "1", answered=True),
        data=data,
        time_ns=0,
        names=TopicNames(),
    )


def offers(version: int, apis: dict[int, tuple[int, int]]) -> bytes:
    kind = entity_type(18, version, Direction.RESPONSE)
    hints = kind.__annotations__
    item = __import__(kind.__module__, fromlist=["ApiVersion"]).ApiVersion
    values = {
        "error_code": ErrorCode.none,
        "api_keys": tuple(
            item(api_key=i16(key), min_version=i16(low), max_version=i16(high))
            for key, (low, high) in apis.items()
        ),
    }
    if "throttle_time" in hints:
        values["throttle_time"] = timedelta()
    return response_frame(kind(**values), 1)


@pytest.mark.parametrize("version", range(5))
def test_one_api_is_offered_lower_and_all_else_is_as_it_was(version: int) -> None:
    apis = {1: (4, 18), 56: (0, 3), 62: (0, 4)}
    frame = told(version, offers(version, apis))
    changed = lowered(frame, "AlterPartition", 2)
    assert changed == offers(version, apis | {56: (0, 2)})
    assert entity_of(frame.header, Direction.RESPONSE, changed).api_keys[1].max_version == 2


def test_it_is_never_offered_higher_nor_below_what_there_is() -> None:
    data = offers(3, {56: (2, 3)})
    assert lowered(told(3, data), "AlterPartition", 9) == data
    assert lowered(told(3, data), "AlterPartition", 0) == offers(3, {56: (2, 2)})


def test_an_answer_in_version_0_to_a_newer_request_is_understood() -> None:
    body = struct.pack(">hihhh", 35, 1, 18, 0, 3)
    data = struct.pack(">ii", len(body) + 4, 1) + body
    changed = lowered(told(4, data), "ApiVersions", 2)
    assert changed == data[:-2] + struct.pack(">h", 2)


@pytest.mark.parametrize("cut", range(8, 30))
def test_what_cannot_be_read_is_as_it_was(cut: int) -> None:
    data = offers(3, {1: (4, 18), 3: (0, 1), 56: (0, 3)})[:cut]
    assert lowered(told(3, data), "AlterPartition", 2) == data
    assert lowered(told(3, data), "EndTxn", 2) == data
