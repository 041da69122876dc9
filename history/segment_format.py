"""The layout of a raw segment, the file that survives kill -9.

    header (one page)   HEADER: what the file is, then counters that others may read at any time
    text                JSON: the client's name and its keys, padded to a page
    slots               SLOT, 64 bytes an operation: invocation and completion side by side
    rows                ROW, 32 bytes a polled record (`.polled` only)

Why a killed process loses nothing: the file is preallocated and mapped MAP_SHARED, so a store is in
the page cache, which outlives every process (a power cut of the machine it does not outlive). Of
each slot the `state` byte is written last, of the rows the header's `row_count`, so what a reader
sees was complete before the process died. `posix_fallocate` and not a sparse file: a store into a
hole of a full disk is a SIGBUS, where an allocation fails with an error that can be reported.

A file gets its name only when its header is whole, so a `.segment` without one was cut by others.
"""

import fcntl
import json
import mmap
import os
import zlib
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.history.failure import HarnessError

MAGIC: Final = b"FENCPOST"
FORMAT_VERSION: Final = 1
PAGE_BYTES: Final = 4096
PROCESS_SHIFT: Final = 40
"""A value is `process << 40 | sequence`: unique in a run, and it names the send that made it."""
UNKNOWN_OFFSET: Final = -1
OPEN_NS: Final = -1
"""The return time of an operation whose end was not seen."""
NO_KEY: Final = -1
INVOKED: Final = 1
RETURNED: Final = 2


class SegmentKind(IntEnum):
    """The content of a segment: its kind of operation."""

    SENDS = 1
    POLLS = 2

    @property
    def suffix(self) -> str:
        """The suffix of its file's name."""
        return ".segment" if self is SegmentKind.SENDS else ".polled"


class ClientCounter(IntEnum):
    """The counters of a client, cumulative, in the header of its first segment."""

    INVOKED = 0
    OK = 1
    FAIL = 2
    INFO = 3
    POLLED_RECORDS = 4
    LAST_OK_NS = 5


