"""The two ends of the way between a leader and a follower.

The leader keeps what each follower has of its log, and when it was heard of. A follower passes on
what only a leader can do, in its order, none of it twice.
"""

from collections.abc import Sequence
from typing import Final

from clusters.node_port.effects import SEND, Effects
from clusters.simulation.zookeeper.connection import Connection
from clusters.simulation.zookeeper.entries import LogEntry
from clusters.simulation.zookeeper.frames import Accept, Call, Forward, Forwarded, Propose

_ENTRIES_MAX: Final = 1000
"""The most entries of one Propose."""


class LearnerHandler:
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
        self, log: Sequence[LogEntry], *, server: int, epoch: int, committed: int, is_gone: bool
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


class PendingSync:
    """A task for the time when the server has applied all that the leader had at the forward."""

    __slots__ = ("call", "connection", "position")

    def __init__(self, connection: Connection, call: Call | None) -> None:
        self.connection = connection
        self.call = call
        """A sync; None: the connection itself, which takes over its session."""
        self.position = -1
        """The entries that must have been applied; -1: the leader has not taken it yet."""


class Forwards:
    """The forwards of one stream that the leader has not confirmed; they are sent until it has."""

    __slots__ = ("_confirmed_count", "_number", "_open", "_sent_ns", "_stream")

    def __init__(self, number: int) -> None:
        self._number = number
        self._stream = 0
        self._open: list[tuple[Forwarded, PendingSync | None]] = []
        self._confirmed_count = 0
        self._sent_ns = 0

    def begin(self, stream: int) -> None:
        """Forget all: another stream begins."""
        self._stream = stream
        self._open.clear()
        self._confirmed_count = 0

    def add(
        self,
        now: int,
        forwarded: Forwarded,
        waiting: PendingSync | None,
        *,
        leader: int,
        epoch: int,
        effects: Effects,
    ) -> None:
        """Send one to the leader."""
        self._open.append((forwarded, waiting))
        self._sent_ns = now
        first = self._confirmed_count + len(self._open)
        forward = Forward(-1, self._number, epoch, self._stream, first, (forwarded,))
        effects.append((SEND, leader, forward))

    def confirm(self, propose: Propose) -> list[PendingSync]:
        """Return what now waits for the leader's log alone."""
        if propose.stream != self._stream or propose.taken <= self._confirmed_count:
            return []
        count = propose.taken - self._confirmed_count
        found = [waiting for _, waiting in self._open[:count] if waiting is not None]
        for waiting in found:
            waiting.position = propose.head
        del self._open[:count]
        self._confirmed_count = propose.taken
        return found

    def repeat(self, now: int, *, after_ns: int, leader: int, epoch: int, effects: Effects) -> None:
        """Send again what should have been confirmed long ago."""
        if self._open and now - self._sent_ns >= after_ns:
            self._sent_ns = now
            again = tuple(forwarded for forwarded, _ in self._open)
            first = self._confirmed_count + 1
            forward = Forward(-1, self._number, epoch, self._stream, first, again)
            effects.append((SEND, leader, forward))
