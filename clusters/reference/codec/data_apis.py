"""Produce and Fetch, and the offsets that go with them."""

from dataclasses import replace
from typing import Any, Final

from fencepost.clusters.protocol.entities import Unreadable, Values
from fencepost.clusters.protocol.rpc import RpcTable
from fencepost.clusters.protocol.rpcs.operators import INIT_PRODUCER_ID
from fencepost.clusters.reference.codec.api import Asked, ListenerType, RequestTopics, Traffic
from fencepost.clusters.reference.codec.batches import batches_in, encoded, produced
from fencepost.clusters.reference.codec.identifiers import id_of_uuid
from fencepost.clusters.reference.codec.layout import (
    DURATION,
    ERROR,
    TOPIC_ID,
    TOPIC_NAME,
    Conversion,
    Layout,
    Part,
    always,
    by_topic,
    field,
    inside,
    read_only,
    write_only,
)
from fencepost.clusters.reference.codec.tables import between_nodes
from fencepost.clusters.reference.nodes.messages.data import (
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

_CLIENTS: Final = (ListenerType.BROKER,)
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


def _lowered(request: FetchRequest, highest: int) -> FetchRequest:
    """Return the request in a version that another broker offers: below 15 it has no epoch.

    Raises Unreadable if no such version has ids of topics.
    """
    if request.version <= highest:
        return request
    if highest < _IDENTIFIERS_FROM:
        raise Unreadable(f"Fetch is offered up to version {highest}, needed is {_IDENTIFIERS_FROM}")
    epoch = request.replica_epoch if highest >= _EPOCHS_FROM else _NO_EPOCH
    return replace(request, version=highest, replica_epoch=epoch)


def _no_transactions(entity: Any, _found: dict[str, Any], _: RequestTopics) -> None:
    if entity.transactional_id is not None:
        raise Unreadable("a transactional produce: there are no transactions here")


def _read_topic(topic: Any, found: dict[str, Any], labels: RequestTopics) -> None:
    by_id = hasattr(topic, "topic_id")
    found["topic_id"] = id_of_uuid(topic.topic_id) if by_id else labels.id_of(topic.topic)


def _read_replica(entity: Any, found: dict[str, Any], _: RequestTopics) -> None:
    state = getattr(entity, "replica_state", entity)
    found["replica_id"] = state.replica_id
    found["replica_epoch"] = getattr(state, "replica_epoch", _NO_EPOCH)


def _write_replica(found: dict[str, Any], values: dict[str, Any], _: RequestTopics) -> None:
    who = {"replica_id": found["replica_id"], "replica_epoch": found["replica_epoch"]}
    values |= {"replica_id": found["replica_id"], "replica_state": who}


_ERROR: Final = field("error", "error_code", ERROR)
_CURRENT_EPOCH: Final = field("current", "current_leader_epoch", missing=_NO_EPOCH)
_NAMED: Final = (field("topic_id", "name", TOPIC_NAME),)
_NAMED_TOPIC: Final = (field("topic_id", "topic", TOPIC_NAME),)
_BY_ID: Final = (field("topic_id", way=TOPIC_ID),)
_BY_EITHER: Final = (Part(("topic_id",), _read_topic, _BY_ID[0].write),)
"""Asked by id or, below version 13, by name; nodes ask by id alone."""
_INDEX: Final = field("partition", "partition_index")
_NUMBER: Final = field("partition")
_AT_MOST: Final = Conversion(lambda value, _: value, lambda value, _: min(value, _FETCH_BYTES_MAX))
_PRODUCED: Final = Conversion(lambda records, _: produced(records), lambda batch, _: encoded(batch))
_BATCHES: Final = Conversion(
    lambda records, _: tuple(batches_in(records)),
    lambda batches, _: b"".join([encoded(batch) for batch in batches]),
)


def _fetched(topic: tuple[Part, ...]) -> Part:
    way = by_topic(
        topic,
        "partitions",
        _INDEX,
        _ERROR,
        field("high_watermark"),
        write_only(lambda found: {"last_stable_offset": found["high_watermark"]}),
        field("log_start_offset"),
        inside(
            "diverging_epoch",
            field("diverging_epoch", "epoch"),
            field("diverging_end_offset", "end_offset"),
        ),
        field("batches", "records", _BATCHES),
        read_only("leader_epoch", lambda _entity, _found: _NO_EPOCH),
        into=FetchedPartition,
    )
    return field("partitions", "responses", way)


_FETCH: Final = between_nodes(
    RpcTable(
        name="Fetch",
        asks=(
            Part(("replica_id", "replica_epoch"), _read_replica, _write_replica),
            field("max_wait_ns", "max_wait", DURATION),
            field("min_bytes"),
            field("max_bytes", way=_AT_MOST),
            field(
                "partitions",
                "topics",
                by_topic(
                    _BY_EITHER,
                    "partitions",
                    _NUMBER,
                    field("fetch_offset"),
                    _CURRENT_EPOCH,
                    field("last_fetched_epoch", missing=_NO_EPOCH),
                    always(log_start_offset=0, partition_max_bytes=_PARTITION_BYTES_MAX),
                ),
            ),
        ),
        answers=(_ERROR, _fetched(_BY_ID)),
    ),
    fetch_versions(epochs=True),
    _CLIENTS,
    request=FetchRequest,
    response=FetchResponse,
    traffic=Traffic.REPLICATION,
    lowered=_lowered,
)
_FETCHED_BY_NAME: Final = Layout(_ERROR, _fetched(_NAMED_TOPIC), into=FetchResponse)


def _fetch_answer(response: FetchResponse, asked: Asked) -> Values:
    if asked.version >= _IDENTIFIERS_FROM:
        return _FETCH.answer(response, asked)
    return _FETCHED_BY_NAME.write(response, asked.labels)


def _fetch_answered(
    entity: Any, request: FetchRequest, node: int, labels: RequestTopics
) -> FetchResponse:
    """The leader's epoch is not on the wire: it is the one that it was asked in, or refused."""
    assert _FETCH.answered is not None
    response: FetchResponse = _FETCH.answered(entity, request, node, labels)
    asked_in = {key: leader_epoch for key, _, leader_epoch, _ in request.partitions}
    for one in response.partitions:
        one.leader_epoch = asked_in.get(one.key, _NO_EPOCH)
    return response


DATA_APIS: Final = (
    between_nodes(
        RpcTable(
            name="Produce",
            asks=(
                Part((), _no_transactions, lambda _found, _values, _: None),
                field("acks"),
                field("timeout_ns", "timeout", DURATION),
                field(
                    "partitions",
                    "topic_data",
                    by_topic(
                        _NAMED,
                        "partition_data",
                        field("partition", "index"),
                        field("batch", "records", _PRODUCED),
                    ),
                ),
            ),
            answers=(
                field(
                    "partitions",
                    "responses",
                    by_topic(
                        _NAMED,
                        "partition_responses",
                        field("partition", "index"),
                        _ERROR,
                        field("base_offset"),
                    ),
                ),
            ),
        ),
        (3, 11),
        _CLIENTS,
        request=ProduceRequest,
        response=ProduceResponse,
    ),
    replace(_FETCH, answer=_fetch_answer, answered=_fetch_answered),
    between_nodes(
        RpcTable(
            name="ListOffsets",
            asks=(
                field("replica_id"),
                field(
                    "partitions",
                    "topics",
                    by_topic(_NAMED, "partitions", _INDEX, _CURRENT_EPOCH, field("timestamp")),
                ),
            ),
            answers=(
                field(
                    "partitions",
                    "topics",
                    by_topic(
                        _NAMED,
                        "partitions",
                        _INDEX,
                        _ERROR,
                        field("offset"),
                        field("leader_epoch"),
                        always(timestamp=-1),
                    ),
                ),
            ),
        ),
        (1, 7),
        _CLIENTS,
        request=ListOffsetsRequest,
        response=ListOffsetsResponse,
    ),
    between_nodes(
        INIT_PRODUCER_ID,
        (0, 4),
        _CLIENTS,
        request=InitProducerIdRequest,
        response=InitProducerIdResponse,
    ),
    between_nodes(
        RpcTable(
            name="OffsetForLeaderEpoch",
            asks=(
                field("replica_id", missing=-1),
                field(
                    "partitions",
                    "topics",
                    by_topic(
                        _NAMED_TOPIC, "partitions", _NUMBER, _CURRENT_EPOCH, field("leader_epoch")
                    ),
                ),
            ),
            answers=(
                field(
                    "partitions",
                    "topics",
                    by_topic(
                        _NAMED_TOPIC,
                        "partitions",
                        _NUMBER,
                        _ERROR,
                        field("leader_epoch"),
                        field("end_offset"),
                    ),
                ),
            ),
        ),
        (2, 4),
        _CLIENTS,
        request=OffsetsForLeaderEpochRequest,
        traffic=Traffic.REPLICATION,
        response=OffsetsForLeaderEpochResponse,
    ),
)
