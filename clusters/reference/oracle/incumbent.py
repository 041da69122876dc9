"""A controller of the ZooKeeper generation in office: whom it has heard of, and when it could act.

It decides one thing after the other, and each waits for ZooKeeper. So a silent broker may lead on
for as long as ZooKeeper does not answer, or the controller stands still. That it goes on is seen by
what it does, at least by the heartbeats of its own broker.
"""

from dataclasses import dataclass, field
from typing import Final

__all__ = ["Incumbent"]

_STILL_NS: Final = 1_000_000_000
"""A controller that does nothing for so long stands still."""


@dataclass(slots=True)
class Incumbent:
    """From the election of a controller on, at `begun_ns`."""

    begun_ns: int
    loaded_ns: int
    """When it had read everything: it counts the silence of brokers from then on."""
    stepped_ns: int
    """When it did something last."""
    known: dict[int, int] = field(default_factory=dict)
    """The highest incarnation id by broker."""
    vouched: dict[int, int] = field(default_factory=dict)
    """The highest incarnation id in a heartbeat since it is active, which it takes over (Z04)."""
    inactive_ns: dict[int, int] = field(default_factory=dict)
    """When it found a broker inactive; none: it does not."""
    taken_ns: dict[int, int] = field(default_factory=dict)
    """When a broker answered an UpdateMetadata last."""
    heard_ns: dict[int, int] = field(default_factory=dict)
    """When a heartbeat last arrived, by broker."""
    asked_ns: int | None = None
    """When it asked ZooKeeper for its newest decision: it knew no more than then."""
    _waiting_ns: int | None = None
    """Since when it has been waiting for what it asked for; None: it does not wait."""
    _hindered_ns: list[tuple[int, int]] = field(default_factory=list)
    """From when until when it waited or stood still."""

    def vouch(self, broker_id: int, incarnation: int) -> None:
        """A heartbeat of this incarnation arrives."""
        self.vouched[broker_id] = max(incarnation, self.vouched.get(broker_id, -1))

    def stepped(self, now: int) -> None:
        """It does something, or takes what arrives."""
        if now - self.stepped_ns > _STILL_NS:
            self._hindered_ns.append((self.stepped_ns, now))
        self.stepped_ns = now

    def asked(self, now: int) -> None:
        """It has decided something, which holds once ZooKeeper has it."""
        self.asked_ns = now
        if self._waiting_ns is None:
            self._waiting_ns = now

    def settled(self, now: int) -> None:
        """It knows what has become of its decision."""
        if self._waiting_ns is not None:
            self._hindered_ns.append((self._waiting_ns, now))
            self._waiting_ns = None

    def free_ns(self, begin_ns: int, end_ns: int) -> int:
        """Return for how long of this time it could decide something."""
        waiting_ns = end_ns if self._waiting_ns is None else self._waiting_ns
        free_ns, at_ns = 0, begin_ns
        for since_ns, until_ns in sorted((*self._hindered_ns, (waiting_ns, end_ns))):
            free_ns += max(0, min(since_ns, end_ns) - at_ns)
            at_ns = max(at_ns, until_ns)
        return free_ns + max(0, end_ns - at_ns)
