"""Produce and Fetch, and the offsets that go with them."""

from dataclasses import replace
from typing import Any, Final

from clusters.node_port.storage import PartitionKey
from clusters.reference.codec.api import Api, Asked, Door, Labels, grouped, ms_of, ns_of
from clusters.reference.codec.batches import batches_in, encoded, produced
from clusters.reference.codec.entities import Unreadable, Values
from clusters.reference.codec.identifiers import id_of_uuid, uuid_of
from clusters.reference.nodes.messages.data import (
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
)

__all__ = ["DATA_APIS", "fetch_versions", "lowered_fetch"]

_CLIENTS: Final = (Door.BROKER,)
_IDENTIFIERS_FROM: Final = 13
"""Fetch: topics by id."""
_EPOCHS_FROM: Final = 15
"""Fetch: the follower's broker epoch (KIP-903)."""
_NO_EPOCH: Final = -1
_FETCH_BYTES_MAX: Final = 1 << 26
_PARTITION_BYTES_MAX: Final = 1 << 20


def fetch_versions(*, epochs: bool) -> tuple[int, int]:
    """Return the versions offered of Fetch, with followers' epochs or before these existed."""
    return 4, _EPOCHS_FROM if epochs else _EPOCHS_FROM - 1


def lowered_fetch(request: FetchRequest, highest: int) -> FetchRequest:
    """Return the request in a version that another broker offers: below 15 it has no epoch.

    Raises Unreadable if no such version has ids of topics.
    """
    if request.version <= highest:
        return request
    if highest < _IDENTIFIERS_FROM:
        raise Unreadable(f"Fetch is offered up to version {highest}, needed is {_IDENTIFIERS_FROM}")
    epoch = request.replica_epoch if highest >= _EPOCHS_FROM else _NO_EPOCH
    return replace(request, version=highest, replica_epoch=epoch)


def _produce_asked(entity: Any, correlation: int, labels: Labels) -> ProduceRequest:
    if entity.transactional_id is not None:
        raise Unreadable("a transactional produce: there are no transactions here")
    return ProduceRequest(
        correlation,
        acks=entity.acks,
        timeout_ns=ns_of(entity.timeout),
        partitions=tuple(
            ((labels.id_of(topic.name), one.index), produced(one.records))
            for topic in entity.topic_data
            for one in topic.partition_data
        ),
    )


def _produce_answer(response: ProduceResponse, asked: Asked) -> Values:
    results = ((key[0], (key[1], error, base)) for key, error, base in response.partitions)
    return {
        "responses": [
            {
                "name": asked.labels.name_of(topic_id),
                "partition_responses": [
                    {"index": index, "error_code": error, "base_offset": base}
                    for index, error, base in some
                ],
            }
            for topic_id, some in grouped(results).items()
        ]
    }


def _fetch_asked(entity: Any, correlation: int, labels: Labels) -> FetchRequest:
    version = int(entity.__version__)
    state = entity.replica_state if version >= _EPOCHS_FROM else entity
    return FetchRequest(
        correlation,
        replica_id=state.replica_id,
        replica_epoch=state.replica_epoch if version >= _EPOCHS_FROM else _NO_EPOCH,
        version=version,
        partitions=tuple(
            (
                (_topic_id(topic, labels, version=version), one.partition),
                one.fetch_offset,
                getattr(one, "current_leader_epoch", _NO_EPOCH),
                getattr(one, "last_fetched_epoch", _NO_EPOCH),
            )
            for topic in entity.topics
            for one in topic.partitions
        ),
        max_wait_ns=ns_of(entity.max_wait),
        min_bytes=entity.min_bytes,
        max_bytes=entity.max_bytes,
    )


def _topic_id(topic: Any, labels: Labels, *, version: int) -> int:
    if version >= _IDENTIFIERS_FROM:
        return id_of_uuid(topic.topic_id)
    return labels.id_of(topic.topic)


