"""Records gathered by key, on disk.

The table is sorted by key, operations come in the order of their calls: turning one into the other
takes a pass over all records. They are appended to one scratch file in runs of one key each, and
only the places of the runs are kept in memory; a key's runs, one after the other, are its records
in the order of operation and position. Nothing but a piece at a time is ever sorted.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from history.records import RECORD

__all__ = ["RecordSpill"]

_BATCH_ROWS: Final = 1 << 16
_SMALL_KEYS_MAX: Final = np.iinfo(np.int16).max


class RecordSpill:
    """One scratch file of records. First `add`, then `batches`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb")
        self._row_count = 0
        # Of each key the runs (start, end) of its records.
        self._runs: dict[int, list[tuple[int, int]]] = {}

    def add(self, records: NDArray[np.void]) -> None:
        """Append a piece of RECORD whose operations are not before those of earlier pieces."""
        # Of rows, `take` is many times faster than indexing.
        ordered = records.take(_by_key(records))
        keys = ordered["key"]
        bounds = np.append(np.flatnonzero(np.diff(keys, prepend=-1)), len(keys)).tolist()
        ordered.tofile(self._file)
        for start, end in pairwise(bounds):
            run = (self._row_count + start, self._row_count + end)
            self._runs.setdefault(int(keys[start]), []).append(run)
        self._row_count += len(keys)

    def count(self, key: int) -> int:
        """Return the number of records that the key has."""
        return sum(end - start for start, end in self._runs.get(key, ()))

    def batches(self, key: int) -> Iterator[NDArray[np.void]]:
        """Yield the key's records in the order of operation and position, in bounded pieces."""
        if key not in self._runs:
            return
        self._file.flush()
        records = np.memmap(self._path, RECORD, "r")
        batch: list[NDArray[np.void]] = []
        waiting = 0
        for start, end in self._runs[key]:
            batch.append(records[start:end])
            waiting += end - start
            if waiting >= _BATCH_ROWS:
                yield np.concatenate(batch)
                batch, waiting = [], 0
        if batch:
            yield np.concatenate(batch)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._path.unlink()


def _by_key(records: NDArray[np.void]) -> NDArray[np.int64]:
    """Return the order by key, then operation, then position in the file."""
    by_operation = np.argsort(records["operation"], kind="stable")
    keys = records["key"]
    if len(keys) and keys.max() <= _SMALL_KEYS_MAX:
        keys = keys.astype(np.int16)  # Sorted by radix: much faster.
    order: NDArray[np.int64] = by_operation[np.argsort(keys[by_operation], kind="stable")]
    return order
