"""The possible makers of versions that no ok operation made: a matching, by sorting.

Two things are known of such a version: the latest moment at which it had appeared (in the latest
schedule), and its value, if a client read it. A crashed write can have made it if it was called by
then and wrote that value; each made one version at most. (A crashed `cas` can have made but one,
and is no loss to any other: those come first, and do not get here.)

The latest moments ascend with the versions, so what could have made an earlier version could have
made a later one, if the value fits. Such a matching is one of parentheses: calls open, latest
moments close, by time. Versions of known values are served first, each class of one value
separately, and take the latest calls that do; this leaves the earliest calls, which are the most
useful ones, for versions of unknown value, which take any. (Exact, because the sets of writes that
can be left over form a matroid, of which this is the basis with the earliest calls.)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Unmade", "unexplained"]

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmade:
    """Runs of versions that no ok operation made, as parallel arrays."""

    first: Int64s
    """Versions."""
    count: Int64s
    """Versions of the run; 1 where the value is known."""
    latest: Int64s
    """The latest moments at which they appeared."""
    value: Int64s
    told: NDArray[np.bool_]
    """The value is known."""
    swap: Int64s
    """The earliest call of a crashed `cas` that can have made it; NEVER without one."""

    def take(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> "Unmade":
        """Return those under the mask."""
        return Unmade(
            first=self.first[which],
            count=self.count[which],
            latest=self.latest[which],
            value=self.value[which],
            told=self.told[which],
            swap=self.swap[which],
        )


def unexplained(unmade: Unmade, *, call: Int64s, value: Int64s) -> tuple[NDArray[np.bool_], int]:
    """Return which runs lack a crashed write for some version, and how many versions lack one.

    `call`, `value`: of each crashed write.
    """
    wrong = np.zeros(len(unmade.first), dtype=np.bool_)
    told = np.flatnonzero(unmade.told)
    lacking, left = _of_values(unmade.latest[told], unmade.value[told], call=call, value=value)
    wrong[told] = lacking
    rest = np.flatnonzero(~unmade.told)
    starved, missing = _of_any(unmade.latest[rest], unmade.count[rest], call=call[left])
    wrong[rest] = starved
    return wrong, int(lacking.sum()) + missing


def _of_values(
    latest: Int64s, needed: Int64s, *, call: Int64s, value: Int64s
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which versions of known values get no write, and which writes are left over."""
    wanted = np.flatnonzero(np.isin(value, needed))
    left = np.ones(len(call), dtype=np.bool_)
    closes = np.repeat([False, True], [len(wanted), len(latest)])
    values = np.concatenate([value[wanted], needed])
    order = np.lexsort((closes, np.concatenate([call[wanted], latest]), values))
    _, group = np.unique(values[order], return_inverse=True)
    step = np.where(closes[order], -1, 1)
    depth = np.cumsum(step)
    # Each class begins at depth 0, and no depth of one is mistaken for one of another.
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    depth -= (depth - step)[begins][group]
    apart = group * (2 * len(order) + 1)
    lowest = np.minimum.accumulate(depth - apart) + apart
    before = np.concatenate([[0], lowest[:-1]]) if len(order) else lowest
    before[begins] = 0
    ahead = np.minimum.accumulate((depth + apart)[::-1])[::-1] - apart
    lacking = np.zeros(len(order), dtype=np.bool_)
    lacking[order] = closes[order] & (depth < np.minimum(before, 0))
    used = np.zeros(len(order), dtype=np.bool_)
    used[order] = ~closes[order] & (ahead < depth)
    left[wanted] = ~used[: len(wanted)]
    return lacking[len(wanted) :], left


def _of_any(latest: Int64s, count: Int64s, *, call: Int64s) -> tuple[NDArray[np.bool_], int]:
    """Return which runs of unknown value get too few writes, and how many versions get none."""
    if not len(latest):
        return np.zeros(0, dtype=np.bool_), 0
    closes = np.repeat([False, True], [len(call), len(latest)])
    order = np.lexsort((closes, np.concatenate([call, latest])))
    step = np.concatenate([np.ones(len(call), dtype=np.int64), -count])[order]
    depth = np.cumsum(step)
    lowest = np.minimum(np.minimum.accumulate(depth), 0)
    starved = np.zeros(len(order), dtype=np.bool_)
    starved[order] = closes[order] & (depth < np.concatenate([[0], lowest[:-1]]))
    return starved[len(call) :], int(-lowest[-1])
