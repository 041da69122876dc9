"""Record batches of partitions: a client's bytes, kept as they came.

Offset and leader epoch lie before what the checksum covers, so a leader sets them and the rest of
the bytes is never touched: what a client encoded and compressed is what its consumers get.
"""

import struct
from collections.abc import Iterator
from typing import Final

from crc32c import crc32c

from fencepost.clusters.node_port.storage import Batch
from fencepost.clusters.protocol.entities import Unreadable
from fencepost.clusters.protocol.record_batches import BatchHeader as Header
from fencepost.clusters.protocol.record_batches import Stop, batch_at

_OFFSET: Final = struct.Struct(">q")
_LENGTH: Final = slice(8, 12)
_EPOCH: Final = struct.Struct(">i")
_EPOCH_END: Final = 16
_CRC_COVERS_FROM: Final = 21


def encoded(batch: Batch) -> bytes:
    """The bytes of a batch, with the offset and the leader epoch that it has by now."""
    payload: bytes = batch.payload
    return b"".join(
        (
            _OFFSET.pack(batch.base_offset),
            payload[_LENGTH],
            _EPOCH.pack(batch.leader_epoch),
            payload[_EPOCH_END:],
        )
    )


def produced(records: bytes | None) -> Batch:
    """Return the one batch that a producer sends for a partition; it has no offset yet.

    Raises Unreadable if it is no batch, more than one, or damaged.
    """
    data = records or b""
    header = _header_at(data, 0)
    if header.size_bytes != len(data):
        raise Unreadable(f"a produced batch of {header.size_bytes} bytes in {len(data)}")
    if (found := crc32c(memoryview(data)[_CRC_COVERS_FROM:])) != header.crc:
        raise Unreadable(f"a produced batch's checksum: {header.crc:#x} stated, {found:#x} found")
    if header.record_count != header.last_offset_delta + 1 or header.control:
        raise Unreadable(f"a produced batch of {header.record_count} records")
    return _batch(header, data, base_offset=-1, leader_epoch=-1)


def placed(header: Header, data: bytes) -> Batch:
    """A batch of a log; `data` has it whole, at the header's position."""
    own = data[header.position : header.position + header.size_bytes]
    return _batch(header, own, base_offset=header.base_offset, leader_epoch=header.leader_epoch)


def batches_in(records: bytes | None) -> Iterator[Batch]:
    """The batches that a leader sends a follower, all of them whole. Raises Unreadable."""
    data = records or b""
    at = 0
    while at < len(data):
        header = _header_at(data, at)
        at += header.size_bytes
        if at > len(data):
            raise Unreadable(f"ends within the batch at offset {header.base_offset}")
        yield placed(header, data)


def _header_at(data: bytes, at: int) -> Header:
    found = batch_at(data, at)
    if isinstance(found, Stop):
        raise Unreadable(f"no record batch: {found.reason}")
    return found


def _batch(header: Header, data: bytes, *, base_offset: int, leader_epoch: int) -> Batch:
    return Batch(
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        count=header.last_offset_delta + 1,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        payload=data,
    )
