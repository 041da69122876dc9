"""The controller's decisions when a broker comes, goes, or changes its state.

A broker with a new incarnation has failed and come back: it leads nothing and leaves the ISRs, and
is told its whole state. An inactive broker is treated as one that is absent, but that it stays
registered.

Source: the draft "Controller heartbeats, broker incarnation ids"; Kafka's `KafkaController`,
`processBrokerChange` (KIP-380), `doControlledShutdown`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from clusters.node_port.effects import NOTE, Effects
from clusters.node_port.notes import BROKER_CONTROLLED_STATE
from clusters.protocol.controlled_states import ControlledState
from clusters.reference.nodes.control.partitions import leaving
from clusters.reference.nodes.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from clusters.reference.zk.control.leaders import begun, departed, in_new_epoch, leaderless
from clusters.reference.zk.control.parts import Parts
from clusters.reference.zk.control.work import Job, Plan
from clusters.reference.zk.control.writes import units
from clusters.reference.zk.znodes import BrokerInfo

__all__ = ["BrokerChanges", "registration"]

OnChanged = Callable[[int, Effects], None]
"""(now, effects): it is decided."""


def registration(
    info: BrokerInfo, incarnation: int, *, fenced: bool, leaves: bool = False
) -> RegisterBrokerRecord:
    """Return a registration as a record; a broker that is inactive is fenced there."""
    return RegisterBrokerRecord(
        info.broker_id,
        incarnation,
        incarnation,
        fenced,
        info.listeners,
        (),
        info.rack,
        in_controlled_shutdown=leaves,
    )


class BrokerChanges:
    """The decisions of one controller epoch."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def gone(self, now: int, broker_id: int, effects: Effects) -> None:
        """A registration is gone."""
        parts, image = self._parts, self._parts.context.image

        def records() -> Iterable[MetadataRecord]:
            known = image.brokers.get(broker_id)
            if known is None:
                return []
            parts.channels.close(broker_id)  # There is nobody to be told what follows.
            unregistered = UnregisterBrokerRecord(broker_id, known.broker_epoch)
            return [*departed(parts.context.view(), broker_id), unregistered]

        def finish(now: int, effects: Effects) -> None:
            parts.states.gone(broker_id)
            self._brokers_changed(now, effects)

        parts.decide(now, records, effects, finish=finish)

    def registered(self, now: int, info: BrokerInfo, incarnation: int, effects: Effects) -> None:
        """A registration is there, perhaps of a new incarnation, or with other end points."""
        parts, broker_id = self._parts, info.broker_id

        def plan() -> Plan:
            known = parts.context.image.brokers.get(broker_id)
            # Rule new_incarnation_told_all.
            notices = parts.situation.rules.new_incarnation_told_all
            if known is not None and (known.incarnation_id == incarnation or not notices):
                leaves = known.in_controlled_shutdown
                one = registration(info, incarnation, fenced=known.fenced, leaves=leaves)
                return Plan(units(parts.context, [one]), parts.states.state_of(broker_id))
            parts.channels.close(broker_id)
            state = parts.states.first_state(info)
            elections = [] if known is None else departed(parts.context.view(), broker_id)
            one = registration(info, incarnation, fenced=self._is_left_out(state))
            return Plan(units(parts.context, [*elections, one]))

        def finish(now: int, kept: ControlledState | None, effects: Effects) -> None:
            state = parts.states.first_state(info) if kept is None else kept
            parts.states.registered(now, info, incarnation, state)
            if kept is None:
                self._begin(now, broker_id, effects)
            self._brokers_changed(now, effects)

        parts.work.add(now, Job(plan, finish), effects)

    def activated(self, now: int, broker_id: int, then: OnChanged, effects: Effects) -> None:
        """A broker that is inactive, or was stopping, is active from here on."""
        parts, image = self._parts, self._parts.context.image

        def records() -> Iterable[MetadataRecord]:
            known = image.brokers.get(broker_id)
            if known is None:
                return []
            back = BrokerRegistrationChangeRecord(
                broker_id, known.broker_epoch, fenced=False, in_controlled_shutdown=False
            )
            return [back, *leaderless(parts.context.view(), up=broker_id)]

        def finish(now: int, effects: Effects) -> None:
            self.move(now, broker_id, ControlledState.ACTIVE, effects)
            if broker_id in image.brokers and not parts.channels.is_open(broker_id):
                parts.channels.open(broker_id)
            self._begin_partitions(now, effects)
            self._brokers_changed(now, effects)
            then(now, effects)

        parts.decide(now, records, effects, finish=finish)

    def silenced(self, now: int, broker_ids: Sequence[int], effects: Effects) -> None:
        """These brokers have sent no heartbeat for the controller-side time-out (Z07)."""
        for broker_id in broker_ids:
            self.move(now, broker_id, ControlledState.INACTIVE, effects)
        if not broker_ids or not self._is_left_out(ControlledState.INACTIVE):
            return
        # No decision from here on, before they have left their ISRs, elects one of them.
        for broker_id in broker_ids:
            self._fence(broker_id)
            self._parts.channels.close(broker_id)
        for broker_id in broker_ids:
            incarnation = self._parts.states.incarnation_of(broker_id)
            depart = partial(self._silent_departed, broker_id, incarnation)
            self._parts.decide(now, depart, effects, finish=self._brokers_changed)

    def _fence(self, broker_id: int) -> None:
        known = self._parts.context.image.brokers.get(broker_id)
        if known is not None:
            self._parts.context.apply(
                BrokerRegistrationChangeRecord(broker_id, known.broker_epoch, fenced=True)
            )

    def _silent_departed(self, broker_id: int, incarnation: int) -> Iterable[MetadataRecord]:
        known = self._parts.context.image.brokers.get(broker_id)
        if known is None or known.incarnation_id != incarnation:
            return []
        return departed(self._parts.context.view(), broker_id)

    def stopping(self, now: int, broker_id: int, then: OnChanged, effects: Effects) -> None:
        """A broker wants to end: others lead, and it leaves the ISRs (Z14)."""
        parts, image = self._parts, self._parts.context.image

        def records() -> Iterable[MetadataRecord]:
            known = image.brokers.get(broker_id)
            if known is None or known.in_controlled_shutdown:
                return []
            view = parts.context.view()
            return in_new_epoch(view, leaving(view, known))

        def finish(now: int, effects: Effects) -> None:
            self.move(now, broker_id, ControlledState.STOPPING, effects)
            then(now, effects)

        parts.decide(now, records, effects, finish=finish)

    def move(self, now: int, broker_id: int, state: ControlledState, effects: Effects) -> None:
        """Keep a registered broker in this state from here on."""
        self._parts.states.move(now, broker_id, state)
        self.announce(broker_id, effects)

    def announce(self, broker_id: int, effects: Effects) -> None:
        """Tell observers the state of a broker."""
        states = self._parts.states
        incarnation, state = states.incarnation_of(broker_id), states.state_of(broker_id)
        effects.append((NOTE, BROKER_CONTROLLED_STATE, broker_id, incarnation, state))

    def _begin(self, now: int, broker_id: int, effects: Effects) -> None:
        """A registration begins: an inactive one is told nothing before it asks."""
        parts = self._parts
        self.announce(broker_id, effects)
        if not parts.context.image.brokers[broker_id].fenced:
            parts.channels.open(broker_id)
            parts.decide(now, lambda: leaderless(parts.context.view()), effects)
            self._begin_partitions(now, effects)

    def _begin_partitions(self, now: int, effects: Effects) -> None:
        context = self._parts.context
        self._parts.decide(now, lambda: begun(context, context.view()), effects)

    def _brokers_changed(self, now: int, effects: Effects) -> None:
        self._parts.channels.brokers_changed()
        self._parts.channels.flush(now, effects)

    def _is_left_out(self, state: ControlledState) -> bool:
        # Rule inactive_left_out.
        inactive_left_out = self._parts.situation.rules.inactive_left_out
        return state is ControlledState.INACTIVE and inactive_left_out
