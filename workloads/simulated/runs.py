"""Runs of numbers: a batch states one, and its records have one after the other."""

import numpy as np
from numpy.typing import NDArray


def runs(firsts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return runs of consecutive numbers, run behind run: `counts` from each of `firsts` on."""
    begins = np.cumsum(counts) - counts
    found: NDArray[np.int64] = np.repeat(firsts - begins, counts)
    return found + np.arange(len(found))
