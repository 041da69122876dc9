"""The class of a component, and a shortest cycle of that class as its proof.

A shortest cycle is the shortest way from the end of an edge back to its start, over all edges that
such a cycle must have one of: an edge to an earlier transaction for G0 and G1c (process and real
time lead forwards, and so does not every edge of a cycle); an rw edge for the others. A way that
passes a transaction twice could be cut there, and a part of it would be shorter, or of a graver
class, or of an earlier graph; so what is found is a cycle without repetitions.

Each way is Dijkstra's, where steps inside fans and barriers cost nothing to speak of. There are as
many searches as the budget of a component allows, those of the edges that go back furthest first;
with more edges than that the cycle is one of its class, and may not be the shortest. The search is
scipy's: NetworkX takes fifty times as long and 500 bytes an edge (decision 76).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.cycles.edges import EdgeKind
from fencepost.checkers.cycles.graph import ORDERS, Component, Graph, labels, on_cycles
from fencepost.checkers.cycles.levels import CycleClass

Ints = NDArray[np.int64]

_WORK_MAX: Final = 20_000_000
"""Edges that the searches in one component look at, together."""
_SEARCHES_MIN: Final = 3
_TWO_EDGES: Final = 1.5
"""A way back of one edge, with what fans weigh: no cycle is shorter."""
_PLAIN_ORDER: Final = 2
"""The last graph of `ORDERS` without processes and real time."""
_WRITES: Final = {CycleClass.G0: (EdgeKind.WW,), CycleClass.G1C: (EdgeKind.WW, EdgeKind.WR)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleEdge:
    """One edge of a cycle, between transactions."""

    source: int
    target: int
    kind: EdgeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """The proof of a component."""

    kind: CycleClass
    order: int
    """The graph of `ORDERS` that it is in."""
    links: tuple[CycleEdge, ...]
    """The links from the earliest transaction round to it."""
    transactions: int
    """The number of transactions in the component."""
    shortest: bool
    """No shorter one of its class is in the component; else the budget was spent before."""

    @property
    def plain(self) -> bool:
        """It is one without the orders of processes and real time."""
        return self.order <= _PLAIN_ORDER


def class_of(component: Component) -> CycleClass:
    """Return the gravest class that its cycles have; of G-single and G-nonadjacent the latter."""
    extra = _extra(component)
    for kind, dependencies in _WRITES.items():
        if _circular(component.graph.of_kinds((*dependencies, *extra))):
            return kind
    if _circular(_alternating(component.graph)):
        return CycleClass.G_NONADJACENT
    return CycleClass.G2_ITEM


def shortest_cycle(component: Component) -> Cycle:
    """Return a cycle of the gravest class in this component."""
    kind = class_of(component)
    graph = _compact(component.graph)
    if kind in _WRITES:
        ways = on_cycles(graph.of_kinds((*_WRITES[kind], *_extra(component))))
        back = (ways.source > ways.target) & (ways.source < len(graph.transaction))
        found = _best(ways, np.flatnonzero(back), ways)
    elif kind is CycleClass.G_NONADJACENT:
        pairs = on_cycles(_alternating(graph))
        found = _single(graph, pairs)
        kind = CycleClass.G_SINGLE if found else kind
        found = found or _best(pairs, np.flatnonzero(pairs.kind == EdgeKind.RW), pairs)
    else:
        found = _best(graph, np.flatnonzero(graph.kind == EdgeKind.RW), graph)
    assert found is not None, f"a component of {component.transactions} has no cycle of {kind}"
    return Cycle(
        kind=kind,
        order=component.order,
        links=_links(found, graph),
        transactions=component.transactions,
        shortest=found.exhaustive,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """A closed way: its nodes, and the kind of the edge out of each."""

    nodes: list[int]
    kinds: list[int]
    exhaustive: bool
    """All edges were tried."""


def _extra(component: Component) -> tuple[EdgeKind, ...]:
    return tuple(kind for kind in ORDERS[component.order] if kind > EdgeKind.RW)


def _circular(graph: Graph) -> bool:
    return bool(len(graph.source)) and bool(labels(graph)[1].any())


def _alternating(graph: Graph) -> Graph:
    """Return the graph of pairs: a node, and whether the edge into it was rw; no two rw in a row.

    Nodes that were entered by rw are numbered from `node_count` on.
    """
    shift = graph.node_count
    overwrite, inside = graph.kind == EdgeKind.RW, graph.kind == EdgeKind.FREE
    other = ~overwrite & ~inside
    source, target, kind = graph.source, graph.target, graph.kind
    sources = [source[~overwrite], source[other] + shift, source[overwrite], source[inside] + shift]
    targets = [target[~overwrite], target[other], target[overwrite] + shift, target[inside] + shift]
    kinds = [kind[~overwrite], kind[other], kind[overwrite], kind[inside]]
    return Graph(
        transaction=graph.transaction,
        node_count=2 * shift,
        source=np.concatenate(sources),
        target=np.concatenate(targets),
        kind=np.concatenate(kinds),
    )


def _compact(graph: Graph) -> Graph:
    """Return the graph with nodes renumbered, without isolated ones; parallel edges once."""
    nodes = np.unique(np.concatenate([graph.source, graph.target]))
    source, target = (np.searchsorted(nodes, ends) for ends in (graph.source, graph.target))
    order = np.lexsort((graph.kind, target, source))
    source, target, kind = source[order], target[order], graph.kind[order]
    return Graph(
        transaction=graph.transaction[nodes[nodes < len(graph.transaction)]],
        node_count=len(nodes),
        source=source,
        target=target,
        kind=kind,
    )


def _single(graph: Graph, pairs: Graph) -> _Round | None:
    """Return a shortest cycle with exactly one rw edge; `pairs` has what lies on cycles at all."""
    overwrite = pairs.kind == EdgeKind.RW
    source, target = pairs.source[overwrite], pairs.target[overwrite] - graph.node_count
    code = graph.source * graph.node_count + graph.target
    candidates = np.isin(code, source * graph.node_count + target) & (graph.kind == EdgeKind.RW)
    return _best(graph, np.flatnonzero(candidates), graph.kept(graph.kind != EdgeKind.RW))


def _best(starts: Graph, edges: Ints, ways: Graph) -> _Round | None:
    """Return a shortest cycle through one of these edges of `starts`, and back along `ways`.

    None if none of those tried is on one.
    """
    # These take a while, and the catalogue imports this module.
    from scipy.sparse import csr_array  # noqa: PLC0415
    from scipy.sparse.csgraph import dijkstra  # noqa: PLC0415

    size = (ways.node_count, ways.node_count)
    matrix = csr_array(_weights(ways), shape=size)
    span = np.abs(starts.source[edges] - starts.target[edges])
    edges = edges[np.argsort(-span, kind="stable")]
    tries = edges[: max(_SEARCHES_MIN, _WORK_MAX // max(1, len(ways.source)))]
    found: tuple[int, list[int]] | None = None
    limit = np.inf
    for edge in tries.tolist():
        source, target = int(starts.source[edge]), int(starts.target[edge])
        distance, before = dijkstra(matrix, indices=target, return_predecessors=True, limit=limit)
        if distance[source] < limit:
            limit = float(distance[source])
            found = edge, _way(before, target, source)
        if limit < _TWO_EDGES:
            break
    if found is None:
        return None
    edge, way = found
    return _Round(
        nodes=[int(starts.source[edge]), *way[:-1]],
        kinds=[int(starts.kind[edge]), *_kinds(ways, way)],
        exhaustive=len(tries) == len(edges) or limit < _TWO_EDGES,
    )


def _weights(graph: Graph) -> tuple[NDArray[np.float64], tuple[Ints, Ints]]:
    """Return the weights, sources and targets of edges: of parallel ones the lightest.

    All edges inside fans together weigh less than one other.
    """
    inside = graph.kind == EdgeKind.FREE
    weight = np.where(inside, 0.5 / (1 + np.count_nonzero(inside)), 1.0)
    order = np.lexsort((weight, graph.target, graph.source))
    source, target = graph.source[order], graph.target[order]
    first = np.ones(len(weight), np.bool_)
    first[1:] = (np.diff(source) != 0) | (np.diff(target) != 0)
    return weight[order][first], (source[first], target[first])


def _way(before: NDArray[np.int32], start: int, end: int) -> list[int]:
    nodes = [end]
    while nodes[-1] != start:
        nodes.append(int(before[nodes[-1]]))
    return nodes[::-1]


def _kinds(ways: Graph, nodes: list[int]) -> list[int]:
    """Return the kind of the edge between neighbours of these nodes, the first of several."""
    code = ways.source * ways.node_count + ways.target
    order = np.lexsort((ways.kind, code))
    wanted = np.array(nodes[:-1]) * ways.node_count + np.array(nodes[1:])
    found: list[int] = ways.kind[order][np.searchsorted(code, wanted, sorter=order)].tolist()
    return found


def _links(found: _Round, graph: Graph) -> tuple[CycleEdge, ...]:
    """Return the links from the earliest transaction round to it, without fans and barriers."""
    nodes = [node % graph.node_count for node in found.nodes]
    first = nodes.index(min(nodes))
    links: list[CycleEdge] = []
    source = entered = None
    for place in range(first, first + len(nodes)):
        node, kind = nodes[place % len(nodes)], found.kinds[place % len(nodes)]
        following = nodes[(place + 1) % len(nodes)]
        if node < len(graph.transaction):
            source, entered = int(graph.transaction[node]), EdgeKind(kind)
        if following < len(graph.transaction) and source is not None and entered is not None:
            target = int(graph.transaction[following])
            links.append(CycleEdge(source=source, target=target, kind=entered))
    return tuple(links)
