"""The controller's decisions when a broker comes, goes, or changes its state.

A broker with a new incarnation has failed and come back: it leads nothing and leaves the ISRs, and
is told its whole state. An inactive broker is treated as one that is absent, but that it stays
registered.

Source: the draft "Controller heartbeats, broker incarnation ids"; Kafka's `KafkaController`,
`processBrokerChange` (KIP-380), `doControlledShutdown`.
"""

from collections.abc import Iterable, Sequence

from fencepost.clusters.node_port.effects import NOTE, Effects
from fencepost.clusters.node_port.notes import BROKER_CONTROLLED_STATE
from fencepost.clusters.protocol.controlled_states import ControlledState
from fencepost.clusters.reference.nodes.control.partitions import leaving
from fencepost.clusters.reference.nodes.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from fencepost.clusters.reference.zk.control.controller_state import ControllerState
from fencepost.clusters.reference.zk.control.job_queue import JobPlan
from fencepost.clusters.reference.zk.control.leaders import (
    begun,
    departed,
    in_new_epoch,
    leaderless,
)
from fencepost.clusters.reference.zk.control.writes import units
from fencepost.clusters.reference.zk.znodes import BrokerInfo


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

    def __init__(self, parts: ControllerState) -> None:
        self._parts = parts

    async def gone(self, broker_id: int) -> None:
        """A registration is gone."""
        await self._parts.decided(lambda: self._departed(broker_id))
        self._parts.states.gone(broker_id)
        self._brokers_changed()

    def _departed(self, broker_id: int) -> Iterable[MetadataRecord]:
        parts, known = self._parts, self._parts.context.image.brokers.get(broker_id)
        if known is None:
            return []
        parts.channels.close(broker_id)  # The broker is gone: nothing more is sent.
        unregistered = UnregisterBrokerRecord(broker_id, known.broker_epoch)
        return [*departed(parts.context.view(), broker_id), unregistered]

    async def registered(self, info: BrokerInfo, incarnation: int) -> None:
        """A registration is there, perhaps of a new incarnation, or with other end points."""
        parts, turn = self._parts, self._parts.coroutines
        kept = await parts.work.done(lambda: self._registration(info, incarnation))
        state = parts.states.first_state(info) if kept is None else kept
        parts.states.registered(turn.now, info, incarnation, state)
        if kept is None:
            self._begin(info.broker_id)
        self._brokers_changed()

    def _registration(self, info: BrokerInfo, incarnation: int) -> JobPlan:
        """Return the plan; its response is the broker's state, if that is to be kept."""
        parts, broker_id = self._parts, info.broker_id
        known = parts.context.image.brokers.get(broker_id)
        # Rule new_incarnation_told_all.
        notices = parts.situation.rules.new_incarnation_told_all
        if known is not None and (known.incarnation_id == incarnation or not notices):
            leaves = known.in_controlled_shutdown
            one = registration(info, incarnation, fenced=known.fenced, leaves=leaves)
            return JobPlan(units(parts.context, [one]), parts.states.state_of(broker_id))
        parts.channels.close(broker_id)
        state = parts.states.first_state(info)
        elections = [] if known is None else departed(parts.context.view(), broker_id)
        one = registration(info, incarnation, fenced=self._is_left_out(state))
        return JobPlan(units(parts.context, [*elections, one]))

    async def activated(self, broker_id: int) -> None:
        """A broker that is inactive, or was stopping, is active from here on."""
        parts, turn = self._parts, self._parts.coroutines
        await parts.decided(lambda: self._back(broker_id))
        self.move(turn.now, broker_id, ControlledState.ACTIVE, turn.effects)
        if broker_id in parts.context.image.brokers and not parts.channels.is_open(broker_id):
            parts.channels.open(broker_id)
        self._begin_partitions()
        self._brokers_changed()

    def _back(self, broker_id: int) -> Iterable[MetadataRecord]:
        known = self._parts.context.image.brokers.get(broker_id)
        if known is None:
            return []
        back = BrokerRegistrationChangeRecord(
            broker_id, known.broker_epoch, fenced=False, in_controlled_shutdown=False
        )
        return [back, *leaderless(self._parts.context.view(), up=broker_id)]

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
            self._parts.coroutines.run(now, self._leave(broker_id), effects)

    def _fence(self, broker_id: int) -> None:
        known = self._parts.context.image.brokers.get(broker_id)
        if known is not None:
            self._parts.context.apply(
                BrokerRegistrationChangeRecord(broker_id, known.broker_epoch, fenced=True)
            )

    async def _leave(self, broker_id: int) -> None:
        incarnation = self._parts.states.incarnation_of(broker_id)
        await self._parts.decided(lambda: self._silent_departed(broker_id, incarnation))
        self._brokers_changed()

    def _silent_departed(self, broker_id: int, incarnation: int) -> Iterable[MetadataRecord]:
        known = self._parts.context.image.brokers.get(broker_id)
        if known is None or known.incarnation_id != incarnation:
            return []
        return departed(self._parts.context.view(), broker_id)

    async def stopping(self, broker_id: int) -> None:
        """A broker wants to end: others lead, and it leaves the ISRs (Z14)."""
        turn = self._parts.coroutines
        await self._parts.decided(lambda: self._leaving(broker_id))
        self.move(turn.now, broker_id, ControlledState.STOPPING, turn.effects)

    def _leaving(self, broker_id: int) -> Iterable[MetadataRecord]:
        known = self._parts.context.image.brokers.get(broker_id)
        if known is None or known.in_controlled_shutdown:
            return []
        view = self._parts.context.view()
        return in_new_epoch(view, leaving(view, known))

    def move(self, now: int, broker_id: int, state: ControlledState, effects: Effects) -> None:
        """Keep a registered broker in this state from here on."""
        self._parts.states.move(now, broker_id, state)
        self.announce(broker_id, effects)

    def announce(self, broker_id: int, effects: Effects) -> None:
        """Tell observers the state of a broker."""
        states = self._parts.states
        incarnation, state = states.incarnation_of(broker_id), states.state_of(broker_id)
        effects.append((NOTE, BROKER_CONTROLLED_STATE, broker_id, incarnation, state))

    # For coroutines.

    def _begin(self, broker_id: int) -> None:
        """A registration begins: an inactive one is told nothing before it asks."""
        parts, turn = self._parts, self._parts.coroutines
        self.announce(broker_id, turn.effects)
        if not parts.context.image.brokers[broker_id].fenced:
            parts.channels.open(broker_id)
            parts.decide(turn.now, lambda: leaderless(parts.context.view()), turn.effects)
            self._begin_partitions()

    def _begin_partitions(self) -> None:
        context, turn = self._parts.context, self._parts.coroutines
        self._parts.decide(turn.now, lambda: begun(context, context.view()), turn.effects)

    def _brokers_changed(self) -> None:
        turn = self._parts.coroutines
        self._parts.channels.brokers_changed()
        self._parts.channels.flush(turn.now, turn.effects)

    def _is_left_out(self, state: ControlledState) -> bool:
        # Rule inactive_left_out.
        inactive_left_out = self._parts.situation.rules.inactive_left_out
        return state is ControlledState.INACTIVE and inactive_left_out