HEADER: Final = np.dtype(
    [
        ("magic", "S8"),
        ("format_version", "<i8"),
        ("kind", "<i8"),
        ("process", "<i8"),
        ("ordinal", "<i8"),
        ("first_sequence", "<i8"),
        ("slots_at", "<i8"),
        ("slot_count", "<i8"),
        ("rows_at", "<i8"),
        ("row_capacity", "<i8"),
        ("text_bytes", "<i8"),
        ("checksum", "<i8"),
    ]
)
ROW_COUNT_AT: Final = 128
"""The place of the count of rows in this file: one aligned 8-byte store makes them visible."""
COUNTERS_AT: Final = 136
COUNTERS: Final = slice(COUNTERS_AT // 8, COUNTERS_AT // 8 + len(ClientCounter))

SLOT: Final = np.dtype(
    {
        "names": [
            *("value", "call_ns", "return_ns", "offset"),
            *("key", "error", "outcome", "f", "state"),
        ],
        "formats": ["<i8", "<i8", "<i8", "<i8", "<i4", "<i2", "u1", "u1", "u1"],
        "offsets": [0, 8, 16, 24, 32, 36, 38, 39, 40],
        "itemsize": 64,
    }
)
ROW: Final = np.dtype(
    [
        ("sequence", "<i8"),
        ("offset", "<i8"),
        ("value", "<i8"),
        ("key", "<i4"),
        ("session", "<i4"),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentLayout:
    """The facts that a new segment's header states."""

    kind: SegmentKind
    client: str
    process: int
    keys: tuple[str, ...]
    slot_count: int
    row_capacity: int = 0

    @property
    def text(self) -> bytes:
        """The variable part of the header."""
        return json.dumps({"client": self.client, "keys": self.keys}).encode()

    def header(self, *, ordinal: int, first_sequence: int) -> NDArray[np.void]:
        """Return the fixed part of the header of the client's segment number `ordinal`."""
        text = self.text
        slots_at = PAGE_BYTES + _whole_pages(len(text))
        header = np.zeros(1, HEADER)
        header["magic"] = MAGIC
        header["format_version"] = FORMAT_VERSION
        header["kind"] = self.kind
        header["process"] = self.process
        header["ordinal"] = ordinal
        header["first_sequence"] = first_sequence
        header["slots_at"] = slots_at
        header["slot_count"] = self.slot_count
        header["rows_at"] = slots_at + self.slot_count * SLOT.itemsize
        header["row_capacity"] = self.row_capacity
        header["text_bytes"] = len(text)
        header["checksum"] = checksum(header, text)
        return header


class MappedSegment:
    """A segment mapped for writing. Its views keep the mapping alive, also after the next one."""

    def __init__(self, path: Path, header: NDArray[np.void], descriptor: int) -> None:
        self.path = path
        self.first_sequence = int(header["first_sequence"][0])
        mapped = mmap.mmap(descriptor, segment_bytes(header[0]))
        slots_at, rows_at = int(header["slots_at"][0]), int(header["rows_at"][0])
        self.slots: NDArray[np.void] = np.frombuffer(
            mapped, SLOT, count=int(header["slot_count"][0]), offset=slots_at
        )
        self.rows: NDArray[np.void] = np.frombuffer(
            mapped, ROW, count=int(header["row_capacity"][0]), offset=rows_at
        )
        # Stores through a memoryview of native 8-byte words are single stores: never seen torn.
        words = memoryview(mapped)[:PAGE_BYTES].cast("q")
        self.counters = words[COUNTERS]
        self.row_count = words[ROW_COUNT_AT // 8 : ROW_COUNT_AT // 8 + 1]


def create_segment(
    directory: Path, layout: SegmentLayout, *, ordinal: int, first_sequence: int
) -> tuple[MappedSegment, int]:
    """Allocate and map a new segment; return it and its file descriptor, which the caller closes.

    The first segment is locked (flock) before it has its name.

    Raises HarnessError, naming the file and its size, if the disk has no room for it.
    """
    path = directory / segment_name(layout.client, layout.kind, ordinal)
    header = layout.header(ordinal=ordinal, first_sequence=first_sequence)
    unnamed = path.with_name(f"{path.name}.new")
    if path.exists():
        raise HarnessError(f"cannot create the segment {path}: another client has written it")
    try:
        descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    except OSError as error:
        raise HarnessError(f"cannot create the segment {path}: {error.strerror}") from error
    try:
        os.posix_fallocate(descriptor, 0, segment_bytes(header[0]))
        os.pwrite(descriptor, header.tobytes(), 0)
        os.pwrite(descriptor, layout.text, PAGE_BYTES)
        if ordinal == 0:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        unnamed.rename(path)
        return MappedSegment(path, header, descriptor), descriptor
    except OSError as error:
        os.close(descriptor)
        unnamed.unlink(missing_ok=True)
        raise HarnessError(
            f"cannot allocate {segment_bytes(header[0])} bytes for the segment {path}: "
            f"{error.strerror}; free some space, or record with fewer clients"
        ) from error


def segment_name(client: str, kind: SegmentKind, ordinal: int) -> str:
    """Return the name of a client's segment file."""
    return f"{client}-{ordinal:06}{kind.suffix}"


def segment_bytes(header: np.void) -> int:
    """Return the length of the whole file, in bytes."""
    return int(header["rows_at"]) + int(header["row_capacity"]) * ROW.itemsize


def checksum(header: NDArray[np.void], text: bytes) -> int:
    """Return the checksum of the parts of a header that never change, itself left out."""
    fixed = header.tobytes()[: HEADER.fields["checksum"][1]] if HEADER.fields else b""
    return zlib.crc32(text, zlib.crc32(fixed))


def _whole_pages(size: int) -> int:
    return -(-size // PAGE_BYTES) * PAGE_BYTES
