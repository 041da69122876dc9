"""Full segments of logs: batches that stay as they are, and are the same in every copy of a log.

A replica that copies its leader's log, and each disk below it, ends up with the batches of others.
One object stands for all of them, and whatever was found out about it is found out once. So it is
with the list of a log's segments, which a node that starts has in common with its disk.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

_Found = TypeVar("_Found")

Fold = Callable[[Sequence[Any]], list[Any]]
"""Some of the batches that it is given, of which it may have made a choice before, part by part."""

_FOLDED: Final = 64
"""As many segments are folded at a time, and what was found is kept."""


class Segment:
    """Batches that stay as they are."""

    __slots__ = ("__weakref__", "_summaries", "base_offset", "batches")

    def __init__(self, batches: Sequence[Any]) -> None:
        self.batches = tuple(batches)
        self.base_offset: int = batches[0].base_offset
        self._summaries: dict[Any, Any] = {}

    def summary(self, of: Callable[[Sequence[Any]], _Found]) -> _Found:
        """Return what this function says of the batches; it is asked once."""
        found: _Found | None = self._summaries.get(of)
        if found is None:
            found = self._summaries[of] = of(self.batches)
        return found


class Segments:
    """A list of full segments in their order, shared by logs that each have a prefix of it.

    A log that has all of it adds its next segment here; one that continues differently gets a copy.
    """

    __slots__ = ("_folds", "items")

    def __init__(self, items: Iterable[Segment] = ()) -> None:
        self.items = list(items)
        self._folds: dict[Fold, list[list[Any]]] = {}
        """By fold, its results over the first 0, `_FOLDED`, 2 `_FOLDED` … segments."""

    def with_next(self, count: int, segment: Segment) -> "Segments":
        """Return those that have the first `count` of these, and then this one."""
        if count == len(self.items):
            self.items.append(segment)
        elif self.items[count] is not segment:
            return Segments([*self.items[:count], segment])
        return self

    def folded(self, count: int, fold: Fold) -> list[Any]:
        """Return what `fold` chooses of the batches of the first `count`."""
        known = self._folds.setdefault(fold, [[]])
        whole = count // _FOLDED
        while len(known) <= whole:
            known.append(self._fold(known[-1], (len(known) - 1) * _FOLDED, _FOLDED, fold))
        return self._fold(known[whole], whole * _FOLDED, count % _FOLDED, fold)

    def _fold(self, before: list[Any], begin: int, count: int, fold: Fold) -> list[Any]:
        parts = (one.summary(fold) for one in self.items[begin : begin + count])
        return fold(list(chain(before, *parts)))


def segment_of(batches: Sequence[Any]) -> Segment:
    """Return the segment that has these batches, which are not to be changed any more."""
    place = id(batches[-1])
    found = _SEGMENTS.get(place)
    if found is None or not (found.batches is batches or found.batches == tuple(batches)):
        found = _SEGMENTS[place] = Segment(batches)
    return found


def summary_of(batches: Sequence[Any], of: Callable[[Sequence[Any]], _Found]) -> _Found:
    """Return what a function says of these; of all batches of a segment it is asked once."""
    found = _SEGMENTS.get(id(batches[-1]))
    return found.summary(of) if found is not None and found.batches is batches else of(batches)


_SEGMENTS: Final = WeakValueDictionary[int, Segment]()
"""Those that some log has, by the identity of the last batch."""
