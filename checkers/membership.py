"""Sets of values: membership in another set, repeated values, and each value once."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

_SMALL: Final = 50
"""The factor by which one side must be smaller for a search in it to beat a sort of both."""


def is_among(values: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each of `values` occurs in `others`. Neither must be sorted or unique."""
    if not len(values) or not len(others):
        return np.zeros(len(values), dtype=np.bool_)
    if len(values) * _SMALL < len(others):
        return _by_searching_values(values, others)
    if len(others) * _SMALL < len(values):
        return _in_sorted(values, np.sort(others))
    return np.isin(values, others)


def has_repeats(values: NDArray[np.int64]) -> bool:
    """Return whether any value occurs twice; a plain sort is several times quicker than argsort."""
    ordered = np.sort(values)
    return bool(np.any(ordered[1:] == ordered[:-1]))


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the values in order, each once; numpy's way takes a table of hashes, and longer."""
    ordered = np.sort(values)
    kept = np.ones(len(ordered), dtype=np.bool_)
    kept[1:] = ordered[1:] != ordered[:-1]
    return ordered[kept]


def _by_searching_values(values: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Look each of the many `others` up among the few `values`, and mark what was met."""
    distinct, of_value = np.unique(values, return_inverse=True)
    place = np.searchsorted(distinct, others)
    place[place == len(distinct)] = 0
    met = np.zeros(len(distinct), dtype=np.bool_)
    met[place[distinct[place] == others]] = True
    return met[of_value]


def _in_sorted(values: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    place = np.searchsorted(others, values)
    place[place == len(others)] = 0
    found: NDArray[np.bool_] = others[place] == values
    return found
