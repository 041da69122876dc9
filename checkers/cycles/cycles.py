"""All cycles of a graph of transactions, each with the level that it breaks.

Of a history that is wrong all over there may be very many components; they are counted by level,
all of them, and the first are spelled out with a shortest cycle each.
"""

from dataclasses import dataclass
from typing import Final

from fencepost.checkers.cycles.graph import Component, Graph, components
from fencepost.checkers.cycles.levels import level_of_cycle
from fencepost.checkers.cycles.shortest import Cycle, class_of, shortest_cycle
from fencepost.history.models import Isolation

_SPELLED_MAX: Final = 200
_PLAIN_ORDER: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycles:
    """The cyclic parts of a graph."""

    spelled: tuple[Cycle, ...]
    unspelled: dict[Isolation, int]
    """The number of further components, by the weakest level that forbids them."""


def cycles_of(graph: Graph) -> Cycles:
    """Return one cycle per new component (`graph.components`)."""
    spelled: list[Cycle] = []
    unspelled: dict[Isolation, int] = {}
    for component in components(graph):
        if len(spelled) < _SPELLED_MAX:
            spelled.append(shortest_cycle(component))
        else:
            level = _level(component)
            unspelled[level] = unspelled.get(level, 0) + 1
    return Cycles(spelled=tuple(spelled), unspelled=unspelled)


def _level(component: Component) -> Isolation:
    return level_of_cycle(class_of(component), plain=component.order <= _PLAIN_ORDER)
