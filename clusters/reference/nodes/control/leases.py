"""The leases of brokers as the active controller counts them, from when it got a heartbeat.

They are not in the log. A new active controller gives every unfenced broker a whole lease, so that
a broker's own count, from when it sent the heartbeat, is never the longer one.

Source: KIP-631, "Registration and Heartbeats"; Kafka's `BrokerHeartbeatManager`.
"""

from clusters.node_port.alarm import Alarm
from clusters.reference.nodes.image import MetadataImage

__all__ = ["Leases"]


class Leases:
    """The leases of brokers: the time until which each may be silent."""

    __slots__ = ("_alarm", "_ends", "_length_ns", "none_before_ns")

    def __init__(self, length_ns: int, alarm: Alarm) -> None:
        self._alarm = alarm
        self._ends: dict[int, int] = {}
        self._length_ns = length_ns
        self.none_before_ns = 0
        """The time before which no lease of an unfenced broker is over."""

    def restart(self, now: int, image: MetadataImage) -> None:
        """Begin as a new active controller: every broker counts as heard of at this moment."""
        self._ends = {
            broker_id: now + self._length_ns
            for broker_id, one in image.brokers.items()
            if not one.fenced
        }
        self.none_before_ns = 0

    def renew(self, now: int, broker_id: int) -> None:
        """A heartbeat came."""
        end = now + self._length_ns
        self._ends[broker_id] = end
        self.none_before_ns = min(end, self.none_before_ns)

    def is_over(self, now: int, broker_id: int) -> bool:
        """Return whether a broker, fenced or not, was not heard of for the length of a lease."""
        return self._ends.get(broker_id, 0) <= now

    def unfenced(self) -> None:
        """Note that a broker has a lease now whose heartbeat came a while ago."""
        self.none_before_ns = 0

    def forget(self, broker_id: int) -> None:
        """Forget a broker that registered anew: what was heard of it before counts no more."""
        self._ends.pop(broker_id, None)
        self.none_before_ns = 0

    def over(self, now: int, image: MetadataImage) -> tuple[int, ...]:
        """The unfenced brokers whose lease is over, in the order of their ids."""
        if now < self.none_before_ns:
            return ()
        ends = {
            broker_id: self._ends.get(broker_id, 0)
            for broker_id, one in image.brokers.items()
            if not one.fenced
        }
        self.none_before_ns = min(ends.values(), default=now + self._length_ns)
        self._alarm.by(self.none_before_ns)
        return tuple(sorted(broker_id for broker_id, end in ends.items() if end <= now))
