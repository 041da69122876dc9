"""Messages are decoded by their definitions: every type, version, null, tag and default."""

import base64
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.clusters.protocol.message_decoder import DecodeError, Fields, decoder_of
from fencepost.clusters.protocol.message_definitions import (
    DefinitionError,
    Field,
    Message,
    VersionRange,
    parsed_message,
)
from fencepost.clusters.protocol.varints import encoded_unsigned

ZERO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
EVERYTHING = """
// A comment // with slashes
{
  "apiKey": 77, "type": "metadata", "name": "EverythingRecord", /* and
  another */ "validVersions": "0-3", "flexibleVersions": "2+",
  "fields": [
    // Version 1 adds a name, see https://example.org/"quotes"
    { "name": "Small", "type": "int8", "versions": "0+", "about": "see // https://x" },
    { "name": "Port", "type": "uint16", "versions": "0+" },
    { "name": "Count", "type": "int32", "versions": "0-1" },
    { "name": "Big", "type": "int64", "versions": "0+" },
    { "name": "Wide", "type": "uint32", "versions": "0+" },
    { "name": "Ratio", "type": "float64", "versions": "0+" },
    { "name": "Sure", "type": "bool", "versions": "0+" },
    { "name": "Name", "type": "string", "versions": "1+", "nullableVersions": "1+" },
    { "name": "Blob", "type": "bytes", "versions": "0+", "nullableVersions": "3+" },
    { "name": "Id", "type": "uuid", "versions": "0+" },
    { "name": "Members", "type": "[]int32", "versions": "0+", "nullableVersions": "0+" },
    { "name": "Words", "type": "[]string", "versions": "0+" },
    { "name": "Ends", "type": "[]End", "versions": "0+", "fields": [
      { "name": "Host", "type": "string", "versions": "0+" },
      { "name": "Weight", "type": "int16", "versions": "1+" }
    ]},
    { "name": "Only", "type": "Shared", "versions": "2+", "nullableVersions": "3+" },
    { "name": "Leader", "type": "int32", "default": "-2", "versions": "2+",
      "taggedVersions": "2+", "tag": 1 },
    { "name": "Isr", "type": "[]int32", "default": "null", "versions": "2+",
      "nullableVersions": "2+", "taggedVersions": "2+", "tag": 0 },
    { "name": "Dirs", "type": "[]uuid", "versions": "3+", "taggedVersions": "3+", "tag": 5 },
    { "name": "Mask", "type": "int32", "default": "0x10", "versions": "2+",
      "taggedVersions": "2+", "tag": 6 },
    { "name": "Kept", "type": "bool", "default": "true", "versions": "2+",
      "taggedVersions": "2+", "tag": 7 },
    { "name": "Inner", "type": "Shared", "versions": "2+", "taggedVersions": "2+", "tag": 8 }
  ],
  "commonStructs": [
    { "name": "Shared", "versions": "2+", "fields": [
      { "name": "Low", "type": "int16", "versions": "2+" },
      { "name": "Note", "type": "string", "versions": "3+", "default": "none" }
    ]}
  ]
}
"""
MESSAGE = parsed_message(EVERYTHING)
DEFAULTS = {
    "leader": -2,
    "isr": None,
    "dirs": [],
    "mask": 16,
    "kept": True,
    "inner": {"low": 0, "note": "none"},
}

NUMBERS = {
    "int8": ("b", 8, True),
    "int16": ("h", 16, True),
    "uint16": ("H", 16, False),
    "int32": ("i", 32, True),
    "uint32": ("I", 32, False),
    "int64": ("q", 64, True),
}


def number_of(kind: str) -> st.SearchStrategy[int]:
    _, bits, signed = NUMBERS[kind]
    low = -(1 << bits - 1) if signed else 0
    return st.integers(low, low + (1 << bits) - 1)


