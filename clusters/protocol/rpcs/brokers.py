"""The RPCs of brokers to their controller, of every generation.

- AllocateProducerIds and AlterPartition are Kafka's. With KIP-903, since version 3, the members of
  an ISR have their broker epochs.
- ControlledShutdown is Kafka's of controllers that keep their state in ZooKeeper. A broker epoch
  of -2, or a version without one, is any.
- MetadataHeartbeat and IsrChange are of the draft "Controller heartbeats". An incarnation id is in
  the column `broker_epoch`, those of members in `isr_epochs`: it is a broker's epoch under another
  name. A heartbeat's state is in `fenced` and `shutting_down`, its name in `detail`.
"""

from collections.abc import Mapping
from typing import Any, Final

from fencepost.clusters.protocol.controlled_states import ControlledState
from fencepost.clusters.protocol.rpc import (
    ByVersion,
    Entry,
    RpcField,
    RpcTable,
    Told,
    ValueKind,
    field,
    rows,
    structures,
    taped,
)

_STATES: Final = {int(state): state.name for state in ControlledState}
_FENCED: Final = frozenset((ControlledState.INITIAL, ControlledState.INACTIVE))
_BROKER: Final = (taped("broker_id"), taped("broker_epoch"))
_ERROR: Final = taped("error", "error_code", ValueKind.ERROR)


def _read_members(partition: Any, found: dict[str, Any]) -> None:
    if hasattr(partition, "new_isr"):
        found["isr"] = tuple(partition.new_isr)
        return
    members = partition.new_isr_with_epochs
    found["isr"] = tuple(member.broker_id for member in members)
    found["isr_epochs"] = tuple(member.broker_epoch for member in members)


def _write_members(found: Mapping[str, Any], values: dict[str, Any]) -> None:
    values["new_isr"] = found["isr"]
    values["new_isr_with_epochs"] = [
        {"broker_id": member, "broker_epoch": epoch}
        for member, epoch in zip(found["isr"], found["isr_epochs"], strict=False)
    ]


def _recovering(state: int) -> Mapping[str, Any]:
    return {"detail": "recovering"} if state else {}


def _partitions(*entries: Entry) -> RpcField:
    shared = (
        field("partition", "partition_index"),
        taped("leader_epoch"),
        taped("partition_epoch"),
        taped("recovering", "leader_recovery_state", ValueKind.FLAG, column=_recovering),
    )
    topic = (field("topic_id", way=ValueKind.TOPIC_ID),)
    return rows("items", "topics", topic, "partitions", *shared, *entries)


ALTER_PARTITION: Final = RpcTable(
    name="AlterPartition",
    asks=(*_BROKER, _partitions(ByVersion(("isr", "isr_epochs"), _read_members, _write_members))),
    answers=(_ERROR, _partitions(_ERROR, taped("leader_id"), taped("isr", way=ValueKind.NUMBERS))),
)
ALLOCATE_PRODUCER_IDS: Final = RpcTable(
    name="AllocateProducerIds",
    asks=_BROKER,
    answers=(
        _ERROR,
        taped("start", "producer_id_start", column="producer_id"),
        taped(
            "length",
            "producer_id_len",
            column=lambda count: {"detail": f"{count} producer ids"},
        ),
    ),
)
CONTROLLED_SHUTDOWN: Final = RpcTable(
    name="ControlledShutdown",
    asks=(
        taped("broker_id"),
        field("broker_epoch"),
        Told(lambda request: {"broker_epoch": getattr(request, "broker_epoch", -1)}),
    ),
    answers=(
        _ERROR,
        structures(
            "remaining",
            "remaining_partitions",
            taped("topic", "topic_name"),
            taped("partition", "partition_index"),
        ),
    ),
)


def _state(state: int) -> Mapping[str, Any]:
    return {
        "fenced": state in _FENCED,
        "shutting_down": state == ControlledState.STOPPING,
        "detail": _STATES.get(state, f"state {state}"),
    }


_SENDER: Final = (taped("broker_id"), taped("incarnation_id", column="broker_epoch"))
METADATA_HEARTBEAT: Final = RpcTable(
    name="MetadataHeartbeat",
    asks=(*_SENDER, taped("target_state", column=_state)),
    answers=(
        taped("current_state", column=_state),
        taped("error", "error_code", ValueKind.OWN_ERROR),
        taped("error_message", "error_string", column="detail"),
    ),
)
ISR_CHANGE: Final = RpcTable(
    name="IsrChange",
    asks=(
        *_SENDER,
        structures(
            "topics",
            "topics",
            taped("topic", "topic_name"),
            structures(
                "changes",
                "partitions",
                taped("partition", "partition_index"),
                taped("leader_epoch"),
                taped("isr", "isr_nodes", ValueKind.NUMBERS),
                taped("incarnations", way=ValueKind.NUMBERS, missing=(), column="isr_epochs"),
            ),
        ),
    ),
    answers=(
        taped("error", "top_level_error_code", ValueKind.OWN_ERROR),
        taped("error_message", "top_level_error_message", column="detail"),
        # The partitions stand in the request alone, in the same order.
        structures(
            "results",
            "results",
            taped("error", "error_code", ValueKind.OWN_ERROR),
            taped("words", "error_message", column="detail"),
        ),
    ),
)
