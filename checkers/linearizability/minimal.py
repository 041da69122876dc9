"""The smallest part of a history that still shows what is wrong with it: delta debugging.

Pieces of the operations are left out, halves first and single operations last, for as long as what
is kept is still wrong. The result is 1-minimal: without any one of its operations it is not wrong.
It is seldom the smallest of all, which would take trying every subset.

Whether less is still a proof is the caller's to say. To leave a write out and keep what read it
makes any history wrong, so `is_wrong` has to take what is left out for something that may have
happened at any time, or to keep what belongs together.

Source: Zeller and Hildebrandt 2002, "Simplifying and isolating failure-inducing input", ddmin.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from checkers.linearizability.budget import Budget, Meter, OverBudgetError

__all__ = ["minimal"]


def minimal(rows: pa.Table, *, is_wrong: Callable[[pa.Table], bool], budget: Budget) -> pa.Table:
    """Return a part of `rows`, in their order, for which `is_wrong` holds, as it does for `rows`.

    1-minimal unless the budget ran out before; then the smallest part found until then. `is_wrong`
    may raise OverBudgetError itself, which counts as not wrong: what is kept is always proven.
    """
    meter = Meter.started(budget)
    kept = np.arange(rows.num_rows, dtype=np.int64)
    piece_count = 2
    try:
        while len(kept) > 1:
            smaller = _without_a_piece(rows, kept, piece_count, is_wrong=is_wrong, meter=meter)
            if smaller is not None:
                kept = smaller
                piece_count = max(min(piece_count - 1, len(kept)), 2)
            elif piece_count >= len(kept):
                break
            else:
                piece_count = min(2 * piece_count, len(kept))
    except OverBudgetError:
        pass  # What was kept last is wrong, if not as small as it could be.
    return rows.take(pa.array(kept))


def _without_a_piece(
    rows: pa.Table,
    kept: NDArray[np.int64],
    piece_count: int,
    *,
    is_wrong: Callable[[pa.Table], bool],
    meter: Meter,
) -> NDArray[np.int64] | None:
    """Return the rest without the last of these pieces that can be spared; None if none can."""
    for piece in reversed(np.array_split(kept, piece_count)):
        meter.check()
        rest = np.setdiff1d(kept, piece, assume_unique=True)
        if len(rest) and _still(is_wrong, rows.take(pa.array(rest))):
            return rest
    return None


def _still(is_wrong: Callable[[pa.Table], bool], rows: pa.Table) -> bool:
    try:
        return is_wrong(rows)
    except OverBudgetError:
        return False
