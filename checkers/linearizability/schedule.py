"""The latest schedule, refusals included, and the writes that can have made its versions.

**The schedule**: when every version appeared at the latest. Upper bounds of the moments are carried
down, so that each is at most the next. A refusal of a `cas` that expected version e in [call, end]
says: if t_e < call, then t_{e+1} ≤ end. Such a rule lowers t_{e+1} to its end, which is not before
its call, and so not below t_e: **lowering one moment never asks for an earlier one to be lowered**.
Hence t_{e+1} follows from t_e alone, and going up once through the versions finds the greatest
moments that keep all upper bounds and refusals.

Step by step that would be a loop over versions. Instead, all rules that fire are applied at once, a
few times; that settles almost any history. Where chains of refusals are longer (one lowers what
lets the next one fire, and so on), each moment is one of few: its bound, or the end of a refusal.
From each of these it is known which one comes next, so that the moments of a chain are a path in a
graph, and a breadth-first search finds it in linear time. The price is two sorts of those refusals.

**The makers** of versions that no ok operation made: a matching, by sorting. Two things are known
of such a version: the latest moment at which it had appeared (in the latest schedule), and its
value, if a client read it. A crashed write can have made it if it was called by then and wrote that
value; each made one version at most. (A crashed `cas` can have made but one, and is no loss to any
other: those come first, and do not get here.)

The latest moments ascend with the versions, so what could have made an earlier version could have
made a later one, if the value fits. Such a matching is one of parentheses: calls open, latest
moments close, by time. Versions of known values are served first, each class of one value
separately, and take the latest calls that do; this leaves the earliest calls, which are the most
useful ones, for versions of unknown value, which take any. (Exact, because the sets of writes that
can be left over form a matroid, of which this is the basis with the earliest calls.)
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.rows import taken

_ROUNDS: Final = 4

Int64s = NDArray[np.int64]


def unsettled(
    latest: Int64s, earliest: Int64s, *, expected: Int64s, call: Int64s, end: Int64s
) -> NDArray[np.bool_]:
    """Return a mask of the refusals that may still lower a moment.

    `latest`, `earliest`: bounds of the moments of the versions from 0 on, ascending; refusals as
    parallel arrays, `expected` from 0 to the last version but one.
    """
    mask: NDArray[np.bool_] = end < latest[expected + 1]
    places = np.flatnonzero(mask)
    mask[places] = call[places] > earliest[expected[places]]
    return mask


def lowered(latest: Int64s, *, expected: Int64s, call: Int64s, end: Int64s) -> None:
    """Lower the moments in `latest`, which ascend, in place as the refusals say."""
    for _ in range(_ROUNDS):
        fires = call > latest[expected]
        if not fires.any():
            return
        np.minimum.at(latest, expected[fires] + 1, end[fires])
        left = end < latest[expected + 1]
        expected, call, end = expected[left], call[left], end[left]
    if len(expected):
        _follow(latest, expected, call, end)


def _follow(latest: Int64s, expected: Int64s, call: Int64s, end: Int64s) -> None:
    """The same for refusals in chains of any length.

    The nodes of the graph: refusal i, that is t_{expected + 1} at its end; then the versions that
    refusals expect, each with its moment as it is; then the end of all chains.
    """
    count = len(expected)
    versions = np.unique(expected)
    bases = count + np.arange(len(versions))
    after = _next_nodes(latest, versions, expected, call, end)
    heads = bases[np.diff(versions, prepend=versions[0] - 2) > 1]
    reached = _reached(after, heads)
    fired = reached[reached < count]
    np.minimum.at(latest, expected[fired] + 1, end[fired])


def _next_nodes(
    latest: Int64s, versions: Int64s, expected: Int64s, call: Int64s, end: Int64s
) -> Int64s:
    """Return the node that each node leads to."""
    count, sink = len(expected), len(expected) + len(versions)
    version = np.concatenate([expected + 1, versions])
    moment = np.concatenate([end, latest[versions]])
    place = np.minimum(np.searchsorted(versions, version), len(versions) - 1)
    inner = np.flatnonzero(versions[place] == version)
    first = _first_to_return(
        np.searchsorted(versions, expected), call, end, place=place[inner], moment=moment[inner]
    )
    following = np.minimum(place[inner] + 1, len(versions) - 1)
    unfired = np.where(versions[following] == version[inner] + 1, count + following, sink)
    after = np.full(sink, sink, dtype=np.int64)
    after[inner] = np.where(first >= 0, first, unfired)
    return after


def _first_to_return(
    group: Int64s, call: Int64s, end: Int64s, *, place: Int64s, moment: Int64s
) -> Int64s:
    """Return, of the refusals of a group that were called after a moment, the first to return.

    `group`, `call`, `end`: of each refusal; `place`, `moment`: the group and moment of each
    question. The answer is -1 without such a refusal.
    """
    count = len(group)
    by_end = np.argsort(end, kind="stable")
    rank = np.empty(count, dtype=np.int64)
    rank[by_end] = np.arange(count)
    ranks = np.concatenate([rank, np.full(len(place), count)])
    groups = np.concatenate([group, place])
    asks = np.repeat(np.array([0, 1], dtype=np.int8), [count, len(place)])
    order = np.lexsort((asks, np.concatenate([call, moment]), groups))
    # A later group has the greater numbers: the least from here on is of this group, if of any.
    numbered = groups[order] * (count + 1) + ranks[order]
    least = np.minimum.accumulate(numbered[::-1])[::-1] - groups[order] * (count + 1)
    found = np.empty(len(order), dtype=np.int64)
    found[order] = least
    asked = found[count:]
    return np.where(asked < count, by_end[np.minimum(asked, count - 1)], -1)


def _reached(after: Int64s, heads: Int64s) -> Int64s:
    """Return the nodes on the paths from `heads`; only the last node leads nowhere."""
    # These take a while, and the catalogue imports this module.
    from scipy.sparse import csr_array  # noqa: PLC0415
    from scipy.sparse.csgraph import breadth_first_order  # noqa: PLC0415

    size = len(after)
    starts = np.concatenate([np.arange(size + 1), [size, size + len(heads)]])
    targets = np.concatenate([after, heads])
    graph = csr_array((np.ones(len(targets), dtype=np.int8), targets, starts), (size + 2, size + 2))
    reached: Int64s = breadth_first_order(graph, size + 1, return_predecessors=False)
    return reached


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
        return taken(self, which)


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
