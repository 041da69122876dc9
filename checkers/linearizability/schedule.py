"""The latest schedule: when every version appeared at the latest, refusals included.

Upper bounds of the moments are carried down, so that each is at most the next. A refusal of a `cas`
that expected version e in [call, end] says: if t_e < call, then t_{e+1} ≤ end. Such a rule lowers
t_{e+1} to its end, which is not before its call, and so not below t_e: **lowering one moment never
asks for an earlier one to be lowered**. Hence t_{e+1} follows from t_e alone, and going up once
through the versions finds the greatest moments that keep all upper bounds and refusals.

Step by step that would be a loop over versions. Instead, all rules that fire are applied at once, a
few times; that settles almost any history. Where chains of refusals are longer (one lowers what
lets the next one fire, and so on), each moment is one of few: its bound, or the end of a refusal.
From each of these it is known which one comes next, so that the moments of a chain are a path in a
graph, and a breadth-first search finds it in linear time. The price is two sorts of those refusals.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["lowered", "unsettled"]

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
