"""The order in which keys are read, and the time for each: one deadline, shared fairly.

Keys are read one after the other. A key without a leader must not use up the time of the others,
nor give up while there is time left: each read may take its share of what is left, a key that was
not read completely goes to the end of the queue, and a quick read leaves its time to the others.
"""

from collections import deque
from collections.abc import Sequence


class Agenda:
    """The reads to do. Times in ns of any one clock."""

    def __init__(self, keys: Sequence[int], *, deadline_ns: int) -> None:
        self._left = deque(keys)
        self._deadline_ns = deadline_ns
        self._done: list[int] = []

    @property
    def done(self) -> tuple[int, ...]:
        """Return the keys that were read completely."""
        return tuple(self._done)

    @property
    def left(self) -> tuple[int, ...]:
        """Return the keys that were not read completely."""
        return tuple(self._left)

    def next(self, now_ns: int) -> tuple[int, int] | None:
        """Return the key to read now and the time to give up; None if all is read or time is up."""
        if not self._left or now_ns >= self._deadline_ns:
            return None
        return self._left[0], now_ns + -(-(self._deadline_ns - now_ns) // len(self._left))

    def ended(self, *, complete: bool) -> None:
        """Take note that the read of the key that `next` named has ended."""
        key = self._left.popleft()
        (self._done if complete else self._left).append(key)
