"""The leader's sessions: when each expires, and which connection may ask in its name."""

from collections.abc import Mapping

from clusters.node_port.alarm import NEVER_NS

__all__ = ["Sessions"]

_MS = 1_000_000


class Sessions:
    """Kept by the leader alone; a new leader gives every session its whole time-out again.

    A session belongs to the connection that opened it or took it over last. Requests of an earlier
    one, which were under way when the client left it, come too late (SESSION_MOVED).
    """

    __slots__ = ("_due_ns", "_owners", "_timeouts_ns")

    def __init__(self) -> None:
        self._timeouts_ns: dict[int, int] = {}
        self._due_ns: dict[int, int] = {}
        self._owners: dict[int, tuple[int, int]] = {}

    @property
    def due_ns(self) -> int:
        """The earliest time at which one expires, unless its client is heard of before."""
        return min(self._due_ns.values(), default=NEVER_NS)

    def begin(self, now: int, timeouts_ms: Mapping[int, int]) -> None:
        """This server leads from here on."""
        self._timeouts_ns.clear()
        self._due_ns.clear()
        self._owners.clear()
        for session, timeout_ms in timeouts_ms.items():
            self.open(now, session, timeout_ms)

    def open(self, now: int, session: int, timeout_ms: int) -> None:
        """A session has begun."""
        self._timeouts_ns[session] = timeout_ms * _MS
        self._due_ns[session] = now + timeout_ms * _MS

    def end(self, session: int) -> None:
        """A session has ended."""
        self._timeouts_ns.pop(session, None)
        self._due_ns.pop(session, None)
        self._owners.pop(session, None)

    def touch(self, now: int, session: int) -> None:
        """Its client was heard of. One that ends already ends all the same."""
        if session in self._due_ns:
            self._due_ns[session] = now + self._timeouts_ns[session]

    def belongs(self, session: int, owner: tuple[int, int]) -> None:
        """Let this connection of this server ask in its name from here on."""
        self._owners[session] = owner

    def is_owner(self, session: int, owner: tuple[int, int]) -> bool:
        """Return whether that connection may ask in its name."""
        return self._owners.get(session) == owner

    def expire(self, now: int) -> list[int]:
        """Return the sessions whose time is over; they end, whoever is heard of now."""
        over = [session for session, due_ns in self._due_ns.items() if due_ns <= now]
        for session in over:
            del self._due_ns[session]
        return over
