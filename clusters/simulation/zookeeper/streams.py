"""One way of a connection as its receiver sees it: frames in the order in which they were sent."""

from typing import Generic, TypeVar

_Frame = TypeVar("_Frame")


class Stream(Generic[_Frame]):
    """Puts frames in order by their numbers; what was taken already, or twice, is left out."""

    __slots__ = ("_early", "_next")

    def __init__(self, first: int = 0) -> None:
        self._next = first
        self._early: dict[int, _Frame] = {}

    def take(self, sequence: int, frame: _Frame) -> list[_Frame]:
        """Return the frames whose turn has come with this one."""
        if sequence != self._next:
            if sequence > self._next:
                self._early[sequence] = frame
            return []
        found = [frame]
        self._next += 1
        while self._early and self._next in self._early:
            found.append(self._early.pop(self._next))
            self._next += 1
        return found
