"""Sorted numbers as ranges: a thousand records lost at once are one story."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def stretches(numbers: NDArray[np.int64], *, gap_max: int = 1) -> Iterator[NDArray[np.int64]]:
    """Yield the places of neighbours at most `gap_max` apart, of ascending numbers."""
    if len(numbers):
        breaks = np.flatnonzero(np.diff(numbers) > gap_max) + 1
        yield from np.split(np.arange(len(numbers)), breaks)


def range_text(first: int, last: int) -> str:
    """Return a range of offsets, for people."""
    return range_rule(first, last).format(first=first, last=last)


def range_rule(first: int, last: int) -> str:
    """Return the part of a proof's rule about a range of offsets, its facts `first` and `last`."""
    return "offset {first}" if first == last else "offsets {first}..{last}"
