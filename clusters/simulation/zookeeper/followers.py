"""A leader's followers: what each has of the leader's log, and when it was heard of."""

from collections.abc import Sequence
from typing import Final

from clusters.simulation.zookeeper.entries import Entry
from clusters.simulation.zookeeper.frames import Accept, Forward, Forwarded, Propose

__all__ = ["Follower"]

_ENTRIES_MAX: Final = 1000
"""The most entries of one Propose."""


class Follower:
    """One of them, from the beginning of the leader's epoch on. `length`: that of its log then."""

    __slots__ = ("_again", "_next", "_stream", "_taken", "heard_ns", "matched")

    def __init__(self, now: int, length: int) -> None:
        self.heard_ns = now
        self.matched = 0
        """The number of the leader's entries that it has durably."""
        self._stream = 0
        """The stream of its forwards."""
        self._taken = 0
        """The number of forwards that the leader has taken of this stream."""
        self._next = length
        """The entry that it is sent next."""
        self._again = length
        """The entry from which it is sent what it has not confirmed."""

    def repeat(self) -> None:
        """Send what it has not confirmed once more, with the next `proposal`."""
        self._next = self._again

    def proposal(
        self, log: Sequence[Entry], *, server: int, epoch: int, committed: int, is_gone: bool
    ) -> Propose:
        """Return what it is sent next: entries, unless it may be gone, and where the leader is."""
        start = self._next
        end = start if is_gone else min(len(log), start + _ENTRIES_MAX)
        self._next = end
        return Propose(
            -1,
            server,
            epoch,
            start,
            log[start - 1].zxid if start else 0,
            tuple(log[start:end]),
            committed,
            len(log),
            self._stream,
            self._taken,
        )

    def accepted(self, accept: Accept, length: int) -> bool:
        """Take what it says that it has. Return whether it has more than was known."""
        if not accept.matched:
            self._next = self._again = min(accept.position, length)
            self.matched = 0
            return False
        if accept.position <= self.matched:
            return False
        self.matched = self._again = accept.position
        self._next = max(self._next, accept.position)
        return True

    def fresh(self, forward: Forward) -> tuple[Forwarded, ...]:
        """Return the forwards that the leader has to take now; what came before is left out."""
        if forward.stream != self._stream:
            self._stream, self._taken = forward.stream, 0
        if forward.first > self._taken + 1:
            return ()  # One before it is late; all of them come again.
        found = forward.forwards[self._taken + 1 - forward.first :]
        self._taken += len(found)
        return found
