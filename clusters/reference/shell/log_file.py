"""A log of a node as a file of record batches: appended, truncated, begun anew.

The file is named by the offset at which the log begins, as Kafka's segments are; a log is one
segment here. Where each batch lies is kept in memory, so that a truncation finds its place.
"""

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from fencepost.clusters.protocol.record_batches import BatchScan, scan_batches
from fencepost.clusters.reference.shell.small_files import LEADER_EPOCHS_NAME, leader_epochs_text

Scanned = Callable[[bytes, BatchScan], Iterable[tuple[Any, int]]]
"""(data, its scan) to (batch, where it ends) of each."""

_SUFFIX: Final = ".log"


class LogFile:
    """A log in a directory of its own. Not thread-safe, but for a descriptor that was copied."""

    def __init__(self, directory: Path, *, start: int = 0) -> None:
        self.directory = directory
        self.start = start
        self._bases: list[int] = []
        self._positions: list[int] = []
        self._epochs: list[tuple[int, int]] = []
        """(leader epoch, first offset)."""
        self._size = 0
        self._descriptor = _opened(self._path())

    @classmethod
    def found(cls, directory: Path, scanned: Scanned) -> tuple["LogFile", list[Any]]:
        """Return (the log in this directory, its batches). A torn batch at its end is cut off."""
        starts = [int(path.stem) for path in directory.glob(f"*{_SUFFIX}") if path.stem.isdecimal()]
        log = cls(directory, start=max(starts, default=0))
        for start in starts:
            if start != log.start:  # a new beginning was written, and the old one not yet deleted
                log._path(start).unlink()
        return log, list(log._read(scanned))

    def append(self, data: bytes, *, base_offset: int, epoch: int) -> None:
        """A batch at the end, in one write."""
        self._note(base_offset, epoch)
        _write(self._descriptor, data)
        self._size += len(data)

    def truncate(self, offset: int) -> None:
        """Drop the batches from this offset on."""
        index = bisect_left(self._bases, offset)
        if index < len(self._bases):
            self._size = self._positions[index]
            os.ftruncate(self._descriptor, self._size)
            del self._bases[index:], self._positions[index:]
        kept = [one for one in self._epochs if one[1] < offset]
        if kept != self._epochs:
            self._epochs = kept
            self._write_epochs()

    def advance(self, offset: int) -> None:
        """Begin at this offset: what is below it goes, durably only after the rest is kept."""
        index = bisect_left(self._bases, offset)
        begin = self._begin(index)
        rest = _read(self._descriptor, begin, self._size - begin)
        old, self.start = self._path(), offset
        fresh = _opened(self._path())
        os.ftruncate(fresh, 0)
        _write(fresh, rest)
        os.fsync(fresh)
        os.close(self._descriptor)
        self._descriptor, self._size = fresh, len(rest)
        self._bases = self._bases[index:]
        self._positions = [position - begin for position in self._positions[index:]]
        if old != self._path():
            old.unlink(missing_ok=True)
        self._begin_epochs(offset)

    def below(self, offset: int) -> tuple[bytes, int]:
        """Return (the batches that `advance` to this offset drops, where the last one begins)."""
        index = bisect_left(self._bases, offset)
        return _read(self._descriptor, 0, self._begin(index)), self._begin(max(0, index - 1))

    def copied_descriptor(self) -> int:
        """Return a descriptor for a thread to sync and close, whatever happens to the log."""
        return os.dup(self._descriptor)

    def close(self) -> None:
        """Give up the file; nothing can be done with the log any more."""
        os.close(self._descriptor)

    def _begin(self, index: int) -> int:
        """Return where the batch of this index begins, or the end of the file."""
        return self._positions[index] if index < len(self._positions) else self._size

    def _read(self, scanned: Scanned) -> Iterator[Any]:
        data = _read(self._descriptor, 0, os.fstat(self._descriptor).st_size)
        scan = scan_batches(data)
        next_offset = self.start
        for batch, end in scanned(data, scan):
            if batch.base_offset < next_offset:
                break
            epoch = getattr(batch, "epoch", None)
            self._note(batch.base_offset, batch.leader_epoch if epoch is None else epoch)
            self._size, next_offset = end, batch.end_offset
            yield batch
        if self._size < len(data):
            os.ftruncate(self._descriptor, self._size)

    def _note(self, base_offset: int, epoch: int) -> None:
        self._bases.append(base_offset)
        self._positions.append(self._size)
        if not self._epochs or self._epochs[-1][0] != epoch:
            self._epochs.append((epoch, base_offset))
            self._write_epochs()

    def _begin_epochs(self, offset: int) -> None:
        """Forget the epochs that end before this offset, where the log begins now."""
        kept = []
        if self._bases:
            current = [one for one in self._epochs if one[1] <= offset][-1:]
            kept = [(epoch, offset) for epoch, _ in current]
            kept += [one for one in self._epochs if one[1] > offset]
        if kept != self._epochs:
            self._epochs = kept
            self._write_epochs()

    def _write_epochs(self) -> None:
        (self.directory / LEADER_EPOCHS_NAME).write_text(leader_epochs_text(self._epochs))

    def _path(self, start: int | None = None) -> Path:
        return self.directory / f"{self.start if start is None else start:020}{_SUFFIX}"


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)


def _write(descriptor: int, data: bytes) -> None:
    written = os.write(descriptor, data)
    while written < len(data):  # a disk that is nearly full takes less
        written += os.write(descriptor, data[written:])


def _read(descriptor: int, position: int, size: int) -> bytes:
    parts = []
    while size and (part := os.pread(descriptor, size, position)):
        parts.append(part)
        position += len(part)
        size -= len(part)
    return b"".join(parts)
