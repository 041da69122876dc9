"""The states that the controller keeps of brokers, by their heartbeats (Z02 to Z07, Z12).

The draft says that all brokers are inactive when the cluster is first initialized, and nothing of a
new controller in a cluster that runs. Here a broker that the controller before took for active, and
so left in an ISR with a leader, is INITIAL then: it keeps what it has until it has been silent for
the controller-side time-out, as one that is active. All others are INACTIVE.
"""

from collections.abc import Iterable
from typing import Final

from fencepost.clusters.protocol.controlled_states import ControlledState
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.zk.configuration import InterBrokerProtocol, ZkConfiguration
from fencepost.clusters.reference.zk.messages import MetadataHeartbeatRequest
from fencepost.clusters.reference.zk.rules import ZkRules
from fencepost.clusters.reference.zk.znodes import BrokerInfo

_INITIAL: Final = ControlledState.INITIAL
_INACTIVE: Final = ControlledState.INACTIVE
_ACTIVE: Final = ControlledState.ACTIVE
_TARGETS: Final = frozenset({ControlledState.ACTIVE, ControlledState.STOPPING})
_READY: Final = 5
"""The version of a registration that sends heartbeats."""
_NEVER: Final = 1 << 62


class BrokerStates:
    """The brokers of one controller epoch, as far as heartbeats tell."""

    __slots__ = ("_configuration", "_expected", "_heard_ns", "_incarnations", "_rules", "_states")

    def __init__(self, configuration: ZkConfiguration, rules: ZkRules) -> None:
        self._configuration = configuration
        self._rules = rules
        self._incarnations: dict[int, int] = {}
        """The highest known, also of brokers that are gone."""
        self._states: dict[int, ControlledState] = {}
        """The registered brokers."""
        self._heard_ns: dict[int, int] = {}
        """The time when the last heartbeat came of those that may be silent for too long."""
        self._expected: set[int] = set()
        """The brokers whose heartbeats are expected."""

    def state_of(self, broker_id: int) -> ControlledState:
        """Return the state of a broker; one that is not registered is inactive."""
        return self._states.get(broker_id, _INACTIVE)

    def incarnation_of(self, broker_id: int) -> int:
        """Return the highest incarnation id known of a broker; -1: none."""
        return self._incarnations.get(broker_id, -1)

    def first_state(self, info: BrokerInfo, *, was_active: bool = False) -> ControlledState:
        """Return the state in which a registration begins.

        `was_active`: the controller before this one left it in an ISR.
        """
        # Rule legacy_always_active.
        if self.is_legacy(info) and self._rules.legacy_always_active:
            return _ACTIVE
        # Rule inactive_at_first.
        if not self._rules.inactive_at_first:
            return _ACTIVE
        return _INITIAL if was_active else _INACTIVE

    def is_legacy(self, info: BrokerInfo) -> bool:
        """Return whether heartbeats are not expected: of this registration, or by this software."""
        known = self._configuration.inter_broker_protocol_max
        return info.version < _READY or known < InterBrokerProtocol.HEARTBEATS

    def registered(
        self, now: int, info: BrokerInfo, incarnation: int, state: ControlledState
    ) -> None:
        """A broker is registered, in this state."""
        broker_id = info.broker_id
        self._incarnations[broker_id] = max(incarnation, self.incarnation_of(broker_id))
        self.gone(broker_id)
        if not (self.is_legacy(info) and self._rules.legacy_always_active):
            self._expected.add(broker_id)
        self._states[broker_id] = _INACTIVE
        self.move(now, broker_id, state)

    def gone(self, broker_id: int) -> None:
        """A broker is registered no more."""
        self._states.pop(broker_id, None)
        self._heard_ns.pop(broker_id, None)
        self._expected.discard(broker_id)

    def move(self, now: int, broker_id: int, state: ControlledState) -> None:
        """A registered broker is in this state from here on."""
        if broker_id not in self._states:
            return
        self._states[broker_id] = state
        if state is _INACTIVE:
            self._heard_ns.pop(broker_id, None)
        elif broker_id in self._expected:
            self._heard_ns.setdefault(broker_id, now)

    def refusal(self, request: MetadataHeartbeatRequest) -> tuple[Error, str]:
        """Return why a heartbeat is refused (Z04, Z05), or NONE."""
        # Rule bad_heartbeat_refused.
        if self._rules.bad_heartbeat_refused and request.broker_id < 0:
            return Error.INVALID_REQUEST, f"expected a broker id, found {request.broker_id}"
        if self._rules.bad_heartbeat_refused and request.target_state not in _TARGETS:
            words = f"expected the target state ACTIVE or STOPPING, found {request.target_state}"
            return Error.INVALID_REQUEST, words
        known = self.incarnation_of(request.broker_id)
        is_old, is_newer = request.incarnation_id < known, request.incarnation_id > known
        # Rule old_incarnation_refused.
        # Rule newer_incarnation_taken.
        if (is_old and self._rules.old_incarnation_refused) or (
            is_newer and not self._rules.newer_incarnation_taken
        ):
            words = (
                f"known incarnation_id={known} heartbeat incarnation_id={request.incarnation_id}"
            )
            return Error.INVALID_INCARNATION_ID, words
        return Error.NONE, ""

    def heard(self, now: int, request: MetadataHeartbeatRequest) -> bool:
        """Take a heartbeat that is not refused; whether it tells of a new incarnation."""
        broker_id = request.broker_id
        if broker_id in self._heard_ns:
            self._heard_ns[broker_id] = now
        is_newer = request.incarnation_id > self.incarnation_of(broker_id)
        if is_newer:
            self._incarnations[broker_id] = request.incarnation_id
        return is_newer

    def heard_ns(self, broker_id: int) -> int:
        """Return when the last heartbeat of a broker came; -1: none is waited for."""
        return self._heard_ns.get(broker_id, -1)

    def silent(self, now: int) -> tuple[int, ...]:
        """Return the brokers whose controller-side time-out is over (Z07)."""
        # Rule controller_ends_silence.
        if not self._rules.controller_ends_silence:
            return ()
        since = now - self._configuration.controller_side_timeout_ns
        return tuple(broker_id for broker_id, at in self._heard_ns.items() if at <= since)

    def next_due(self) -> int:
        """Return when the first time-out is over."""
        if not self._heard_ns or not self._rules.controller_ends_silence:
            return _NEVER
        return min(self._heard_ns.values()) + self._configuration.controller_side_timeout_ns

    def known(self) -> Iterable[int]:
        """Return the registered brokers."""
        return self._states
