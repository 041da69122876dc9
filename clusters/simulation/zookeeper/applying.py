"""The server around a peer, which applies what its peer has found to be certain."""

from typing import Protocol

from clusters.node_port.effects import Effects
from clusters.simulation.zookeeper.entries import LogEntry
from clusters.simulation.zookeeper.frames import Propose


class Applying(Protocol):
    """Its peer calls these while it handles an event that the server has passed on to it."""

    def applied(self, now: int, entry: LogEntry, effects: Effects) -> None:
        """The next committed entry."""

    def served(self, now: int) -> None:
        """From here on it serves clients."""

    def confirmed(self, now: int, propose: Propose, effects: Effects) -> None:
        """The leader says which forwards it has taken, and how long its log was then."""

    def left(self, effects: Effects) -> None:
        """It has no leader any more, and serves nobody."""

    def touched(self) -> tuple[int, ...]:
        """Return the sessions that gave a sign of life since the last call."""
