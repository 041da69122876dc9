"""The records of `__cluster_metadata` (KIP-631) and the control records of its log (KIP-595, -853).

A metadata record is framed: frame version, type and version as unsigned varints, then the message.
A control record has its type in the key. Both are decoded with the definitions of the release that
wrote them; what they do not know is kept as bytes and named "unknown".
"""

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fencepost.clusters.protocol.message_decoder import DecodeError, Fields, decoder_of, default_of
from fencepost.clusters.protocol.message_definitions import Message
from fencepost.clusters.protocol.varints import VarintError, read_unsigned

CONTROL_MESSAGES: Final[Mapping[int, str]] = {
    2: "LeaderChangeMessage",
    3: "SnapshotHeaderRecord",
    4: "SnapshotFooterRecord",
    5: "KRaftVersionRecord",
    6: "VotersRecord",
}
"""The names by the type in a control record's key. 0 and 1 end transactions, absent in this log."""

UNKNOWN: Final = "unknown"
"""The type of a record that could not be decoded."""

_FRAME_VERSION: Final = 1
_CONTROL_KEY_BYTES: Final = 4
_VERSION_BYTES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedRecord:
    """One record, decoded as far as it could be."""

    type: str
    type_key: int
    """The type's key; -1: not even that could be read."""
    version: int
    control: bool
    fields: Fields
    """Empty where the type is unknown."""
    detail: str
    """The fields in one line, without those that are optional and absent; or why there are none."""

    @property
    def known(self) -> bool:
        """True if it could be decoded."""
        return self.type != UNKNOWN


class Definitions:
    """The definitions of one release, as decoders of metadata records and control records."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self._by_key: dict[int, Message] = {}
        self._control: dict[str, Message] = {}
        for message in messages:
            if message.kind == "metadata" and message.type_key is not None:
                self._by_key[message.type_key] = message
            elif message.name in CONTROL_MESSAGES.values():
                self._control[message.name] = message
        # By name and version.
        self._formats: dict[tuple[str, int], _Format] = {}

    @property
    def record_types(self) -> Mapping[int, str]:
        """The metadata records that these definitions know, by type."""
        return {key: message.name for key, message in sorted(self._by_key.items())}

    def metadata_record(self, value: bytes | None) -> DecodedRecord:
        """Decode the value of a record that is not a control record."""
        if value is None:
            return _unknown(-1, -1, "a record without a value", control=False)
        try:
            frame_version, type_key, version, at = _frame(value)
        except VarintError as error:
            return _unknown(-1, -1, f"no frame: {error}", control=False)
        message = self._by_key.get(type_key)
        if frame_version != _FRAME_VERSION or message is None:
            why = f"no definition of type {type_key} in frame version {frame_version}"
            return _unknown(type_key, version, why, control=False)
        return self._decoded(message, type_key, version, value[at:], control=False)

    def control_record(self, key: bytes | None, value: bytes | None) -> DecodedRecord:
        """Decode a control record."""
        if key is None or len(key) < _CONTROL_KEY_BYTES:
            return _unknown(-1, -1, "a control record without a type", control=True)
        type_key = int.from_bytes(key[_VERSION_BYTES:_CONTROL_KEY_BYTES], signed=True)
        message = self._control.get(CONTROL_MESSAGES.get(type_key, ""))
        if message is None or value is None:
            return _unknown(type_key, -1, f"no definition of control type {type_key}", control=True)
        # Every one of them begins with its own version.
        version = int.from_bytes(value[:_VERSION_BYTES], signed=True)
        return self._decoded(message, type_key, version, value, control=True)

    def _decoded(
        self, message: Message, type_key: int, version: int, content: bytes, *, control: bool
    ) -> DecodedRecord:
        try:
            found = self._format(message, version)
            fields = found.decode(content)
        except DecodeError as error:
            return _unknown(type_key, version, str(error), control=control)
        return DecodedRecord(
            type=message.name,
            type_key=type_key,
            version=version,
            control=control,
            fields=fields,
            detail=_line(fields, optional=found.optional),
        )

    def _format(self, message: Message, version: int) -> "_Format":
        key = (message.name, version)
        if key not in self._formats:
            optional = {
                field.name: default_of(field, version)
                for field in message.fields
                if version in field.versions and version in field.tagged
            }
            decode = decoder_of(message, version)
            self._formats[key] = _Format(decode=decode, optional=optional)
        return self._formats[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Format:
    decode: Callable[[bytes], Fields]
    optional: Fields
    """The tagged fields of this version, at their defaults."""


def _frame(value: bytes) -> tuple[int, int, int, int]:
    """Return (frame version, type, version, where the message begins)."""
    frame_version, at = read_unsigned(value, 0)
    type_key, at = read_unsigned(value, at)
    version, at = read_unsigned(value, at)
    return frame_version, type_key, version, at


def _unknown(type_key: int, version: int, why: str, *, control: bool) -> DecodedRecord:
    return DecodedRecord(
        # Types and versions are 16 bits wide everywhere else; what is wider is nonsense anyway.
        type=UNKNOWN,
        type_key=type_key if -1 <= type_key < 1 << 15 else -1,
        version=version if -1 <= version < 1 << 15 else -1,
        control=control,
        fields={},
        detail=why,
    )


def _line(fields: Fields, *, optional: Fields) -> str:
    """Return `partitionId=0 isr=[1,2]`: like Kafka's tools, without tagged fields at defaults."""
    return " ".join(
        f"{name}={_JSON.encode(value)}"
        for name, value in fields.items()
        if name not in optional or value != optional[name]
    )


def _text(value: bytes) -> str:
    return b64encode(value).decode()


_JSON: Final = json.JSONEncoder(default=_text, separators=(",", ":"))
