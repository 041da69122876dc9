"""The life of a broker of this generation: its heartbeats, its fencing, its end.

From the new inter-broker protocol on, a broker serves clients only while it is in contact with the
controller: it is in contact for the broker-side time-out from when it *sent* the last heartbeat
that was answered, so that what it shows is never older. Below that protocol it sends nothing and
serves until it ends. Its controlled shutdown is Kafka's then: the controller moves the leaderships
when it is asked, and says which are left; the broker asks again after a while, and ends unbidden
when `request_timeout_ns` is over.

Source: the draft "Controller heartbeats, broker incarnation ids" (Z03, Z06, Z08, Z14).
"""

from typing import Final, Protocol

from fencepost.clusters.node_port.effects import NOTE, SEND, Effects
from fencepost.clusters.node_port.notes import BROKER_STATE, FENCED_SELF
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.protocol.controlled_states import ControlledState
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.heartbeats import Cadence
from fencepost.clusters.reference.zk.life_cycle_transitions import TRANSITIONS, Trigger
from fencepost.clusters.reference.zk.messages import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
)
from fencepost.clusters.reference.zk.situation import ZkSituation

_FOR_EVER: Final = 1 << 62
_DOWN: Final = BrokerState.NOT_RUNNING
_RUNNING: Final = BrokerState.RUNNING
_FENCED: Final = BrokerState.FENCED
_LEAVING: Final = BrokerState.PENDING_CONTROLLED_SHUTDOWN
_REFUSED: Final = int(Error.INVALID_INCARNATION_ID)
_TRIGGERS: Final[dict[int, Trigger]] = {
    ControlledState.INACTIVE: Trigger.INACTIVATED,
    ControlledState.ACTIVE: Trigger.ACTIVATED,
}
"""The controller's word, by the state that its answer names."""
_NONE: Final = int(Error.NONE)


class ZkLifeCyclePort(Protocol):
    """The rest of the broker."""

    @property
    def leads_for_others(self) -> bool:
        """Return whether it leads a partition that another member of its ISR could lead."""

    def ended(self, reason: str, effects: Effects) -> None:
        """The life is over; an empty reason is a clean end."""


