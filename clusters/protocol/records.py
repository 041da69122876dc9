"""The records of batches as columns: offsets, times, and where each key and value lies. Sans-IO.

All batches are decoded together, a field at a time (`record_fields`): a log written slowly has a
batch for each record. Compressed batches are unpacked first.

Layout: https://kafka.apache.org/documentation/#record
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clusters.protocol.compression import RecordError
from clusters.protocol.decompression import decompressed
from clusters.protocol.record_batches import HEADER_BYTES, Batch
from clusters.protocol.record_encoding import Header, encoded_record
from clusters.protocol.record_fields import BadBatchError, RecordFields, record_borders
from clusters.protocol.varints import VarintError, read_signed

__all__ = ["Header", "Records", "encoded_record", "records_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records of some batches, in their order; arrays have one element a record."""

    batches: tuple[Batch, ...]
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


def _of(batches: Sequence[Batch], column: str, batch_index: NDArray[np.int64]) -> NDArray[np.int64]:
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


def records_of(data: bytes, batches: Sequence[Batch]) -> Records:
    """The records of batches that a scan found in `data`.

    A batch whose records are not what its header says ends it: `damage` names it.
    """
    damage: str | None = None
    readable = tuple(batches)
    while True:
        try:
            return _records(data, readable, damage=damage)
        except BadBatchError as error:
            damage = f"the batch at offset {readable[error.index].base_offset}: {error}"
            readable = readable[: error.index]


def _records(data: bytes, batches: tuple[Batch, ...], *, damage: str | None) -> Records:
    payloads = [_payload(data, batch, index) for index, batch in enumerate(batches)]
    joined = b"".join(payloads)
    begins, ends = record_borders(
        joined, payloads, counts=[batch.record_count for batch in batches]
    )
    counts = np.array([batch.record_count for batch in batches], np.int64)
    batch_index = np.repeat(np.arange(len(batches)), counts)
    fields = RecordFields.read(joined, begins=begins, ends=ends, batch_index=batch_index)
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


def _payload(data: bytes, batch: Batch, index: int) -> bytes:
    body = data[batch.position + HEADER_BYTES : batch.position + batch.size_bytes]
    if not batch.compressed:
        return body
    try:
        return decompressed(body, batch.compression)
    except RecordError as error:
        raise BadBatchError(index, str(error)) from error


def _timestamps(
    batches: Sequence[Batch], batch_index: NDArray[np.int64], deltas: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the records' creation times or, where the topic says so, the batches' append times."""
    created = _of(batches, "base_timestamp_ms", batch_index) + deltas
    appended = _of(batches, "log_append_time", batch_index).astype(bool)
    return np.where(appended, _of(batches, "max_timestamp_ms", batch_index), created)
