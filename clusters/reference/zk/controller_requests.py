"""The controller's requests to a broker: LeaderAndIsr, StopReplica, UpdateMetadata.

A request is refused as a whole if a newer controller is known, or if it is meant for an earlier
incarnation of this broker (KIP-380). A partition is led or followed anew with each leader epoch
above the known one; a leader's ISR changes within its epoch by its own requests alone. So a request
that is repeated or overtaken changes nothing.

UpdateMetadata and StopReplica name topics; a topic that was deleted and made again meanwhile is hit
by what was meant for its predecessor, as it is in every release of Kafka.
"""

from collections.abc import Callable
from typing import Any, Final

from fencepost.clusters.node_port.effects import NOTE, Effects
from fencepost.clusters.node_port.notes import VISIBLE
from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.image import PartitionImage
from fencepost.clusters.reference.nodes.records import (
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from fencepost.clusters.reference.nodes.replicas.replicas import Replicas
from fencepost.clusters.reference.zk.messages import (
    LEADER_DURING_DELETE,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LiveBroker,
    PartitionState,
    StoppedPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from fencepost.clusters.reference.zk.situation import ZkSituation

TELLING: Final = frozenset(
    {LeaderAndIsrRequest.kind, StopReplicaRequest.kind, UpdateMetadataRequest.kind}
)
"""The kinds of the requests that only a controller sends."""

_NONE: Final = int(Error.NONE)
_OLD_CONTROLLER: Final = int(Error.STALE_CONTROLLER_EPOCH)
_OLD_BROKER: Final = int(Error.STALE_BROKER_EPOCH)
_FENCED_EPOCH: Final = int(Error.FENCED_LEADER_EPOCH)
_OTHER_TOPIC: Final = int(Error.INCONSISTENT_TOPIC_ID)
_UNKNOWN: Final = int(Error.UNKNOWN_TOPIC_OR_PARTITION)
_OF_DELETION: Final = -2
"""The leader epoch in a StopReplica that deletes a topic: every epoch admits it."""

_Request = LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest


class ControllerRequests:
    """The controller's word, as this broker takes it."""

    __slots__ = ("_new_topic", "_replicas", "_situation")

    def __init__(
        self,
        situation: ZkSituation,
        replicas: Replicas,
        new_topic: Callable[[int, str, int, Effects], None],
    ) -> None:
        """Create it.

        `new_topic`: (now, name, topic id, effects), called before a topic's first replica.
        """
        self._situation = situation
        self._replicas = replicas
        self._new_topic = new_topic

    def take(self, now: int, request: _Request, effects: Effects) -> Any:
        """Carry a request out, and return its response."""
        error = self._refusal(request)
        match request:
            case LeaderAndIsrRequest(correlation=correlation):
                found = () if error else self._lead_and_follow(now, request, effects)
                return LeaderAndIsrResponse(correlation, error, found)
            case StopReplicaRequest(correlation=correlation):
                stopped = () if error else self._stop(request, effects)
                return StopReplicaResponse(correlation, error, stopped)
            case UpdateMetadataRequest(correlation=correlation):
                if not error:
                    self._update(now, request, effects)
                return UpdateMetadataResponse(correlation, error)

    def _refusal(self, request: _Request) -> int:
        situation, rules = self._situation, self._situation.rules
        # Rule controller_epoch_checked.
        if request.controller_epoch < situation.controller_epoch and rules.controller_epoch_checked:
            return _OLD_CONTROLLER
        # Rule broker_epoch_checked.
        if request.broker_epoch < situation.broker_epoch and rules.broker_epoch_checked:
            return _OLD_BROKER
        if request.controller_epoch > situation.controller_epoch:
            situation.controller_epoch = request.controller_epoch
            situation.controller_id = request.controller_id
        return _NONE

    # LeaderAndIsr.

    def _lead_and_follow(
        self, now: int, request: LeaderAndIsrRequest, effects: Effects
    ) -> tuple[tuple[PartitionKey, int], ...]:
        if request.is_full:
            self._remove_strays(request, effects)
        found = tuple((one.key, self._assign(now, one, effects)) for one in request.partitions)
        self._replicas.fetchers.send(now, effects)
        return found

    def _assign(self, now: int, state: PartitionState, effects: Effects) -> int:
        situation = self._situation
        if situation.node_id not in state.replicas:
            return _UNKNOWN
        known = situation.assigned.get(state.key)
        if known is None:
            other = self._hosted(state.topic, state.key[1])
            if other not in (None, state.key):
                return _OTHER_TOPIC
        elif state.leader_epoch < known.leader_epoch:
            return _OLD_CONTROLLER
        elif state.leader_epoch == known.leader_epoch:
            return _NONE
        situation.assigned[state.key] = state
        self._new_topic(now, state.topic, state.key[0], effects)
        self._replicas.take_role(now, state.key, state.topic, _image_of(state), effects)
        return _NONE

    def _remove_strays(self, request: LeaderAndIsrRequest, effects: Effects) -> None:
        """Delete what was given to others, or deleted, while this broker was away."""
        named = {one.key for one in request.partitions}
        for key in [key for key in self._replicas.hosted if key not in named]:
            self._remove(key, effects)

    def _remove(self, key: PartitionKey, effects: Effects) -> None:
        self._situation.assigned.pop(key, None)
        self._replicas.remove(key, effects)

    def _hosted(self, topic: str, partition: int) -> PartitionKey | None:
        for key, replica in self._replicas.hosted.items():
            if key[1] == partition and replica.topic == topic:
                return key
        return None

    # StopReplica.

    def _stop(
        self, request: StopReplicaRequest, effects: Effects
    ) -> tuple[tuple[str, int, int], ...]:
        return tuple(
            (one.topic, one.partition, self._stop_one(one, effects)) for one in request.partitions
        )

    def _stop_one(self, stopped: StoppedPartition, effects: Effects) -> int:
        key = self._hosted(stopped.topic, stopped.partition)
        if key is None:
            return _NONE
        known = self._situation.assigned.get(key)
        is_late = known is not None and stopped.leader_epoch < known.leader_epoch
        if is_late and stopped.leader_epoch != _OF_DELETION:
            return _FENCED_EPOCH
        if stopped.delete:
            self._remove(key, effects)
        else:
            self._situation.assigned.pop(key, None)
            self._replicas.leave_role(key, effects)
        return _NONE

    # UpdateMetadata.

    def _update(self, now: int, request: UpdateMetadataRequest, effects: Effects) -> None:
        image = self._situation.image
        before = image.offset
        self._update_brokers(request.brokers)
        if request.is_full:
            named = {one.key[0] for one in request.partitions}
            for topic in [name for name, one in image.topics.items() if one not in named]:
                self._forget_topic(topic)
        for state in request.partitions:
            if state.leader == LEADER_DURING_DELETE:
                self._forget_topic(state.topic)
            else:
                self._show(now, state, effects)
        if image.offset != before:
            effects.append((NOTE, VISIBLE, image.offset))

    def _update_brokers(self, brokers: tuple[LiveBroker, ...]) -> None:
        known = self._situation.image.brokers
        for broker_id in sorted(known.keys() - {one.broker_id for one in brokers}):
            self._apply(UnregisterBrokerRecord(broker_id, -1))
        for one in brokers:
            shown = known.get(one.broker_id)
            if shown is None or (shown.listeners, shown.rack) != (one.listeners, one.rack):
                self._apply(
                    RegisterBrokerRecord(
                        one.broker_id,
                        -1,
                        0,
                        fenced=False,
                        listeners=one.listeners,
                        features=(),
                        rack=one.rack,
                        in_controlled_shutdown=False,
                    )
                )

    def _show(self, now: int, state: PartitionState, effects: Effects) -> None:
        image, topic_id = self._situation.image, state.key[0]
        if image.topics.get(state.topic) != topic_id:
            self._forget_topic(state.topic)
            self._apply(TopicRecord(state.topic, topic_id))
            self._new_topic(now, state.topic, topic_id, effects)
        partition = _image_of(state)
        if image.partitions.get(state.key) != partition:
            self._apply(_record_of(state))

    def _forget_topic(self, topic: str) -> None:
        topic_id = self._situation.image.topics.get(topic)
        if topic_id is not None:
            self._apply(RemoveTopicRecord(topic_id))

    def _apply(self, record: MetadataRecord) -> None:
        image = self._situation.image
        image.apply(image.offset, self._situation.controller_epoch, record)


def _image_of(state: PartitionState) -> PartitionImage:
    return PartitionImage(
        state.replicas,
        state.isr,
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        state.adding,
        state.removing,
        state.recovering,
    )


def _record_of(state: PartitionState) -> PartitionRecord:
    return PartitionRecord(
        state.key[0],
        state.key[1],
        state.replicas,
        state.isr,
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        state.adding,
        state.removing,
        state.recovering,
    )
