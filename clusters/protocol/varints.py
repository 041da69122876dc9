"""Kafka's numbers of variable length: base 128, low bits first; signed ones zigzag (KIP-98).

One at a time for what is read once, and whole columns for records, of which a log has millions.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CONTINUED",
    "VarintError",
    "encoded_signed",
    "encoded_unsigned",
    "read_signed",
    "read_unsigned",
    "signed_column",
]

CONTINUED: Final = 0x80
"""This bit of a byte says that another follows."""

_BYTES_MAX: Final = 10
"""Of 64 bits, seven at a time."""
_LIMIT: Final = 1 << 64


class VarintError(Exception):
    """There is no number of at most 64 bits at this place."""


def read_unsigned(data: bytes, position: int) -> tuple[int, int]:
    """(the number here, where it ends). Raises VarintError."""
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


def signed_column(
    data: NDArray[np.uint8], positions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(the zigzag numbers at these positions, where each ends); both of the positions' length.

    A number that runs past the data, or past 64 bits, ends behind the data: compare the ends with
    where they may be at most before using the numbers.
    """
    last = len(data) - 1
    bad = np.int64(len(data) + _BYTES_MAX)
    ends = positions + 1
    ends[positions > last] = bad
    byte = data[np.minimum(positions, last)]
    raw = (byte & 0x7F).astype(np.uint64)
    longer = np.flatnonzero(byte >= CONTINUED)
    for place in range(1, _BYTES_MAX):
        if not longer.size:
            break
        at = positions[longer] + place
        byte = data[np.minimum(at, last)]
        raw[longer] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * place)
        ends[longer] = np.where(at > last, bad, at + 1)
        if place == _BYTES_MAX - 1:
            byte[byte > 1] |= CONTINUED  # of the tenth byte, 64 bits have room for one
        longer = longer[(byte >= CONTINUED) & (at <= last)]
    ends[longer] = bad
    values = (raw >> np.uint64(1)).astype(np.int64) ^ -(raw & np.uint64(1)).astype(np.int64)
    return values, ends
