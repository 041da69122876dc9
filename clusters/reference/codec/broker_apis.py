"""The requests of brokers to the active controller for themselves, but for the dialect's APIs."""

from dataclasses import replace
from typing import Any, Final

from clusters.reference.codec.api import Api, Asked, Door, Labels, grouped
from clusters.reference.codec.entities import Unreadable, Values
from clusters.reference.codec.identifiers import id_of_uuid, uuid_of
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


def _alter_partition_asked(entity: Any, correlation: int, _: Labels) -> AlterPartitionRequest:
    version = int(entity.__version__)
    return AlterPartitionRequest(
        correlation,
        broker_id=entity.broker_id,
        broker_epoch=entity.broker_epoch,
        version=version,
        items=tuple(
            _proposal(id_of_uuid(topic.topic_id), one, version=version)
            for topic in entity.topics
            for one in topic.partitions
        ),
    )


def _proposal(topic_id: int, one: Any, *, version: int) -> AlterPartitionItem:
    if version >= _EPOCHS_FROM:
        isr = tuple(member.broker_id for member in one.new_isr_with_epochs)
        epochs = tuple(member.broker_epoch for member in one.new_isr_with_epochs)
    else:
        isr, epochs = tuple(one.new_isr), ()
    return AlterPartitionItem(
        (topic_id, one.partition_index),
        one.leader_epoch,
        one.partition_epoch,
        isr,
        epochs,
        recovering=bool(one.leader_recovery_state),
    )


def _alter_partition_ask(request: AlterPartitionRequest, _: Labels) -> tuple[int, Values]:
    return request.version, {
        "broker_id": request.broker_id,
        "broker_epoch": request.broker_epoch,
        "topics": [
            {
                "topic_id": uuid_of(topic_id),
                "partitions": [_proposal_values(one, version=request.version) for one in items],
            }
            for topic_id, items in grouped((one.key[0], one) for one in request.items).items()
        ],
    }


def _proposal_values(one: AlterPartitionItem, *, version: int) -> Values:
    shared = {
        "partition_index": one.key[1],
        "leader_epoch": one.leader_epoch,
        "partition_epoch": one.partition_epoch,
        "leader_recovery_state": int(one.recovering),
    }
    if version < _EPOCHS_FROM:
        return shared | {"new_isr": one.isr}
    members = zip(one.isr, one.isr_epochs, strict=True)
    return shared | {
        "new_isr_with_epochs": [{"broker_id": who, "broker_epoch": epoch} for who, epoch in members]
    }


def _alter_partition_answer(response: AlterPartitionResponse, _: Asked) -> Values:
    return {
        "error_code": response.error,
        "topics": [
            {
                "topic_id": uuid_of(topic_id),
                "partitions": [
                    {
                        "partition_index": one.key[1],
                        "error_code": one.error,
                        "leader_id": one.leader_id,
                        "leader_epoch": one.leader_epoch,
                        "isr": one.isr,
                        "partition_epoch": one.partition_epoch,
                        "leader_recovery_state": int(one.recovering),
                    }
                    for one in items
                ],
            }
            for topic_id, items in grouped((one.key[0], one) for one in response.items).items()
        ],
    }


def _alter_partition_answered(
    entity: Any, request: AlterPartitionRequest, _node: int, _: Labels
) -> AlterPartitionResponse:
    return AlterPartitionResponse(
        request.correlation,
        error=entity.error_code.value,
        items=tuple(
            AlterPartitionItem(
                (id_of_uuid(topic.topic_id), one.partition_index),
                one.leader_epoch,
                one.partition_epoch,
                tuple(one.isr),
                (),
                one.error_code.value,
                one.leader_id,
                recovering=bool(one.leader_recovery_state),
            )
            for topic in entity.topics
            for one in topic.partitions
        ),
    )


def _ids_answered(
    entity: Any, request: AllocateProducerIdsRequest, _node: int, _: Labels
) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(
        request.correlation,
        error=entity.error_code.value,
        start=entity.producer_id_start,
        length=entity.producer_id_len,
    )


BROKER_APIS: Final = (
    Api(
        name="AlterPartition",
        key=56,
        kind=AlterPartitionRequest.kind,
        versions=(_LOWEST, _EPOCHS_FROM),
        doors=(Door.CONTROLLER,),
        asked=_alter_partition_asked,
        answer=_alter_partition_answer,
        ask=_alter_partition_ask,
        answered=_alter_partition_answered,
    ),
    Api(
        name="AllocateProducerIds",
        key=67,
        kind=AllocateProducerIdsRequest.kind,
        versions=(0, 0),
        doors=(Door.CONTROLLER,),
        asked=lambda entity, correlation, _: AllocateProducerIdsRequest(
            correlation, entity.broker_id, entity.broker_epoch
        ),
        answer=lambda response, _: {
            "error_code": response.error,
            "producer_id_start": response.start,
            "producer_id_len": response.length,
        },
        ask=lambda request, _: (
            0,
            {"broker_id": request.broker_id, "broker_epoch": request.broker_epoch},
        ),
        answered=_ids_answered,
    ),
)
