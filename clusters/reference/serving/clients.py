"""The clients that a broker has answered, by where their answers go."""

from typing import Final

from clusters.reference.effects import CLOSE, Effects

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

    def close(self, effects: Effects) -> None:
        """End all connections, so that clients ask anew what the broker offers (KIP-778)."""
        effects.extend((CLOSE, source) for source in self.sources)
        self.sources.clear()