def value_of(field: Field, version: int) -> st.SearchStrategy[Any]:
    """Any value of a field, null where it may be."""
    if field.fields:
        one: st.SearchStrategy[Any] = fields_of(field.fields, version)
    elif field.type in NUMBERS:
        one = number_of(field.type)
    else:
        one = {
            "float64": st.floats(allow_nan=False),
            "bool": st.booleans(),
            "string": st.text(max_size=5),
            "bytes": st.binary(max_size=200),
            "uuid": st.binary(min_size=16, max_size=16).map(
                lambda raw: base64.urlsafe_b64encode(raw)[:22].decode()
            ),
        }[field.type]
    whole = st.lists(one, max_size=3) if field.array else one
    return st.none() | whole if version in field.nullable else whole


def fields_of(fields: tuple[Field, ...], version: int) -> st.SearchStrategy[Fields]:
    return st.fixed_dictionaries(
        {field.name: value_of(field, version) for field in fields if version in field.versions}
    )


def encoded(message: Message, version: int, fields: Fields) -> bytes:
    """The slow and obvious way back: all tagged fields are written, in the order of their tags."""
    return struct_bytes(message.fields, version, fields, flexible=version in message.flexible)


def struct_bytes(
    fields: tuple[Field, ...], version: int, values: Fields, *, flexible: bool
) -> bytes:
    present = [field for field in fields if version in field.versions]
    out = b"".join(
        value_bytes(field, version, values[field.name], flexible=flexible)
        for field in present
        if version not in field.tagged
    )
    if not flexible:
        return out
    tagged = sorted(
        (field.tag or 0, value_bytes(field, version, values[field.name], flexible=True))
        for field in present
        if version in field.tagged
    )
    return out + encoded_unsigned(len(tagged)) + b"".join(tag_bytes(*one) for one in tagged)


def tag_bytes(tag: int, content: bytes) -> bytes:
    return encoded_unsigned(tag) + encoded_unsigned(len(content)) + content


def value_bytes(field: Field, version: int, value: Any, *, flexible: bool) -> bytes:
    if field.array:
        if value is None:
            return length(-1, ">i", flexible=flexible)
        elements = [one_bytes(field, version, one, flexible=flexible) for one in value]
        return length(len(value), ">i", flexible=flexible) + b"".join(elements)
    if field.fields and version in field.nullable:
        return (
            b"\xff"
            if value is None
            else b"\x01" + one_bytes(field, version, value, flexible=flexible)
        )
    return one_bytes(field, version, value, flexible=flexible)


def one_bytes(field: Field, version: int, value: Any, *, flexible: bool) -> bytes:
    if field.fields:
        return struct_bytes(field.fields, version, value, flexible=flexible)
    match field.type:
        case "float64":
            return struct.pack(">d", value)
        case "bool":
            return struct.pack(">?", value)
        case "uuid":
            return base64.urlsafe_b64decode(value + "==")
        case "string" | "bytes":
            width = ">h" if field.type == "string" else ">i"
            if value is None:
                return length(-1, width, flexible=flexible)
            raw = value.encode() if field.type == "string" else value
            return length(len(raw), width, flexible=flexible) + bytes(raw)
        case _:
            return struct.pack(f">{NUMBERS[field.type][0]}", value)


def length(number: int, width: str, *, flexible: bool) -> bytes:
    return encoded_unsigned(number + 1) if flexible else struct.pack(width, number)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_any_message_is_decoded_as_it_was_encoded(version: int) -> None:
    decode = decoder_of(MESSAGE, version)

    @given(fields=fields_of(MESSAGE.fields, version), data=st.data())
    def check(fields: Fields, data: st.DataObject) -> None:
        raw = encoded(MESSAGE, version, fields)
        assert decode(raw) == fields
        with pytest.raises(DecodeError, match=f"not EverythingRecord version {version}: it ends"):
            decode(raw + b"\x00")
        cut = data.draw(st.integers(0, len(raw) - 1))
        with pytest.raises(DecodeError):
            decode(raw[:cut])

    check()


@given(data=st.binary(max_size=80), version=st.integers(0, 3))
def test_no_bytes_make_the_decoder_fail_otherwise(data: bytes, version: int) -> None:
    try:
        fields = decoder_of(MESSAGE, version)(data)
    except DecodeError:
        return
    assert "id" in fields


