"""The clients that a broker has answered, by where their answers go."""

from collections.abc import Set as AbstractSet
from typing import Final

from clusters.node_port.effects import CLOSE, Effects

__all__ = ["Clients"]

_SOURCES_MAX: Final = 10_000
"""The oldest is forgotten then: its connection is not closed when others are."""


class Clients:
    """Sources of requests, in the order in which they came first."""

    __slots__ = ("sources",)

    def __init__(self) -> None:
        self.sources: dict[int, None] = {}

    def add(self, source: int) -> None:
        """A client that is not among `sources`."""
        self.sources[source] = None
        if len(self.sources) > _SOURCES_MAX:
            del self.sources[next(iter(self.sources))]

    def close(self, effects: Effects, *, but: AbstractSet[int]) -> None:
        """End all connections but these, so that clients ask anew what is offered (KIP-778)."""
        effects.extend((CLOSE, source) for source in self.sources if source not in but)
        self.sources.clear()
