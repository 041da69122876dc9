"""Heartbeats: what the active controller hears of brokers, what it decides, what it answers.

A broker id may be contested: a second process asks for it. Until a lease is over, the controller
cannot tell a broker that has died and was started again from two brokers with one id. A heartbeat
that was on its way when its sender died may come late, so one that follows the second process's
request proves nothing yet. One that comes more than a lease after it does: what a dead process has
sent is older than that, as far as leases mean anything.

Source: KIP-631, "Registration and Heartbeats"; Kafka's `BrokerHeartbeatManager`, from which it has
that a broker that leaves is let go once those that stay have learnt who leads instead.
"""

from collections.abc import Mapping
from typing import Final

from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.configuration import MS, Configuration
from fencepost.clusters.reference.nodes.control.brokers import HeartbeatDecision, state_of, step_for
from fencepost.clusters.reference.nodes.control.decision import DecisionView
from fencepost.clusters.reference.nodes.control.partitions import (
    fencing,
    leads_something,
    leaving,
    unfencing,
)
from fencepost.clusters.reference.nodes.control.visibility import UNKNOWN, AcknowledgedOffsets
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.image import MetadataImage, Registration
from fencepost.clusters.reference.nodes.levels import LEVEL_VISIBILITY
from fencepost.clusters.reference.nodes.messages.control import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
)
from fencepost.clusters.reference.nodes.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    RegisterBrokerRecord,
)
from fencepost.clusters.reference.nodes.rules import Rules

_LEAVING: Final = BrokerState.PENDING_CONTROLLED_SHUTDOWN


class Sessions:
    """The state of brokers that is not in the log; it begins anew with each active controller."""

    __slots__ = (
        "_configuration",
        "_contests",
        "_left_at",
        "_rules",
        "_since",
        "leases",
        "visibility",
    )

    def __init__(self, configuration: Configuration, rules: Rules, alarm: Alarm) -> None:
        self._configuration = configuration
        self._rules = rules
        self.leases = _Leases(configuration.lease_timeout_ns, alarm)
        self._contests = _Contests(configuration.lease_timeout_ns)
        self.visibility = AcknowledgedOffsets(rules)
        self._left_at: dict[int, int] = {}
        self._since = 0

    def restart(self, now: int, image: MetadataImage) -> None:
        """Begin anew: this controller is active from here on."""
        self.leases.restart(now, image)
        self._contests.restart()
        self.visibility.restart(image)
        self._left_at.clear()
        self._since = image.offset

    def replayed(self, now: int, image: MetadataImage, offset: int, record: MetadataRecord) -> None:
        """A committed record; some of them begin something that heartbeats are held against."""
        if isinstance(record, RegisterBrokerRecord):
            self.leases.renew(now, record.broker_id)
            self._contests.forget(record.broker_id)
            self.visibility.forget(record.broker_id)
        elif isinstance(record, BrokerRegistrationChangeRecord):
            self.leases.unfenced()
            self.visibility.joined(record.broker_id)
            if record.in_controlled_shutdown:
                self._left_at[record.broker_id] = offset + 1
        else:
            return
        self.visibility.update(image)

    def asked_for(self, now: int, image: MetadataImage, request: BrokerRegistrationRequest) -> None:
        """A process asks for an id that may be another one's."""
        if request.broker_id in image.brokers:
            self._contests.ask(now, request.broker_id, request.incarnation_id)

    def in_use(self) -> tuple[int, ...]:
        """The ids that were asked for and whose holder is alive for certain."""
        return self._contests.lost(self.leases.ends)

    def is_stale(self, image: MetadataImage, request: BrokerHeartbeatRequest) -> bool:
        """Return whether a sender other than the registered incarnation sends it."""
        known = image.brokers.get(request.broker_id)
        if known is None:
            return True
        # Rule stale_heartbeat_refused.
        return known.broker_epoch != request.broker_epoch and self._rules.stale_heartbeat_refused

    def heard(self, now: int, image: MetadataImage, request: BrokerHeartbeatRequest) -> None:
        """A heartbeat that is not stale came."""
        self.leases.renew(now, request.broker_id)
        self.visibility.acknowledge(request.broker_id, request.current_metadata_offset)
        self.visibility.update(image)

    def wish(self, image: MetadataImage, request: BrokerHeartbeatRequest) -> HeartbeatDecision:
        """Return what a heartbeat asks for that is not so yet."""
        known = image.brokers[request.broker_id]
        return (
            HeartbeatDecision.NOTHING
            if self._goes_at_once(request)
            else step_for(known, request.target_state)
        )

    def records(
        self, view: DecisionView, request: BrokerHeartbeatRequest, committed: int
    ) -> tuple[MetadataRecord, ...]:
        """Return the records that fulfil a heartbeat's wish; the log ended at `committed` then.

        Nothing, if it is fulfilled, or cannot be yet.
        """
        known = view.image.brokers[request.broker_id]
        step = self.wish(view.image, request)
        if step is HeartbeatDecision.UNFENCE and self._is_caught_up(view.image, request, committed):
            self.visibility.join(request.broker_id)
            return unfencing(view, known)
        if step is HeartbeatDecision.FENCE or (
            step is HeartbeatDecision.LET_GO and self._may_go(view, known)
        ):
            return fencing(view, known)
        return leaving(view, known) if step is HeartbeatDecision.LEAVE else ()

    def response(
        self, image: MetadataImage, request: BrokerHeartbeatRequest, committed: int
    ) -> BrokerHeartbeatResponse:
        """The broker as it is now."""
        state = state_of(image.brokers[request.broker_id])
        wants_to_go = request.target_state == _LEAVING
        if (wants_to_go and state == BrokerState.FENCED) or self._goes_at_once(request):
            state = BrokerState.NOT_RUNNING
        shows = image.level >= LEVEL_VISIBILITY and request.level >= LEVEL_VISIBILITY
        return BrokerHeartbeatResponse(
            request.correlation,
            Error.NONE,
            self._configuration.node_id,
            state,
            self._is_caught_up(image, request, committed),
            self._configuration.lease_timeout_ns // MS,
            self.visibility.lowest if shows else UNKNOWN,
        )

    def _is_caught_up(
        self, image: MetadataImage, request: BrokerHeartbeatRequest, committed: int
    ) -> bool:
        known = image.brokers[request.broker_id]
        needed = self.visibility.caught_up_at(image, known, committed)
        return request.current_metadata_offset >= needed

    def _goes_at_once(self, request: BrokerHeartbeatRequest) -> bool:
        # Rule leaderships_moved_first.
        return request.target_state == _LEAVING and not self._rules.leaderships_moved_first

    def _may_go(self, view: DecisionView, known: Registration) -> bool:
        """Return whether it leads nothing, and the brokers that stay have applied this."""
        left_at = self._left_at.get(known.broker_id, self._since)
        return not leads_something(view, known.broker_id) and all(
            self.visibility.acknowledged_by(broker_id) >= left_at
            for broker_id, one in view.image.brokers.items()
            if not one.fenced and not one.in_controlled_shutdown
        )


