"""Raw segments, read back whatever state a kill left them in.

A segment that was cut short (by a copy that broke off, say) is read as far as it goes, and counted:
what is missing must not pass for what never was. A file that is no segment, or whose slots
contradict its header, is refused by name.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fencepost.history.failure import HarnessError
from fencepost.history.operation import F, Outcome
from fencepost.history.segment_format import (
    FORMAT_VERSION,
    HEADER,
    MAGIC,
    NO_KEY,
    PAGE_BYTES,
    PROCESS_SHIFT,
    ROW,
    ROW_COUNT_AT,
    SLOT,
    SegmentKind,
    checksum,
    segment_bytes,
    segment_name,
)

_ROW_COUNT_END: Final = ROW_COUNT_AT + 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFile:
    """One segment: what its header says, and where its contents lie."""

    path: Path
    kind: SegmentKind
    client: str
    process: int
    ordinal: int
    first_sequence: int
    keys: tuple[str, ...]
    slots_at: int
    slot_count: int
    """The number of slots present; fewer than it was made with, if it was cut."""
    rows_at: int
    row_count: int
    """The number of rows that were written and are present."""
    cut: bool

    def slots(self) -> NDArray[np.void]:
        """Return the slots of the operations that were invoked, in order of sequence (mapped).

        Raises HarnessError if a slot contradicts the header.
        """
        if self.slot_count == 0:
            return np.zeros(0, SLOT)
        slots = np.memmap(self.path, SLOT, "r", self.slots_at, self.slot_count)
        used = int(np.count_nonzero(slots["state"]))
        invoked: NDArray[np.void] = np.asarray(slots[:used])
        first = (self.process << PROCESS_SHIFT) + self.first_sequence
        expected = np.arange(first, first + used)
        if not (invoked["state"].all() and np.array_equal(invoked["value"], expected)):
            raise HarnessError(f"{self.path} is damaged: its slots are not numbered from {first}")
        lowest_key = 0 if self.kind is SegmentKind.SENDS else NO_KEY
        if not _within(invoked["key"], lowest_key, len(self.keys)):
            raise HarnessError(
                f"{self.path} is damaged: a slot has a key that the file does not list"
            )
        known = _within(invoked["outcome"], 0, len(Outcome)) and _within(invoked["f"], 0, len(F))
        if not known:
            raise HarnessError(f"{self.path} is damaged: a slot has an unknown code")
        return invoked

    def rows(self) -> NDArray[np.void]:
        """Return the polled records, in the order in which they were written (in memory).

        Raises HarnessError if a row names none of the keys.
        """
        if self.row_count == 0:
            return np.zeros(0, ROW)
        rows: NDArray[np.void] = np.fromfile(self.path, ROW, self.row_count, offset=self.rows_at)
        if not _within(rows["key"], 0, len(self.keys)):
            raise HarnessError(
                f"{self.path} is damaged: a row has a key that the file does not list"
            )
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class RawClient:
    """All segments of one recorder, in order."""

    client: str
    kind: SegmentKind
    process: int
    keys: tuple[str, ...]
    segments: tuple[SegmentFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RawHistory:
    """All that clients recorded."""

    clients: tuple[RawClient, ...]
    """The clients by process, then kind: the order in which operations of one time stand."""
    cut: tuple[Path, ...]
    """The segments of which a part is missing."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key that a client knew, sorted."""
        return tuple(sorted({key for client in self.clients for key in client.keys}))


def read_raw(directory: Path) -> RawHistory:
    """Return what was recorded into `directory`.

    Raises HarnessError, naming the file, if a segment is not ours, is damaged, or is missing
    between others.
    """
    segments: list[SegmentFile] = []
    cut: list[Path] = []
    for path in sorted(path for kind in SegmentKind for path in directory.glob(f"*{kind.suffix}")):
        segment = _open(path)
        if segment is not None:
            segments.append(segment)
        if segment is None or segment.cut:
            cut.append(path)
    names = frozenset(path.name for path in cut)
    return RawHistory(clients=_by_client(segments, names), cut=tuple(cut))


def _by_client(segments: Sequence[SegmentFile], cut_names: frozenset[str]) -> tuple[RawClient, ...]:
    grouped: dict[tuple[int, SegmentKind], list[SegmentFile]] = {}
    for segment in segments:
        grouped.setdefault((segment.process, segment.kind), []).append(segment)
    return tuple(_client(grouped[identity], cut_names) for identity in sorted(grouped))


def _client(segments: Sequence[SegmentFile], cut_names: frozenset[str]) -> RawClient:
    ordered = sorted(segments, key=lambda segment: segment.ordinal)
    first = ordered[0]
    for segment in ordered:
        if (segment.client, segment.keys) != (first.client, first.keys):
            raise HarnessError(
                f"two clients recorded as process {first.process}: {first.path}, {segment.path}"
            )
    expected = {segment_name(first.client, first.kind, at) for at in range(ordered[-1].ordinal)}
    missing = expected - {segment.path.name for segment in ordered} - cut_names
    if missing:
        raise HarnessError(f"missing beside {ordered[-1].path}: {', '.join(sorted(missing))}")
    return RawClient(
        client=first.client,
        kind=first.kind,
        process=first.process,
        keys=first.keys,
        segments=tuple(ordered),
    )


def _open(path: Path) -> SegmentFile | None:
    """Return the segment, or None if it was cut before the end of its header."""
    with path.open("rb") as file:
        page = file.read(PAGE_BYTES)
        if not (page.startswith(MAGIC) or MAGIC.startswith(page)):
            raise HarnessError(f"{path} is not a segment of a history: it starts {page[:8]!r}")
        if len(page) < PAGE_BYTES:
            return None
        header = np.frombuffer(page, HEADER, 1)
        if header["format_version"][0] != FORMAT_VERSION:
            raise HarnessError(
                f"{path} has segment format {header['format_version'][0]}, "
                f"expected {FORMAT_VERSION}"
            )
        text = file.read(int(header["text_bytes"][0]))
    if len(text) < header["text_bytes"][0]:
        return None
    if checksum(header, text) != header["checksum"][0]:
        raise HarnessError(f"{path} is damaged: the checksum of its header does not match")
    return _segment(path, header[0], json.loads(text), page)


def _segment(path: Path, header: np.void, text: Any, page: bytes) -> SegmentFile:
    size = path.stat().st_size
    slots_at, rows_at = int(header["slots_at"]), int(header["rows_at"])
    rows_written = int.from_bytes(page[ROW_COUNT_AT:_ROW_COUNT_END], "little")
    return SegmentFile(
        path=path,
        kind=SegmentKind(int(header["kind"])),
        client=text["client"],
        process=int(header["process"]),
        ordinal=int(header["ordinal"]),
        first_sequence=int(header["first_sequence"]),
        keys=tuple(text["keys"]),
        slots_at=slots_at,
        slot_count=_whole(size - slots_at, SLOT.itemsize, int(header["slot_count"])),
        rows_at=rows_at,
        row_count=_whole(size - rows_at, ROW.itemsize, rows_written),
        cut=size < segment_bytes(header),
    )


def _whole(size: int, item_bytes: int, count: int) -> int:
    return max(0, min(size // item_bytes, count))


def _within(values: NDArray[Any], lowest: int, end: int) -> bool:
    return len(values) == 0 or bool(values.min() >= lowest and values.max() < end)
