"""Full segments of logs: batches that stay as they are, and are the same in every copy of a log.

A replica that copies its leader's log, and each disk below it, ends up with the batches of others.
One object stands for all of them, and whatever was found out about it is found out once.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

__all__ = ["Segment", "segment_of"]

_Found = TypeVar("_Found")


class Segment:
    """Batches that stay as they are."""

    __slots__ = ("__weakref__", "_summaries", "base_offset", "batches")

    def __init__(self, batches: list[Any]) -> None:
        self.batches = batches
        self.base_offset: int = batches[0].base_offset
        self._summaries: dict[Any, Any] = {}

    def summary(self, of: Callable[[list[Any]], _Found]) -> _Found:
        """Return what this function says of the batches; it is asked once."""
        found: _Found | None = self._summaries.get(of)
        if found is None:
            found = self._summaries[of] = of(self.batches)
        return found


def segment_of(batches: list[Any]) -> Segment:
    """Return the segment that has these batches, which are not to be changed any more."""
    place = id(batches[-1])
    found = _SEGMENTS.get(place)
    if found is None or found.batches != batches:
        found = _SEGMENTS[place] = Segment(batches)
    return found


_SEGMENTS: Final = WeakValueDictionary[int, Segment]()
"""Those that some log has, by the identity of the last batch."""