def fixed(version: int) -> bytes:
    """All zeros, no tags: the untagged part of version 2 or 3."""
    fields = {
        field.name: plain(field, version) for field in MESSAGE.fields if version in field.versions
    }
    return encoded(MESSAGE, version, fields)[: untagged_size(version)]


def plain(field: Field, version: int) -> Any:
    if field.array:
        return []
    if field.fields:
        return {one.name: plain(one, version) for one in field.fields if version in one.versions}
    return {"string": "", "bytes": b"", "uuid": ZERO_ID, "bool": False}.get(field.type, 0)


def untagged_size(version: int) -> int:
    untagged = tuple(field for field in MESSAGE.fields if version not in field.tagged)
    values = {field.name: plain(field, version) for field in untagged if version in field.versions}
    return len(struct_bytes(untagged, version, values, flexible=True)) - 1


def test_tagged_fields_that_are_not_there_have_their_defaults() -> None:
    fields = decoder_of(MESSAGE, 3)(fixed(3) + b"\x00")
    assert {name: fields[name] for name in DEFAULTS} == DEFAULTS
    assert fields["only"] == {"low": 0, "note": ""}
    assert "count" not in fields


def test_a_default_that_is_an_array_is_not_shared() -> None:
    decode = decoder_of(MESSAGE, 3)
    first = decode(fixed(3) + b"\x00")
    first["dirs"].append("changed")
    assert decode(fixed(3) + b"\x00")["dirs"] == []


def test_unknown_tags_are_kept_as_bytes() -> None:
    raw = fixed(2) + b"\x02" + tag_bytes(1, b"\x00\x00\x00\x09") + tag_bytes(99, b"new")
    fields = decoder_of(MESSAGE, 2)(raw)
    assert fields["leader"] == 9
    assert fields["unknownTag99"] == b"new"


def test_a_tag_whose_size_is_not_its_contents_is_refused() -> None:
    raw = fixed(2) + b"\x01" + tag_bytes(1, b"\x00\x00\x00\x09\x00")
    with pytest.raises(DecodeError, match="leader ends at byte"):
        decoder_of(MESSAGE, 2)(raw)


def test_an_absurd_length_is_refused_before_anything_is_made_of_it() -> None:
    message = parsed_message(json.dumps(definition([{"name": "Xs", "type": "[]int8"}])))
    with pytest.raises(DecodeError, match="an array of 4294967294 with 1 bytes left"):
        decoder_of(message, 0)(encoded_unsigned(2**32 - 1) + b"\x00")


def test_a_version_that_was_never_defined_is_refused() -> None:
    with pytest.raises(DecodeError, match="EverythingRecord has no version 4"):
        decoder_of(MESSAGE, 4)


def test_a_type_that_nobody_defined_is_refused() -> None:
    message = parsed_message(json.dumps(definition([{"name": "X", "type": "Nobody"}])))
    with pytest.raises(DecodeError, match="x has an undefined type: Nobody"):
        decoder_of(message, 0)


def definition(fields: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "type": "data",
        "name": "M",
        "validVersions": "0",
        "flexibleVersions": "0+",
        "fields": [{"versions": "0+", **field} for field in fields],
    }


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("3", [3], [2, 4]), ("0-2", [0, 1, 2], [3]), ("1+", [1, 32767], [0]), ("none", [], [0, 1])],
)
def test_versions_are_ranges(text: str, inside: list[int], outside: list[int]) -> None:
    versions = VersionRange.parsed(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)


def test_an_api_that_was_removed_has_no_versions_and_no_fields() -> None:
    removed = parsed_message(
        '{"apiKey": 4, "type": "request", "name": "Gone", "validVersions": "none"}'
    )
    assert removed.fields == ()
    assert 0 not in removed.versions


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"name": "X", "type": "data", "validVersions": "1-"}', "3"]
)
def test_what_is_no_definition_is_refused(text: str) -> None:
    with pytest.raises(DefinitionError, match=r"not a definition|not a range"):
        parsed_message(text)
