"""The registrations below /brokers/ids: read when a watch tells of them, and compared.

One that is read is taken unless a later incarnation is known, which a heartbeat may tell of first.
"""

from collections.abc import Callable

from clusters.node_port.effects import Effects
from clusters.node_port.zookeeper import Sync, ZkOutcome
from clusters.reference.zk.control.broker_changes import BrokerChanges, registration
from clusters.reference.zk.control.parts import Parts
from clusters.reference.zk.control.reading import read_all, read_children
from clusters.reference.zk.situation import incarnation_of
from clusters.reference.zk.states import ControlledState
from clusters.reference.zk.znodes import BROKER_IDS, BrokerInfo

__all__ = ["Registrations"]

OnTaken = Callable[[int, Effects], None]
"""(now, effects): all registrations are taken as they were read."""


class Registrations:
    """The registrations of one controller epoch."""

    __slots__ = ("_changes", "_is_outdated", "_is_reading", "_parts", "_then")

    def __init__(self, parts: Parts, changes: BrokerChanges, then: OnTaken) -> None:
        self._parts = parts
        self._changes = changes
        self._then = then
        self._is_reading = False
        self._is_outdated = False
        """Something has changed since the reading began."""

    def loaded(self, now: int, found: dict[str, ZkOutcome], effects: Effects) -> None:
        """Take those that a new controller finds; what follows from them is decided next."""
        parts = self._parts
        for info, incarnation in self._decoded(found):
            parts.context.hosts[info.broker_id] = info.host
            parts.context.apply(registration(info, incarnation, fenced=True))
            was_active = self._was_active(info.broker_id)
            state = parts.states.first_state(info, was_active=was_active)
            # Rule inactive_left_out.
            leaves_out = parts.situation.rules.inactive_left_out
            fenced = leaves_out and state is ControlledState.INACTIVE
            parts.context.apply(registration(info, incarnation, fenced=fenced))
            parts.states.registered(now, info, incarnation, state)
            self._changes.announce(info.broker_id, effects)

    def read(self, now: int, effects: Effects) -> None:
        """Read them all, and again if they change meanwhile."""
        if self._is_reading:
            self._is_outdated = True
            return
        self._is_reading, self._is_outdated = True, False
        asking = self._parts.asking
        read_children(asking, now, BROKER_IDS, self._found, effects, watches_data=True)

    def read_latest(self, now: int, effects: Effects) -> None:
        """Read them all, as they are at ZooKeeper's leader or later."""
        then = self._synced
        read_all(self._parts.asking, now, [Sync(BROKER_IDS)], then, effects)

    def _synced(self, now: int, _outcomes: list[ZkOutcome], effects: Effects) -> None:
        self.read(now, effects)

    def _found(self, now: int, found: dict[str, ZkOutcome], effects: Effects) -> None:
        parts = self._parts
        if parts.work.is_over:
            return
        there = {info.broker_id: (info, one) for info, one in self._decoded(found)}
        for broker_id in sorted(set(parts.states.known()) - there.keys()):
            self._changes.gone(now, broker_id, effects)
        for broker_id, (info, incarnation) in there.items():
            parts.context.hosts[broker_id] = info.host
            is_old = incarnation < parts.states.incarnation_of(broker_id)
            if not is_old and not self._is_known(info, incarnation):
                self._changes.registered(now, info, incarnation, effects)
        parts.decide(now, tuple, effects, finish=self._taken)

    def _is_known(self, info: BrokerInfo, incarnation: int) -> bool:
        known = self._parts.context.image.brokers.get(info.broker_id)
        return known is not None and (known.incarnation_id, known.listeners, known.rack) == (
            incarnation,
            info.listeners,
            info.rack,
        )

    def _taken(self, now: int, effects: Effects) -> None:
        """All that was read is taken."""
        self._is_reading = False
        if self._is_outdated:
            self.read(now, effects)
        else:
            self._then(now, effects)

    def _was_active(self, broker_id: int) -> bool:
        """Return whether the controller before this one took a broker for active."""
        partitions = self._parts.context.image.partitions.values()
        if self._parts.context.has_restarted(broker_id):
            return False
        return any(one.leader >= 0 and broker_id in one.isr for one in partitions)

    def _decoded(self, found: dict[str, ZkOutcome]) -> list[tuple[BrokerInfo, int]]:
        """Return the registrations that were read, by broker id, with their incarnations."""
        rules = self._parts.situation.rules
        return [
            (BrokerInfo.decoded(int(name), one.data), incarnation_of(one.stat, rules))
            for name, one in sorted(found.items(), key=lambda item: int(item[0]))
            if one.stat is not None
        ]
