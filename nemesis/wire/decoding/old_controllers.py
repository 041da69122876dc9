"""The messages of a controller that keeps its state in ZooKeeper, to brokers; and their farewell.

The partition epoch is the version of the partition's znode; before AlterPartition there is no
other. A broker epoch of -2, or a version without one, is any.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from nemesis.wire.decoding.columns import Parts, failed, partition_items, topic_columns
from nemesis.wire.rules import Direction

__all__ = ["EXTRACTORS"]


def _leader_and_isr_request(request: Any) -> Parts:
    items = [
        where | _state(partition) | {"detail": _replicas(partition)}
        for where, partition in _states(request)
    ]
    return _epochs(request), items


def _update_metadata_request(request: Any) -> Parts:
    brokers = [int(one.id) for one in request.live_brokers]
    columns = _epochs(request) | {"detail": f"live brokers {brokers}"}
    return columns, [where | _state(partition) for where, partition in _states(request)]


def _stop_replica_request(request: Any) -> Parts:
    every = getattr(request, "delete_partitions", False)
    if hasattr(request, "topic_states"):
        items = [
            where | {"leader_epoch": one.leader_epoch, "delete": one.delete_partition}
            for where, one in partition_items(request.topic_states, field="partition_states")
        ]
    elif hasattr(request, "topics"):
        found = partition_items(request.topics, field="partition_indexes")
        items = [where | {"delete": every} for where, _ in found]
    else:
        found = _flat(request.ungrouped_partitions)
        items = [where | {"delete": every} for where, _ in found]
    return _epochs(request), items


def _partition_errors(response: Any) -> Parts:
    if hasattr(response, "topics"):
        found = partition_items(response.topics, field="partition_errors")
    else:
        found = _flat(response.partition_errors)
    return failed(response), [where | failed(one) for where, one in found]


def _failed(response: Any) -> Parts:
    return failed(response), ()


def _shutdown_request(request: Any) -> Parts:
    columns = {"broker_id": request.broker_id}
    return columns | {"broker_epoch": getattr(request, "broker_epoch", -1)}, ()


def _shutdown_response(response: Any) -> Parts:
    return failed(response), [where for where, _ in _flat(response.remaining_partitions)]


def _epochs(request: Any) -> dict[str, Any]:
    columns = {"controller_epoch": request.controller_epoch}
    if hasattr(request, "broker_epoch"):
        columns["broker_epoch"] = request.broker_epoch
    return columns


def _states(request: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    if hasattr(request, "topic_states"):
        return partition_items(request.topic_states, field="partition_states")
    return _flat(request.ungrouped_partition_states)


def _flat(partitions: Iterable[Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield the partitions of a list that names the topic with each."""
    for one in partitions:
        yield topic_columns(one) | {"partition": one.partition_index}, one


def _state(partition: Any) -> dict[str, Any]:
    epoch = getattr(partition, "partition_epoch", None)
    return {
        "leader_id": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.zk_version if epoch is None else epoch,
        "isr": list(partition.isr),
    }


def _replicas(partition: Any) -> str:
    words = [f"replicas {list(map(int, partition.replicas))}"]
    if getattr(partition, "is_new", False):
        words.append("new")
    if getattr(partition, "leader_recovery_state", 0):
        words.append("recovering")
    return ", ".join(words)


EXTRACTORS: Final[Mapping[tuple[str, Direction], Callable[[Any], Parts]]] = {
    ("LeaderAndIsr", Direction.REQUEST): _leader_and_isr_request,
    ("LeaderAndIsr", Direction.RESPONSE): _partition_errors,
    ("StopReplica", Direction.REQUEST): _stop_replica_request,
    ("StopReplica", Direction.RESPONSE): _partition_errors,
    ("UpdateMetadata", Direction.REQUEST): _update_metadata_request,
    ("UpdateMetadata", Direction.RESPONSE): _failed,
    ("ControlledShutdown", Direction.REQUEST): _shutdown_request,
    ("ControlledShutdown", Direction.RESPONSE): _shutdown_response,
}
