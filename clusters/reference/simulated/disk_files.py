"""A simulated disk as the directory that a process of the reference cluster would have written.

The files are written by the very code of processes (`clusters.reference.shell`). A simulated disk
holds values: what a process gets as bytes (records of clients) is encoded here as a client does it,
uncompressed, with values of 8 bytes. Times are those at which a record was first appended anywhere
(`AppendTimes`); those of records in partitions are the clients'.
"""

from array import array
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from fencepost.clusters.node_port.storage import (
    META_PROPERTIES,
    METADATA,
    SNAPSHOT,
    Batch,
    MetadataBatch,
    PartitionKey,
    Snapshot,
)
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.record_batches import BatchHeader, encoded_batch_header
from fencepost.clusters.protocol.record_encoding import encoded_record
from fencepost.clusters.reference.codec.metadata_log import encoded_batch, encoded_snapshot
from fencepost.clusters.reference.shell.disk import DataDirectories
from fencepost.clusters.reference.shell.kept_log import CutPrefix, keep
from fencepost.clusters.reference.simulated.append_times import AppendTimes
from fencepost.clusters.simulation.disk import Disk

_VALUE_BYTES: Final = 8


def keep_cuts(disk: Disk, kept: Path, times: AppendTimes) -> None:
    """Keep in `kept`, as a process does, what is cut off the disk's metadata log from now on."""

    def cut(batches: list[MetadataBatch], offset: int) -> None:
        snapshot: Snapshot = disk.files[SNAPSHOT]
        keep(
            kept,
            CutPrefix(
                begin=disk.start_of(METADATA),
                offset=offset,
                last=(batches[-1].end_offset, batches[-1].epoch) if batches else None,
                snapshot=(snapshot.end_offset, snapshot.epoch),
            ),
            records=lambda: b"".join(encoded_batch(one) for one in _timed(batches, times)),
            snapshot=lambda: encoded_snapshot(snapshot, time_ms=_written_ms(snapshot, times)),
        )

    disk.keep(cut)


def write_disks(
    disks: Mapping[NodeName, Disk],
    directory: Path,
    *,
    voters: tuple[int, ...],
    topics: Collection[str],
    times: AppendTimes,
) -> dict[NodeName, Path]:
    """Write a data directory for each disk; return them. Of partitions only those of `topics`.

    `voters`: of the quorum that keeps the metadata log, if there is one. A disk on which a node of
    such a quorum would not start, since it is not formatted, is left out.
    """
    found: dict[NodeName, Path] = {}
    opened: list[tuple[Disk, DataDirectories]] = []
    with ExitStack() as stack:
        for node, disk in disks.items():
            if voters and META_PROPERTIES not in disk.files:
                continue
            found[node] = directory / node
            data = _opened(disk, found[node], voters=voters, times=times)
            stack.enter_context(closing(data))
            opened.append((disk, data))
        _write_partitions(opened, topics, times)
        for disk, data in opened:
            for name, value in disk.files.items():
                data.write(name, value)
    return found


def _opened(
    disk: Disk, path: Path, *, voters: tuple[int, ...], times: AppendTimes
) -> DataDirectories:
    """Return a directory with the disk's metadata log."""
    path.mkdir(parents=True)
    data = DataDirectories(
        (path,),
        metadata=None,
        voters=voters,
        now_ms=lambda: _written_ms(disk.files[SNAPSHOT], times),
    )
    if META_PROPERTIES in disk.files:
        data.write(META_PROPERTIES, disk.files[META_PROPERTIES])
    data.contents(incarnation_id=0)
    if voters:
        if start := disk.start_of(METADATA):
            data.advance(METADATA, start)
        for batch in _timed(disk.batches(METADATA), times):
            data.append(METADATA, batch)
    return data


def _write_partitions(
    opened: Iterable[tuple[Disk, DataDirectories]], topics: Collection[str], times: AppendTimes
) -> None:
    """Write the logs, partition by partition: its replicas share batches, which are encoded once.

    On each disk they are made in the order in which they were.
    """
    opened = list(opened)
    for disk, data in opened:
        for log, topic in disk.topics.items():
            if topic in topics:
                data.create(log, topic)
    logs = {log for disk, _ in opened for log, topic in disk.topics.items() if topic in topics}
    for log in sorted(logs):
        known: dict[int, Batch] = {}
        for disk, data in opened:
            if log in disk.topics:
                _write_partition(disk, data, log, known, times)


def _write_partition(
    disk: Disk,
    data: DataDirectories,
    log: PartitionKey,
    known: dict[int, Batch],
    times: AppendTimes,
) -> None:
    if start := disk.start_of(log):
        data.advance(log, start)
    for batch in disk.batches(log):
        encoded = known.get(id(batch))
        if encoded is None:
            encoded = known[id(batch)] = replace(batch, payload=client_bytes(batch, times))
        data.append(log, encoded)


def client_bytes(batch: Batch, times: AppendTimes) -> bytes:
    """Return a batch of a simulated client's values as the bytes that a client would have sent."""
    raw = array("q", batch.payload).tobytes()
    records = [
        _head(delta) + raw[delta * _VALUE_BYTES : (delta + 1) * _VALUE_BYTES] + b"\0"
        for delta in range(batch.count)
    ]
    body = b"".join(records)
    made_ms = times.stamp_ms(getattr(batch.payload, "made_ns", 0))
    header = BatchHeader(
        base_offset=0,
        length=0,
        leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=0,
        last_offset_delta=batch.count - 1,
        base_timestamp_ms=made_ms,
        max_timestamp_ms=made_ms,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        record_count=batch.count,
        position=0,
    )
    return encoded_batch_header(header, body) + body


@lru_cache(maxsize=1 << 16)
def _head(delta: int) -> bytes:
    """Return what stands in a record before its value; behind it is the count of its headers."""
    return encoded_record(offset_delta=delta, value=bytes(_VALUE_BYTES))[: -_VALUE_BYTES - 1]


def _timed(batches: Iterable[MetadataBatch], times: AppendTimes) -> Iterable[MetadataBatch]:
    return (replace(batch, time_ms=times.of(batch)) for batch in batches)


def _written_ms(snapshot: Snapshot, times: AppendTimes) -> int:
    """Return a time for the file of a snapshot: that of the record after it, if that is there."""
    return times.of(MetadataBatch(snapshot.end_offset, snapshot.epoch, ()))
