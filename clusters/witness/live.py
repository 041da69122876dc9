"""Quick looks at the disk of a node that runs: for conditions that are asked many times a second.

A running broker appends, rolls, truncates and deletes meanwhile. Each look is of one moment or of
none: what vanishes under it is looked for again, a few times.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from clusters.port import NodeName
from clusters.protocol.metadata_records import Definitions
from clusters.protocol.record_batches import HEADER_BYTES, BatchHeader, batch_at
from clusters.witness.metadata_log import read_metadata_log
from clusters.witness.segments import LogSegment, segments_of

__all__ = ["log_end_offset", "topic_names"]

_TRIES: Final = 5
_INDEX_ENTRY_BYTES: Final = 8


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
