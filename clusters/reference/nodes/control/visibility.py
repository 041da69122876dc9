"""The lowest acknowledged offset: what all unfenced brokers have applied.

Brokers acknowledge by the offsets of their heartbeats. These are not in the log, so a new active
controller tells none (-1) until every unfenced broker has acknowledged what was committed when it
became active: no controller before it can have told more, while a heartbeat that comes late may say
less than was told. Meanwhile brokers keep what they knew. A broker has caught up before it is
unfenced (`caught_up_at`), so that the offset never goes back.

Source: the draft that adds LowestAcknowledgedOffset to BrokerHeartbeat, "Read-after-write
visibility".
"""

from typing import Final

from clusters.reference.nodes.image import MetadataImage, Registration
from clusters.reference.nodes.levels import LEVEL_VISIBILITY
from clusters.reference.nodes.rules import Rules

__all__ = ["UNKNOWN", "AcknowledgedOffsets"]

UNKNOWN: Final = -1


class AcknowledgedOffsets:
    """The offsets that brokers have acknowledged to this active controller; all are ends."""

    __slots__ = ("_acknowledged", "_joining", "_rules", "_since", "answered", "lowest")

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._acknowledged: dict[int, int] = {}
        self._joining: dict[int, None] = {}
        """Brokers whose unfencing is decided and not committed: they count as unfenced, or the
        offset would move past what they were found to have."""
        self._since = 0
        """The committed offset when this controller became active."""
        self.lowest = UNKNOWN
        self.answered = 0
        """The end of the records of the last client's write that was answered."""

    def restart(self, image: MetadataImage) -> None:
        """A new active controller knows nothing."""
        self._since = image.offset
        self._acknowledged.clear()
        self._joining.clear()
        self.lowest = UNKNOWN
        self.answered = 0

    def acknowledge(self, broker_id: int, offset: int) -> None:
        """A broker has applied all below this offset; heartbeats may overtake each other."""
        if offset > self._acknowledged.get(broker_id, UNKNOWN):
            self._acknowledged[broker_id] = offset

    def forget(self, broker_id: int) -> None:
        """Forget a broker that registered anew: its offsets begin again."""
        self._acknowledged.pop(broker_id, None)
        self._joining.pop(broker_id, None)

    def join(self, broker_id: int) -> None:
        """Note that a broker is decided to be unfenced."""
        self._joining[broker_id] = None

    def joined(self, broker_id: int) -> None:
        """Note that the decision about a broker is committed."""
        self._joining.pop(broker_id, None)

    def acknowledged_by(self, broker_id: int) -> int:
        """Return what a broker has acknowledged, or UNKNOWN."""
        return self._acknowledged.get(broker_id, UNKNOWN)

    def update(self, image: MetadataImage) -> None:
        """Find the lowest offset anew: a broker acknowledged something, or was (un)fenced.

        Below LEVEL_VISIBILITY it is UNKNOWN: no broker is told it, and one that is unfenced
        meanwhile need not have reached it.
        """
        if image.level < LEVEL_VISIBILITY:
            self.lowest = UNKNOWN
            return
        offsets = [
            self._acknowledged.get(broker_id, UNKNOWN)
            for broker_id, one in image.brokers.items()
            if not one.fenced or broker_id in self._joining
        ]
        if not offsets or UNKNOWN in offsets:
            return
        # Rule lowest_of_all.
        found = min(offsets) if self._rules.lowest_of_all else max(offsets)
        # Rule lowest_never_back.
        if not self._rules.lowest_never_back or found >= max(self.lowest, self._since):
            self.lowest = found

    def applied_by_all(self, image: MetadataImage, end_offset: int) -> bool:
        """Return whether every unfenced broker has applied all below this offset."""
        return all(
            self._acknowledged.get(broker_id, UNKNOWN) >= end_offset
            for broker_id, one in image.brokers.items()
            if not one.fenced or broker_id in self._joining
        )

    def caught_up_at(self, image: MetadataImage, registration: Registration, committed: int) -> int:
        """The offset that a broker needs to be unfenced.

        It has to have applied its own registration. With LEVEL_VISIBILITY it needs besides all that
        was `committed` when it asked, all that others show by now, and every write that a client
        was told of.
        """
        # Rule unfenced_when_caught_up.
        if not self._rules.unfenced_when_caught_up:
            return 0
        own = registration.offset + 1
        # Rule lowest_never_back: who is unfenced has caught up first.
        if image.level < LEVEL_VISIBILITY or not self._rules.lowest_never_back:
            return own
        return max(own, committed, self.lowest, self.answered)
