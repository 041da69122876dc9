"""Numbers of variable length by whole columns: for records, of which a log has millions."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from clusters.protocol.varints import CONTINUED

__all__ = ["signed_column"]

_BYTES_MAX: Final = 10
"""Of 64 bits, seven at a time."""


def signed_column(
    data: NDArray[np.uint8], positions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (the zigzag numbers at these positions, where each ends); both as long as positions.

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
