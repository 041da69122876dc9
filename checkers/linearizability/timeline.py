"""Calls and returns of operations in a list by time, from which operations are taken and put back.

At one time calls stand before returns: intervals are closed, and what meets is concurrent.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Final

from checkers.linearizability.operations import Operation

__all__ = ["Timeline", "pieces"]

_HEAD: Final = 0


def pieces(operations: Sequence[Operation]) -> list[list[Operation]]:
    """Return these operations, ordered by call, cut wherever all returned before the next call."""
    cut: list[list[Operation]] = []
    latest_end = 0
    for one in operations:
        if not cut or one.call > latest_end:
            cut.append([])
        cut[-1].append(one)
        latest_end = max(latest_end, one.end)
    return cut


class Timeline:
    """Operations by number, each in the list with its call and its return, or taken out of it."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations
        self.taken = 0
        """One bit a slot, turned whenever an operation of the slot is taken or put back: of those
        that are not over at the first return left, it tells which are taken."""
        count = len(operations)
        moments = sorted(
            [(one.call, False, number) for number, one in enumerate(operations)]
            + [(one.end, True, number) for number, one in enumerate(operations)]
        )
        self._slot_bits = _slot_bits(moments, count)
        # Entry 0 is the head and the last one the end; `_number` is negative for returns.
        self._number = [0, *(~n if is_return else n for _, is_return, n in moments), -1]
        self._next = list(range(1, 2 * count + 3))
        self._previous = list(range(-1, 2 * count + 1))
        self._calls = [0] * count
        self._returns = [0] * count
        for entry, (_, is_return, number) in enumerate(moments, start=1):
            (self._returns if is_return else self._calls)[number] = entry

    def open(self) -> list[int]:
        """Return the operations that can be next: those called before the first remaining return.

        The one of that return comes first. Empty once all are taken.
        """
        found: list[int] = []
        entry = self._next[_HEAD]
        while (number := self._number[entry]) >= 0:
            found.append(number)
            entry = self._next[entry]
        if found:
            found.remove(~number)
            found.insert(0, ~number)
        return found

    def take(self, number: int) -> None:
        """Take an operation out of the list."""
        self.taken ^= self._slot_bits[number]
        for entry in (self._calls[number], self._returns[number]):
            before, after = self._previous[entry], self._next[entry]
            self._next[before], self._previous[after] = after, before

    def put_back(self, number: int) -> None:
        """Undo the last `take` that is not undone, which was of this operation."""
        self.taken ^= self._slot_bits[number]
        for entry in (self._returns[number], self._calls[number]):
            before, after = self._previous[entry], self._next[entry]
            self._next[before], self._previous[after] = entry, entry


def _slot_bits(moments: Sequence[tuple[int, bool, int]], count: int) -> list[int]:
    """Return the bit of each operation; no two that are open at once have the same."""
    bits = [0] * count
    free: list[int] = []
    slot_count = 0
    for _, is_return, number in moments:
        if is_return:
            heappush(free, bits[number])
            continue
        if not free:
            heappush(free, 1 << slot_count)
            slot_count += 1
        bits[number] = heappop(free)
    return bits
