"""Looks at the disk of a node during a run, and at what a power cut takes from it.

Quick ones are for conditions that are asked many times a second. A running broker appends, rolls,
truncates and deletes meanwhile. Each look is of one moment or of none: what vanishes under it is
looked for again, a few times.

The losses of a power cut are stated by replica, in bytes. Both looks are at a disk that no process
writes to: the first while every thread of the node is stopped, the second once the disk is mounted
again.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from fencepost.clusters.hosts.disk import file_sizes
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.metadata_records import Definitions
from fencepost.clusters.protocol.record_batches import HEADER_BYTES, BatchHeader, batch_at
from fencepost.clusters.witness.metadata_log import read_metadata_log
from fencepost.clusters.witness.segments import LogSegment, segments_of

_TRIES: Final = 5
_INDEX_ENTRY_BYTES: Final = 8
_REPLICA: Final = re.compile(r".+-\d+")
_HOLDING: Final = frozenset({".log", ".checkpoint"})
"""Indexes are made anew, and preallocated: their sizes mean nothing."""
_NAMED_MAX: Final = 6
"""Replicas named in one sentence; the rest is counted."""


def topic_names(data: Path, definitions: Definitions) -> Mapping[str, str]:
    """The name of each topic by its id, as far as this metadata log goes; deleted ones too."""
    names: dict[str, str] = {}
    for piece in read_metadata_log(NodeName("any"), data, definitions=definitions):
        rows = piece.rows.select(["type", "topic_id", "topic"]).to_pylist()
        names |= {row["topic_id"]: row["topic"] for row in rows if row["type"] == "TopicRecord"}
    return names


def log_end_offset(data: Path, key: str) -> int | None:
    """The offset that the next record of this replica will have; None if it is not on the disk.

    Only the headers of the last few batches are read, and no checksums are verified.
    """
    for _ in range(_TRIES):
        segments = segments_of(data / key)
        if not segments:
            return None
        try:
            return _end_of(segments[-1])
        except FileNotFoundError:
            continue  # it was rolled, or deleted, since its directory was listed
    return None


def _end_of(segment: LogSegment) -> int:
    descriptor = os.open(segment.path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        for start in _starts(segment, size):
            end = _end_from(descriptor, start, size=size, base_offset=segment.base_offset)
            if end is not None:
                return end
        return segment.base_offset
    finally:
        os.close(descriptor)


def _end_from(descriptor: int, position: int, *, size: int, base_offset: int) -> int | None:
    """Return the end of the log as seen from a batch at this position; None: no batch is there."""
    end: int | None = None
    while position < size:
        batch = batch_at(os.pread(descriptor, HEADER_BYTES, position), 0)
        if not isinstance(batch, BatchHeader) or position + batch.size_bytes > size:
            break
        if batch.base_offset < (base_offset if end is None else end):
            return None
        end = batch.last_offset + 1
        position += batch.size_bytes
    return end


def _starts(segment: LogSegment, size: int) -> Iterator[int]:
    """Yield the positions to look from: the offset index's last, if credible; then the beginning.

    The index of a running broker is a large file of zeros, filled from its beginning; what it held
    of records that were truncated stays in it until it is overwritten.
    """
    try:
        entries = segment.path.with_suffix(".index").read_bytes().rstrip(b"\x00")
    except FileNotFoundError:
        entries = b""
    if count := -(-len(entries) // _INDEX_ENTRY_BYTES):
        last = entries[(count - 1) * _INDEX_ENTRY_BYTES :].ljust(_INDEX_ENTRY_BYTES, b"\x00")
        position = int.from_bytes(last[4:])
        if 0 < position < size:
            yield position
    yield 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaHoldings:
    """The content of a data directory."""

    log_ends: Mapping[str, int]
    """The log end offset of each replica, by its directory: `topic-partition`."""
    file_bytes: Mapping[Path, int]
    """The size of each segment and snapshot, by its path within the data directory."""

    def loss(self, after: Self) -> str:
        """Return what is gone, in words: offsets by replica, and the bytes of all files."""
        gone_bytes = sum(
            max(0, size - after.file_bytes.get(path, 0)) for path, size in self.file_bytes.items()
        )
        if gone_bytes == 0:
            return "it lost nothing: all that its logs and snapshots held was on the disk"
        cut = [
            f"{name} {after.log_ends.get(name, 0)}..{end - 1}"
            for name, end in self.log_ends.items()
            if after.log_ends.get(name, 0) < end
        ]
        more = f" and of {len(cut) - _NAMED_MAX} more replicas" if len(cut) > _NAMED_MAX else ""
        offsets = f": offsets of {', '.join(cut[:_NAMED_MAX])}{more}" if cut else ""
        return f"it lost {gone_bytes:,} bytes of its logs and snapshots{offsets}"


def holdings_of(data: Path) -> ReplicaHoldings:
    """Return what a data directory holds now; nothing if it does not exist."""
    replicas = sorted(path.name for path in data.glob("*") if _REPLICA.fullmatch(path.name))
    ends = {name: log_end_offset(data, name) for name in replicas}
    return ReplicaHoldings(
        log_ends={name: end for name, end in ends.items() if end is not None},
        file_bytes={
            path: size for path, size in file_sizes(data).items() if path.suffix in _HOLDING
        },
    )
