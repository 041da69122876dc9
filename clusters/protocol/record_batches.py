"""Record batches (magic 2) in the bytes of a log: found, checked, and described. Sans-IO.

A log file, a snapshot and the records of a Fetch or Produce are all batches one after the other. A
scan ends at the first byte that no whole, intact batch begins at, and says why: the tail of a
process that was killed is *torn* (more bytes would complete it), anything else is damaged. Nothing
after that is guessed at: a batch is found only by the length of the one before it.

Layout: https://kafka.apache.org/documentation/#recordbatch
"""

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

from crc32c import crc32c

from fencepost.clusters.protocol.compression import Compression, compression_of

HEADER_BYTES: Final = 61
_LOG_OVERHEAD_BYTES: Final = 12
"""Base offset and batch length: what the length does not count."""
_CRC_COVERS_FROM: Final = 21
_BATCH_BYTES_MAX: Final = 1 << 28
"""The largest credible batch: no broker takes over 100 MiB, no snapshot writer over 8."""
_MAGIC: Final = 2
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")

_COMPRESSION: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20


class BatchHeader(NamedTuple):
    """The header of a batch, and where it begins in the bytes that were scanned.

    A named tuple, since a log of single records has one for each of them: made in a fifth of the
    time of a frozen dataclass.
    """

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    position: int

    @property
    def size_bytes(self) -> int:
        """The size of all of it, its first two fields included."""
        return _LOG_OVERHEAD_BYTES + self.length

    @property
    def last_offset(self) -> int:
        """The offset of its last record; compaction may remove that record, never the offset."""
        return self.base_offset + self.last_offset_delta

    @property
    def compression(self) -> Compression:
        """The compression of its records. Raises RecordError for a codec without a name."""
        return compression_of(self.attributes & _COMPRESSION)

    @property
    def compressed(self) -> bool:
        """True if its records are compressed at all."""
        return self.attributes & _COMPRESSION != 0

    @property
    def log_append_time(self) -> bool:
        """True: all its records have the time of its append, `max_timestamp_ms`."""
        return self.attributes & _LOG_APPEND_TIME != 0

    @property
    def transactional(self) -> bool:
        """True if it is part of a transaction."""
        return self.attributes & _TRANSACTIONAL != 0

    @property
    def control(self) -> bool:
        """True if it holds a record of the log itself: a marker, a leader change."""
        return self.attributes & _CONTROL != 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The reason why a scan ended before the end of its bytes."""

    reason: str
    torn: bool
    """A batch may begin here, of which bytes are missing at the end."""
    missing_bytes: int = 0
    """The number of further bytes that would complete it, as far as can be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchScan:
    """The batches that were found, in their order."""

    batches: tuple[BatchHeader, ...]
    end: int
    """The position at which the last of them ends."""
    stop: Stop | None
    """None: they filled all bytes."""


def batch_at(data: bytes | memoryview, position: int) -> BatchHeader | Stop:
    """The header at this position; of the batch's records nothing is looked at."""
    if len(data) - position < HEADER_BYTES:
        missing = HEADER_BYTES - (len(data) - position)
        return Stop(reason="ends within the header of a batch", torn=True, missing_bytes=missing)
    batch = BatchHeader._make((*_HEADER.unpack_from(data, position), position))
    # Magic comes first: it has its place also in formats 0 and 1, the other fields have not.
    if batch.magic != _MAGIC:
        return Stop(reason=f"a batch of format {batch.magic}, expected {_MAGIC}", torn=False)
    if not HEADER_BYTES - _LOG_OVERHEAD_BYTES <= batch.length <= _BATCH_BYTES_MAX:
        return Stop(reason=f"a batch of {batch.length} bytes", torn=False)
    if batch.base_offset < 0 or batch.last_offset_delta < 0 or batch.record_count < 0:
        return Stop(
            reason=f"a batch of {batch.record_count} records from offset {batch.base_offset} to "
            f"{batch.last_offset}",
            torn=False,
        )
    return batch


def scan_batches(data: bytes) -> BatchScan:
    """Scan all whole batches from the first byte on, each with its checksum verified."""
    view = memoryview(data)
    size = len(data)
    batches: list[BatchHeader] = []
    position = 0
    stop: Stop | None = None
    while position < size:
        found = _whole_batch_at(view, position)
        if isinstance(found, Stop):
            stop = found
            break
        batches.append(found)
        position += found.size_bytes
    return BatchScan(batches=tuple(batches), end=position, stop=stop)


def encoded_batch_header(batch: BatchHeader, body: bytes) -> bytes:
    """The header as it lies before `body`, its length and checksum set to fit; position unused."""
    length = HEADER_BYTES - _LOG_OVERHEAD_BYTES + len(body)
    fields = batch._replace(length=length, crc=0, magic=_MAGIC)[:-1]
    checked = _HEADER.pack(*fields)[_CRC_COVERS_FROM:] + body
    return _HEADER.pack(*fields[:4], crc32c(checked), *fields[5:])


def _whole_batch_at(view: memoryview, position: int) -> BatchHeader | Stop:
    batch = batch_at(view, position)
    if isinstance(batch, Stop):
        return batch
    end = position + batch.size_bytes
    if end > len(view):
        return Stop(
            reason=f"ends within a batch of {batch.size_bytes} bytes at offset {batch.base_offset}",
            torn=True,
            missing_bytes=end - len(view),
        )
    found = crc32c(view[position + _CRC_COVERS_FROM : end])
    if found != batch.crc:
        return Stop(
            reason=f"checksum of the batch at offset {batch.base_offset}: "
            f"stated {batch.crc:#010x}, found {found:#010x}",
            torn=False,
        )
    return batch
