"""The positions of each record in some batches, and of each of its fields. Sans-IO.

A batch says how many records it has, not where they begin: only a walk from length to length finds
that. The walk is the one loop that runs once a record; every field is then decoded for all records
at once. Nothing is believed: a record must lie within its batch, a field within its record.

Layout: https://kafka.apache.org/documentation/#record
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from clusters.protocol.varints import CONTINUED, VarintError, read_signed

__all__ = ["BadBatchError", "RecordFields", "record_borders", "signed_column"]

_LONG_OR_NEGATIVE: Final = CONTINUED | 1
_TOO_FEW: Final = "it has fewer records than it says"
_LENGTH_MAX: Final = 1 << 40
"""A length near 2⁶³ must not wrap around to a place that exists."""
_BYTES_MAX: Final = 10
"""Of 64 bits, seven at a time."""


class BadBatchError(Exception):
    """The records of one batch are not what its header says."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index: Final = index


def record_borders(
    joined: bytes, payloads: Sequence[bytes], *, counts: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each record begins (after its length) and where it ends.

    `joined` is all payloads, one for each batch; `counts` has the batches' numbers of records.
    Raises BadBatchError.
    """
    begins: list[int] = []
    ends: list[int] = []
    position = 0
    for index, (payload, count) in enumerate(zip(payloads, counts, strict=True)):
        batch_end = position + len(payload)
        try:
            for _ in range(count):
                # The number before a record, with its two shortest forms spelled out.
                first = joined[position]
                if not first & _LONG_OR_NEGATIVE:
                    length, position = first >> 1, position + 1
                elif not first & 1 and (second := joined[position + 1]) < CONTINUED:
                    length, position = (first & 0x7F | second << 7) >> 1, position + 2
                else:
                    length, position = read_signed(joined, position)
                begins.append(position)
                position += length
                if not begins[-1] <= position <= batch_end:
                    why = f"a record of {length} bytes does not fit in it"
                    raise BadBatchError(index, _TOO_FEW if begins[-1] > batch_end else why)
                ends.append(position)
        except (VarintError, IndexError):
            raise BadBatchError(index, _TOO_FEW) from None
        if position != batch_end:
            left = batch_end - position
            raise BadBatchError(index, f"{left} bytes are left behind its last record")
    return np.array(begins, np.int64), np.array(ends, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFields:
    """Columns with one element a record; places are in the joined payloads."""

    timestamp_deltas: NDArray[np.int64]
    offset_deltas: NDArray[np.int64]
    content_starts: NDArray[np.int64]
    value_starts: NDArray[np.int64]
    value_lengths: NDArray[np.int64]
    value_ends: NDArray[np.int64]

    @classmethod
    def read(
        cls,
        joined: bytes,
        *,
        begins: NDArray[np.int64],
        ends: NDArray[np.int64],
        batch_index: NDArray[np.int64],
    ) -> Self:
        """Decode the fields of all records. Raises BadBatchError."""
        # One byte more, so that there is one to look at where nothing is left.
        data = np.frombuffer(joined + b"\x00", np.uint8)

        def refused(bad: NDArray[np.bool_], reason: str) -> None:
            if bad.any():
                raise BadBatchError(int(batch_index[np.flatnonzero(bad)[0]]), reason)

        def within(positions: NDArray[np.int64]) -> NDArray[np.int64]:
            refused(positions > ends, "a field reaches past the end of its record")
            return positions

        def behind(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
            refused(lengths < -1, "a key or value has less than no bytes")
            return within(starts + np.clip(lengths, 0, _LENGTH_MAX))

        timestamp_deltas, at = signed_column(data, begins + 1)
        offset_deltas, at = signed_column(data, within(at))
        content_starts = within(at)
        key_lengths, at = signed_column(data, content_starts)
        value_lengths, at = signed_column(data, behind(within(at), key_lengths))
        value_starts = within(at)
        return cls(
            timestamp_deltas=timestamp_deltas,
            offset_deltas=offset_deltas,
            content_starts=content_starts,
            value_starts=value_starts,
            value_lengths=value_lengths,
            value_ends=behind(value_starts, value_lengths),
        )


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
