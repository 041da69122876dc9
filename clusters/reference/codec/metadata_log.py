"""The metadata log and its snapshots as bytes: what lies on a node's disk, and what Fetch carries.

Records that were decided together are one batch, so that they are there as a whole or not at all. A
leader change is a control batch of its own. A snapshot (KIP-630) is a file of batches: a header,
the records, a footer; without the footer it is not whole.
"""

from collections.abc import Iterator
from typing import Final

from fencepost.clusters.node_port.storage import MetadataBatch, Snapshot
from fencepost.clusters.protocol.message_decoder import DecodeError
from fencepost.clusters.protocol.message_encoder import encoder_of
from fencepost.clusters.protocol.record_batches import (
    BatchHeader,
    BatchScan,
    scan_batches,
)
from fencepost.clusters.reference.codec.metadata_records import (
    encoded,
    leader_change,
    leader_change_value,
    record_in,
)
from fencepost.clusters.reference.codec.record_definitions import MESSAGES
from fencepost.clusters.reference.codec.small_batches import entries_in, made_batch
from fencepost.clusters.reference.nodes.records import LeaderChangeMessage, MetadataRecord

_LEADER_CHANGE_KEY: Final = bytes((0, 0, 0, 2))
_HEADER_KEY: Final = bytes((0, 0, 0, 3))
_FOOTER_KEY: Final = bytes((0, 0, 0, 4))
_SNAPSHOT_RECORDS_MAX: Final = 1000
"""The most records of a batch: a decoder holds one batch at a time."""

_BY_NAME: Final = {one.name: one for one in MESSAGES}
_HEADER_VALUE: Final = encoder_of(_BY_NAME["SnapshotHeaderRecord"], 0)
_FOOTER_VALUE: Final = encoder_of(_BY_NAME["SnapshotFooterRecord"], 0)


def encoded_batch(batch: MetadataBatch) -> bytes:
    """A batch of the metadata log."""
    time_ms = batch.time_ms
    first = batch.records[0]
    if isinstance(first, LeaderChangeMessage):
        assert len(batch.records) == 1, batch
        entries = [(_LEADER_CHANGE_KEY, leader_change_value(first))]
        return made_batch(batch.base_offset, batch.epoch, entries, time_ms=time_ms, control=True)
    values = [(None, encoded(record)) for record in batch.records]
    return made_batch(batch.base_offset, batch.epoch, values, time_ms=time_ms)


def batches_in(data: bytes) -> tuple[MetadataBatch, ...]:
    """The batches of a log, or of a piece of one. Raises DecodeError if it is not whole."""
    scan = scan_batches(data)
    if scan.stop is not None:
        raise DecodeError(f"batches of the metadata log: {scan.stop.reason}")
    return tuple(batch for batch, _ in scanned(data, scan))


def scanned(data: bytes, scan: BatchScan) -> Iterator[tuple[MetadataBatch, int]]:
    """Yield (batch, where it ends) for each batch that a scan found. Raises DecodeError."""
    for batch in scan.batches:
        records = tuple(_records(data, batch))
        yield (
            MetadataBatch(batch.base_offset, batch.leader_epoch, records, batch.base_timestamp_ms),
            batch.position + batch.size_bytes,
        )


def encoded_snapshot(snapshot: Snapshot, *, time_ms: int) -> bytes:
    """The file of a snapshot."""
    parts = [
        _control(_HEADER_KEY, _HEADER_VALUE({"lastContainedLogTimestamp": time_ms}), 0, snapshot)
    ]
    offset = 1
    for begin in range(0, len(snapshot.records), _SNAPSHOT_RECORDS_MAX):
        some = snapshot.records[begin : begin + _SNAPSHOT_RECORDS_MAX]
        values = [(None, encoded(record)) for record in some]
        parts.append(made_batch(offset, snapshot.epoch, values, time_ms=time_ms))
        offset += len(some)
    parts.append(_control(_FOOTER_KEY, _FOOTER_VALUE({}), offset, snapshot))
    return b"".join(parts)


def snapshot_in(data: bytes, *, end_offset: int, epoch: int) -> Snapshot:
    """The snapshot in a file's bytes. Raises DecodeError if it is not whole."""
    scan = scan_batches(data)
    if scan.stop is not None or not scan.batches or not _is_footer(data, scan.batches[-1]):
        why = scan.stop.reason if scan.stop else "it has no footer"
        raise DecodeError(f"the snapshot of {end_offset} in epoch {epoch}: {why}")
    records = tuple(
        record for batch in scan.batches if not batch.control for record in _records(data, batch)
    )
    return Snapshot(end_offset=end_offset, epoch=epoch, records=records)


class SnapshotBytes:
    """The codec of processes: a snapshot as the bytes of its file, written at no time."""

    def encoded(self, snapshot: Snapshot) -> bytes:
        """Return the bytes of its file."""
        return encoded_snapshot(snapshot, time_ms=0)

    def decoded(self, data: bytes, *, end_offset: int, epoch: int) -> Snapshot | None:
        """Return the snapshot in these bytes; None if they are not one."""
        try:
            return snapshot_in(data, end_offset=end_offset, epoch=epoch)
        except DecodeError:
            return None


def _records(data: bytes, batch: BatchHeader) -> Iterator[MetadataRecord]:
    for _, value in entries_in(data, batch):
        yield leader_change(value or b"") if batch.control else record_in(value)


def _is_footer(data: bytes, batch: BatchHeader) -> bool:
    return batch.control and [key for key, _ in entries_in(data, batch)] == [_FOOTER_KEY]


def _control(key: bytes, value: bytes, offset: int, snapshot: Snapshot) -> bytes:
    return made_batch(offset, snapshot.epoch, [(key, value)], time_ms=0, control=True)
