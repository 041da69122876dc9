"""The columns of the messages that only the ZooKeeper generation has, in Kafka's words.

As `nemesis.wire.decoding.brokers` reads the frames of processes. The partition
epoch is the version of the partition's znode.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from clusters.node_port.storage import PartitionKey
from clusters.reference.codec.identifiers import text_of
from clusters.reference.nodes.errors import ERROR_NAMES
from clusters.reference.zk import messages as zk
from clusters.reference.zk.states import ControlledState
from nemesis.wire.decoding.columns import Parts

__all__ = ["ZK_APIS", "ZK_READERS"]

ZK_APIS: Final[Mapping[int, tuple[str, int]]] = {
    zk.LeaderAndIsrRequest.kind: ("LeaderAndIsr", 5),
    zk.StopReplicaRequest.kind: ("StopReplica", 3),
    zk.UpdateMetadataRequest.kind: ("UpdateMetadata", 7),
    zk.ControlledShutdownRequest.kind: ("ControlledShutdown", 3),
    zk.MetadataHeartbeatRequest.kind: ("MetadataHeartbeat", 0),
    zk.IsrChangeRequest.kind: ("IsrChange", 0),
}
"""The name of each request, by its kind, and the version where the message states none."""

_STATES: Final = {int(state): state.name for state in ControlledState}
_FENCED: Final = frozenset((ControlledState.INITIAL, ControlledState.INACTIVE))


def _leader_and_isr(message: zk.LeaderAndIsrRequest) -> Parts:
    items = [_state(one) | {"detail": _replicas(one)} for one in message.partitions]
    return _epochs(message), items


def _update_metadata(message: zk.UpdateMetadataRequest) -> Parts:
    brokers = [one.broker_id for one in message.brokers]
    columns = _epochs(message) | {"detail": f"live brokers {brokers}"}
    return columns, [_state(one) for one in message.partitions]


def _stop_replica(message: zk.StopReplicaRequest) -> Parts:
    return _epochs(message), [
        {
            "topic": one.topic,
            "partition": one.partition,
            "leader_epoch": one.leader_epoch,
            "delete": one.delete,
        }
        for one in message.partitions
    ]


def _led(message: zk.LeaderAndIsrResponse) -> Parts:
    items = [_key(key) | _failed(error) for key, error in message.partitions]
    return _failed(message.error), items


def _stopped(message: zk.StopReplicaResponse) -> Parts:
    return _failed(message.error), [
        {"topic": topic, "partition": partition, **_failed(error)}
        for topic, partition, error in message.partitions
    ]


def _shut_down(message: zk.ControlledShutdownResponse) -> Parts:
    return _failed(message.error), [
        {"topic": topic, "partition": partition} for topic, partition in message.remaining
    ]


def _heartbeat(message: zk.MetadataHeartbeatRequest) -> Parts:
    return _sender(message) | _controlled(message.target_state), ()


def _heartbeat_answer(message: zk.MetadataHeartbeatResponse) -> Parts:
    return {
        **_controlled(message.current_state),
        **_failed(message.error, message.error_message),
    }, ()


def _isr_change(message: zk.IsrChangeRequest) -> Parts:
    return _sender(message), [
        {
            "topic": topic,
            "partition": one.partition,
            "leader_epoch": one.leader_epoch,
            "isr": list(one.isr),
            **({"isr_epochs": list(one.incarnations)} if message.version else {}),
        }
        for topic, partitions in message.topics
        for one in partitions
    ]


def _isr_change_answer(message: zk.IsrChangeResponse) -> Parts:
    """The partitions stand in the request alone, in the same order."""
    items = [_failed(error, words) for error, words in message.results]
    return _failed(message.error, message.error_message), items


def _epochs(message: Any) -> dict[str, Any]:
    return {"controller_epoch": message.controller_epoch, "broker_epoch": message.broker_epoch}


def _sender(message: Any) -> dict[str, Any]:
    return {"broker_id": message.broker_id, "broker_epoch": message.incarnation_id}


def _controlled(state: int) -> dict[str, Any]:
    return {
        "fenced": state in _FENCED,
        "shutting_down": state == ControlledState.STOPPING,
        "detail": _STATES.get(state, f"state {state}"),
    }


def _state(partition: zk.PartitionState) -> dict[str, Any]:
    return {
        "topic": partition.topic,
        **_key(partition.key),
        "leader_id": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "isr": list(partition.isr),
    }


def _replicas(partition: zk.PartitionState) -> str:
    words = [f"replicas {list(partition.replicas)}"]
    if partition.is_new:
        words.append("new")
    if partition.recovering:
        words.append("recovering")
    return ", ".join(words)


def _key(key: PartitionKey) -> dict[str, Any]:
    return {"topic_id": text_of(key[0]), "partition": key[1]}


def _failed(code: int, words: str | None = None) -> dict[str, Any]:
    found = {"error": ERROR_NAMES.get(code, str(code))}
    return found if words is None else found | {"detail": words}


ZK_READERS: Final[Mapping[int, Callable[[Any], Parts]]] = {
    zk.LeaderAndIsrRequest.kind: _leader_and_isr,
    zk.LeaderAndIsrResponse.kind: _led,
    zk.StopReplicaRequest.kind: _stop_replica,
    zk.StopReplicaResponse.kind: _stopped,
    zk.UpdateMetadataRequest.kind: _update_metadata,
    zk.UpdateMetadataResponse.kind: lambda it: (_failed(it.error), ()),
    zk.ControlledShutdownRequest.kind: lambda it: (
        {"broker_id": it.broker_id, "broker_epoch": it.broker_epoch},
        (),
    ),
    zk.ControlledShutdownResponse.kind: _shut_down,
    zk.MetadataHeartbeatRequest.kind: _heartbeat,
    zk.MetadataHeartbeatResponse.kind: _heartbeat_answer,
    zk.IsrChangeRequest.kind: _isr_change,
    zk.IsrChangeResponse.kind: _isr_change_answer,
}
"""The readers of messages, by kind."""
