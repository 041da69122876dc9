"""The fields of a message to bytes, by its definition: what `message_decoder` reads back.

Values are as there. A field that is not stated has its default; a tagged field at its default is
left out, as Kafka leaves it out.

Encoding: KIP-482 (flexible versions), https://kafka.apache.org/protocol#protocol_types
"""

import base64
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from fencepost.clusters.protocol.message_decoder import Fields, default_of
from fencepost.clusters.protocol.message_definitions import Field, Message
from fencepost.clusters.protocol.varints import encoded_unsigned

_Writer = Callable[[Any, bytearray], None]
_NUMBERS: Final[Mapping[str, struct.Struct]] = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "uint32": struct.Struct(">I"),
    "int64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
    "bool": struct.Struct(">?"),
}


def encoder_of(message: Message, version: int) -> Callable[[Fields], bytes]:
    """Return a function that encodes fields as this message; KeyError for a field not in it."""
    assert version in message.versions, (message.name, version)
    write = _struct_writer(message.fields, version, flexible=version in message.flexible)

    def encode(fields: Fields) -> bytes:
        out = bytearray()
        write(fields, out)
        return bytes(out)

    return encode


def _struct_writer(fields: Iterable[Field], version: int, *, flexible: bool) -> _Writer:
    present = [field for field in fields if version in field.versions]
    names = frozenset(field.name for field in present)
    plain = [
        (field.name, default_of(field, version), _field_writer(field, version, flexible=flexible))
        for field in present
        if version not in field.tagged
    ]
    tagged = sorted(
        (
            (field.tag or 0, field.name, default_of(field, version), writer)
            for field in present
            if version in field.tagged
            for writer in (_field_writer(field, version, flexible=flexible),)
        ),
        key=lambda one: one[0],
    )

    def write(stated: Fields, out: bytearray) -> None:
        if not stated.keys() <= names:
            raise KeyError(*sorted(stated.keys() - names))
        for name, default, writer in plain:
            writer(stated.get(name, default), out)
        if flexible:
            _write_tags(stated, tagged, out)

    return write


def _write_tags(
    stated: Fields, tagged: Iterable[tuple[int, str, Any, _Writer]], out: bytearray
) -> None:
    there = [
        (tag, stated[name], writer)
        for tag, name, default, writer in tagged
        if name in stated and stated[name] != default
    ]
    out += encoded_unsigned(len(there))
    for tag, value, writer in there:
        content = bytearray()
        writer(value, content)
        out += encoded_unsigned(tag) + encoded_unsigned(len(content)) + content


def _field_writer(field: Field, version: int, *, flexible: bool) -> _Writer:
    if field.flexible is not None:
        flexible = version in field.flexible
    if field.array:
        element = _value_writer(field, version, flexible=flexible, nullable=False)
        return _array_writer(element, flexible=flexible)
    nullable = version in field.nullable
    return _value_writer(field, version, flexible=flexible, nullable=nullable)


def _value_writer(field: Field, version: int, *, flexible: bool, nullable: bool) -> _Writer:
    if (number := _NUMBERS.get(field.type)) is not None:
        return lambda value, out: out.extend(number.pack(value))
    if field.type == "uuid":
        return _write_uuid
    if field.type in ("string", "bytes", "records"):
        return _sized_writer(field.type, flexible=flexible)
    write = _struct_writer(field.fields, version, flexible=flexible)
    return _nullable_writer(write) if nullable else write


def _write_uuid(value: str, out: bytearray) -> None:
    out += base64.urlsafe_b64decode(f"{value}==")


def _sized_writer(kind: str, *, flexible: bool) -> _Writer:
    write_length = _length_writer("int16" if kind == "string" else "int32", flexible=flexible)

    def write(value: str | bytes | None, out: bytearray) -> None:
        if value is None:
            write_length(-1, out)
            return
        content = value.encode() if isinstance(value, str) else value
        write_length(len(content), out)
        out += content

    return write


def _array_writer(element: _Writer, *, flexible: bool) -> _Writer:
    write_length = _length_writer("int32", flexible=flexible)

    def write(values: list[Any] | tuple[Any, ...] | None, out: bytearray) -> None:
        if values is None:
            write_length(-1, out)
            return
        write_length(len(values), out)
        for value in values:
            element(value, out)

    return write


def _length_writer(number: str, *, flexible: bool) -> Callable[[int, bytearray], None]:
    """Lengths are -1 for null; in flexible versions they are stored one higher, as a varint."""
    if flexible:
        return lambda length, out: out.extend(encoded_unsigned(length + 1))
    packed = _NUMBERS[number].pack
    return lambda length, out: out.extend(packed(length))


def _nullable_writer(write_struct: _Writer) -> _Writer:
    """A struct that may be null has a byte before it: -1 null, 1 there (KIP-893)."""

    def write(value: Fields | None, out: bytearray) -> None:
        if value is None:
            out += b"\xff"
            return
        out += b"\x01"
        write_struct(value, out)

    return write