class ZkLifeCycle:
    """The life of one process of a broker."""

    __slots__ = (
        "_contact_ns",
        "_heartbeats",
        "_port",
        "_shutdown",
        "_situation",
        "_speaks",
        "_told_id",
        "state",
    )

    def __init__(self, situation: ZkSituation, port: ZkLifeCyclePort) -> None:
        self._situation = situation
        self._port = port
        self._speaks = situation.speaks_heartbeats
        self._heartbeats = Cadence(situation.configuration, situation.alarm)
        self._shutdown = _ControlledShutdown(situation)
        self._contact_ns = 0
        """The time when the last heartbeat that was answered was sent."""
        self._told_id = -1
        """The controller that was sent the last heartbeat."""
        self.state = _DOWN

    def start(self, *, is_unclean: bool, effects: Effects) -> None:
        """Begin; after a crash, with the recovery of the logs, which `recovered` ends."""
        self._move(Trigger.STARTED_UNCLEAN if is_unclean else Trigger.STARTED_CLEAN, effects)

    def recovered(self, effects: Effects) -> None:
        """The logs are as they were before the crash, but for what is torn at their ends."""
        self._move(Trigger.RECOVERED, effects)

    def registered(self, now: int, effects: Effects) -> None:
        """The broker is registered, under an incarnation id that the situation has."""
        self._heartbeats.renew()
        self._move(Trigger.REGISTERED, effects)
        if not self._speaks:
            self._move(Trigger.ACTIVATED, effects)
        self.speak(now, effects)

    def session_lost(self, effects: Effects) -> None:
        """Its registration is gone; a broker of before document Z takes no notice."""
        if self._speaks:
            self._move(Trigger.SESSION_LOST, effects)

    def refused(self, why: str, effects: Effects) -> None:
        """There is no id for it, or another process has it."""
        self._move(Trigger.REFUSED, effects, reason=f"registration refused: {why}")

    def stop(self, now: int, effects: Effects) -> None:
        """The operating system asks the broker to end."""
        self._move(Trigger.STOPPED, effects)
        if self.state == _LEAVING:
            self._shutdown.begin(now)
        self._heartbeats.hasten()
        self.speak(now, effects)

    def tick(self, now: int, effects: Effects) -> None:
        """Look at the silence of the controller, and at what is due."""
        if now >= self._situation.serves_until_ns > 0:
            effects.append((NOTE, FENCED_SELF, self._situation.broker_epoch))
            self._move(Trigger.SILENCE, effects)
        if self.state == _LEAVING and self._shutdown.is_over(now):
            self._move(Trigger.GIVEN_UP, effects)
        self.speak(now, effects)
        if 0 < self._situation.serves_until_ns < _FOR_EVER:
            self._situation.alarm.by(self._situation.serves_until_ns)

    def speak(self, now: int, effects: Effects) -> None:
        """Send what is due to the controller."""
        situation = self._situation
        controller_id = situation.controller_id
        if not self._speaks:
            if self.state == _LEAVING:
                self._shutdown.speak(now, effects)
            return
        if self.state not in (_RUNNING, _FENCED, _LEAVING):
            return
        is_new = controller_id != self._told_id
        if is_new:
            self._heartbeats.renew()
        is_eager = self.state != _RUNNING
        if self._heartbeats.is_due(now, controller_id, is_urgent=is_new, is_eager=is_eager):
            self._heartbeat(now, effects)

    def heard(self, now: int, response: MetadataHeartbeatResponse, effects: Effects) -> None:
        """The controller answered a heartbeat."""
        sent_ns = self._heartbeats.answered(response.correlation)
        if sent_ns is None or self.state == _DOWN:
            return
        if response.error == _REFUSED:
            self._move(Trigger.INCARNATION_REFUSED, effects)
            self._heartbeats.failed(now, response.correlation)
        elif response.error:
            self._heartbeats.failed(now, response.correlation)
        else:
            self._obey(now, sent_ns, response.current_state, effects)
        self.speak(now, effects)

    def heard_of_shutdown(
        self, now: int, response: ControlledShutdownResponse, effects: Effects
    ) -> None:
        """The controller answered a request to be let go."""
        left = self._shutdown.remaining_count(now, response)
        if left is not None:
            self._let_go(is_leading=left > 0, effects=effects)

    def unreachable(
        self,
        now: int,
        request: MetadataHeartbeatRequest | ControlledShutdownRequest,
        _effects: Effects,
    ) -> None:
        """The controller's host does not answer."""
        if isinstance(request, ControlledShutdownRequest):
            self._shutdown.unreachable(now, request)
        else:
            self._heartbeats.failed(now, request.correlation)

    def _obey(self, now: int, sent_ns: int, state: int, effects: Effects) -> None:
        self._contact_ns = max(self._contact_ns, sent_ns)
        if now >= self._silent_from_ns():
            return  # The answer is too old to say anything of the present.
        trigger = _TRIGGERS.get(state)
        if trigger is not None:
            self._move(trigger, effects)
        self._serve()
        if self.state == _LEAVING and state == ControlledState.STOPPING:
            self._let_go(is_leading=self._port.leads_for_others, effects=effects)

    def _let_go(self, *, is_leading: bool, effects: Effects) -> None:
        # Rule leaderships_moved_before_stop.
        if not (is_leading and self._situation.rules.leaderships_moved_before_stop):
            self._move(Trigger.LET_GO, effects)

    def _silent_from_ns(self) -> int:
        # Rule broker_ends_silence.
        if self._speaks and self._situation.rules.broker_ends_silence:
            return self._contact_ns + self._situation.zk_configuration.broker_side_timeout_ns
        return _FOR_EVER

    def _serve(self) -> None:
        is_serving = self.state in (_RUNNING, _LEAVING)
        self._situation.serves_until_ns = self._silent_from_ns() if is_serving else 0

    def _move(self, trigger: Trigger, effects: Effects, *, reason: str = "") -> None:
        state = TRANSITIONS.get((self.state, trigger))
        if state is None:
            return
        self.state = state
        effects.append((NOTE, BROKER_STATE, state, self._situation.broker_epoch))
        self._heartbeats.hasten()
        self._serve()
        if state == _DOWN:
            self._port.ended(reason, effects)

    def _heartbeat(self, now: int, effects: Effects) -> None:
        situation = self._situation
        self._told_id = situation.controller_id
        leaving = self.state == _LEAVING
        request = MetadataHeartbeatRequest(
            self._heartbeats.sent(now, situation.controller_id),
            situation.node_id,
            situation.broker_epoch,
            ControlledState.STOPPING if leaving else ControlledState.ACTIVE,
        )
        effects.append((SEND, situation.controller_id, request))


class _ControlledShutdown:
    """A broker's requests to be let go, one at a time."""

    __slots__ = ("_asked_id", "_correlation", "_not_before_ns", "_over_ns", "_situation")

    def __init__(self, situation: ZkSituation) -> None:
        self._situation = situation
        self._correlation = 0
        self._asked_id = -1
        """The controller that has not answered yet; -1: none is asked."""
        self._not_before_ns = 0
        self._over_ns = 0

    def begin(self, now: int) -> None:
        """The broker wants to end from now on."""
        self._over_ns = now + self._situation.configuration.request_timeout_ns

    def is_over(self, now: int) -> bool:
        """Return whether it has waited for long enough; if not, there will be a tick."""
        self._situation.alarm.by(self._over_ns)
        return now >= self._over_ns

    def speak(self, now: int, effects: Effects) -> None:
        """Ask the controller, unless it is being asked, or was a moment ago."""
        situation = self._situation
        controller_id = situation.controller_id
        if controller_id < 0 or controller_id == self._asked_id:
            return
        if now < self._not_before_ns:
            situation.alarm.by(self._not_before_ns)
            return
        self._correlation += 1
        self._asked_id = controller_id
        request = ControlledShutdownRequest(
            self._correlation, situation.node_id, situation.broker_epoch
        )
        effects.append((SEND, controller_id, request))

    def remaining_count(self, now: int, response: ControlledShutdownResponse) -> int | None:
        """Return how many leaderships are left by this answer; None: it does not say."""
        if response.correlation != self._correlation:
            return None
        self._pause(now)
        return None if response.error != _NONE else len(response.remaining)

    def unreachable(self, now: int, request: ControlledShutdownRequest) -> None:
        """The controller's host does not answer."""
        if request.correlation == self._correlation:
            self._pause(now)

    def _pause(self, now: int) -> None:
        self._asked_id = -1
        self._not_before_ns = now + self._situation.zk_configuration.controlled_shutdown_retry_ns
        self._situation.alarm.by(self._not_before_ns)