def _fetch_ask(request: FetchRequest, _: Labels) -> tuple[int, Values]:
    by_topic = grouped((key[0], (key[1], *rest)) for key, *rest in request.partitions)
    who: Values = {"replica_id": request.replica_id}
    if request.version >= _EPOCHS_FROM:
        who = {"replica_state": {**who, "replica_epoch": request.replica_epoch}}
    return request.version, {
        **who,
        "max_wait": ms_of(request.max_wait_ns),
        "min_bytes": request.min_bytes,
        "max_bytes": min(request.max_bytes, _FETCH_BYTES_MAX),
        "topics": [
            {
                "topic_id": uuid_of(topic_id),
                "partitions": [
                    {
                        "partition": index,
                        "fetch_offset": offset,
                        "current_leader_epoch": leader_epoch,
                        "last_fetched_epoch": last_epoch,
                        "log_start_offset": 0,
                        "partition_max_bytes": _PARTITION_BYTES_MAX,
                    }
                    for index, offset, leader_epoch, last_epoch in partitions
                ],
            }
            for topic_id, partitions in by_topic.items()
        ],
    }


def _fetch_answer(response: FetchResponse, asked: Asked) -> Values:
    by_id = asked.version >= _IDENTIFIERS_FROM
    by_topic = grouped((one.key[0], one) for one in response.partitions)
    return {
        "error_code": response.error,
        "responses": [
            {
                **(
                    {"topic_id": uuid_of(topic_id)}
                    if by_id
                    else {"topic": asked.labels.name_of(topic_id)}
                ),
                "partitions": [_fetched_values(one) for one in partitions],
            }
            for topic_id, partitions in by_topic.items()
        ],
    }


def _fetched_values(one: FetchedPartition) -> Values:
    return {
        "partition_index": one.key[1],
        "error_code": one.error,
        "high_watermark": one.high_watermark,
        "last_stable_offset": one.high_watermark,
        "log_start_offset": one.log_start_offset,
        "diverging_epoch": {
            "epoch": one.diverging_epoch,
            "end_offset": one.diverging_end_offset,
        },
        "aborted_transactions": None,
        "records": b"".join([encoded(batch) for batch in one.batches]),
    }


def _fetch_answered(entity: Any, request: FetchRequest, _node: int, _: Labels) -> FetchResponse:
    asked_in = {key: leader_epoch for key, _, leader_epoch, _ in request.partitions}
    return FetchResponse(
        request.correlation,
        error=entity.error_code.value,
        partitions=tuple(
            _fetched((id_of_uuid(topic.topic_id), one.partition_index), one, asked_in)
            for topic in entity.responses
            for one in topic.partitions
        ),
    )


def _fetched(key: PartitionKey, one: Any, asked_in: dict[PartitionKey, int]) -> FetchedPartition:
    """The leader's epoch is not on the wire: it is the one that it was asked in, or refused."""
    return FetchedPartition(
        key,
        error=one.error_code.value,
        leader_epoch=asked_in.get(key, _NO_EPOCH),
        high_watermark=one.high_watermark,
        log_start_offset=one.log_start_offset,
        batches=tuple(batches_in(one.records)),
        diverging_epoch=one.diverging_epoch.epoch,
        diverging_end_offset=one.diverging_epoch.end_offset,
    )


def _offsets_asked(entity: Any, correlation: int, labels: Labels) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        correlation,
        replica_id=entity.replica_id,
        partitions=tuple(
            (
                (labels.id_of(topic.name), one.partition_index),
                getattr(one, "current_leader_epoch", _NO_EPOCH),
                one.timestamp,
            )
            for topic in entity.topics
            for one in topic.partitions
        ),
    )


def _offsets_answer(response: ListOffsetsResponse, asked: Asked) -> Values:
    by_topic = grouped((key[0], (key[1], *rest)) for key, *rest in response.partitions)
    return {
        "topics": [
            {
                "name": asked.labels.name_of(topic_id),
                "partitions": [
                    {
                        "partition_index": index,
                        "error_code": error,
                        "timestamp": -1,
                        "offset": offset,
                        "leader_epoch": leader_epoch,
                    }
                    for index, error, offset, leader_epoch in partitions
                ],
            }
            for topic_id, partitions in by_topic.items()
        ]
    }


