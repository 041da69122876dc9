"""The batches of a log in memory: full segments, which are never changed again, and the last one.

They are shorter than those of a disk: who asks about a log goes through the last one each time.

Nodes start often, and logs grow for hours. Copies of a log share its full segments, be they copies
in memory, of a disk, or by replication (`segments`), and none of them costs more as a log grows.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import Any, Final, overload

from fencepost.clusters.node_port.segments import Fold, Segment, Segments, segment_of

SEGMENT_BATCHES: Final = 1024
"""The length of a full segment."""


class Batches(Sequence[Any]):
    """Batches in the order of their offsets, from an index of 0 on."""

    __slots__ = ("_segments", "full_count", "last")

    def __init__(self, batches: Iterable[Any] = ()) -> None:
        """Take them; of another log of this kind, full segments are shared."""
        self._segments: Segments = Segments()
        self.full_count = 0
        """How many full segments there are."""
        self.last: list[Any] = []
        """The batches after them: fewer than a segment has."""
        if isinstance(batches, Batches):
            self._segments = batches._segments  # noqa: SLF001  # another one of its kind
            self.full_count, self.last = batches.full_count, list(batches.last)
        else:
            for batch in batches:
                self.append(batch)

    @property
    def full(self) -> Sequence[Segment]:
        """The full segments."""
        return self._segments.items[: self.full_count]

    def append(self, batch: Any) -> None:
        """Put a batch at the end."""
        self.last.append(batch)
        if len(self.last) == SEGMENT_BATCHES:
            self._add(self.last)
            self.last = []

    def extend(self, batches: Sequence[Any]) -> None:
        """Put batches at the end, in their order."""
        if len(batches) == SEGMENT_BATCHES and not self.last:
            self._add(batches)
            return
        begin = 0
        while begin < len(batches):
            end = begin + SEGMENT_BATCHES - len(self.last)
            self.last.extend(batches[begin:end])
            if len(self.last) == SEGMENT_BATCHES:
                self._add(self.last)
                self.last = []
            begin = end

    def truncate(self, count: int) -> None:
        """Keep no more than this number of batches."""
        whole = count // SEGMENT_BATCHES
        if whole < self.full_count:
            self.last = list(self._segments.items[whole].batches[: count % SEGMENT_BATCHES])
            self.full_count = whole
        else:
            del self.last[count - self.full_count * SEGMENT_BATCHES :]

    def count_before(self, offset: int) -> int:
        """Return how many batches begin below the offset."""
        count, last = self.full_count, self.last
        if not count or (last and last[0].base_offset < offset):
            return count * SEGMENT_BATCHES + bisect_left(last, offset, key=_base_offset)
        items = self._segments.items
        begun = bisect_left(items, offset, hi=count, key=_base_offset)
        if not begun:
            return 0
        within = bisect_left(items[begun - 1].batches, offset, key=_base_offset)
        return (begun - 1) * SEGMENT_BATCHES + within

    def rest_of_segment(self, index: int) -> Sequence[Any]:
        """Return the batches from this index on to the end of its full segment.

        Of a whole one they are its own, and whoever takes them shares it.
        """
        batches = self._segments.items[index // SEGMENT_BATCHES].batches
        return batches[index % SEGMENT_BATCHES :]

    def folded(self, fold: Fold) -> list[Any]:
        """Return what `fold` chooses of all batches."""
        found = self._segments.folded(self.full_count, fold)
        return fold([*found, *self.last])

    def _add(self, batches: Sequence[Any]) -> None:
        self._segments = self._segments.with_next(self.full_count, segment_of(batches))
        self.full_count += 1

    def __len__(self) -> int:
        return self.full_count * SEGMENT_BATCHES + len(self.last)

    def __iter__(self) -> Iterator[Any]:
        full = islice(self._segments.items, self.full_count)
        return chain(chain.from_iterable(one.batches for one in full), self.last)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self._between(*index.indices(len(self)))
        if index < 0:
            index += len(self)
        whole = index // SEGMENT_BATCHES
        if not 0 <= whole < self.full_count:
            return self.last[index - self.full_count * SEGMENT_BATCHES]
        return self._segments.items[whole].batches[index % SEGMENT_BATCHES]

    def _between(self, start: int, stop: int, step: int) -> list[Any]:
        assert step == 1, step
        first, end = start // SEGMENT_BATCHES, stop // SEGMENT_BATCHES + 1
        items = self._segments.items[first : min(end, self.full_count)]
        pieces: list[Sequence[Any]] = [one.batches for one in items]
        if first + len(pieces) == self.full_count:
            pieces.append(self.last)
        begin = start - first * SEGMENT_BATCHES
        within = slice(begin, begin + max(0, stop - start))
        if len(pieces) == 1:
            return list(pieces[0][within])
        return list(chain.from_iterable(pieces))[within]


_base_offset: Final = attrgetter("base_offset")
