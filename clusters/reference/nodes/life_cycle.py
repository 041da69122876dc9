"""The life cycle of a broker (KIP-631): registration, heartbeats, its lease, its end.

A registration is a lease. The broker counts it from when it *sent* the heartbeat that was answered,
the controller from when it received it, so the broker is the first to know that it is over. Then
it serves no client, and registers again.
"""

from typing import Final, Protocol

from fencepost.clusters.node_port.effects import NOTE, SEND, Effects
from fencepost.clusters.node_port.notes import BROKER_STATE
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.heartbeats import Cadence
from fencepost.clusters.reference.nodes.levels import LEVEL_VISIBILITY, METADATA_VERSION
from fencepost.clusters.reference.nodes.life_cycle_transitions import TRANSITIONS, Trigger
from fencepost.clusters.reference.nodes.messages.control import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from fencepost.clusters.reference.nodes.situation import Situation

_FOR_EVER: Final = 1 << 62


_DOWN: Final = BrokerState.NOT_RUNNING
_REGISTERING: Final = BrokerState.REGISTERING
_RECOVERING: Final = BrokerState.RECOVERING_FROM_UNCLEAN_SHUTDOWN
_RUNNING: Final = BrokerState.RUNNING
_FENCED: Final = BrokerState.FENCED
_LEAVING: Final = BrokerState.PENDING_CONTROLLED_SHUTDOWN

_TRIGGERS: Final[dict[int, Trigger]] = {
    _DOWN: Trigger.LET_GO,
    _RUNNING: Trigger.UNFENCED,
    _FENCED: Trigger.FENCED,
}
"""The controller's word, by the state that its answer names."""
_EPOCH_REFUSED: Final = frozenset(
    {int(Error.STALE_BROKER_EPOCH), int(Error.BROKER_ID_NOT_REGISTERED)}
)
_FOR_GOOD: Final = frozenset(
    {
        int(Error.DUPLICATE_BROKER_REGISTRATION),
        int(Error.UNSUPPORTED_VERSION),
        int(Error.INCONSISTENT_CLUSTER_ID),
    }
)
"""Registrations refused with these are refused the next time too."""


class LifeCyclePort(Protocol):
    """The rest of the broker."""

    def fenced(self, effects: Effects) -> None:
        """Serve no client from here on."""

    def ended(self, reason: str, effects: Effects) -> None:
        """The life is over; an empty reason is a clean end."""

    def told_lowest(self, offset: int, effects: Effects) -> None:
        """The controller named the lowest acknowledged offset."""


