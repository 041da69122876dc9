"""Jute, ZooKeeper's serialisation: big-endian numbers; strings and buffers behind their length.

A length of -1 is null. Source: `org.apache.jute.BinaryInputArchive`.
"""

import struct
from collections.abc import Callable
from typing import Final, TypeVar

_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_BOOL: Final = struct.Struct(">?")

Item = TypeVar("Item")


class JuteError(ValueError):
    """The bytes end before the value, or state a length that cannot be."""


class JuteReader:
    """Reads values one after the other; raises JuteError."""

    __slots__ = ("_data", "at")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self.at = at
        """The place of the next value."""

    def i32(self) -> int:
        """Read 32 bits."""
        return self._number(_INT)

    def i64(self) -> int:
        """Read 64 bits."""
        return self._number(_LONG)

    def flag(self) -> bool:
        """Read a truth value."""
        return bool(self._number(_BOOL))

    def buffer(self) -> bytes | None:
        """Read bytes, or None."""
        size = self.i32()
        if size == -1:
            return None
        begin, self.at = self.at, self.at + size
        if size < 0 or self.at > len(self._data):
            raise JuteError(f"{size} bytes at {begin} of {len(self._data)}")
        return self._data[begin : self.at]

    def text(self) -> str:
        """Read a string; a null is an empty one."""
        return (self.buffer() or b"").decode("utf-8", "replace")

    def vector(self, item: Callable[[], Item]) -> list[Item]:
        """Read a vector, each item by `item`; a null is an empty one."""
        # Each item takes a byte or more, so that a length without items ends early.
        return [item() for _ in range(self.i32())]

    def skip(self, size: int) -> None:
        """Pass over bytes."""
        self.at += size
        if self.at > len(self._data):
            raise JuteError(f"the bytes end at {len(self._data)}, not {self.at}")

    @property
    def ended(self) -> bool:
        """Return whether nothing is left."""
        return self.at >= len(self._data)

    def _number(self, form: struct.Struct) -> int:
        try:
            (value,) = form.unpack_from(self._data, self.at)
        except struct.error as error:
            raise JuteError(str(error)) from None
        self.at += form.size
        number: int = value
        return number
