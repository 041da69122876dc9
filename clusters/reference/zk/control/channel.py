"""The news for one broker, and the one request to it that is under way.

What is to be told is kept by partition, the newest state of each, and made into requests once the
one before is answered: LeaderAndIsr, then UpdateMetadata, then StopReplica. A channel so holds no
more than there are partitions, however long its broker does not answer. A request is repeated until
it is answered, or the channel is closed with its broker.

Source: Kafka's `ControllerChannelManager`, which keeps requests instead.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.zk.messages import (
    LeaderAndIsrRequest,
    LiveBroker,
    PartitionState,
    StoppedPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)

DELETION_EPOCH: Final = -2
"""The leader epoch of a StopReplica that deletes a topic's replica: every broker takes it."""
_STOPPED: Final = frozenset({Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION})
"""The answers by partition after which a broker has a replica no more."""


@dataclass(frozen=True, slots=True)
class ControlFields:
    """The controller as a request names it, and the broker that the request is for."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int


_REFUSALS: Final = frozenset((Error.STALE_BROKER_EPOCH, Error.STALE_CONTROLLER_EPOCH))


class BrokerChannel:
    """The channel to one broker."""

    __slots__ = (
        "_is_full",
        "_leader_and_isr",
        "_metadata",
        "_shows_full",
        "_stops",
        "_tells_brokers",
        "backoff_ns",
        "due_ns",
        "is_refused",
        "under_way",
    )

    def __init__(self, retry_backoff_ns: int) -> None:
        self._leader_and_isr: dict[PartitionKey, PartitionState] = {}
        self._is_full = self._shows_full = False
        self._metadata: dict[PartitionKey, PartitionState] = {}
        self._tells_brokers = False
        self._stops: dict[tuple[str, int], StoppedPartition] = {}
        self.under_way: Any = None
        """The request that is not answered yet."""
        self.due_ns = 0
        """The time from which the request under way, or else the next one, is sent (again)."""
        self.backoff_ns = retry_backoff_ns
        self.is_refused = False
        """The process that answers at this address is of another incarnation than was told, or has
        heard of a later controller: it takes nothing."""

    @property
    def is_idle(self) -> bool:
        """Return whether the broker has answered all that it had to be told."""
        return self.under_way is None and not self.is_pending

    @property
    def is_pending(self) -> bool:
        """Return whether there is a next request."""
        return bool(
            self._is_full
            or self._leader_and_isr
            or self._tells_brokers
            or self._metadata
            or self._stops
        )

    def begin(self, hosted: list[PartitionState], every: list[PartitionState]) -> None:
        """Tell the whole state: the partitions that the broker has, and the metadata of all."""
        self._is_full = self._shows_full = self._tells_brokers = True
        self._leader_and_isr = {one.key: one for one in hosted}
        self._metadata = {one.key: one for one in every}

    def lead_or_follow(self, state: PartitionState) -> None:
        """Tell a partition's leader and ISR to one of its replicas."""
        self._stops.pop((state.topic, state.key[1]), None)
        waiting = self._leader_and_isr.pop(state.key, None)
        if waiting is not None and waiting.is_new and not state.is_new:
            state = replace(state, is_new=True)
        self._leader_and_isr[state.key] = state

    def show(self, state: PartitionState) -> None:
        """Tell a partition's metadata."""
        self._metadata.pop(state.key, None)
        self._metadata[state.key] = state

    def show_brokers(self) -> None:
        """Tell which brokers there are."""
        self._tells_brokers = True

    def stop(self, key: PartitionKey, stopped: StoppedPartition) -> None:
        """Tell a replica to lead and to follow no more."""
        self._leader_and_isr.pop(key, None)
        self._stops[stopped.topic, stopped.partition] = stopped

    def next_request(
        self, correlation: int, sender: ControlFields, brokers: tuple[LiveBroker, ...]
    ) -> Any:
        """Return the next request, which is under way from here on."""
        if self._is_full or self._leader_and_isr:
            self.under_way = self._lead_and_follow(correlation, sender)
        elif self._tells_brokers or self._metadata:
            states, is_full = tuple(self._metadata.values()), self._shows_full
            self._metadata, self._tells_brokers, self._shows_full = {}, False, False
            self.under_way = UpdateMetadataRequest(
                correlation,
                sender.controller_id,
                sender.controller_epoch,
                sender.broker_epoch,
                states,
                brokers,
                is_full,
            )
        else:
            stops, self._stops = tuple(self._stops.values()), {}
            self.under_way = StopReplicaRequest(
                correlation,
                sender.controller_id,
                sender.controller_epoch,
                sender.broker_epoch,
                stops,
            )
        return self.under_way

    def _lead_and_follow(self, correlation: int, sender: ControlFields) -> LeaderAndIsrRequest:
        states, is_full = tuple(self._leader_and_isr.values()), self._is_full
        self._leader_and_isr, self._is_full = {}, False
        return LeaderAndIsrRequest(
            correlation,
            sender.controller_id,
            sender.controller_epoch,
            sender.broker_epoch,
            is_full,
            states,
        )

    def answered(self, response: Any) -> list[tuple[str, int]]:
        """Take the answer to the request under way; the replicas that are deleted by it."""
        request, self.under_way = self.under_way, None
        self.is_refused = response.error in _REFUSALS
        if not isinstance(request, StopReplicaRequest) or response.error:
            return []
        errors = {(topic, partition): error for topic, partition, error in response.partitions}
        deleted = []
        for one in request.partitions:
            place = (one.topic, one.partition)
            if not one.delete:
                continue
            if errors.get(place, Error.NONE) in _STOPPED:
                deleted.append(place)
            elif one.leader_epoch == DELETION_EPOCH:
                self._stops.setdefault(place, one)
        return deleted
