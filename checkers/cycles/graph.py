"""The graph of all transactions that may lie on a cycle, and its strongly connected components.

Every cycle lies in one strongly connected component. Components are looked for in five graphs, each
with more edges than the one before: ww; and wr; and rw; and the order of processes; and real time.
One that holds a component of an earlier graph tells nothing new: its transactions break a weaker
level already. The others are *new*, and each of them is one anomaly, whose class is found by the
same means, without a search:

- in ww it is G0, in ww and wr it is G1c (without a wr edge the component had been one of ww);
- with rw it is G-single or G-nonadjacent exactly if a cycle has no two rw in a row, that is, if the
  graph of pairs (transaction, whether the edge into it was rw), in which no rw follows an rw, has a
  component; else it is G2-item;
- with processes or real time likewise, of the edges of the class and of the order together.

So the level that a component breaks is certain, however large it is; only to find its shortest
cycle takes a search, which has a budget (`shortest`).

Source: Tarjan 1972, by scipy; Adya 1999, chapter 4, for the classes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.cycles.edges import EdgeEnds, EdgeKind
from fencepost.checkers.cycles.inference import Nodes
from fencepost.checkers.cycles.order import events_of, process_edges, realtime

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

ORDERS: Final = (
    (EdgeKind.WW,),
    (EdgeKind.WW, EdgeKind.WR),
    (EdgeKind.WW, EdgeKind.WR, EdgeKind.RW),
    (EdgeKind.WW, EdgeKind.WR, EdgeKind.RW, EdgeKind.PROCESS),
    (EdgeKind.WW, EdgeKind.WR, EdgeKind.RW, EdgeKind.PROCESS, EdgeKind.REALTIME),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Nodes are numbered from 0; those from `len(transaction)` on are of fans and barriers."""

    transaction: Ints
    """The index of each transaction, ascending."""
    node_count: int
    source: Ints
    target: Ints
    kind: NDArray[np.int8]

    def of_kinds(self, kinds: Sequence[EdgeKind]) -> "Graph":
        """Return the graph with only edges of these kinds, and what is inside fans."""
        chosen = np.zeros(len(EdgeKind), np.bool_)
        chosen[[*kinds, EdgeKind.FREE]] = True
        return self.kept(chosen[self.kind])

    def kept(self, edges: Mask) -> "Graph":
        """Return the graph with only these edges."""
        return replace(
            self, source=self.source[edges], target=self.target[edges], kind=self.kind[edges]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Transactions that precede each other in a circle."""

    order: int
    """The graph of `ORDERS` in which it is new, by number."""
    graph: Graph
    """Its edges in that graph; nodes are numbered as in the whole."""
    transactions: int
    """The number of its transactions."""


def graph_of(nodes: Nodes, ends: EdgeEnds, *, timed: bool = True) -> Graph:
    """Return the graph of these transactions.

    nodes: by transaction, without those that did not take place; ends: of edges at any transaction,
    negative where they are inside fans. `timed`: with the orders of processes and of real time.
    """
    transaction = nodes["transaction"].copy()
    place = _Places(transaction, ends)
    source, target = place.of(ends.source), place.of(ends.target)
    kept = np.flatnonzero((source >= 0) & (target >= 0))
    sources, targets, kinds = [source[kept]], [target[kept]], [ends.kind[kept]]
    node_count = len(transaction) + place.fans
    if timed:
        before, after = process_edges(nodes)
        sources.append(before)
        targets.append(after)
        kinds.append(np.full(len(before), EdgeKind.PROCESS, np.int8))
        barriers = realtime(events_of(nodes))
        for edges, every in ((barriers.source, sources), (barriers.target, targets)):
            every.append(np.where(edges >= len(nodes), edges + place.fans, edges))
        kinds.append(np.full(len(barriers.source), EdgeKind.FREE, np.int8))
        kinds[-1][: barriers.entries] = EdgeKind.REALTIME
        node_count += barriers.count
    return Graph(
        transaction=transaction,
        node_count=node_count,
        source=np.concatenate(sources),
        target=np.concatenate(targets),
        kind=np.concatenate(kinds),
    )


class _Places:
    """Nodes of transactions, by index, then of what is inside fans."""

    def __init__(self, transaction: Ints, ends: EdgeEnds) -> None:
        self._low = int(transaction[0]) if len(transaction) else 0
        span = int(transaction[-1]) - self._low + 1 if len(transaction) else 0
        # One more place, for transactions that are not in the graph.
        self._place = np.full(span + 1, -1, np.int64)
        self._place[transaction - self._low] = np.arange(len(transaction))
        self._first_fan = len(transaction)
        self.fans = -min(int(ends.source.min(initial=0)), int(ends.target.min(initial=0)))

    def of(self, ends: Ints) -> Ints:
        """Return the node of each; -1 of one that is not in the graph."""
        inside = (ends >= self._low) & (ends < self._low + len(self._place) - 1)
        place = self._place[np.where(inside, ends - self._low, -1)]
        return np.where(ends < 0, self._first_fan - 1 - ends, place)


def labels(graph: Graph) -> tuple[Ints, Mask]:
    """Return the component of each node, and whether it has more than one."""
    # These take a while, and the catalogue imports this module.
    from scipy.sparse import coo_array  # noqa: PLC0415
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    ones = np.ones(len(graph.source), np.int8)
    shape = (graph.node_count, graph.node_count)
    matrix = coo_array((ones, (graph.source, graph.target)), shape=shape).tocsr()
    _, label = connected_components(matrix, directed=True, connection="strong")
    return label.astype(np.int64), (np.bincount(label) > 1)[label]


def on_cycles(graph: Graph) -> Graph:
    """Return the graph with only the edges that lie on cycles."""
    label, _ = labels(graph)
    return graph.kept(label[graph.source] == label[graph.target])


def components(graph: Graph) -> Iterator[Component]:
    """Yield the new components, graph by graph, in the order of their first transactions."""
    graph = on_cycles(graph)
    old = np.zeros(graph.node_count, np.bool_)
    for number, kinds in enumerate(ORDERS):
        partial = graph.of_kinds(kinds)
        if not len(partial.source):
            continue
        label, circular = labels(partial)
        holds_old = np.zeros(int(label.max()) + 1, np.bool_)
        holds_old[label[old]] = True
        new = circular & ~holds_old[label]
        old |= circular
        yield from _split(partial, label, new, order=number)


def _split(graph: Graph, label: Ints, new: Mask, *, order: int) -> Iterator[Component]:
    """Yield the components of the nodes in `new`, each with its edges."""
    inside = new[graph.source] & (label[graph.source] == label[graph.target])
    graph = graph.kept(inside)
    transactions = np.flatnonzero(new[: len(graph.transaction)])
    wanted, first, counts = np.unique(label[transactions], return_index=True, return_counts=True)
    of_edge = label[graph.source]
    by_label = np.argsort(of_edge, kind="stable")
    starts = np.searchsorted(of_edge[by_label], wanted)
    ends = np.searchsorted(of_edge[by_label], wanted, side="right")
    for one in np.argsort(first, kind="stable").tolist():
        edges = by_label[starts[one] : ends[one]]
        yield Component(
            order=order,
            graph=replace(
                graph,
                source=graph.source[edges],
                target=graph.target[edges],
                kind=graph.kind[edges],
            ),
            transactions=int(counts[one]),
        )
