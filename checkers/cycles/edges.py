"""Edges of the dependency graph, as arrays that travel.

A node is a transaction, by its index. A *fan* is many edges told in few: where each of r readers
precedes each of w writers, the readers lead to a node that belongs to no transaction (negative) and
that leads to the writers; r + w edges instead of r * w.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

EDGE: Final = np.dtype(
    [
        ("source", "<i8"),
        ("target", "<i8"),
        ("kind", "<i4"),
        # Its reason: the key, by its place in the row group, the last element before it and the
        # element that it is about; `steps.NONE` without one.
        ("key", "<i4"),
        ("before", "<i8"),
        ("element", "<i8"),
    ]
)
Edges = NDArray[np.void]
"""An array of `EDGE`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeEnds:
    """Edges without their reasons: what travels, and what the graph is made of."""

    source: Ints
    target: Ints
    kind: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.source)


class EdgeKind(IntEnum):
    """The reason why the source comes before the target."""

    WW = 0
    """It appended the element before the one that the target appended."""
    WR = 1
    """It appended what the target read."""
    RW = 2
    """It read a list without what the target appended."""
    PROCESS = 3
    """The same process called the target later."""
    REALTIME = 4
    """It returned before the target was called."""
    FREE = 5
    """Inside a fan: how the edge into it goes on."""


def edges_of(
    source: Ints,
    target: Ints,
    kind: EdgeKind,
    *,
    key: Ints,
    before: Ints,
    element: Ints,
) -> Edges:
    """Return these edges, without those of a transaction to itself."""
    kept = np.flatnonzero(source != target)
    made = np.zeros(len(kept), EDGE)
    made["kind"] = kind
    columns = {
        "source": source,
        "target": target,
        "key": key,
        "before": before,
        "element": element,
    }
    for name, column in columns.items():
        made[name] = column[kept]
    return made


def spans_backwards(edges: Edges) -> Ints:
    """Return the spans of edges to an earlier transaction: first, last; merged, one row each."""
    back = edges[(edges["target"] >= 0) & (edges["target"] < edges["source"])]
    return merged([np.stack([back["target"], back["source"]], axis=1)])


def merged(spans: Sequence[Ints]) -> Ints:
    """Return the union of spans (first, last), both included, as disjoint ones in order."""
    every = np.concatenate([np.empty((0, 2), np.int64), *spans])
    every = every[np.argsort(every[:, 0], kind="stable")]
    reach = np.maximum.accumulate(every[:, 1]) if len(every) else every[:, 1]
    opens = np.ones(len(every), np.bool_)
    opens[1:] = every[1:, 0] > reach[:-1]
    starts = np.flatnonzero(opens)
    if not len(starts):
        return every
    return np.stack([every[starts, 0], np.maximum.reduceat(reach, starts)], axis=1)


def ends_of(edges: Edges) -> EdgeEnds:
    """Return the edges without their reasons."""
    return EdgeEnds(
        source=edges["source"].copy(),
        target=edges["target"].copy(),
        kind=edges["kind"].astype(np.int8),
    )


def within(ends: EdgeEnds, segments: Ints) -> EdgeEnds:
    """Return the edges inside one of these segments; of fans, those at any transaction of them."""
    source, target = ends.source, ends.target
    left, right = segments_of(source, segments), segments_of(target, segments)
    kept = ((left >= 0) & (left == right)) | ((source < 0) & (right >= 0))
    kept |= (target < 0) & ((left >= 0) | (source < 0))
    chosen = np.flatnonzero(kept)
    return EdgeEnds(source=source[chosen], target=target[chosen], kind=ends.kind[chosen])


def joined(parts: Iterable[EdgeEnds]) -> EdgeEnds:
    """Return the edges of several parts; the nodes inside fans stay distinct between parts."""
    used = 0
    sources, targets = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    kinds = [np.empty(0, np.int8)]
    for part in parts:
        lowest = min(int(ends.min(initial=0)) for ends in (part.source, part.target))
        for ends, every in ((part.source, sources), (part.target, targets)):
            every.append(np.where(ends < 0, ends - used, ends))
        kinds.append(part.kind)
        used -= lowest
    return EdgeEnds(
        source=np.concatenate(sources), target=np.concatenate(targets), kind=np.concatenate(kinds)
    )


def segments_of(transactions: Ints, segments: Ints) -> Ints:
    """Return which of the disjoint, ascending segments each of these lies in; -1: in none."""
    if not len(segments):
        return np.full(len(transactions), -1, np.int64)
    place = np.searchsorted(segments[:, 0], transactions, side="right") - 1
    inside = (place >= 0) & (transactions <= segments[place, 1])
    return np.where(inside, place, -1)
