"""Batches of a few records, made and read one record at a time: no column is worth it for them."""

from collections.abc import Iterable, Iterator
from typing import Final

from clusters.protocol.message_decoder import DecodeError
from clusters.protocol.record_batches import HEADER_BYTES, Batch, encoded_batch_header
from clusters.protocol.record_encoding import encoded_record
from clusters.protocol.varints import VarintError, read_signed

__all__ = ["Entry", "entries_in", "made_batch"]

Entry = tuple[bytes | None, bytes | None]
"""Key and value of a record."""

_CONTROL: Final = 0x20


def made_batch(
    base_offset: int,
    epoch: int,
    entries: Iterable[Entry],
    *,
    time_ms: int,
    control: bool = False,
) -> bytes:
    """A batch of these records, the first of them at `base_offset`."""
    records = [
        encoded_record(offset_delta=delta, key=key, value=value)
        for delta, (key, value) in enumerate(entries)
    ]
    body = b"".join(records)
    header = Batch(
        base_offset=base_offset,
        length=0,
        leader_epoch=epoch,
        magic=2,
        crc=0,
        attributes=_CONTROL if control else 0,
        last_offset_delta=len(records) - 1,
        base_timestamp_ms=time_ms,
        max_timestamp_ms=time_ms,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=len(records),
        position=0,
    )
    return encoded_batch_header(header, body) + body


def entries_in(data: bytes, batch: Batch) -> Iterator[Entry]:
    """Yield (key, value) of each record of a batch scanned in `data`. Raises DecodeError."""
    at = batch.position + HEADER_BYTES
    try:
        for _ in range(batch.record_count):
            length, at = read_signed(data, at)
            end = at + length
            _, at = read_signed(data, at + 1)
            _, at = read_signed(data, at)
            key, at = _bytes(data, at)
            value, _ = _bytes(data, at)
            yield key, value
            at = end
    except VarintError as error:
        raise DecodeError(f"the batch at offset {batch.base_offset}: {error}") from error


def _bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, start = read_signed(data, position)
    return (None, start) if length < 0 else (data[start : start + length], start + length)
