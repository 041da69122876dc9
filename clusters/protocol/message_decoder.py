"""Bytes to the fields of a message, by its definition: one decoder for every message there is.

A definition at one version becomes a chain of small readers, `(data, position) → (value, end)`.
Making it costs more than using it: keep a decoder for each message and version.

Values are those of Kafka's JSON: numbers, booleans, strings, ids as 22 characters of URL-safe base
64, bytes as bytes, arrays as lists, structs as dicts by field name. The fields of a version are all
there: a tagged field that the bytes do not have has its default. A tag that the definition does not
know is kept as `unknownTag<n>`.

Encoding: KIP-482 (flexible versions), https://kafka.apache.org/protocol#protocol_types
"""

import base64
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from fencepost.clusters.protocol.message_definitions import Field, Message
from fencepost.clusters.protocol.varints import VarintError, read_unsigned

Fields = dict[str, Any]
"""The content of a message, by field; no class can know the names before the jars are read."""

_Reader = Callable[[bytes, int], tuple[Any, int]]
_UUID_BYTES: Final = 16
_NUMBERS: Final = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "uint32": struct.Struct(">I"),
    "int64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
    "bool": struct.Struct(">?"),
}
_ZEROS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(_NUMBERS, 0),
    "float64": 0.0,
    "bool": False,
    "string": "",
    "bytes": b"",
    "records": None,
    "uuid": base64.urlsafe_b64encode(bytes(_UUID_BYTES))[:22].decode(),
}


class DecodeError(Exception):
    """The bytes are not this message at this version."""


def decoder_of(message: Message, version: int) -> Callable[[bytes], Fields]:
    """Return a function that decodes bytes as this whole message; it raises DecodeError.

    Raises DecodeError if the message has no such version.
    """
    if version not in message.versions:
        raise DecodeError(f"{message.name} has no version {version}")
    read = _struct_reader(message.fields, version, flexible=version in message.flexible)

    def decode(data: bytes) -> Fields:
        try:
            fields, end = read(data, 0)
        except (VarintError, struct.error, UnicodeDecodeError) as error:
            raise DecodeError(f"not {message.name} version {version}: {error}") from error
        if end != len(data):
            raise DecodeError(
                f"not {message.name} version {version}: it ends at byte {end} of {len(data)}"
            )
        found: Fields = fields
        return found

    return decode


def default_of(field: Field, version: int) -> Any:
    """The value of a field that the bytes do not have."""
    stated = field.default
    if stated == "null" or (field.type == "records" and not field.array):
        return None
    if field.array:
        return []
    if field.fields:
        return {
            one.name: default_of(one, version) for one in field.fields if version in one.versions
        }
    if stated is None or stated == "":
        return _ZEROS[field.type]
    if field.type == "bool":
        return stated in (True, "true")
    if field.type == "float64":
        return float(stated)
    return int(str(stated), 0) if field.type in _NUMBERS else stated


def _struct_reader(fields: Iterable[Field], version: int, *, flexible: bool) -> _Reader:
    present = [field for field in fields if version in field.versions]
    plain = [
        (field.name, _field_reader(field, version, flexible=flexible))
        for field in present
        if version not in field.tagged
    ]
    tagged = [field for field in present if version in field.tagged]
    readers = {
        field.tag: (field.name, _field_reader(field, version, flexible=flexible))
        for field in tagged
    }

    def read(data: bytes, position: int) -> tuple[Fields, int]:
        found: Fields = {}
        for name, reader in plain:
            found[name], position = reader(data, position)
        if not flexible:
            return found, position
        for field in tagged:
            found[field.name] = default_of(field, version)
        return found, _read_tags(data, position, readers=readers, into=found)

    return read


def _read_tags(
    data: bytes, position: int, *, readers: Mapping[int | None, tuple[str, _Reader]], into: Fields
) -> int:
    count, position = read_unsigned(data, position)
    for _ in range(count):
        tag, position = read_unsigned(data, position)
        size, position = read_unsigned(data, position)
        content, end = _slice(data, position, size)
        if tag in readers:
            name, reader = readers[tag]
            into[name], position = reader(data, position)
            if position != end:
                raise DecodeError(f"{name} ends at byte {position}, its tag at byte {end}")
        else:
            into[f"unknownTag{tag}"] = content
        position = end
    return position


def _field_reader(field: Field, version: int, *, flexible: bool) -> _Reader:
    if field.flexible is not None:
        flexible = version in field.flexible
    nullable = version in field.nullable
    if field.array:
        element = _value_reader(field, version, flexible=flexible, nullable=False)
        return _array_reader(element, flexible=flexible)
    return _value_reader(field, version, flexible=flexible, nullable=nullable)


def _value_reader(field: Field, version: int, *, flexible: bool, nullable: bool) -> _Reader:
    if (number := _NUMBERS.get(field.type)) is not None:
        return _number_reader(number)
    if field.type == "uuid":
        return _read_uuid
    if field.type in ("string", "bytes", "records"):
        return _sized_reader(field.type, flexible=flexible)
    if not field.fields:
        raise DecodeError(f"{field.name} has an undefined type: {field.type}")
    read = _struct_reader(field.fields, version, flexible=flexible)
    return _nullable_reader(read) if nullable else read


def _number_reader(number: struct.Struct) -> _Reader:
    def read(data: bytes, position: int) -> tuple[Any, int]:
        return number.unpack_from(data, position)[0], position + number.size

    return read


def _read_uuid(data: bytes, position: int) -> tuple[str, int]:
    found, end = _slice(data, position, _UUID_BYTES)
    return base64.urlsafe_b64encode(found)[:22].decode(), end


def _sized_reader(kind: str, *, flexible: bool) -> _Reader:
    read_length = _length_reader("int16" if kind == "string" else "int32", flexible=flexible)

    def read(data: bytes, position: int) -> tuple[str | bytes | None, int]:
        length, position = read_length(data, position)
        if length < 0:
            return None, position
        found, end = _slice(data, position, length)
        return (found.decode() if kind == "string" else found), end

    return read


def _array_reader(element: _Reader, *, flexible: bool) -> _Reader:
    read_length = _length_reader("int32", flexible=flexible)

    def read(data: bytes, position: int) -> tuple[list[Any] | None, int]:
        length, position = read_length(data, position)
        if length < 0:
            return None, position
        if length > len(data) - position:
            raise DecodeError(f"an array of {length} with {len(data) - position} bytes left")
        found = []
        for _ in range(length):
            value, position = element(data, position)
            found.append(value)
        return found, position

    return read


def _length_reader(number: str, *, flexible: bool) -> _Reader:
    """Lengths are -1 for null; in flexible versions they are stored one higher, as a varint."""
    if not flexible:
        return _number_reader(_NUMBERS[number])

    def read(data: bytes, position: int) -> tuple[int, int]:
        length, end = read_unsigned(data, position)
        return length - 1, end

    return read


def _nullable_reader(read_struct: _Reader) -> _Reader:
    """A struct that may be null has a byte before it: -1 null, 1 there (KIP-893)."""

    def read(data: bytes, position: int) -> tuple[Any, int]:
        presence = _NUMBERS["int8"].unpack_from(data, position)[0]
        return (None, position + 1) if presence < 0 else read_struct(data, position + 1)

    return read


def _slice(data: bytes, position: int, size: int) -> tuple[bytes, int]:
    end = position + size
    if end > len(data):
        raise DecodeError(f"{size} bytes at byte {position} of {len(data)}")
    return data[position:end], end
