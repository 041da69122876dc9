"""The rows of one consumer's segments, found by operation.

Rows stand in a file in the order in which they were polled, which is the order of the operations
unless several were open at once (final reads of many keys). Such a file is first copied in the
order of its operations, so that an operation's rows are one stretch of each file. Memory holds
an index: 12 bytes an operation and file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fencepost.history.raw import RawClient, SegmentFile
from fencepost.history.segment_format import ROW


class PolledRows:
    """The rows of one consumer, their keys as numbers among `keys`, those of the whole run.

    `scratch` is a directory for the copies, removed by its owner.
    """

    def __init__(self, client: RawClient, *, keys: Mapping[str, int], scratch: Path) -> None:
        self._key_ids = np.array([keys[name] for name in client.keys], np.int32)
        files = (_row_file(segment, scratch) for segment in client.segments)
        self._files = tuple(file for file in files if len(file.sequences))

    def counts(self, first: int, end: int) -> NDArray[np.int64]:
        """Return the row count of each operation of the sequences `first` to `end` (exclusive)."""
        counts = np.zeros(end - first, np.int64)
        for file in self._files:
            chosen = file.between(first, end)
            counts[file.sequences[chosen] - first] += np.diff(
                file.starts[chosen.start : chosen.stop + 1]
            )
        return counts

    def read(self, first: int, end: int, *, row_count_max: int) -> Iterator[NDArray[np.void]]:
        """Yield the rows of these operations, in the order of operation, then of polling.

        Of several operations in one piece; of a single one, in pieces of at most `row_count_max`.
        """
        if end - first == 1:
            for file in self._files:
                for rows in file.pieces(first, end, row_count_max):
                    yield self._with_key_ids(rows)
            return
        pieces = [piece for file in self._files for piece in file.pieces(first, end, None)]
        rows = np.concatenate([np.zeros(0, ROW), *pieces])
        yield self._with_key_ids(rows.take(np.argsort(rows["sequence"], kind="stable")))

    def _with_key_ids(self, rows: NDArray[np.void]) -> NDArray[np.void]:
        rows["key"] = self._key_ids[rows["key"]]
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowFile:
    """The rows in the order of their operations, and where each operation's rows start."""

    path: Path
    rows_at: int
    sequences: NDArray[np.int64]
    """The operations that have rows here, ascending."""
    starts: NDArray[np.int32]
    """The first row of each operation; then the number of rows."""

    def between(self, first: int, end: int) -> slice:
        """Return the entries of the index for these operations."""
        found = np.searchsorted(self.sequences, [first, end])
        return slice(int(found[0]), int(found[1]))

    def pieces(self, first: int, end: int, row_count_max: int | None) -> Iterator[NDArray[np.void]]:
        """Yield the rows of these operations, at most `row_count_max` at a time."""
        chosen = self.between(first, end)
        start, stop = int(self.starts[chosen.start]), int(self.starts[chosen.stop])
        step = row_count_max or max(stop - start, 1)
        for at in range(start, stop, step):
            yield np.fromfile(
                self.path,
                ROW,
                min(step, stop - at),
                offset=self.rows_at + at * ROW.itemsize,
            )


def _row_file(segment: SegmentFile, scratch: Path) -> _RowFile:
    rows = segment.rows()
    path, rows_at = segment.path, segment.rows_at
    if np.any(np.diff(rows["sequence"]) < 0):
        rows = rows.take(np.argsort(rows["sequence"], kind="stable"))
        path, rows_at = scratch / segment.path.name, 0
        rows.tofile(path)
    changes = np.flatnonzero(np.diff(rows["sequence"], prepend=-1))
    return _RowFile(
        path=path,
        rows_at=rows_at,
        sequences=np.ascontiguousarray(rows["sequence"][changes]),
        starts=np.append(changes, len(rows)).astype(np.int32),
    )