class LifeCycle:
    """The life of one process of a broker."""

    __slots__ = (
        "_acknowledged",
        "_given_up_ns",
        "_heartbeats",
        "_lease_end_ns",
        "_offered",
        "_registered",
        "_registrations",
        "_situation",
        "_surroundings",
        "is_behind",
        "state",
    )

    def __init__(self, situation: Situation, surroundings: LifeCyclePort) -> None:
        self._situation = situation
        self._surroundings = surroundings
        self.state = _DOWN
        self.is_behind = False
        """True if it hides some of the metadata that it has applied."""
        self._lease_end_ns = 0
        self._registered = False
        """True if it has an epoch that was not refused, and a lease that is not over."""
        self._given_up_ns = 0
        """The time when it has waited for long enough to be registered."""
        self._registrations = Cadence(situation.configuration, situation.alarm)
        self._heartbeats = Cadence(situation.configuration, situation.alarm)
        self._offered = -1
        """The metadata offset in the last heartbeat."""
        self._acknowledged = -1
        """The one in the last heartbeat that was answered."""

    def start(self, now: int, *, is_unclean: bool, effects: Effects) -> None:
        """Begin; after a crash it registers once its logs are `recovered`."""
        self._unregistered(now)
        self._move(Trigger.STARTED_UNCLEAN if is_unclean else Trigger.STARTED_CLEAN, effects)

    def recovered(self, now: int, effects: Effects) -> None:
        """The logs are recovered."""
        self._unregistered(now)
        self._move(Trigger.RECOVERED, effects)
        self.speak(now, effects)

    def stop(self, now: int, effects: Effects) -> None:
        """The operating system asks the broker to end."""
        self._move(Trigger.STOPPED, effects)
        self._heartbeats.hasten()
        self.speak(now, effects)

    def tick(self, now: int, effects: Effects) -> None:
        """Look at the lease, and at what is due."""
        self.look_at_lease(now, effects)
        self.speak(now, effects)
        if self._registered:
            self._situation.alarm.by(self._lease_end_ns)
        elif now < self._given_up_ns:
            self._situation.alarm.by(self._given_up_ns)
        elif self.state == _REGISTERING:  # once it was registered, it waits for a controller
            self._refused("no controller registered it in time", effects)

    def look_at_lease(self, now: int, effects: Effects) -> None:
        """Fence the broker if its lease is over."""
        if self._registered and now >= self._lease_end_ns:
            self._lose_registration(now, Trigger.LEASE_OVER, effects)

    def applied(self, now: int, effects: Effects) -> None:
        """More of the metadata is applied."""
        self._heartbeats.hasten()
        self.speak(now, effects)

    def speak(self, now: int, effects: Effects) -> None:
        """Send what is due to the active controller."""
        if self.state in (_DOWN, _RECOVERING):
            return
        situation = self._situation
        controller_id = situation.controller_id
        if not self._registered:
            if self._registrations.is_due(now, controller_id, is_urgent=False, is_eager=False):
                self._register(now, effects)
            return
        is_waiting = self.state != _RUNNING
        is_visible = situation.level >= LEVEL_VISIBILITY
        is_urgent = (is_visible or is_waiting) and situation.image.offset > self._offered
        is_eager = is_waiting or (
            is_visible and (self.is_behind or self._acknowledged < situation.image.offset)
        )
        if self._heartbeats.is_due(now, controller_id, is_urgent=is_urgent, is_eager=is_eager):
            self._heartbeat(now, effects)

    def registered(self, now: int, response: BrokerRegistrationResponse, effects: Effects) -> None:
        """The controller answered a registration."""
        sent_ns = self._registrations.answered(response.correlation)
        if sent_ns is None or self._registered or self.state == _DOWN:
            return
        if response.error:
            self._registrations.failed(now, response.correlation)
            if response.error in _FOR_GOOD:
                self._refused(Error(response.error).name, effects)
            return
        self._registered = True
        self._situation.broker_epoch = response.broker_epoch
        self._offered = self._acknowledged = -1
        self._lease_end_ns = self._lease_end(sent_ns, response.lease_duration_ms)
        self._situation.alarm.by(self._lease_end_ns)
        self._move(Trigger.REGISTERED, effects)
        self._heartbeats = Cadence(self._situation.configuration, self._situation.alarm)
        self.speak(now, effects)

    def heard(self, now: int, response: BrokerHeartbeatResponse, effects: Effects) -> None:
        """The controller answered a heartbeat."""
        sent_ns = self._heartbeats.answered(response.correlation)
        if sent_ns is None or not self._registered:
            return
        if response.error in _EPOCH_REFUSED:
            self._lose_registration(now, Trigger.EPOCH_REFUSED, effects)
        elif response.error:
            self._heartbeats.failed(now, response.correlation)
        else:
            self._renew(now, sent_ns, response, effects)
        self.speak(now, effects)

    def unreachable(
        self,
        now: int,
        request: BrokerRegistrationRequest | BrokerHeartbeatRequest,
        _effects: Effects,
    ) -> None:
        """The controller's host does not answer."""
        is_heartbeat = request.kind == BrokerHeartbeatRequest.kind
        cadence = self._heartbeats if is_heartbeat else self._registrations
        cadence.failed(now, request.correlation)

    def _renew(
        self, now: int, sent_ns: int, response: BrokerHeartbeatResponse, effects: Effects
    ) -> None:
        lease_end_ns = self._lease_end(sent_ns, response.lease_duration_ms)
        self._lease_end_ns = max(self._lease_end_ns, lease_end_ns)
        self._acknowledged = self._offered
        self._surroundings.told_lowest(response.lowest_acknowledged_offset, effects)
        trigger = _TRIGGERS.get(response.next_state)
        if trigger is not None:
            self._move(trigger, effects)
        self._serve()
        self.look_at_lease(now, effects)

    def _lease_end(self, sent_ns: int, lease_duration_ms: int) -> int:
        # Rule broker_ends_lease.
        ends = self._situation.rules.broker_ends_lease
        return sent_ns + lease_duration_ms * MS if ends else _FOR_EVER

    def _lose_registration(self, now: int, trigger: Trigger, effects: Effects) -> None:
        self._registered = False
        self._unregistered(now)
        self._registrations.hasten()
        self._situation.alarm.by(now)  # to register again with the next tick, if not at once
        self._move(trigger, effects)

    def _unregistered(self, now: int) -> None:
        """Note that from now on no controller has it registered."""
        self._given_up_ns = now + self._situation.configuration.registration_timeout_ns
        self._situation.alarm.by(self._given_up_ns)

    def _refused(self, why: str, effects: Effects) -> None:
        self._move(Trigger.REFUSED, effects, reason=f"registration refused: {why}")

    def _move(self, trigger: Trigger, effects: Effects, *, reason: str = "") -> None:
        state = TRANSITIONS.get((self.state, trigger))
        if state is None or state == self.state:
            return
        self.state = state
        effects.append((NOTE, BROKER_STATE, state, self._situation.broker_epoch))
        self._heartbeats.hasten()
        self._serve()
        if state == _FENCED:
            self._surroundings.fenced(effects)
        elif state == _DOWN:
            self._surroundings.ended(reason, effects)

    def _serve(self) -> None:
        is_serving = self.state in (_RUNNING, _LEAVING)
        self._situation.serves_until_ns = self._lease_end_ns if is_serving else 0

    def _register(self, now: int, effects: Effects) -> None:
        situation, configuration = self._situation, self._situation.configuration
        request = BrokerRegistrationRequest(
            self._registrations.sent(now, situation.controller_id),
            situation.node_id,
            situation.incarnation_id,
            situation.broker_epoch,
            situation.image.offset,
            configuration.listeners,
            ((METADATA_VERSION, configuration.level_min, configuration.level_max),),
            configuration.rack,
            configuration.cluster_id,
        )
        effects.append((SEND, situation.controller_id, request))

    def _heartbeat(self, now: int, effects: Effects) -> None:
        situation = self._situation
        self._offered = situation.image.offset
        request = BrokerHeartbeatRequest(
            self._heartbeats.sent(now, situation.controller_id),
            situation.node_id,
            situation.broker_epoch,
            self._offered,
            _LEAVING if self.state == _LEAVING else _RUNNING,
            situation.level,
        )
        effects.append((SEND, situation.controller_id, request))
