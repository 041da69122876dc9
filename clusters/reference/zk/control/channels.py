"""The controller's requests to brokers: who is told what, and repeating it until it is answered."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final, Protocol

from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.zk.control.change import StateChange
from fencepost.clusters.reference.zk.control.channel import (
    DELETION_EPOCH,
    BrokerChannel,
    ControlFields,
)
from fencepost.clusters.reference.zk.control.context import Context
from fencepost.clusters.reference.zk.messages import (
    LEADER_DURING_DELETE,
    LeaderAndIsrRequest,
    LiveBroker,
    StoppedPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)

REQUESTS: Final = frozenset(
    {LeaderAndIsrRequest.kind, StopReplicaRequest.kind, UpdateMetadataRequest.kind}
)
ANSWERS: Final = frozenset(kind + 1 for kind in REQUESTS)
"""The kinds of brokers' answers to REQUESTS."""

Local = Callable[[int, Any, Effects], Any]
"""(now, request, effects) -> response: the broker that the controller is a part of."""


class ChannelsPort(Protocol):
    """The rest of the controller."""

    def told(self, now: int, broker_id: int, effects: Effects) -> None:
        """A broker has answered all that it had to be told."""

    def deleted(
        self, now: int, broker_id: int, replicas: list[tuple[str, int]], effects: Effects
    ) -> None:
        """A broker has deleted these replicas: (topic, partition)."""


