"""Metadata records and control records are named and decoded, or kept and named unknown."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.clusters.protocol.message_definitions import Message, parsed_message
from fencepost.clusters.protocol.metadata_records import Definitions


def message(name: str, fields: list[dict[str, Any]], **rest: Any) -> Message:
    whole = {"name": name, "type": "metadata", "validVersions": "0", "flexibleVersions": "0+"}
    return parsed_message(json.dumps({**whole, "fields": fields, **rest}))


FEATURE = message(
    "FeatureLevelRecord",
    [
        {"name": "Name", "type": "string", "versions": "0+"},
        {"name": "FeatureLevel", "type": "int16", "versions": "0+"},
    ],
    apiKey=12,
)
CHANGE = message(
    "PartitionChangeRecord",
    [
        {"name": "PartitionId", "type": "int32", "versions": "0+"},
        {
            "name": "Isr",
            "type": "[]int32",
            "versions": "0+",
            "default": "null",
            "nullableVersions": "0+",
            "taggedVersions": "0+",
            "tag": 0,
        },
        {
            "name": "Leader",
            "type": "int32",
            "versions": "0+",
            "default": "-2",
            "taggedVersions": "0+",
            "tag": 1,
        },
    ],
    apiKey=5,
)
LEADER = message(
    "LeaderChangeMessage",
    [
        {"name": "Version", "type": "int16", "versions": "0+"},
        {"name": "LeaderId", "type": "int32", "versions": "0+"},
        {"name": "Voters", "type": "[]Voter", "versions": "0+"},
        {"name": "GrantingVoters", "type": "[]Voter", "versions": "0+"},
    ],
    type="data",
    validVersions="0-1",
    commonStructs=[
        {
            "name": "Voter",
            "versions": "0+",
            "fields": [
                {"name": "VoterId", "type": "int32", "versions": "0+"},
                {"name": "VoterDirectoryId", "type": "uuid", "versions": "1+"},
            ],
        }
    ],
)
DEFINITIONS = Definitions([FEATURE, CHANGE, LEADER])
FEATURE_BYTES = bytes.fromhex("010c0009") + b"group.ve" + bytes.fromhex("000100")
LEADER_BYTES = bytes.fromhex("0000000003e902000003e90002000003e90000")


def test_a_metadata_record_is_framed_and_decoded() -> None:
    record = DEFINITIONS.metadata_record(FEATURE_BYTES)
    assert (record.type, record.type_key, record.version) == ("FeatureLevelRecord", 12, 0)
    assert record.fields == {"name": "group.ve", "featureLevel": 1}
    assert record.detail == 'name="group.ve" featureLevel=1'
    assert (record.known, record.control) == (True, False)


def test_the_detail_leaves_out_what_the_record_left_out() -> None:
    nothing = DEFINITIONS.metadata_record(bytes.fromhex("01050000000007 00"))
    assert nothing.fields == {"partitionId": 7, "isr": None, "leader": -2}
    assert nothing.detail == "partitionId=7"
    shrunk = DEFINITIONS.metadata_record(bytes.fromhex("01050000000007 01 00 05 02 00000001"))
    assert shrunk.detail == "partitionId=7 isr=[1]"


def test_a_control_record_is_told_by_its_key() -> None:
    record = DEFINITIONS.control_record(bytes.fromhex("00000002"), LEADER_BYTES)
    assert (record.type, record.type_key, record.version) == ("LeaderChangeMessage", 2, 0)
    assert record.fields["leaderId"] == 1001
    assert record.fields["grantingVoters"] == [{"voterId": 1001}]
    assert record.control


def test_a_control_record_is_of_the_version_that_it_states() -> None:
    directory = bytes(range(16))
    voter = bytes.fromhex("02000003e9") + directory + b"\x00"
    value = bytes.fromhex("0001 000003e9") + voter + voter + b"\x00"
    record = DEFINITIONS.control_record(bytes.fromhex("00000002"), value)
    assert record.version == 1
    assert record.fields["voters"][0]["voterDirectoryId"] == "AAECAwQFBgcICQoLDA0ODw"


@pytest.mark.parametrize(
    ("value", "type_key", "version", "why"),
    [
        (None, -1, -1, "a record without a value"),
        ("", -1, -1, "no frame: no varint at byte 0 of 0"),
        ("010c", -1, -1, "no frame: no varint at byte 2 of 2"),
        ("01 63 00", 99, 0, "no definition of type 99 in frame version 1"),
        ("02 0c 00 01 0001 00", 12, 0, "no definition of type 12 in frame version 2"),
        ("01 0c 01 01 0001 00", 12, 1, "FeatureLevelRecord has no version 1"),
        ("01 0c 00 01 0001 00 00", 12, 0, "not FeatureLevelRecord version 0: it ends at byte 4"),
        ("01 0c 00 02 ff 0001 00", 12, 0, "not FeatureLevelRecord version 0: 'utf-8' codec"),
        ("01 ffff7f 00", -1, 0, "no definition of type 2097151"),
    ],
)
def test_what_cannot_be_decoded_is_unknown_with_a_reason(
    value: str | None, type_key: int, version: int, why: str
) -> None:
    record = DEFINITIONS.metadata_record(None if value is None else bytes.fromhex(value))
    assert (record.type, record.type_key, record.version) == ("unknown", type_key, version)
    assert record.detail.startswith(why)
    assert record.fields == {}
    assert not record.known


@pytest.mark.parametrize(
    ("key", "value", "type_key", "why"),
    [
        (None, LEADER_BYTES, -1, "a control record without a type"),
        (b"\x00\x00\x00", LEADER_BYTES, -1, "a control record without a type"),
        (b"\x00\x00\x00\x06", b"", 6, "no definition of control type 6"),
        (b"\x00\x00\x00\x01", b"", 1, "no definition of control type 1"),
        (b"\x00\x00\x00\x02", None, 2, "no definition of control type 2"),
        (b"\x00\x00\x00\x02", b"\x00\x05", 2, "LeaderChangeMessage has no version 5"),
        (b"\x00\x00\x00\x02", LEADER_BYTES[:-1], 2, "not LeaderChangeMessage version 0"),
    ],
)
def test_a_control_record_that_cannot_be_decoded_is_unknown(
    key: bytes | None, value: bytes | None, type_key: int, why: str
) -> None:
    record = DEFINITIONS.control_record(key, value)
    assert (record.type, record.type_key, record.control) == ("unknown", type_key, True)
    assert record.detail.startswith(why)


@given(key=st.none() | st.binary(max_size=6), value=st.none() | st.binary(max_size=40))
def test_no_bytes_make_it_fail(key: bytes | None, value: bytes | None) -> None:
    for record in (DEFINITIONS.metadata_record(value), DEFINITIONS.control_record(key, value)):
        assert record.detail or record.known
        assert -1 <= record.type_key < 1 << 15


def test_definitions_say_which_records_they_know() -> None:
    assert DEFINITIONS.record_types == {5: "PartitionChangeRecord", 12: "FeatureLevelRecord"}