class _Leases:
    """The leases of brokers as the active controller counts them, from when it got a heartbeat.

    A registration is the first: its answer says how long it lasts. They are not in the log. A new
    active controller gives every broker a whole lease, so that a broker's own count, from when it
    sent the heartbeat, is never the longer one.
    """

    __slots__ = ("_alarm", "_ends", "_length_ns", "none_before_ns")

    def __init__(self, length_ns: int, alarm: Alarm) -> None:
        self._alarm = alarm
        self._ends: dict[int, int] = {}
        self._length_ns = length_ns
        self.none_before_ns = 0
        """The time before which no lease of an unfenced broker is over."""

    @property
    def ends(self) -> Mapping[int, int]:
        """The time at which each lease ends, by broker."""
        return self._ends

    def restart(self, now: int, image: MetadataImage) -> None:
        """Begin as a new active controller: every broker counts as heard of at this moment."""
        self._ends = dict.fromkeys(image.brokers, now + self._length_ns)
        self.none_before_ns = 0

    def renew(self, now: int, broker_id: int) -> None:
        """A heartbeat came, or a registration is granted."""
        end = now + self._length_ns
        self._ends[broker_id] = end
        self.none_before_ns = min(end, self.none_before_ns)

    def is_over(self, now: int, broker_id: int) -> bool:
        """Return whether a broker, fenced or not, was not heard of for the length of a lease."""
        return self._ends.get(broker_id, 0) <= now

    def unfenced(self) -> None:
        """Note that a broker has a lease now whose heartbeat came a while ago."""
        self.none_before_ns = 0

    def lasting(self, now: int) -> tuple[int, ...]:
        """The brokers, fenced or not, whose lease is not over."""
        return tuple(broker_id for broker_id, end in self._ends.items() if end > now)

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


class _Contests:
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
