"""The files of one log, read batch by batch in pieces of bounded size.

A log is a directory of segments, each named by its first offset. The reader goes through them in
order and ends at the first thing that is not a whole batch with a higher offset: what lies behind
it cannot be trusted to be where it seems to be. The last piece then says what it met.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from fencepost.clusters.protocol.record_batches import BatchHeader, BatchScan, scan_batches
from fencepost.clusters.protocol.records import Records, records_of

_SEGMENT: Final = re.compile(r"(\d{20})\.log")
_PIECE_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegment:
    """One file of a log."""

    path: Path
    base_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRun:
    """Batches that lie one after the other, and their records."""

    records: Records
    damage: str | None
    """The reason, with the file's name, why nothing follows it before the end of its file."""

    @property
    def batches(self) -> tuple[BatchHeader, ...]:
        """The batches whose records could be read."""
        return self.records.batches


def segments_of(directory: Path) -> tuple[LogSegment, ...]:
    """The segments of a log, by offset; none if there is no directory to be read."""
    try:
        names = sorted(path.name for path in directory.iterdir())
    except OSError:
        return ()
    return tuple(
        LogSegment(path=directory / name, base_offset=int(found[1]))
        for name in names
        if (found := _SEGMENT.fullmatch(name))
    )


def read_log(
    directory: Path, *, from_offset: int = 0, piece_bytes: int = _PIECE_BYTES
) -> Iterator[BatchRun]:
    """Yield all pieces of a log, from the segment that holds `from_offset` on."""
    next_offset = 0
    for segment in _from(segments_of(directory), from_offset):
        for piece in read_batches_file(segment.path, piece_bytes=piece_bytes):
            checked = _cut_where_offsets_go_back(piece, next_offset, segment.path)
            yield checked
            if checked.damage is not None:
                return
            if checked.batches:
                next_offset = checked.batches[-1].last_offset + 1


def read_batches_file(path: Path, *, piece_bytes: int = _PIECE_BYTES) -> Iterator[BatchRun]:
    """A file of batches (a segment, a snapshot) in pieces of about `piece_bytes`."""
    try:
        with path.open("rb") as file:
            yield from _pieces(file, path.name, piece_bytes)
    except OSError as error:
        yield _piece(b"", BatchScan(batches=(), end=0, stop=None), f"{path.name}: {error.strerror}")


def _from(segments: tuple[LogSegment, ...], offset: int) -> tuple[LogSegment, ...]:
    later = [index for index, one in enumerate(segments) if one.base_offset > offset]
    return segments[max((later[0] if later else len(segments)) - 1, 0) :]


def _pieces(file: BinaryIO, name: str, piece_bytes: int) -> Iterator[BatchRun]:
    start, data, wanted = 0, b"", piece_bytes
    while True:
        more = file.read(wanted)
        data += more
        if not data:
            return
        scan = scan_batches(data)
        at_end = len(more) < wanted
        if scan.stop is not None and (at_end or not scan.stop.torn):
            why = f"{name}, byte {start + scan.end}: {scan.stop.reason}"
            yield _piece(data, scan, why)
            return
        piece = _piece(data, scan, None, where=name)
        yield piece
        if at_end or piece.damage is not None:
            return
        # A batch larger than a piece is read whole, however large it says it is: at most the file.
        start, data = start + scan.end, data[scan.end :]
        wanted = max(piece_bytes, scan.stop.missing_bytes if scan.stop else 0)


def _piece(data: bytes, scan: BatchScan, damage: str | None, *, where: str = "") -> BatchRun:
    records = records_of(data, scan.batches)
    if records.damage is not None:
        damage = f"{where}: {records.damage}" if where else records.damage
    return BatchRun(records=records, damage=damage)


def _cut_where_offsets_go_back(piece: BatchRun, next_offset: int, path: Path) -> BatchRun:
    for index, batch in enumerate(piece.batches):
        if batch.base_offset < next_offset:
            why = (
                f"{path.name}: the batch at offset {batch.base_offset} lies where {next_offset} "
                "or more is expected"
            )
            return BatchRun(records=piece.records.first_batches(index), damage=why)
        next_offset = batch.last_offset + 1
    return piece
