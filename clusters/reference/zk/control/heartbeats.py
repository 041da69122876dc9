"""Brokers' registrations, MetadataHeartbeat and ControlledShutdown, and the answers to them.

The registrations below /brokers/ids are read when a watch tells of them, and compared. One that is
read is taken unless a later incarnation is known, which a heartbeat may tell of first: an
incarnation that is not known is taken at its heartbeat's word (Z04), and what it wants is decided
once its registration is read.

An inactive broker that asks to be active is told all that it has missed, and is active once it has
taken that: the draft says only that it can be active again, and would have it serve what it showed
before. Such a heartbeat is answered when it is decided; until then the newest one of each broker is
held.
"""

from collections.abc import Callable
from typing import Final

from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.node_port.zookeeper import Sync, ZkOutcome
from fencepost.clusters.protocol.controlled_states import ControlledState
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.zk.control.broker_changes import BrokerChanges, registration
from fencepost.clusters.reference.zk.control.controller_state import ControllerState
from fencepost.clusters.reference.zk.control.refusals import refuse
from fencepost.clusters.reference.zk.messages import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
)
from fencepost.clusters.reference.zk.situation import incarnation_of
from fencepost.clusters.reference.zk.znodes import BROKER_IDS, BrokerInfo

_ACTIVE: Final = ControlledState.ACTIVE
_STOPPING: Final = ControlledState.STOPPING
_OnTaken = Callable[[int, Effects], None]
"""(now, effects): all registrations are taken as they were read."""


class Heartbeats:
    """The heartbeats of one controller epoch."""

    __slots__ = ("_activating", "_changes", "_held", "_opening", "_parts", "registrations")

    def __init__(self, parts: ControllerState, changes: BrokerChanges) -> None:
        self._parts = parts
        self._changes = changes
        self.registrations = _Registrations(parts, changes, self._registered)
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
            self._parts.coroutines.run(now, self.registrations.read_latest(), effects)
        else:
            self._decide(now, broker_id, effects)

    def told(self, now: int, broker_id: int, effects: Effects) -> None:
        """A broker has taken all that it was told."""
        if broker_id in self._held:
            self._decide(now, broker_id, effects)

    async def stop(self, source: int, request: ControlledShutdownRequest) -> None:
        """A broker that sends no heartbeats wants to end."""
        image, error = self._parts.context.image, Error.NONE
        known = image.brokers.get(request.broker_id)
        remaining: tuple[tuple[str, int], ...] = ()
        if known is None:
            error = Error.BROKER_NOT_AVAILABLE
        elif known.broker_epoch != request.broker_epoch:
            error = Error.STALE_BROKER_EPOCH
        else:
            await self._changes.stopping(request.broker_id)
            remaining = tuple(
                (image.names[key[0]], key[1])
                for key, one in image.partitions.items()
                if one.leader == request.broker_id
            )
        answer = ControlledShutdownResponse(request.correlation, error, remaining)
        self._parts.coroutines.effects.append((SEND, source, answer))

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
        if broker_id in self._activating:
            return
        # A registration may have come after it, which it does not speak for.
        counts = broker_id in states.known() and not states.refusal(request)[0]
        if not counts or state == target or target not in (_ACTIVE, _STOPPING):
            self._answered(broker_id, effects)
        elif target == _STOPPING:
            self._parts.coroutines.run(now, self._stop(broker_id), effects)
        elif state is ControlledState.INITIAL:
            self._changes.move(now, broker_id, _ACTIVE, effects)
            self._answered(broker_id, effects)
        elif self._is_told(now, broker_id, effects):
            self._parts.coroutines.run(now, self._activate(broker_id), effects)

    async def _stop(self, broker_id: int) -> None:
        await self._changes.stopping(broker_id)
        self._answered(broker_id, self._parts.coroutines.effects)

    async def _activate(self, broker_id: int) -> None:
        self._activating.add(broker_id)
        await self._changes.activated(broker_id)
        self._answered(broker_id, self._parts.coroutines.effects)

    def _is_told(self, now: int, broker_id: int, effects: Effects) -> bool:
        """Return whether a broker may be active; if not, it is being told what it lacks."""
        channels = self._parts.channels
        # Rule active_once_told.
        if channels.is_told(broker_id) or not self._parts.situation.rules.active_once_told:
            return True
        if not channels.is_open(broker_id) and broker_id not in self._opening:
            self._parts.coroutines.run(now, self._open(broker_id), effects)
        return False

    async def _open(self, broker_id: int) -> None:
        """Tell a broker what it lacks; `told` follows, for the own broker at once."""
        channels, turn = self._parts.channels, self._parts.coroutines
        # Behind what is being decided: who led before it was new or silent, leads by then.
        self._opening.add(broker_id)
        await self._parts.decided(tuple)
        self._opening.discard(broker_id)
        if broker_id in self._parts.states.known() and not channels.is_open(broker_id):
            channels.open(broker_id)
            channels.flush(turn.now, turn.effects)

    def _answered(self, broker_id: int, effects: Effects) -> None:
        """Answer the heartbeat that is held with the state that the broker is in now."""
        self._activating.discard(broker_id)
        source, request = self._held.pop(broker_id, (0, None))
        if request is not None:
            states = self._parts.states
            answer = _answer(request, states.state_of(broker_id), *states.refusal(request))
            effects.append((SEND, source, answer))


def _answer(
    request: MetadataHeartbeatRequest,
    state: ControlledState,
    error: Error = Error.NONE,
    words: str = "",
) -> MetadataHeartbeatResponse:
    return MetadataHeartbeatResponse(request.correlation, error, words or None, state)


class _Registrations:
    """The registrations of one controller epoch."""

    __slots__ = ("_changes", "_is_outdated", "_is_reading", "_parts", "_then")

    def __init__(self, parts: ControllerState, changes: BrokerChanges, then: _OnTaken) -> None:
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
        self._is_outdated = True
        if not self._is_reading:
            self._is_reading = True
            self._parts.coroutines.run(now, self._read(), effects)

    async def read_latest(self) -> None:
        """Read them all, as they are at ZooKeeper's leader or later."""
        await self._parts.zookeeper.read([Sync(BROKER_IDS)])
        self.read(self._parts.coroutines.now, self._parts.coroutines.effects)

    async def _read(self) -> None:
        parts = self._parts
        while self._is_outdated:
            self._is_outdated = False
            self._take(await parts.zookeeper.read_children(BROKER_IDS, watches_data=True))
            await parts.decided(tuple)  # All that was read is taken by then.
        self._is_reading = False
        self._then(parts.coroutines.now, parts.coroutines.effects)

    def _take(self, found: dict[str, ZkOutcome]) -> None:
        """Have it decided what follows from registrations that are gone, or new."""
        parts = self._parts
        there = {info.broker_id: (info, one) for info, one in self._decoded(found)}
        for broker_id in sorted(set(parts.states.known()) - there.keys()):
            parts.coroutines.spawn(self._changes.gone(broker_id))
        for broker_id, (info, incarnation) in there.items():
            parts.context.hosts[broker_id] = info.host
            is_old = incarnation < parts.states.incarnation_of(broker_id)
            if not is_old and not self._is_known(info, incarnation):
                parts.coroutines.spawn(self._changes.registered(info, incarnation))

    def _is_known(self, info: BrokerInfo, incarnation: int) -> bool:
        known = self._parts.context.image.brokers.get(info.broker_id)
        return known is not None and (known.incarnation_id, known.listeners, known.rack) == (
            incarnation,
            info.listeners,
            info.rack,
        )

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
