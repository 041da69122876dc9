"""The records of batches as columns: offsets, times, and where each key and value lies. Sans-IO.

A batch says how many records it has, not where they begin: only a walk from length to length finds
that. The walk is the one loop that runs once a record; every field is then decoded for all records
of all batches at once, for a log written slowly has a batch for each record. Nothing is believed: a
record must lie within its batch, a field within its record. Compressed batches are unpacked first.

Layout: https://kafka.apache.org/documentation/#record
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from fencepost.clusters.protocol.compression import RecordError
from fencepost.clusters.protocol.decompression import decompressed
from fencepost.clusters.protocol.record_batches import HEADER_BYTES, BatchHeader
from fencepost.clusters.protocol.record_encoding import Header
from fencepost.clusters.protocol.varints import CONTINUED, VarintError, read_signed

_LONG_OR_NEGATIVE: Final = CONTINUED | 1
_TOO_FEW: Final = "it has fewer records than it says"
_LENGTH_MAX: Final = 1 << 40
"""A length near 2⁶³ must not wrap around to a place that exists."""
_BYTES_MAX: Final = 10
"""Of 64 bits, seven at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records of some batches, in their order; arrays have one element a record."""

    batches: tuple[BatchHeader, ...]
    """The batches that could be read, up to the first that could not."""
    batch_index: NDArray[np.int64]
    """Into `batches`."""
    offsets: NDArray[np.int64]
    timestamps_ms: NDArray[np.int64]
    data: bytes
    """Their bytes, decompressed, record after record."""
    content_starts: NDArray[np.int64]
    """The start of key and value in `data`: the key's length, key, the value's length, value."""
    value_starts: NDArray[np.int64]
    value_lengths: NDArray[np.int64]
    """The lengths of the values; -1 for null."""
    value_ends: NDArray[np.int64]
    damage: str | None
    """The reason why the batch after the last of `batches` could not be read."""

    def __len__(self) -> int:
        return len(self.offsets)

    def of_batches(self, column: str) -> NDArray[np.int64]:
        """A field or property of each record's batch, by its name."""
        return _of(self.batches, column, self.batch_index)

    def first_batches(self, count: int) -> "Records":
        """The records of the first `count` batches."""
        end = int(np.searchsorted(self.batch_index, count))
        return replace(
            self,
            batches=self.batches[:count],
            **{name: getattr(self, name)[:end] for name in _COLUMNS},
        )

    def key(self, index: int) -> bytes | None:
        """The key of a record."""
        length, start = read_signed(self.data, int(self.content_starts[index]))
        return None if length < 0 else self.data[start : start + length]

    def value(self, index: int) -> bytes | None:
        """The value of a record."""
        if self.value_lengths[index] < 0:
            return None
        return self.data[self.value_starts[index] : self.value_ends[index]]

    def headers(self, index: int) -> tuple[Header, ...]:
        """The headers of a record. Raises RecordError."""
        try:
            return tuple(_headers(self.data, int(self.value_ends[index])))
        except VarintError as error:
            raise RecordError(f"headers at offset {self.offsets[index]}: {error}") from error


def _of(
    batches: Sequence[BatchHeader], column: str, batch_index: NDArray[np.int64]
) -> NDArray[np.int64]:
    return np.array([getattr(batch, column) for batch in batches], np.int64)[batch_index]


def _headers(data: bytes, position: int) -> list[Header]:
    count, position = read_signed(data, position)
    found: list[Header] = []
    for _ in range(count):
        name, position = _read_bytes(data, position)
        value, position = _read_bytes(data, position)
        found.append((name or b"", value))
    return found


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, start = read_signed(data, position)
    if length < 0:
        return None, start
    if start + length > len(data):
        raise VarintError(f"{length} bytes at byte {start} of {len(data)}")
    return data[start : start + length], start + length


_COLUMNS: Final = tuple(one.name for one in fields(Records) if one.type == NDArray[np.int64])


def records_of(data: bytes, batches: Sequence[BatchHeader]) -> Records:
    """The records of batches that a scan found in `data`.

    A batch whose records are not what its header says ends it: `damage` names it.
    """
    damage: str | None = None
    readable = tuple(batches)
    while True:
        try:
            return _records(data, readable, damage=damage)
        except _BadBatchError as error:
            damage = f"the batch at offset {readable[error.index].base_offset}: {error}"
            readable = readable[: error.index]


def _records(data: bytes, batches: tuple[BatchHeader, ...], *, damage: str | None) -> Records:
    payloads = [_payload(data, batch, index) for index, batch in enumerate(batches)]
    joined = b"".join(payloads)
    begins, ends = _record_borders(
        joined, payloads, counts=[batch.record_count for batch in batches]
    )
    counts = np.array([batch.record_count for batch in batches], np.int64)
    batch_index = np.repeat(np.arange(len(batches)), counts)
    fields = _RecordFields.read(joined, begins=begins, ends=ends, batch_index=batch_index)
    return Records(
        batches=batches,
        batch_index=batch_index,
        offsets=_of(batches, "base_offset", batch_index) + fields.offset_deltas,
        timestamps_ms=_timestamps(batches, batch_index, fields.timestamp_deltas),
        data=joined,
        content_starts=fields.content_starts,
        value_starts=fields.value_starts,
        value_lengths=fields.value_lengths,
        value_ends=fields.value_ends,
        damage=damage,
    )


def _payload(data: bytes, batch: BatchHeader, index: int) -> bytes:
    body = data[batch.position + HEADER_BYTES : batch.position + batch.size_bytes]
    if not batch.compressed:
        return body
    try:
        return decompressed(body, batch.compression)
    except RecordError as error:
        raise _BadBatchError(index, str(error)) from error


def _timestamps(
    batches: Sequence[BatchHeader], batch_index: NDArray[np.int64], deltas: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the records' creation times or, where the topic says so, the batches' append times."""
    created = _of(batches, "base_timestamp_ms", batch_index) + deltas
    appended = _of(batches, "log_append_time", batch_index).astype(bool)
    return np.where(appended, _of(batches, "max_timestamp_ms", batch_index), created)


class _BadBatchError(Exception):
    """The records of one batch are not what its header says."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index: Final = index


def _record_borders(
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
                    raise _BadBatchError(index, _TOO_FEW if begins[-1] > batch_end else why)
                ends.append(position)
        except (VarintError, IndexError):
            raise _BadBatchError(index, _TOO_FEW) from None
        if position != batch_end:
            left = batch_end - position
            raise _BadBatchError(index, f"{left} bytes are left behind its last record")
    return np.array(begins, np.int64), np.array(ends, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RecordFields:
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
                raise _BadBatchError(int(batch_index[np.flatnonzero(bad)[0]]), reason)

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
