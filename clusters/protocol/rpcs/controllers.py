"""The RPCs of a controller that keeps its state in ZooKeeper to brokers.

The partition epoch is the version of the partition's znode. Old versions have no topics around
their partitions: each partition names its own.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from fencepost.clusters.protocol.columns import partition_items, topic_columns
from fencepost.clusters.protocol.rpc import (
    ByTopic,
    Converter,
    Entry,
    Partitions,
    RpcField,
    RpcTable,
    Told,
    ValueKind,
    field,
    rows,
    structures,
    taped,
)

_INCREMENTAL: Final = 1
_UNKNOWN: Final = 0
"""Of an UpdateMetadata that is not full, as Kafka's controllers on ZooKeeper send it."""
_FULL: Final = 2

_CONTROLLER: Final = (field("controller_id"), taped("controller_epoch"), taped("broker_epoch"))
_ERROR: Final = taped("error", "error_code", ValueKind.ERROR)
_INDEX: Final = field("partition", "partition_index")
_TOPIC_ID: Final = field("topic_id", way=ValueKind.TOPIC_ID)
_TOPIC: Final = field("topic", "topic_name")


def _is_full(otherwise: int) -> RpcField:
    way = Converter(lambda kind: kind == _FULL, lambda full: _FULL if full else otherwise)
    return field("is_full", "type", way)


def _named(partitions: Iterable[Any]) -> Partitions:
    for one in partitions:
        yield topic_columns(one) | {"partition": one.partition_index}, one


def _flat(at: str) -> Callable[[Any], Partitions]:
    return lambda entity: _named(getattr(entity, at))


def _stopped(request: Any) -> Partitions:
    """Yield the partitions of versions that tell of all alike whether they are deleted."""
    if hasattr(request, "topics"):
        found = partition_items(request.topics, field="partition_indexes")
    else:
        found = _named(request.ungrouped_partitions)
    for where, one in found:
        yield where | {"delete": request.delete_partitions}, one


def _states(*entries: Entry) -> RpcField:
    """Return the field of partitions' states, of what all of them have and of these."""
    shared = (
        _INDEX,
        field("controller_epoch"),
        taped("leader", column="leader_id"),
        taped("leader_epoch"),
        taped("isr", way=ValueKind.NUMBERS),
        field("replicas", way=ValueKind.NUMBERS),
    )
    rows = ByTopic(
        (_TOPIC_ID, _TOPIC),
        "partition_states",
        (*shared, *entries),
        older=_flat("ungrouped_partition_states"),
    )
    return field("partitions", "topic_states", rows)


def _replicas(partition: Any) -> Mapping[str, Any]:
    words = [f"replicas {list(map(int, partition.replicas))}"]
    if getattr(partition, "is_new", False):
        words.append("new")
    if getattr(partition, "leader_recovery_state", 0):
        words.append("recovering")
    return {"detail": ", ".join(words)}


def _live(request: Any) -> Mapping[str, Any]:
    return {"detail": f"live brokers {[int(one.id) for one in request.live_brokers]}"}


LEADER_AND_ISR: Final = RpcTable(
    name="LeaderAndIsr",
    asks=(
        *_CONTROLLER,
        _is_full(_INCREMENTAL),
        _states(
            taped("partition_epoch"),
            field("adding", "adding_replicas", ValueKind.NUMBERS),
            field("removing", "removing_replicas", ValueKind.NUMBERS),
            field("is_new"),
            field("recovering", "leader_recovery_state", ValueKind.FLAG),
            Told(_replicas),
        ),
    ),
    answers=(
        _ERROR,
        rows(
            "partitions",
            "topics",
            (_TOPIC_ID,),
            "partition_errors",
            _INDEX,
            _ERROR,
            older=_flat("partition_errors"),
        ),
    ),
)
STOP_REPLICA: Final = RpcTable(
    name="StopReplica",
    asks=(
        *_CONTROLLER,
        rows(
            "partitions",
            "topic_states",
            (_TOPIC,),
            "partition_states",
            _INDEX,
            taped("leader_epoch"),
            taped("delete", "delete_partition"),
            older=_stopped,
        ),
    ),
    answers=(
        _ERROR,
        structures(
            "partitions",
            "partition_errors",
            taped("topic", "topic_name"),
            taped("partition", "partition_index"),
            _ERROR,
        ),
    ),
)
UPDATE_METADATA: Final = RpcTable(
    name="UpdateMetadata",
    asks=(
        *_CONTROLLER,
        _is_full(_UNKNOWN),
        _states(
            taped("partition_epoch", "zk_version"),
            field("offline", "offline_replicas", ValueKind.NUMBERS),
        ),
        structures(
            "brokers",
            "live_brokers",
            field("broker_id", "id"),
            structures(
                "listeners",
                "endpoints",
                field("listener"),
                field("host"),
                field("port"),
                field("security_protocol"),
            ),
            field("rack"),
        ),
        Told(_live),
    ),
    answers=(_ERROR,),
)
