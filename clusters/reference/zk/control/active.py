"""One controller epoch, from its election to its end: it loads all, decides, and tells brokers.

It reads all that a new controller has to know, with the watches that tell what changes. What an
earlier controller wrote is older than this one's /controller, so a session that made it reads all
of that, and nothing of an earlier epoch is written afterwards.

Source: Kafka's `KafkaController.initializeControllerContext`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from fencepost.clusters.node_port.effects import NOTE, Effects
from fencepost.clusters.node_port.notes import ACTIVE, PARTITION_DECIDED, RESIGNED
from fencepost.clusters.node_port.zookeeper import GetChildren, GetData, WatchEvent, ZkOutcome
from fencepost.clusters.reference.nodes.control.moves import preferred_elections
from fencepost.clusters.reference.nodes.control.reassignment import in_progress
from fencepost.clusters.reference.nodes.image import PartitionImage
from fencepost.clusters.reference.nodes.messages.control import DeleteTopicsRequest
from fencepost.clusters.reference.zk.control.broker_changes import BrokerChanges
from fencepost.clusters.reference.zk.control.broker_states import BrokerStates
from fencepost.clusters.reference.zk.control.change import StateChange
from fencepost.clusters.reference.zk.control.channels import Channels, Local
from fencepost.clusters.reference.zk.control.context import Context
from fencepost.clusters.reference.zk.control.controller_state import ControllerState
from fencepost.clusters.reference.zk.control.deletions import Deletions, Garbage
from fencepost.clusters.reference.zk.control.heartbeats import Heartbeats
from fencepost.clusters.reference.zk.control.job_queue import JobQueue
from fencepost.clusters.reference.zk.control.leaders import begun, completed, departed, leaderless
from fencepost.clusters.reference.zk.control.outside_writes import IsrNotifications, Topics
from fencepost.clusters.reference.zk.control.requests import ClientRequests
from fencepost.clusters.reference.zk.coroutines import Coroutines
from fencepost.clusters.reference.zk.messages import (
    ControlledShutdownRequest,
    MetadataHeartbeatRequest,
)
from fencepost.clusters.reference.zk.session_requests import SessionRequests
from fencepost.clusters.reference.zk.znodes import (
    BROKER_IDS,
    DELETE_TOPICS,
    ISR_CHANGES,
    TOPICS,
    TopicInfo,
    state_path,
)

_HEARTBEAT: Final = MetadataHeartbeatRequest.kind
_STOP: Final = ControlledShutdownRequest.kind
_DELETE: Final = DeleteTopicsRequest.kind
_SETTINGS: Final = ("/config/topics", "/config/brokers")


class ActiveController:
    """The controller of one epoch. It is not active before it is loaded."""

    __slots__ = (
        "_deletions",
        "_deposed",
        "_garbage",
        "_heartbeats",
        "_missed",
        "_notifications",
        "_parts",
        "_rebalance_ns",
        "_requests",
        "_topics",
        "is_loaded",
    )

    def __init__(
        self,
        context: Context,
        zookeeper: SessionRequests,
        *,
        local: Local,
        correlation: int,
        deposed: Callable[[int, Effects], None],
    ) -> None:
        situation, coroutines = context.situation, Coroutines()
        self._deposed = deposed
        self._parts = ControllerState(
            situation,
            zookeeper,
            context,
            BrokerStates(situation.zk_configuration, situation.rules),
            Channels(context, self, local=local, correlation=correlation),
            JobQueue(context, zookeeper, coroutines, self),
            coroutines,
        )
        self._heartbeats = Heartbeats(self._parts, BrokerChanges(self._parts))
        self._requests = ClientRequests(self._parts)
        self._topics = Topics(self._parts)
        self._deletions = Deletions(self._parts)
        self._notifications = IsrNotifications(self._parts, self)
        self._garbage = Garbage(self._parts)
        self._rebalance_ns = 0
        self._missed: list[WatchEvent] = []
        """The watches that fired while all was loaded."""
        self.is_loaded = False

    @property
    def context(self) -> Context:
        """The knowledge of this controller."""
        return self._parts.context

    @property
    def correlation(self) -> int:
        """The last correlation of a request to a broker."""
        return self._parts.channels.correlation

    def begin(self, now: int, effects: Effects) -> None:
        """Load; the controller is active afterwards."""
        self._parts.coroutines.run(now, self._begin(), effects)

    def end(self, now: int, effects: Effects) -> None:
        """Decide nothing any more: another broker is the controller, or may be."""
        self._parts.work.abandon(now, effects)
        self._heartbeats.abandon(effects)
        self._deletions.abandon(effects)
        if self.is_loaded:
            effects.append((NOTE, RESIGNED, self.context.epoch))
        self._parts.coroutines.end()

    def request(self, now: int, source: int, request: Any, effects: Effects) -> None:
        """Take what a broker or a client asks of an active controller."""
        run = self._parts.coroutines.run
        if request.kind == _HEARTBEAT:
            self._heartbeats.heard(now, source, request, effects)
        elif request.kind == _STOP:
            run(now, self._heartbeats.stop(source, request), effects)
        elif request.kind == _DELETE:
            run(now, self._deletions.request(source, request), effects)
        else:
            run(now, self._requests.take(source, request), effects)

    def answered(self, now: int, response: Any, effects: Effects) -> None:
        """Take a broker's answer."""
        self._parts.channels.answered(now, response, effects)

    def unreachable(self, now: int, request: Any) -> None:
        """A request to a broker is lost."""
        self._parts.channels.unreachable(now, request)

    def watched(self, now: int, event: WatchEvent, effects: Effects) -> None:
        """Take a watch that fired."""
        parent, _, name = event.path.rpartition("/")
        run = self._parts.coroutines.run
        if not self.is_loaded:
            self._missed.append(event)
        elif BROKER_IDS in (event.path, parent):
            self._heartbeats.registrations.read(now, effects)
        elif event.path == TOPICS:
            run(now, self._topics.read(), effects)
        elif parent == TOPICS:
            run(now, self._topics.read_one(name), effects)
        elif event.path == DELETE_TOPICS:
            run(now, self._deletions.read(), effects)
        elif event.path == ISR_CHANGES:
            run(now, self._notifications.read(), effects)

    def tick(self, now: int, effects: Effects) -> None:
        """Look at what is due."""
        if not self.is_loaded:
            return
        self._heartbeats.silenced(now, effects)
        self._deletions.tick(now, effects)
        self._garbage.tick(now, effects)
        self._rebalance(now, effects)
        self._parts.channels.tick(now, effects)

    # Calls of the parts.

    def changed(self, now: int, changes: list[StateChange], effects: Effects) -> None:
        """These states are written, or were found to be: brokers are to be told."""
        if not changes:
            return
        for change in changes:
            effects.append(self._note(change))
        self._parts.channels.changed(changes)
        self._parts.channels.flush(now, effects)
        if any(_has_arrived(change.new) for change in changes):
            self._parts.decide(now, lambda: completed(self.context.view()), effects)

    def deposed(self, now: int, effects: Effects) -> None:
        """A write found a newer controller epoch."""
        self._deposed(now, effects)

    def told(self, now: int, broker_id: int, effects: Effects) -> None:
        """A broker has answered all that it had to be told."""
        self._heartbeats.told(now, broker_id, effects)

    def deleted(
        self, now: int, broker_id: int, replicas: list[tuple[str, int]], effects: Effects
    ) -> None:
        """A broker has deleted these replicas: (topic, partition)."""
        self._deletions.deleted(now, broker_id, replicas, effects)

    async def _begin(self) -> None:
        registrations = await self._load()
        turn, context = self._parts.coroutines, self.context
        self.is_loaded = True
        turn.effects.append((NOTE, ACTIVE, context.epoch))
        self._heartbeats.registrations.loaded(turn.now, registrations, turn.effects)
        served = [one for one in sorted(context.image.brokers) if context.is_served(one)]
        for broker_id in served:
            self._parts.channels.open(broker_id)
        self._take_over(turn.now, turn.effects)
        self._topics.loaded()
        self._deletions.begin(turn.now, tuple(context.deleting), turn.effects)
        turn.spawn(self._deletions.read())
        turn.spawn(self._notifications.read())
        missed, self._missed = self._missed, []
        for event in missed:
            self.watched(turn.now, event, turn.effects)
        self._rebalance_ns = turn.now + self._parts.situation.configuration.auto_leader_rebalance_ns
        self.tick(turn.now, turn.effects)

    async def _load(self) -> dict[str, ZkOutcome]:
        """Fill the context; return the registrations as they are read, by name."""
        zookeeper, context = self._parts.zookeeper, self.context
        reads = [*(GetChildren(one) for one in _SETTINGS), GetChildren(DELETE_TOPICS, watch=True)]
        *settings, deletions = await zookeeper.read(reads)
        for parent, one in zip(_SETTINGS, settings, strict=True):
            context.settings_paths |= {f"{parent}/{name}" for name in one.children}
        context.deleting |= dict.fromkeys(deletions.children)
        topics = await zookeeper.read_children(TOPICS, watches_data=True)
        for name, one in topics.items():
            if one.stat is not None:
                context.assign(name, TopicInfo.decoded(one.data), one.stat.version)
        keys = context.without_state()
        states = [GetData(state_path(context.image.names[one[0]], one[1])) for one in keys]
        for key, outcome in zip(keys, await zookeeper.read(states), strict=True):
            context.refresh(key, outcome)
        return await zookeeper.read_children(BROKER_IDS, watches_data=True)

    def _take_over(self, now: int, effects: Effects) -> None:
        """Decide what no controller was there to decide."""
        context, parts = self.context, self._parts
        counted = {
            broker_id
            for one in context.image.partitions.values()
            for broker_id in (*one.isr, one.leader)
        }
        for broker_id in sorted(counted - {-1}):
            if not context.is_served(broker_id) or context.has_restarted(broker_id):
                depart = partial(departed, context.view(), broker_id)
                parts.decide(now, depart, effects)
        parts.decide(now, lambda: leaderless(context.view()), effects)
        parts.decide(now, lambda: begun(context, context.view()), effects)
        parts.decide(now, lambda: completed(context.view()), effects)

    def _rebalance(self, now: int, effects: Effects) -> None:
        interval_ns = self._parts.situation.configuration.auto_leader_rebalance_ns
        if not interval_ns:
            return
        if now >= self._rebalance_ns:
            self._rebalance_ns = now + interval_ns
            context = self.context
            self._parts.decide(now, lambda: preferred_elections(context.view()), effects)
        self._parts.situation.alarm.by(self._rebalance_ns)

    def _note(self, change: StateChange) -> tuple[Any, ...]:
        new, states = change.new, self._parts.states
        incarnations = tuple(states.incarnation_of(broker_id) for broker_id in new.isr)
        controller_epoch = self.context.controller_epochs[change.key]
        state = (new.partition_epoch, new.leader, new.leader_epoch, new.isr, incarnations)
        return (NOTE, PARTITION_DECIDED, change.key, controller_epoch, *state)


def _has_arrived(partition: PartitionImage) -> bool:
    return in_progress(partition) and set(partition.adding) <= set(partition.isr)
