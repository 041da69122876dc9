"""The prefix computation under every check of visibility: the first that was known of all newer.

A *claim* is something newer than a rank, known from a moment on: it proves every later read wrong
that shows what is at or below that rank. Of the claims above a read's rank only the one that was
known first matters: a running minimum over the claims, sorted by rank. O((n + m) log n), and it can
be cut anywhere: the minimum of a chunk is all that the chunks before it need to know of it.
"""

import numpy as np
from numpy.typing import NDArray

NONE = -1


def first_known_above(
    ranks: NDArray[np.int64],
    known_ns: NDArray[np.int64],
    *,
    asked: NDArray[np.int64],
    before_ns: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return for each rank asked, the claim above it that was known first, if before `before_ns`.

    `ranks` and `known_ns`: one a claim; `asked` and `before_ns`: one a read. The number of a claim,
    or NONE. Strict on both sides: at equal ranks nothing is newer, at equal times two things are
    concurrent.
    """
    if not len(ranks):
        return np.full(len(asked), NONE, dtype=np.int64)
    order = np.argsort(ranks, kind="stable")
    firsts = order[_first_from_here_on(known_ns[order])]
    above = np.searchsorted(ranks[order], asked, side="right")
    claim = np.where(above < len(ranks), firsts[np.minimum(above, len(ranks) - 1)], NONE)
    known = (claim != NONE) & (known_ns[claim] < before_ns)
    found: NDArray[np.int64] = np.where(known, claim, NONE)
    return found


def _first_from_here_on(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each place the place of the smallest time at or after it."""
    backward = times[::-1]
    smallest = np.minimum.accumulate(backward)
    is_smaller = np.concatenate([[True], backward[1:] < smallest[:-1]])
    latest = np.maximum.accumulate(np.where(is_smaller, np.arange(len(times)), 0))
    places: NDArray[np.int64] = (len(times) - 1 - latest)[::-1]
    return places
