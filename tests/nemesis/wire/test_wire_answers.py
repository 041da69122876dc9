"""Errors in the target's place: every API that kio knows, items as the request named them."""

import struct
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.schema.metadata.v12.request import MetadataRequest
from wire_doubles import LINK, example, join_request

from fencepost.clusters.protocol.framing import request_frame
from fencepost.nemesis.wire.answers import error_response, why_no_answer
from fencepost.nemesis.wire.apis import API_KEYS, api_name
from fencepost.nemesis.wire.decoding.entities import entity_of, entity_type
from fencepost.nemesis.wire.frame import Frame, TopicNames
from fencepost.nemesis.wire.frames import Header
from fencepost.nemesis.wire.rules import Direction

ALL = [(key, version) for key, name in api_key_map.items() for version in schema_name_map[name]]
ITEMS = {
    "AddPartitionsToTxn": "partition_error_code",
    "AlterPartition": "error_code",
    "AlterPartitionReassignments": "error_code",
    "CreateTopics": "error_code",
    "ElectLeaders": "error_code",
    "Fetch": "error_code",
    "Produce": "error_code",
    "Vote": "error_code",
    "WriteTxnMarkers": "error_code",
}


def asked(data: bytes, key: int, version: int) -> Frame:
    return Frame(
        connection=0,
        link=LINK,
        direction=Direction.REQUEST,
        header=Header(key, version, 77, "1", answered=True),
        data=data,
        time_ns=0,
        names=TopicNames(),
    )


def answer(key: int, version: int, error: str) -> Any:
    request = example(entity_type(key, version, Direction.REQUEST))
    frame = asked(request_frame(request, correlation_id=77, client_id="1"), key, version)
    response = error_response(frame, error)
    assert response is not None
    assert struct.unpack(">ii", response[:8]) == (len(response) - 4, 77)
    return entity_of(frame.header, Direction.RESPONSE, response)


@pytest.mark.parametrize(("key", "version"), ALL)
@pytest.mark.parametrize("error", [ErrorCode.not_controller, ErrorCode.kafka_storage_error])
def test_every_request_is_answered_with_the_error_or_refused_before_the_start(
    key: int, version: int, error: ErrorCode
) -> None:
    request = example(entity_type(key, version, Direction.REQUEST))
    frame = asked(request_frame(request, correlation_id=77, client_id="1"), key, version)
    response = error_response(frame, error.name)
    assert (response is None) is (why_no_answer(api_name(key)) is not None)
    if response is not None:
        assert error in errors_of(entity_of(frame.header, Direction.RESPONSE, response))


def test_these_cannot_be_answered() -> None:
    assert [api for api in API_KEYS if why_no_answer(api)] == [
        "DeleteAcls",
        "AlterReplicaLogDirs",
        "AlterClientQuotas",
        "AlterUserScramCredentials",
    ]


def test_a_request_of_all_items_is_not_answered_where_only_items_have_errors() -> None:
    request = MetadataRequest(
        topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
    frame = asked(request_frame(request, correlation_id=77, client_id="1"), 3, 12)
    assert error_response(frame, "LEADER_NOT_AVAILABLE") is None


@pytest.mark.parametrize(
    ("key", "version"),
    [pair for pair in ALL if api_key_map[pair[0]] in ("fetch", "produce")]
    + [(56, 2), (56, 3), (52, 1), (27, 1), (24, 3), (24, 4), (19, 7), (43, 2), (45, 0)],
)
def test_an_error_of_an_item_stands_in_each_item(key: int, version: int) -> None:
    assert set(errors_of(answer(key, version, "KAFKA_STORAGE_ERROR"), of_items=True)) == {
        ErrorCode.kafka_storage_error
    }


def errors_of(entity: Any, *, of_items: bool = False) -> list[ErrorCode]:
    """Its errors and those of its items, or these alone."""
    found = []
    for name in getattr(entity, "__dataclass_fields__", ()):
        value = getattr(entity, name)
        if isinstance(value, tuple):
            found += [one for item in value for one in errors_of(item)]
        elif isinstance(value, ErrorCode) and not of_items:
            found.append(value)
    return found


def test_an_isr_change_is_refused_for_the_partitions_that_it_named() -> None:
    response = error_response(asked(join_request(77), 56, 3), "INELIGIBLE_REPLICA")
    assert response is not None
    header = Header(56, 3, 77, "1", answered=True)
    entity = entity_of(header, Direction.RESPONSE, response)
    assert entity.error_code is ErrorCode.none
    [topic] = entity.topics
    [partition] = topic.partitions
    assert (topic.topic_id.int, partition.partition_index) == (7, 0)
    assert partition.error_code is ErrorCode.ineligible_replica


def test_an_error_of_the_whole_request_stands_at_its_top() -> None:
    response = error_response(asked(join_request(77), 56, 3), "STALE_BROKER_EPOCH")
    assert response is not None
    entity = entity_of(Header(56, 3, 77, "1", answered=True), Direction.RESPONSE, response)
    assert entity.error_code is ErrorCode.stale_broker_epoch
    assert entity.topics == (), "as a broker tells it, without the items"


@pytest.mark.parametrize("api", ["BrokerHeartbeat", "BrokerRegistration", "EndTxn"])
def test_a_message_without_items_has_the_error_itself(api: str) -> None:
    key = API_KEYS[api]
    for version in schema_name_map[api_key_map[key]]:
        assert answer(key, version, "STALE_BROKER_EPOCH").error_code is ErrorCode.stale_broker_epoch
        assert answer(key, version, "NOT_COORDINATOR").error_code is ErrorCode.not_coordinator


def test_what_cannot_be_read_cannot_be_answered() -> None:
    assert error_response(asked(join_request(), 56, 99), "NOT_CONTROLLER") is None
    assert error_response(asked(b"\0\0\0\x0ainvalid", 56, 3), "NOT_CONTROLLER") is None
