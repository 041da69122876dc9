"""MetadataHeartbeat and ControlledShutdown: what brokers want to be, and what they are told.

An incarnation that is not known is taken at its heartbeat's word (Z04); what it wants is decided
once its registration is read. An inactive broker that asks to be active is told all that it has
missed, and is active once it has taken that: the draft says only that it can be active again, and
would have it serve what it showed before. Such a heartbeat is answered when it is decided; until
then the newest one of each broker is held.
"""

from functools import partial
from typing import Final

from clusters.node_port.effects import SEND, Effects
from clusters.reference.nodes.errors import Error
from clusters.reference.zk.control.broker_changes import BrokerChanges
from clusters.reference.zk.control.parts import Parts
from clusters.reference.zk.control.refusals import refuse
from clusters.reference.zk.control.registrations import Registrations
from clusters.reference.zk.messages import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
)
from clusters.reference.zk.states import ControlledState

__all__ = ["Heartbeats"]

_ACTIVE: Final = ControlledState.ACTIVE
_STOPPING: Final = ControlledState.STOPPING


class Heartbeats:
    """The heartbeats of one controller epoch."""

    __slots__ = ("_activating", "_changes", "_held", "_opening", "_parts", "registrations")

    def __init__(self, parts: Parts, changes: BrokerChanges) -> None:
        self._parts = parts
        self._changes = changes
        self.registrations = Registrations(parts, changes, self._registered)
        self._held: dict[int, tuple[int, MetadataHeartbeatRequest]] = {}
        """(source, heartbeat) by broker id."""
        self._activating: set[int] = set()
        self._opening: set[int] = set()
        """The brokers that are told what they lack once all before it is decided."""

    def heard(
        self, now: int, source: int, request: MetadataHeartbeatRequest, effects: Effects
    ) -> None:
        """Take a heartbeat."""
        states, broker_id = self._parts.states, request.broker_id
        error, words = states.refusal(request)
        if error:
            state = states.state_of(broker_id)
            effects.append((SEND, source, _answer(request, state, error, words)))
            return
        self._held[broker_id] = (source, request)
        if states.heard(now, request):
            self.registrations.read_latest(now, effects)
        else:
            self._decide(now, broker_id, effects)

    def told(self, now: int, broker_id: int, effects: Effects) -> None:
        """A broker has taken all that it was told."""
        if broker_id in self._held:
            self._decide(now, broker_id, effects)

    def stop(
        self, now: int, source: int, request: ControlledShutdownRequest, effects: Effects
    ) -> None:
        """A broker that sends no heartbeats wants to end."""
        known = self._parts.context.image.brokers.get(request.broker_id)
        if known is None or known.broker_epoch != request.broker_epoch:
            error = Error.BROKER_NOT_AVAILABLE if known is None else Error.STALE_BROKER_EPOCH
            answer = ControlledShutdownResponse(request.correlation, error, ())
            effects.append((SEND, source, answer))
            return
        then = partial(self._stopped, source, request)
        self._changes.stopping(now, request.broker_id, then, effects)

    def abandon(self, effects: Effects) -> None:
        """Another broker is the controller: its word counts."""
        for source, request in self._held.values():
            refuse(source, request, Error.NOT_CONTROLLER, effects)
        self._held.clear()

    def silenced(self, now: int, effects: Effects) -> None:
        """Look who has been silent for too long."""
        self._changes.silenced(now, self._parts.states.silent(now), effects)
        self._parts.situation.alarm.by(self._parts.states.next_due())

    def _registered(self, now: int, effects: Effects) -> None:
        for broker_id in tuple(self._held):
            self._decide(now, broker_id, effects, is_read=True)

    def _decide(self, now: int, broker_id: int, effects: Effects, *, is_read: bool = False) -> None:
        """Do what the heartbeat that is held wants, or answer it.

        `is_read`: all registrations have just been read.
        """
        states, (_, request) = self._parts.states, self._held[broker_id]
        known = self._parts.context.image.brokers.get(broker_id)
        # The state that is kept is of the incarnation before, until its registration is read.
        is_ahead = request.incarnation_id > (-1 if known is None else known.incarnation_id)
        if is_ahead and not is_read:
            return
        state, target = states.state_of(broker_id), request.target_state
        then = partial(self._answered, broker_id)
        if broker_id in self._activating:
            return
        # A registration may have come after it, which it does not speak for.
        counts = broker_id in states.known() and not states.refusal(request)[0]
        if not counts or state == target or target not in (_ACTIVE, _STOPPING):
            self._answered(broker_id, now, effects)
        elif target == _STOPPING:
            self._changes.stopping(now, broker_id, then, effects)
        elif state is ControlledState.INITIAL:
            self._changes.move(now, broker_id, _ACTIVE, effects)
            self._answered(broker_id, now, effects)
        elif self._is_told(now, broker_id, effects):
            self._activating.add(broker_id)
            self._changes.activated(now, broker_id, then, effects)

    def _is_told(self, now: int, broker_id: int, effects: Effects) -> bool:
        """Return whether a broker may be active; if not, it is being told what it lacks."""
        channels = self._parts.channels
        # Rule active_once_told.
        if channels.is_told(broker_id) or not self._parts.situation.rules.active_once_told:
            return True
        if not channels.is_open(broker_id) and broker_id not in self._opening:
            # Behind what is being decided: who led before it was new or silent, leads by then.
            self._opening.add(broker_id)
            self._parts.decide(now, tuple, effects, finish=partial(self._open, broker_id))
        return False

    def _open(self, broker_id: int, now: int, effects: Effects) -> None:
        """Tell a broker what it lacks; `told` follows, for the own broker at once."""
        channels = self._parts.channels
        self._opening.discard(broker_id)
        if broker_id in self._parts.states.known() and not channels.is_open(broker_id):
            channels.open(broker_id)
            channels.flush(now, effects)

    def _answered(self, broker_id: int, _now: int, effects: Effects) -> None:
        """Answer the heartbeat that is held with the state that the broker is in now."""
        self._activating.discard(broker_id)
        source, request = self._held.pop(broker_id, (0, None))
        if request is not None:
            states = self._parts.states
            answer = _answer(request, states.state_of(broker_id), *states.refusal(request))
            effects.append((SEND, source, answer))

    def _stopped(
        self, source: int, request: ControlledShutdownRequest, _now: int, effects: Effects
    ) -> None:
        image = self._parts.context.image
        remaining = tuple(
            (image.names[key[0]], key[1])
            for key, one in image.partitions.items()
            if one.leader == request.broker_id
        )
        answer = ControlledShutdownResponse(request.correlation, Error.NONE, remaining)
        effects.append((SEND, source, answer))


def _answer(
    request: MetadataHeartbeatRequest,
    state: ControlledState,
    error: Error = Error.NONE,
    words: str = "",
) -> MetadataHeartbeatResponse:
    return MetadataHeartbeatResponse(request.correlation, error, words or None, state)
