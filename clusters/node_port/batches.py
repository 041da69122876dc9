"""The batches of a log in memory: full segments, which are never changed again, and the last one.

They are shorter than those of a disk: who asks about a log goes through the last one each time.

Nodes start often, and logs grow for hours. Copies of a log share its full segments, be they copies
in memory, of a disk, or by replication (`segments`).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Final, overload

from clusters.node_port.segments import Segment, segment_of

__all__ = ["SEGMENT_BATCHES", "Batches"]

SEGMENT_BATCHES: Final = 1024
"""The length of a full segment."""


class Batches(Sequence[Any]):
    """Batches in the order of their offsets, from an index of 0 on."""

    __slots__ = ("full", "last")

    def __init__(self, batches: Iterable[Any] = ()) -> None:
        """Take them; of another log of this kind, full segments are shared."""
        self.full: list[Segment] = []
        self.last: list[Any] = []
        """The batches after them: fewer than a segment has."""
        if isinstance(batches, Batches):
            self.full, self.last = list(batches.full), list(batches.last)
        else:
            for batch in batches:
                self.append(batch)

    def append(self, batch: Any) -> None:
        """Put a batch at the end."""
        self.last.append(batch)
        if len(self.last) == SEGMENT_BATCHES:
            self.full.append(segment_of(self.last))
            self.last = []

    def extend(self, batches: Sequence[Any]) -> None:
        """Put batches at the end, in their order."""
        begin = 0
        while begin < len(batches):
            end = begin + SEGMENT_BATCHES - len(self.last)
            self.last.extend(batches[begin:end])
            if len(self.last) == SEGMENT_BATCHES:
                self.full.append(segment_of(self.last))
                self.last = []
            begin = end

    def truncate(self, count: int) -> None:
        """Keep no more than this number of batches."""
        whole = count // SEGMENT_BATCHES
        if whole < len(self.full):
            self.last = self.full[whole].batches[: count % SEGMENT_BATCHES]
            del self.full[whole:]
        else:
            del self.last[count - len(self.full) * SEGMENT_BATCHES :]

    def count_before(self, offset: int) -> int:
        """Return how many batches begin below the offset."""
        full, last = self.full, self.last
        if not full or (last and last[0].base_offset < offset):
            return len(full) * SEGMENT_BATCHES + bisect_left(last, offset, key=_base_offset)
        begun = bisect_left(full, offset, key=_base_offset)
        if not begun:
            return 0
        within = bisect_left(full[begun - 1].batches, offset, key=_base_offset)
        return (begun - 1) * SEGMENT_BATCHES + within

    def __len__(self) -> int:
        return len(self.full) * SEGMENT_BATCHES + len(self.last)

    def __iter__(self) -> Iterator[Any]:
        return chain(chain.from_iterable(one.batches for one in self.full), self.last)

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
        if not 0 <= whole < len(self.full):
            return self.last[index - len(self.full) * SEGMENT_BATCHES]
        return self.full[whole].batches[index % SEGMENT_BATCHES]

    def _between(self, start: int, stop: int, step: int) -> list[Any]:
        assert step == 1, step
        first = start // SEGMENT_BATCHES
        pieces = [one.batches for one in self.full[first : stop // SEGMENT_BATCHES + 1]]
        if first + len(pieces) == len(self.full):
            pieces.append(self.last)
        begin = start - first * SEGMENT_BATCHES
        end = begin + max(0, stop - start)
        if len(pieces) == 1:
            return pieces[0][begin:end]
        return list(chain.from_iterable(pieces))[begin:end]


_base_offset: Final = attrgetter("base_offset")
