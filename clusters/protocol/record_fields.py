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

from clusters.protocol.varint_columns import signed_column
from clusters.protocol.varints import CONTINUED, VarintError, read_signed

__all__ = ["BadBatchError", "RecordFields", "record_borders"]

_LONG_OR_NEGATIVE: Final = CONTINUED | 1
_TOO_FEW: Final = "it has fewer records than it says"
_LENGTH_MAX: Final = 1 << 40
"""A length near 2⁶³ must not wrap around to a place that exists."""


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