def _epochs_asked(entity: Any, correlation: int, labels: Labels) -> OffsetsForLeaderEpochRequest:
    return OffsetsForLeaderEpochRequest(
        correlation,
        replica_id=getattr(entity, "replica_id", -1),
        partitions=tuple(
            ((labels.id_of(topic.topic), one.partition), one.current_leader_epoch, one.leader_epoch)
            for topic in entity.topics
            for one in topic.partitions
        ),
    )


def _epochs_ask(request: OffsetsForLeaderEpochRequest, labels: Labels) -> tuple[int, Values]:
    by_topic = grouped((key[0], (key[1], *rest)) for key, *rest in request.partitions)
    return 4, {
        "replica_id": request.replica_id,
        "topics": [
            {
                "topic": labels.name_of(topic_id),
                "partitions": [
                    {
                        "partition": index,
                        "current_leader_epoch": current,
                        "leader_epoch": leader_epoch,
                    }
                    for index, current, leader_epoch in partitions
                ],
            }
            for topic_id, partitions in by_topic.items()
        ],
    }


def _epochs_answer(response: OffsetsForLeaderEpochResponse, asked: Asked) -> Values:
    by_topic = grouped((key[0], (key[1], *rest)) for key, *rest in response.partitions)
    return {
        "topics": [
            {
                "topic": asked.labels.name_of(topic_id),
                "partitions": [
                    {
                        "partition": index,
                        "error_code": error,
                        "leader_epoch": leader_epoch,
                        "end_offset": end_offset,
                    }
                    for index, error, leader_epoch, end_offset in partitions
                ],
            }
            for topic_id, partitions in by_topic.items()
        ]
    }


def _epochs_answered(
    entity: Any, request: OffsetsForLeaderEpochRequest, _node: int, labels: Labels
) -> OffsetsForLeaderEpochResponse:
    return OffsetsForLeaderEpochResponse(
        request.correlation,
        partitions=tuple(
            (
                (labels.id_of(topic.topic), one.partition),
                one.error_code.value,
                one.leader_epoch,
                one.end_offset,
            )
            for topic in entity.topics
            for one in topic.partitions
        ),
    )


def _producer_answer(response: InitProducerIdResponse, _: Asked) -> Values:
    return {
        "error_code": response.error,
        "producer_id": response.producer_id,
        "producer_epoch": response.producer_epoch,
    }


DATA_APIS: Final = (
    Api(
        name="Produce",
        key=0,
        kind=ProduceRequest.kind,
        versions=(3, 11),
        doors=_CLIENTS,
        asked=_produce_asked,
        answer=_produce_answer,
    ),
    Api(
        name="Fetch",
        key=1,
        kind=FetchRequest.kind,
        versions=fetch_versions(epochs=True),
        doors=_CLIENTS,
        asked=_fetch_asked,
        answer=_fetch_answer,
        ask=_fetch_ask,
        answered=_fetch_answered,
    ),
    Api(
        name="ListOffsets",
        key=2,
        kind=ListOffsetsRequest.kind,
        versions=(1, 7),
        doors=_CLIENTS,
        asked=_offsets_asked,
        answer=_offsets_answer,
    ),
    Api(
        name="InitProducerId",
        key=22,
        kind=InitProducerIdRequest.kind,
        versions=(0, 4),
        doors=_CLIENTS,
        asked=lambda entity, correlation, _: InitProducerIdRequest(
            correlation, entity.transactional_id
        ),
        answer=_producer_answer,
    ),
    Api(
        name="OffsetForLeaderEpoch",
        key=23,
        kind=OffsetsForLeaderEpochRequest.kind,
        versions=(2, 4),
        doors=_CLIENTS,
        asked=_epochs_asked,
        answer=_epochs_answer,
        ask=_epochs_ask,
        answered=_epochs_answered,
    ),
)
