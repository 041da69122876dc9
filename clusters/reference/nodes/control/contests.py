"""Broker ids that a second process asks for, and whether the first one is alive.

Until a lease is over, the controller cannot tell a broker that has died and was started again from
two brokers with one id. A heartbeat that was on its way when its sender died may come late, so one
that follows the second process's request proves nothing yet. One that comes more than a lease after
it does: what a dead process has sent is older than that, as far as leases mean anything.
"""

from collections.abc import Mapping

__all__ = ["Contests"]


class Contests:
    """The ids asked for by a process that does not have them; times are ns of the controller."""

    __slots__ = ("_lease_ns", "_since")

    def __init__(self, lease_ns: int) -> None:
        self._lease_ns = lease_ns
        self._since: dict[int, tuple[int, int]] = {}
        """(incarnation that asks, when it first did), by broker id."""

    def restart(self) -> None:
        """Begin as a new active controller."""
        self._since.clear()

    def ask(self, now: int, broker_id: int, incarnation_id: int) -> None:
        """An incarnation asks for an id; another one than before begins anew."""
        known = self._since.get(broker_id)
        if known is None or known[0] != incarnation_id:
            self._since[broker_id] = (incarnation_id, now)

    def forget(self, broker_id: int) -> None:
        """The id is registered anew."""
        self._since.pop(broker_id, None)

    def lost(self, lease_ends: Mapping[int, int]) -> tuple[int, ...]:
        """The ids whose holder is alive for certain, by the times at which leases end."""
        return tuple(
            broker_id
            for broker_id, (_, since) in self._since.items()
            if lease_ends.get(broker_id, 0) > since + 2 * self._lease_ns
        )
