"""Kafka's numbers of variable length: base 128, low bits first; signed ones zigzag (KIP-98).

One at a time, for what is read once; `records` reads whole columns.
"""

from typing import Final

CONTINUED: Final = 0x80
"""The bit of a byte that says that another follows."""

_BYTES_MAX: Final = 10
"""Of 64 bits, seven at a time."""
_LIMIT: Final = 1 << 64


class VarintError(Exception):
    """There is no number of at most 64 bits at this place."""


def read_unsigned(data: bytes, position: int) -> tuple[int, int]:
    """Return (the number here, where it ends). Raises VarintError."""
    # Nearly all are of one byte: lengths, types, tags.
    if position < len(data) and data[position] < CONTINUED:
        return data[position], position + 1
    value = shift = 0
    for place in range(position, min(position + _BYTES_MAX, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < CONTINUED:
            if value >= _LIMIT:
                break
            return value, place + 1
        shift += 7
    raise VarintError(f"no varint at byte {position} of {len(data)}")


def read_signed(data: bytes, position: int) -> tuple[int, int]:
    """The same for a zigzag number."""
    value, end = read_unsigned(data, position)
    return (value >> 1) ^ -(value & 1), end


def encoded_unsigned(value: int) -> bytes:
    """The shortest form of a number that is not negative."""
    assert value >= 0, value
    out = bytearray()
    while value >= CONTINUED:
        out.append(value & 0x7F | CONTINUED)
        value >>= 7
    out.append(value)
    return bytes(out)


def encoded_signed(value: int) -> bytes:
    """The shortest zigzag form of a number of 64 bits."""
    return encoded_unsigned((value << 1 ^ value >> 63) & 0xFFFF_FFFF_FFFF_FFFF)
