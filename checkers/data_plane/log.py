"""The log of a key: the value at each offset, as all clients together saw it.

The log is built from all polls whatever their outcome (a poller must always see safe data) and from
sends that must have happened and whose offset is known. Its *entries* are the distinct pairs
(offset, value); in a healthy history there is one an offset. The *version order* is the non-empty
offsets in order: gaps are legal (transaction markers, compaction), so the distance of two records
is the difference of their *positions*, the ranks of their offsets among the non-empty ones.

A healthy log is dense: nearly every offset between the first and the last holds a record. Then one
table addressed by offset replaces the sort, and a second look tells whether every row agrees with
it. Where that fails (sparse offsets, or two values at one offset), the rows are sorted.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

_SPAN_A_ROW_MAX: Final = 8
"""Offsets between first and last, a row, up to which a table by offset is worth its memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The distinct (offset, value) pairs of a key, by offset and then by value."""

    offset: NDArray[np.int64]
    value: NDArray[np.int64]
    position: NDArray[np.int64]
    """Rank of the offset among the distinct offsets; entries of one offset share it."""

    def __len__(self) -> int:
        return len(self.offset)

    @property
    def held_count(self) -> int:
        """The number of offsets that hold records."""
        return int(self.position[-1]) + 1 if len(self) else 0

    def positions(self, offset: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of these offsets, each of which holds a record."""
        return self.position[np.searchsorted(self.offset, offset)]


def build_log(offset: NDArray[np.int64], value: NDArray[np.int64]) -> tuple[Log, NDArray[np.int64]]:
    """Return the log of these rows, and for each row the number of its entry."""
    return _by_table(offset, value) or _by_sorting(offset, value)


def _by_table(
    offset: NDArray[np.int64], value: NDArray[np.int64]
) -> tuple[Log, NDArray[np.int64]] | None:
    """Return the log, if its offsets are dense and no two rows disagree about one of them."""
    if not len(offset):
        return None
    first = int(offset.min())
    span = int(offset.max()) - first + 1
    if span > _SPAN_A_ROW_MAX * len(offset):
        return None
    place = offset - first
    value_at = np.empty(span, dtype=np.int64)
    value_at[place] = value
    if np.any(value_at[place] != value):
        return None
    filled = np.zeros(span, dtype=np.bool_)
    filled[place] = True
    kept = np.flatnonzero(filled)
    position = np.arange(len(kept), dtype=np.int64)
    entry_at = np.cumsum(filled, dtype=np.int64) - 1
    return Log(offset=kept + first, value=value_at[kept], position=position), entry_at[place]


def _by_sorting(
    offset: NDArray[np.int64], value: NDArray[np.int64]
) -> tuple[Log, NDArray[np.int64]]:
    """Return the log of any rows."""
    order = np.lexsort((value, offset))
    offsets, values = offset[order], value[order]
    new_offset = np.ones(len(order), dtype=np.bool_)
    new_offset[1:] = offsets[1:] != offsets[:-1]
    new_entry = new_offset.copy()
    new_entry[1:] |= values[1:] != values[:-1]
    entry = np.empty(len(order), dtype=np.int64)
    entry[order] = np.cumsum(new_entry) - 1
    position = (np.cumsum(new_offset) - 1)[new_entry]
    return Log(offset=offsets[new_entry], value=values[new_entry], position=position), entry
