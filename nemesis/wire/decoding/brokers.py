"""The messages between brokers and their controller, of every generation, as columns of `wire`.

- Of KRaft: registration, heartbeats, ISR changes.
- Of a controller that keeps its state in ZooKeeper: its messages to brokers, and their farewell.
  The partition epoch is the version of the partition's znode; before AlterPartition there is no
  other. A broker epoch of -2, or a version without one, is any.
- Of the draft "Controller heartbeats": MetadataHeartbeat and IsrChange. An incarnation id is in
  `broker_epoch`, those of members in `isr_epochs`: it is a broker's epoch under another name. A
  heartbeat's state is in `fenced` and `shutting_down`, its name in `detail`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from clusters.protocol.columns import Parts, failed, partition_items, topic_columns, uuid_text
from clusters.protocol.controlled_states import ControlledState
from nemesis.wire.error_codes import name_by_code
from nemesis.wire.rules import Direction

__all__ = ["EXTRACTORS"]

_STATES: Final = {int(state): state.name for state in ControlledState}
_FENCED: Final = frozenset((ControlledState.INITIAL, ControlledState.INACTIVE))


def _alter_partition_request(request: Any) -> Parts:
    columns = {"broker_id": request.broker_id, "broker_epoch": request.broker_epoch}
    items = [
        {
            **where,
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": partition.partition_epoch,
            **_asked_isr(partition),
            **_recovering(partition),
        }
        for where, partition in partition_items(request.topics)
    ]
    return columns, items


def _asked_isr(partition: Any) -> dict[str, Any]:
    if hasattr(partition, "new_isr"):
        return {"isr": list(partition.new_isr)}
    members = partition.new_isr_with_epochs  # KIP-903, since version 3
    return {
        "isr": [member.broker_id for member in members],
        "isr_epochs": [member.broker_epoch for member in members],
    }


def _alter_partition_response(response: Any) -> Parts:
    items = [
        {
            **where,
            **failed(partition),
            "leader_id": partition.leader_id,
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": partition.partition_epoch,
            "isr": list(partition.isr),
            **_recovering(partition),
        }
        for where, partition in partition_items(response.topics)
    ]
    return failed(response), items


def _recovering(partition: Any) -> dict[str, Any]:
    return {"detail": "recovering"} if getattr(partition, "leader_recovery_state", 0) else {}


def _registration_request(request: Any) -> Parts:
    endpoints = ", ".join(f"{one.name}://{one.host}:{one.port}" for one in request.listeners)
    columns = {
        "broker_id": request.broker_id,
        "incarnation_id": uuid_text(request.incarnation_id),
        "detail": f"{endpoints}; {_features(request.features)}",
    }
    previous = getattr(request, "previous_broker_epoch", -1)
    if previous >= 0:
        columns["detail"] += f"; previous broker epoch {previous}"
    return columns, ()


def _registration_response(response: Any) -> Parts:
    return {**failed(response), "broker_epoch": response.broker_epoch}, ()


def _heartbeat_request(request: Any) -> Parts:
    columns = {
        "broker_id": request.broker_id,
        "broker_epoch": request.broker_epoch,
        "fetch_offset": request.current_metadata_offset,
        "fenced": request.want_fence,
        "shutting_down": request.want_shut_down,
    }
    offline = [str(uuid_text(one)) for one in getattr(request, "offline_log_dirs", ())]
    if offline:
        columns["detail"] = f"offline directories: {', '.join(offline)}"
    return columns, ()


def _heartbeat_response(response: Any) -> Parts:
    return {
        **failed(response),
        "fenced": response.is_fenced,
        "shutting_down": response.should_shut_down,
        "detail": "caught up" if response.is_caught_up else "not caught up",
    }, ()


def _controller_registration_request(request: Any) -> Parts:
    endpoints = ", ".join(f"{one.name}://{one.host}:{one.port}" for one in request.listeners)
    return {
        "broker_id": request.controller_id,
        "incarnation_id": uuid_text(request.incarnation_id),
        "detail": f"{endpoints}; {_features(request.features)}",
    }, ()


def _assign_request(request: Any) -> Parts:
    columns = {"broker_id": request.broker_id, "broker_epoch": request.broker_epoch}
    items = [
        {**where, "detail": f"directory {uuid_text(directory.id_)}"}
        for directory in request.directories
        for where, _ in partition_items(directory.topics)
    ]
    return columns, items


def _assign_response(response: Any) -> Parts:
    items = [
        {**where, **failed(partition), "detail": f"directory {uuid_text(directory.id_)}"}
        for directory in response.directories
        for where, partition in partition_items(directory.topics)
    ]
    return failed(response), items


def _about_a_broker(request: Any) -> Parts:
    columns = {"broker_id": request.broker_id}
    if hasattr(request, "broker_epoch"):
        columns["broker_epoch"] = request.broker_epoch
    return columns, ()


def _producer_ids_response(response: Any) -> Parts:
    first, count = response.producer_id_start, response.producer_id_len
    return {**failed(response), "producer_id": first, "detail": f"{count} producer ids"}, ()


def _failed(response: Any) -> Parts:
    return failed(response), ()


def _features(features: Any) -> str:
    return ", ".join(
        f"{one.name} {one.min_supported_version}-{one.max_supported_version}" for one in features
    )


def _leader_and_isr_request(request: Any) -> Parts:
    items = [
        where | _partition_state(partition) | {"detail": _replicas(partition)}
        for where, partition in _states(request)
    ]
    return _epochs(request), items


def _update_metadata_request(request: Any) -> Parts:
    brokers = [int(one.id) for one in request.live_brokers]
    columns = _epochs(request) | {"detail": f"live brokers {brokers}"}
    return columns, [where | _partition_state(partition) for where, partition in _states(request)]


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


def _shutdown_request(request: Any) -> Parts:
    columns = {"broker_id": request.broker_id}
    return columns | {"broker_epoch": getattr(request, "broker_epoch", -1)}, ()


def _shutdown_response(response: Any) -> Parts:
    return failed(response), [where for where, _ in _flat(response.remaining_partitions)]


def _metadata_heartbeat_request(request: Any) -> Parts:
    return {**_sender(request), **_state(request.target_state)}, ()


def _metadata_heartbeat_response(response: Any) -> Parts:
    error = _failed_with(response.error_code, response.error_string)
    return {**_state(response.current_state), **error}, ()


def _isr_change_request(request: Any) -> Parts:
    items = [
        {
            **where,
            "leader_epoch": partition.leader_epoch,
            "isr": list(partition.isr_nodes),
            **_incarnations(partition),
        }
        for where, partition in partition_items(request.topics)
    ]
    return _sender(request), items


def _isr_change_response(response: Any) -> Parts:
    """The partitions stand in the request alone, in the same order."""
    items = [_failed_with(one.error_code, one.error_message) for one in response.results]
    return _failed_with(response.top_level_error_code, response.top_level_error_message), items


def _sender(request: Any) -> dict[str, Any]:
    return {"broker_id": request.broker_id, "broker_epoch": request.incarnation_id}


def _state(state: int) -> dict[str, Any]:
    return {
        "fenced": state in _FENCED,
        "shutting_down": state == ControlledState.STOPPING,
        "detail": _STATES.get(state, f"state {state}"),
    }


def _failed_with(code: int, words: str | None) -> dict[str, Any]:
    found = {"error": name_by_code(code)}
    return found if words is None else found | {"detail": words}


def _incarnations(partition: Any) -> dict[str, Any]:
    found = getattr(partition, "incarnations", None)
    return {} if found is None else {"isr_epochs": list(found)}


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


def _partition_state(partition: Any) -> dict[str, Any]:
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
    ("AlterPartition", Direction.REQUEST): _alter_partition_request,
    ("AlterPartition", Direction.RESPONSE): _alter_partition_response,
    ("BrokerRegistration", Direction.REQUEST): _registration_request,
    ("BrokerRegistration", Direction.RESPONSE): _registration_response,
    ("BrokerHeartbeat", Direction.REQUEST): _heartbeat_request,
    ("BrokerHeartbeat", Direction.RESPONSE): _heartbeat_response,
    ("ControllerRegistration", Direction.REQUEST): _controller_registration_request,
    ("ControllerRegistration", Direction.RESPONSE): _failed,
    ("AssignReplicasToDirs", Direction.REQUEST): _assign_request,
    ("AssignReplicasToDirs", Direction.RESPONSE): _assign_response,
    ("UnregisterBroker", Direction.REQUEST): _about_a_broker,
    ("UnregisterBroker", Direction.RESPONSE): _failed,
    ("AllocateProducerIds", Direction.REQUEST): _about_a_broker,
    ("AllocateProducerIds", Direction.RESPONSE): _producer_ids_response,
    ("LeaderAndIsr", Direction.REQUEST): _leader_and_isr_request,
    ("LeaderAndIsr", Direction.RESPONSE): _partition_errors,
    ("StopReplica", Direction.REQUEST): _stop_replica_request,
    ("StopReplica", Direction.RESPONSE): _partition_errors,
    ("UpdateMetadata", Direction.REQUEST): _update_metadata_request,
    ("UpdateMetadata", Direction.RESPONSE): _failed,
    ("ControlledShutdown", Direction.REQUEST): _shutdown_request,
    ("ControlledShutdown", Direction.RESPONSE): _shutdown_response,
    ("MetadataHeartbeat", Direction.REQUEST): _metadata_heartbeat_request,
    ("MetadataHeartbeat", Direction.RESPONSE): _metadata_heartbeat_response,
    ("IsrChange", Direction.REQUEST): _isr_change_request,
    ("IsrChange", Direction.RESPONSE): _isr_change_response,
}
