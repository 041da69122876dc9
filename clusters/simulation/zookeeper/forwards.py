"""A follower's way to its leader: what only a leader can do, in its order, none of it twice."""

from clusters.node_port.effects import SEND, Effects
from clusters.simulation.zookeeper.connection import Connection
from clusters.simulation.zookeeper.frames import Call, Forward, Forwarded, Propose

__all__ = ["Forwards", "Waiting"]


class Waiting:
    """What is done once the server has applied all that the leader had when it took the forward."""

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
        self._open: list[tuple[Forwarded, Waiting | None]] = []
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
        waiting: Waiting | None,
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

    def confirm(self, propose: Propose) -> list[Waiting]:
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
