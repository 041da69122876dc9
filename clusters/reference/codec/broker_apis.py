"""The requests of brokers to the active controller for themselves, but for the dialect's APIs."""

from dataclasses import replace
from typing import Any, Final

from clusters.reference.codec.api import Door, Labels
from clusters.reference.codec.entities import Unreadable
from clusters.reference.codec.layout import (
    ERROR,
    FLAG,
    NUMBERS,
    TOPIC_ID,
    Part,
    between_nodes,
    by_topic,
    field,
)
from clusters.reference.nodes.messages.control import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
)

__all__ = ["BROKER_APIS", "lowered"]

_LOWEST: Final = 2
_EPOCHS_FROM: Final = 3
"""AlterPartition: the epochs of ISR members (KIP-903)."""


def lowered(request: AlterPartitionRequest, highest: int) -> AlterPartitionRequest:
    """Return the request in a version that a controller offers: below 3 it has no members' epochs.

    Raises Unreadable if no such version exists. Source: KIP-903, "the brokers can use the
    controller-supported version".
    """
    if request.version <= highest:
        return request
    if highest < _LOWEST:
        raise Unreadable(f"AlterPartition is offered up to version {highest}, needed is {_LOWEST}")
    items = tuple(replace(item, isr_epochs=()) for item in request.items)
    return replace(request, version=highest, items=items)


def _read_members(one: Any, found: dict[str, Any], _: Labels) -> None:
    if hasattr(one, "new_isr"):
        found["isr"], found["isr_epochs"] = tuple(one.new_isr), ()
        return
    found["isr"] = tuple(member.broker_id for member in one.new_isr_with_epochs)
    found["isr_epochs"] = tuple(member.broker_epoch for member in one.new_isr_with_epochs)


def _write_members(found: dict[str, Any], values: dict[str, Any], _: Labels) -> None:
    values["new_isr"] = found["isr"]
    values["new_isr_with_epochs"] = [
        {"broker_id": member, "broker_epoch": epoch}
        for member, epoch in zip(found["isr"], found["isr_epochs"], strict=False)
    ]


def _partitions(*parts: Part) -> Part:
    shared = (
        field("partition", "partition_index"),
        field("leader_epoch"),
        field("partition_epoch"),
        field("recovering", "leader_recovery_state", FLAG),
    )
    topic = (field("topic_id", way=TOPIC_ID),)
    way = by_topic(topic, "partitions", *shared, *parts, into=AlterPartitionItem)
    return field("items", "topics", way)


_SENDER: Final = (field("broker_id"), field("broker_epoch"))

BROKER_APIS: Final = (
    between_nodes(
        "AlterPartition",
        56,
        (_LOWEST, _EPOCHS_FROM),
        (Door.CONTROLLER,),
        request=AlterPartitionRequest,
        asks=(*_SENDER, _partitions(Part(("isr", "isr_epochs"), _read_members, _write_members))),
        response=AlterPartitionResponse,
        answers=(
            field("error", "error_code", ERROR),
            _partitions(
                field("error", "error_code", ERROR),
                field("leader_id"),
                field("isr", way=NUMBERS),
            ),
        ),
    ),
    between_nodes(
        "AllocateProducerIds",
        67,
        (0, 0),
        (Door.CONTROLLER,),
        request=AllocateProducerIdsRequest,
        asks=_SENDER,
        response=AllocateProducerIdsResponse,
        answers=(
            field("error", "error_code", ERROR),
            field("start", "producer_id_start"),
            field("length", "producer_id_len"),
        ),
    ),
)
