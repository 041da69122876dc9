"""What a definition encodes it decodes again, in every version of every kind of field."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.clusters.protocol.message_decoder import decoder_of
from fencepost.clusters.protocol.message_definitions import parsed_message
from fencepost.clusters.protocol.message_encoder import encoder_of

_DEFINITION = {
    "type": "metadata",
    "name": "Everything",
    "apiKey": 7,
    "validVersions": "0-3",
    "flexibleVersions": "1+",
    "fields": [
        {"name": "Small", "type": "int8", "versions": "0+"},
        {"name": "Port", "type": "uint16", "versions": "0+"},
        {"name": "Large", "type": "int64", "versions": "0+", "default": "-1"},
        {"name": "Flag", "type": "bool", "versions": "0+", "default": "true"},
        {"name": "Text", "type": "string", "versions": "0+", "nullableVersions": "0+"},
        {"name": "Content", "type": "bytes", "versions": "0+"},
        {"name": "Id", "type": "uuid", "versions": "2+"},
        {"name": "Numbers", "type": "[]int32", "versions": "0+", "nullableVersions": "0+"},
        {
            "name": "Inner",
            "type": "[]Inner",
            "versions": "0+",
            "fields": [
                {"name": "Name", "type": "string", "versions": "0+"},
                {
                    "name": "Later",
                    "type": "int32",
                    "versions": "3+",
                    "taggedVersions": "3+",
                    "tag": 0,
                },
            ],
        },
        {
            "name": "Perhaps",
            "type": "One",
            "versions": "3+",
            "nullableVersions": "3+",
            "fields": [{"name": "Value", "type": "int32", "versions": "3+"}],
        },
        {
            "name": "High",
            "type": "[]int32",
            "versions": "1+",
            "taggedVersions": "1+",
            "tag": 100,
            "nullableVersions": "1+",
            "default": "null",
        },
        {
            "name": "Low",
            "type": "int32",
            "versions": "1+",
            "taggedVersions": "1+",
            "tag": 3,
            "default": "-2",
        },
    ],
}
MESSAGE = parsed_message(json.dumps(_DEFINITION))
INT32 = st.integers(-(2**31), 2**31 - 1)
INNER = {"name": st.text(max_size=200)}


@st.composite
def values(draw: st.DrawFn, version: int) -> dict[str, Any]:
    wanted: dict[str, st.SearchStrategy[Any]] = {
        "small": st.integers(-128, 127),
        "port": st.integers(0, 65_535),
        "large": st.integers(-(2**63), 2**63 - 1),
        "flag": st.booleans(),
        "text": st.none() | st.text(max_size=300),
        "content": st.binary(max_size=300),
        "numbers": st.none() | st.lists(INT32, max_size=200),
        "inner": st.lists(st.fixed_dictionaries(INNER), max_size=3),
    }
    if version >= 1:
        wanted |= {"high": st.none() | st.lists(INT32, max_size=3), "low": INT32}
    if version >= 2:
        wanted["id"] = st.just("AAAAAAAAAAAAAAAAAAAABw")
    if version >= 3:
        wanted["inner"] = st.lists(st.fixed_dictionaries({**INNER, "later": INT32}), max_size=3)
        wanted["perhaps"] = st.none() | st.fixed_dictionaries({"value": INT32})
    return draw(st.fixed_dictionaries(wanted))


@pytest.mark.parametrize("version", range(4))
@given(data=st.data())
def test_what_is_encoded_is_decoded_again(version: int, data: st.DataObject) -> None:
    stated = data.draw(values(version))
    assert decoder_of(MESSAGE, version)(encoder_of(MESSAGE, version)(stated)) == stated


@pytest.mark.parametrize("version", range(4))
def test_what_nobody_states_has_its_default(version: int) -> None:
    found = decoder_of(MESSAGE, version)(encoder_of(MESSAGE, version)({}))
    assert (found["large"], found["flag"], found["text"]) == (-1, True, "")
    assert found.get("low", -2) == -2


def test_a_tagged_field_at_its_default_is_left_out_and_tags_go_up() -> None:
    encode = encoder_of(MESSAGE, 3)
    plain = encode({})
    assert encode({"low": -2, "high": None}) == plain
    tagged = encode({"high": [1], "low": 5})
    assert tagged[: len(plain) - 1] == plain[:-1]
    assert tagged[len(plain) - 1 :] == bytes((2, 3, 4, 0, 0, 0, 5, 100, 5, 2, 0, 0, 0, 1))


def test_a_field_that_is_none_of_the_messages_is_an_error() -> None:
    with pytest.raises(KeyError, match="later"):
        encoder_of(MESSAGE, 2)({"later": 1})
    with pytest.raises(KeyError, match="id"):
        encoder_of(MESSAGE, 1)({"id": "AAAAAAAAAAAAAAAAAAAABw"})