class Channels:
    """The channels of one controller epoch, by broker."""

    __slots__ = ("_channels", "_context", "_correlation", "_local", "_port", "_under_way")

    def __init__(
        self, context: Context, port: ChannelsPort, *, local: Local, correlation: int
    ) -> None:
        self._context = context
        self._port = port
        self._local = local
        self._channels: dict[int, BrokerChannel] = {}
        self._correlation = correlation
        self._under_way: dict[int, int] = {}
        """The brokers by the correlations of the requests to them."""

    @property
    def correlation(self) -> int:
        """The last correlation that was used; a node uses none twice."""
        return self._correlation

    def open(self, broker_id: int) -> None:
        """Tell a broker everything, and from here on what changes."""
        context = self._context
        self.close(broker_id)
        channel = BrokerChannel(context.situation.configuration.retry_backoff_ns)
        every = {key: context.told(key) for key in self._shown()}
        hosted = [every[key] for key in context.hosted_by(broker_id)]
        channel.begin(hosted, list(every.values()))
        self._channels[broker_id] = channel
        for topic in context.deleting:
            self.delete(topic, [broker_id])

    def close(self, broker_id: int) -> None:
        """Tell a broker nothing any more."""
        self._channels.pop(broker_id, None)
        self._under_way = {
            correlation: one for correlation, one in self._under_way.items() if one != broker_id
        }

    def is_open(self, broker_id: int) -> bool:
        """Return whether a broker is told what changes."""
        return broker_id in self._channels

    def is_told(self, broker_id: int) -> bool:
        """Return whether a broker has answered all that it had to be told."""
        channel = self._channels.get(broker_id)
        return channel is not None and channel.is_idle and not channel.is_refused

    def changed(self, changes: Iterable[StateChange]) -> None:
        """Partitions have changed: their replicas are told, and all brokers for their clients."""
        context = self._context
        for change in changes:
            if context.image.names[change.key[0]] in context.deleting:
                continue  # A leader may have written its state since: it is not to be shown again.
            self._lead_or_follow(change)
            state = context.told(change.key)
            for channel in self._channels.values():
                channel.show(state)

    def brokers_changed(self) -> None:
        """Other brokers are there than before, or elsewhere."""
        for channel in self._channels.values():
            channel.show_brokers()

    def delete(self, topic: str, broker_ids: Iterable[int] | None = None) -> None:
        """A topic is being deleted: tell all brokers, or these."""
        context = self._context
        told = {one: self._channels[one] for one in broker_ids or self._channels}
        for key in context.image.partitions_of(context.image.topics.get(topic, -1)):
            hidden = replace(context.told(key), leader=LEADER_DURING_DELETE)
            stopped = StoppedPartition(topic, key[1], DELETION_EPOCH, delete=True)
            for broker_id, channel in told.items():
                channel.show(hidden)
                if broker_id in context.image.partitions[key].replicas:
                    channel.stop(key, stopped)

    def flush(self, now: int, effects: Effects) -> None:
        """Send what may be sent now."""
        for broker_id, channel in tuple(self._channels.items()):
            self._flush(now, broker_id, channel, effects)

    def answered(self, now: int, response: Any, effects: Effects) -> None:
        """Take a broker's answer."""
        broker_id = self._under_way.pop(response.correlation, -1)
        channel = self._channels.get(broker_id)
        if channel is None:
            return
        channel.backoff_ns = self._context.situation.configuration.retry_backoff_ns
        self._take(now, broker_id, channel, response, effects)
        self._flush(now, broker_id, channel, effects)

    def unreachable(self, now: int, request: Any) -> None:
        """A request did not arrive, or its answer will not."""
        channel = self._channels.get(self._under_way.pop(request.correlation, -1))
        if channel is None:
            return
        configuration = self._context.situation.configuration
        channel.due_ns = now + channel.backoff_ns
        channel.backoff_ns = min(2 * channel.backoff_ns, configuration.retry_backoff_max_ns)
        self._context.situation.alarm.by(channel.due_ns)

    def tick(self, now: int, effects: Effects) -> None:
        """Repeat what was not answered in time."""
        self.flush(now, effects)
        for channel in self._channels.values():
            if channel.under_way is not None or channel.is_pending:
                self._context.situation.alarm.by(channel.due_ns)

    def _shown(self) -> list[PartitionKey]:
        image, deleting = self._context.image, self._context.deleting
        return [key for key in image.partitions if image.names[key[0]] not in deleting]

    def _lead_or_follow(self, change: StateChange) -> None:
        """Tell the replicas of a partition; those that are gone, and those that leave, stop."""
        context, key, new = self._context, change.key, change.new
        old_replicas = () if change.old is None else change.old.replicas
        name = context.image.names[key[0]]
        for broker_id in old_replicas:
            if broker_id not in new.replicas and broker_id in self._channels:
                stopped = StoppedPartition(name, key[1], new.leader_epoch, delete=True)
                self._channels[broker_id].stop(key, stopped)
        is_of_leader = change.old is not None and change.old.leader_epoch == new.leader_epoch
        if is_of_leader and context.situation.rules.leader_epoch_bumped:
            return  # Its leader asked for this ISR, or wrote it; followers need not know.
        state = context.told(key, is_new=change.old is None)
        for broker_id in new.replicas:
            if broker_id in self._channels:
                self._tell(broker_id, key, state, name)

    def _tell(self, broker_id: int, key: PartitionKey, state: Any, name: str) -> None:
        known = self._context.image.brokers.get(broker_id)
        if known is not None and known.in_controlled_shutdown and state.leader != broker_id:
            stopped = StoppedPartition(name, key[1], state.leader_epoch, delete=False)
            self._channels[broker_id].stop(key, stopped)
        else:
            self._channels[broker_id].lead_or_follow(state)

    def _flush(self, now: int, broker_id: int, channel: BrokerChannel, effects: Effects) -> None:
        """Send until something is under way; the own broker answers at once."""
        while now >= channel.due_ns and self._channels.get(broker_id) is channel:
            request = self._request(broker_id, channel)
            if request is None:
                return
            timeout_ns = self._context.situation.configuration.request_timeout_ns
            channel.due_ns = now + timeout_ns
            if broker_id != self._context.situation.node_id:
                self._under_way[request.correlation] = broker_id
                self._context.situation.alarm.by(channel.due_ns)
                effects.append((SEND, broker_id, request))
                return
            self._take(now, broker_id, channel, self._local(now, request, effects), effects)

    def _request(self, broker_id: int, channel: BrokerChannel) -> Any:
        """Return the request that is due: the one under way again, or the next; None: none."""
        self._correlation += 1
        if channel.under_way is not None:
            self._under_way.pop(channel.under_way.correlation, None)
            channel.under_way = replace(channel.under_way, correlation=self._correlation)
            return channel.under_way
        if not channel.is_pending:
            return None
        return channel.next_request(self._correlation, self._sender(broker_id), self._live())

    def _take(
        self, now: int, broker_id: int, channel: BrokerChannel, response: Any, effects: Effects
    ) -> None:
        channel.due_ns = now
        deleted = channel.answered(response)
        if deleted:
            self._port.deleted(now, broker_id, deleted, effects)
        if channel.is_idle and not channel.is_refused:
            self._port.told(now, broker_id, effects)

    def _sender(self, broker_id: int) -> ControlFields:
        context = self._context
        known = context.image.brokers.get(broker_id)
        broker_epoch = -1 if known is None else known.broker_epoch
        return ControlFields(context.situation.node_id, context.epoch, broker_epoch)

    def _live(self) -> tuple[LiveBroker, ...]:
        return tuple(
            LiveBroker(one.broker_id, one.listeners, one.rack)
            for _, one in sorted(self._context.image.brokers.items())
            if not one.fenced
        )
