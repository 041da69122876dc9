"""Tables of transitions as graphs, and the shortest way that takes every transition."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TypeVar

import networkx as nx

State = TypeVar("State", bound=Enum)
Event = TypeVar("Event", bound=Enum)


def machine(
    transitions: Mapping[tuple[State, Event], State],
) -> "nx.MultiDiGraph[State]":
    """Return the graph of a table: states, and an edge for each transition, its event as key."""
    graph: nx.MultiDiGraph[State] = nx.MultiDiGraph()
    graph.add_edges_from((old, new, event) for (old, event), new in transitions.items())
    return graph


def tour(
    transitions: Mapping[tuple[State, Event], State], start: State
) -> Iterator[tuple[State, Event, State]]:
    """Yield the transitions of a shortest closed way from `start` that takes each at least once.

    The directed Chinese postman problem (Edmonds and Johnson 1973): what is taken again is a
    cheapest flow from states with more ways in to those with more ways out; with it, every state
    has as many of both, and Euler's circuit takes them all.
    """
    graph = machine(transitions)
    again: nx.DiGraph[State] = nx.DiGraph(graph.edges())
    for state in graph:
        again.add_node(state, demand=graph.out_degree(state) - graph.in_degree(state))
    nx.set_edge_attributes(again, 1, "weight")
    for old, flows in nx.min_cost_flow(again).items():
        for new, count in flows.items():
            event = next(iter(graph[old][new]))
            graph.add_edges_from((old, new, (event, number)) for number in range(count))
    for old, new, key in nx.eulerian_circuit(graph, source=start, keys=True):
        yield old, key[0] if isinstance(key, tuple) else key, new
