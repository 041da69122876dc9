"""Cutting a key into slabs: ranges of versions with the row groups that they have to read.

Rows lie by index, which is by call, so versions grow along a file, and a range of versions lies in
a few neighbouring row groups: Parquet's statistics say in which. Where to cut follows from the
highest version of each row group, lowered to the highest of any later one, for one read of a
version that never was must not shift the cuts. A stray old version widens its own row group, which
more slabs then read; what they find is the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from fencepost.checkers.linearizability.versioned import extent

SLAB_ROWS: Final = 1 << 22
"""Operations of a slab, about: what one task works on."""
SLAB_VERSIONS: Final = 1 << 23
"""Versions of a slab at most: 40 bytes of memory each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRowGroup:
    """A row group with rows of one key only."""

    group: int
    """The number of the row group."""
    row_count: int
    low: int
    """No operation in it is about an earlier version, as `claims` counts them; …"""
    high: int
    """… nor about a later one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlabCut:
    """A slab to be made: versions `first` to `end` - 1."""

    first: int
    end: int
    limit: int
    """The limit on all versions of the key: the number of its operations."""
    owned: tuple[int, ...]
    """Row groups whose operations on no version it counts."""
    groups: tuple[int, ...]
    """Row groups to read, those included."""


def end_of(parts: Sequence[KeyRowGroup]) -> int:
    """Return the `versioned.extent` of a key."""
    highest = max((part.high for part in parts), default=0)
    return extent(highest, sum(part.row_count for part in parts))


def cuts(
    parts: Sequence[KeyRowGroup], *, rows: int = SLAB_ROWS, versions: int = SLAB_VERSIONS
) -> tuple[SlabCut, ...]:
    """Return the slabs of a key, by version: all versions that can matter, each in one slab."""
    limit = sum(part.row_count for part in parts)
    left = {part.group for part in parts}
    found = []
    for first, end in pairwise(_bounds(parts, rows=rows, versions=versions)):
        groups = [part.group for part in parts if part.low < end and part.high >= first]
        owned = [group for group in groups if group in left]
        left.difference_update(owned)
        found.append((first, end, groups, owned))
    # Operations on no version of any slab are counted by the first one.
    stray = sorted(left)
    return tuple(
        SlabCut(
            first=first,
            end=end,
            limit=limit,
            owned=tuple(owned if first else sorted([*owned, *stray])),
            groups=tuple(groups if first else sorted([*groups, *stray])),
        )
        for first, end, groups, owned in found
    )


def _bounds(parts: Sequence[KeyRowGroup], *, rows: int, versions: int) -> list[int]:
    end = end_of(parts)
    # A row group whose operations are about no version says nothing of where to cut.
    high = np.minimum([max(part.low, part.high) for part in parts], end - 1)
    reached = np.minimum.accumulate(high[::-1])[::-1]
    bounds, waiting = [0], 0
    for part, version in zip(parts, reached.tolist(), strict=True):
        waiting += part.row_count
        if waiting >= rows and bounds[-1] < version < end - 1:
            bounds.append(version)
            waiting = 0
    return [
        *(one for first, last in pairwise([*bounds, end]) for one in range(first, last, versions)),
        end,
    ]
