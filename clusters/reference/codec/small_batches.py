"""Batches of a few records, made and read one record at a time: no column is worth it for them.

Commits of groups' offsets are such batches, so that their log holds bytes like any other.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from fencepost.clusters.protocol.message_decoder import DecodeError
from fencepost.clusters.protocol.record_batches import (
    HEADER_BYTES,
    BatchHeader,
    Stop,
    batch_at,
    encoded_batch_header,
)
from fencepost.clusters.protocol.record_encoding import encoded_record
from fencepost.clusters.protocol.varints import VarintError, read_signed

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
    header = BatchHeader(
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


def entries_in(data: bytes, batch: BatchHeader) -> Iterator[Entry]:
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


class CommitRecords:
    """A `serving.groups.CommitCodec`: a batch of one record, whose key is the group.

    `time_ms`: the time since 1970 at each call.
    """

    def __init__(self, time_ms: Callable[[], int]) -> None:
        self._time_ms = time_ms

    def encode(self, commit: tuple[str, tuple[tuple[str, int, int, int, str], ...]]) -> Any:
        """The bytes of a batch that has no offset yet."""
        group, offsets = commit
        entry = (group.encode(), json.dumps(offsets, separators=(",", ":")).encode())
        return made_batch(0, -1, [entry], time_ms=self._time_ms())

    def decode(self, payload: Any) -> tuple[str, tuple[tuple[str, int, int, int, str], ...]]:
        """The commit in such bytes."""
        header = batch_at(payload, 0)
        assert not isinstance(header, Stop), header
        ((group, offsets),) = entries_in(payload, header)
        stated = json.loads(offsets or b"[]")
        return (group or b"").decode(), tuple(tuple(one) for one in stated)


def _bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, start = read_signed(data, position)
    return (None, start) if length < 0 else (data[start : start + length], start + length)
