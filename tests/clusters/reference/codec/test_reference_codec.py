"""Every message of the nodes survives the wire, whole and byte by byte."""

import struct
from dataclasses import replace
from uuid import UUID

import pytest
from wire_samples import EXCHANGES, KEY, VOTERS, client_batch, image_with

from fencepost.clusters.node_port.storage import Batch
from fencepost.clusters.protocol.entities import (
    Unreadable,
    read,
    request_frame,
    request_type,
    response_type,
)
from fencepost.clusters.protocol.framing import FrameBuffer
from fencepost.clusters.reference.codec.api import ListenerType
from fencepost.clusters.reference.codec.codec import Codec, correlation_of, kraft_apis
from fencepost.clusters.reference.nodes.messages import client, control, data

_BROKERS_DOOR = frozenset(("Fetch-14", "Fetch-15", "OffsetForLeaderEpoch"))


def _codec() -> Codec:
    image = image_with()
    return Codec(apis=kraft_apis(VOTERS), image=lambda: image, wall_offset_ns=0)


def _frame(data_: bytes, *, by_byte: bool) -> bytes:
    buffer = FrameBuffer()
    pieces = [data_[at : at + 1] for at in range(len(data_))] if by_byte else [data_]
    for piece in pieces[:-1]:
        buffer.feed(piece)
        assert buffer.next_frame() is None
    buffer.feed(pieces[-1])
    frame = buffer.next_frame()
    assert frame is not None
    return frame


@pytest.mark.parametrize("by_byte", [False, True], ids=["whole", "byte-by-byte"])
@pytest.mark.parametrize("name", list(EXCHANGES))
def test_a_request_and_its_response_come_over_the_wire_as_they_were(
    name: str, *, by_byte: bool
) -> None:
    request, response = EXCHANGES[name]
    codec = _codec()
    door = ListenerType.BROKER if name in _BROKERS_DOOR else ListenerType.CONTROLLER
    sent = codec.outgoing(request, correlation_id=77, client_id="broker-1")
    came = codec.incoming(door, _frame(sent.frame, by_byte=by_byte), correlation=12)
    assert came.message == replace(request, correlation=12)
    assert came.expects_answer
    answer = _frame(came.answer(replace(response, correlation=12)), by_byte=by_byte)
    assert correlation_of(answer) == 77
    node = getattr(response, "voter_id", 1001)
    assert codec.answered(answer, request, version=sent.version, node=node) == response


def test_e07_a_proposal_is_in_a_version_that_the_controller_offers() -> None:
    codec = _codec()
    asking = codec.asking_versions(correlation_id=0, client_id="1")[4:]
    offered = codec.incoming(ListenerType.CONTROLLER, asking, correlation=1).answer(None)[4:]
    request = EXCHANGES["AlterPartition-3"][0]
    assert codec.highest_offered(offered, request.kind) == 3
    for highest, version in ((3, 3), (2, 2)):
        sent = codec.outgoing(request, correlation_id=1, client_id="1", highest=highest)
        came = codec.incoming(ListenerType.CONTROLLER, sent.frame[4:], correlation=1).message
        assert sent.version == came.version == version
        assert all(bool(one.isr_epochs) is (version == 3) for one in came.items)
    with pytest.raises(Unreadable, match="up to version 1"):
        codec.outgoing(request, correlation_id=1, client_id="1", highest=1)


def test_e07_a_fetch_is_in_a_version_that_the_other_broker_offers() -> None:
    codec = _codec()
    request = EXCHANGES["Fetch-15"][0]
    for highest, version, epoch in ((15, 15, request.replica_epoch), (14, 14, -1)):
        sent = codec.outgoing(request, correlation_id=1, client_id="1", highest=highest)
        came = codec.incoming(ListenerType.BROKER, sent.frame[4:], correlation=1).message
        assert (sent.version, came.version, came.replica_epoch) == (version, version, epoch)
    with pytest.raises(Unreadable, match="up to version 12"):
        codec.outgoing(request, correlation_id=1, client_id="1", highest=12)


def test_a_broker_knows_another_one_that_asks_what_it_offers() -> None:
    codec = _codec()
    asking = codec.asking_versions(correlation_id=0, client_id="1")[4:]
    assert codec.incoming(ListenerType.BROKER, asking, correlation=1).message.by_node
    values = {"client_software_name": "librdkafka", "client_software_version": "2"}
    asked = request_frame(request_type(18, 3), values, correlation_id=8, client_id="c")
    assert not codec.incoming(ListenerType.BROKER, asked[4:], correlation=1).message.by_node


def test_what_is_cut_or_of_nobody_is_refused() -> None:
    codec = _codec()
    for door in ListenerType:
        for request, _ in EXCHANGES.values():
            whole = codec.outgoing(request, correlation_id=1, client_id="c").frame[4:]
            with pytest.raises(Unreadable):
                codec.incoming(door, whole[: len(whole) // 2], correlation=1)
    for frame in (b"", b"\x00\x39", bytes(40), b"\xff" * 64):
        with pytest.raises(Unreadable):
            codec.incoming(ListenerType.CONTROLLER, frame, correlation=1)


def test_at_a_controller_57_is_a_registration_in_version_0_and_features_in_version_1() -> None:
    codec = _codec()
    for name, kind in (("BrokerRegistration", 20), ("UpdateFeatures", 38)):
        frame = codec.outgoing(EXCHANGES[name][0], correlation_id=1, client_id="").frame[4:]
        assert int.from_bytes(frame[:2]) == 57
        assert codec.incoming(ListenerType.CONTROLLER, frame, correlation=1).message.kind == kind


def test_a_heartbeat_has_the_key_of_its_level() -> None:
    codec = _codec()
    keys = []
    for level in (1, 2, 3):
        request = replace(EXCHANGES["BrokerHeartbeat-58"][0], level=level)
        frame = codec.outgoing(request, correlation_id=1, client_id="").frame
        keys.append((int.from_bytes(frame[4:6]), int.from_bytes(frame[6:8])))
    assert keys == [(58, 0), (58, 0), (63, 1)]


_PRODUCED = client_batch(b"a", b"b", base_sequence=4)
_TOPIC = {"name": "t", "topic": "t"}
_GONE = {"name": "gone", "topic": "gone"}

CLIENTS = {
    "Produce": (
        0,
        {
            "acks": -1,
            "timeout": 1500,
            "topic_data": [_TOPIC | {"partition_data": [{"index": 3, "records": _PRODUCED}]}],
        },
        data.ProduceRequest(1, -1, 1_500_000_000, ((KEY, Batch(-1, -1, 2, 9, 1, 4, _PRODUCED)),)),
        data.ProduceResponse(1, ((KEY, 0, 10),)),
    ),
    "ListOffsets": (
        2,
        {
            "replica_id": -1,
            "topics": [
                _TOPIC | {"partitions": [{"partition_index": 3, "timestamp": -2}]},
                _GONE | {"partitions": [{"partition_index": 0, "timestamp": -1}]},
            ],
        },
        data.ListOffsetsRequest(1, -1, ((KEY, -1, -2), ((-1, 0), -1, -1))),
        data.ListOffsetsResponse(1, ((KEY, 0, 4, 2), ((-1, 0), 3, -1, -1))),
    ),
    "Metadata": (
        3,
        {"topics": [{"name": "t"}], "allow_auto_topic_creation": True},
        client.MetadataRequest(1, (("t", -1),), allow_creation=True),
        client.MetadataResponse(
            1,
            "c",
            2,
            ((2, "127.0.0.1", 9092, None),),
            (("t", KEY[0], 0, (client.PartitionMetadata(3, 0, 2, 4, (1, 2), (2,)),)),),
        ),
    ),
    "OffsetCommit": (
        8,
        {
            "group_id": "g",
            "generation_id_or_member_epoch": -1,
            "topics": [
                _TOPIC
                | {
                    "partitions": [
                        {"partition_index": 3, "committed_offset": 9, "committed_metadata": None}
                    ]
                }
            ],
        },
        client.OffsetCommitRequest(1, "g", (("t", 3, 9, -1, ""),)),
        client.OffsetCommitResponse(1, (("t", 3, 0),)),
    ),
    "FindCoordinator": (
        10,
        {"key": "g", "coordinator_keys": ["g"], "key_type": 0},
        client.FindCoordinatorRequest(1, ("g",)),
        client.FindCoordinatorResponse(1, (("g", 0, 2, "127.0.0.1", 9092),)),
    ),
    "ApiVersions": (
        18,
        {"client_software_name": "x", "client_software_version": "1"},
        client.ApiVersionsRequest(1),
        client.ApiVersionsResponse(1, 3, (("metadata.version", 1, 3),), 40),
    ),
    "CreateTopics": (
        19,
        {
            "timeout": 1500,
            "topics": [{"name": "t", "num_partitions": 3, "replication_factor": 2}],
        },
        control.CreateTopicsRequest(1, (control.NewTopic("t", 3, 2),), 1_500_000_000),
        control.CreateTopicsResponse(1, (("t", KEY[0], 0, ""),)),
    ),
    "DeleteTopics": (
        20,
        {"timeout": 1500, "topic_names": ["t"], "topics": [{"name": "t"}]},
        control.DeleteTopicsRequest(1, (("t", -1),), 1_500_000_000),
        control.DeleteTopicsResponse(1, (("t", KEY[0], 0),)),
    ),
    "InitProducerId": (
        22,
        {"transaction_timeout": 1500},
        data.InitProducerIdRequest(1),
        data.InitProducerIdResponse(1, 0, 3000, 0),
    ),
    "OffsetForLeaderEpoch": (
        23,
        {
            "replica_id": -1,
            "topics": [
                _TOPIC
                | {"partitions": [{"partition": 3, "current_leader_epoch": 4, "leader_epoch": 3}]}
            ],
        },
        data.OffsetsForLeaderEpochRequest(1, -1, ((KEY, 4, 3),)),
        data.OffsetsForLeaderEpochResponse(1, ((KEY, 0, 3, 9),)),
    ),
    "DescribeConfigs": (
        32,
        {
            "resources": [
                {"resource_type": 2, "resource_name": "t", "configuration_keys": ["a"]},
                {"resource_type": 4, "resource_name": "1", "configuration_keys": None},
            ]
        },
        client.DescribeConfigsRequest(1, ((2, "t", ("a",)), (4, "1", None))),
        client.DescribeConfigsResponse(1, ((2, "t", 0, (("a", "1", False),)), (4, "1", 0, ()))),
    ),
    "ElectLeaders": (
        43,
        {"timeout": 1500, "topic_partitions": [{"topic": "t", "partitions": [0]}]},
        control.ElectLeadersRequest(1, False, (("t", 0),)),
        control.ElectLeadersResponse(1, 0, (("t", 0, 84),)),
    ),
    "IncrementalAlterConfigs": (
        44,
        {
            "resources": [
                {
                    "resource_type": 2,
                    "resource_name": "t",
                    "configs": [{"name": "a", "config_operation": 0, "value": "1"}],
                }
            ]
        },
        control.AlterConfigsRequest(1, ((2, "t", "a", "1"),)),
        control.AlterConfigsResponse(1, ((2, "t", 0, ""),)),
    ),
    "DescribeCluster": (
        60,
        {},
        client.MetadataRequest(1, ()),
        client.MetadataResponse(1, "c", 2, ((2, "127.0.0.1", 9092, None),), ()),
    ),
}
"""By API: its key, a request of a client, the message that it is, and a response."""


def _versions(name: str) -> range:
    key = CLIENTS[name][0]
    codec = _codec()
    kind = request_type(18, 3)
    asked = request_frame(kind, {}, correlation_id=1, client_id="")
    came = codec.incoming(ListenerType.BROKER, asked[4:], correlation=1)
    offered = came.answer(client.ApiVersionsResponse(1, 3, ()))[4:]
    for one in read(response_type(18, 3), offered).api_keys:
        if one.api_key == key:
            return range(one.min_version, one.max_version + 1)
    raise AssertionError(name)


@pytest.mark.parametrize(
    ("name", "version"),
    [(name, version) for name in CLIENTS for version in _versions(name)],
    ids=str,
)
def test_what_a_client_asks_is_understood_in_every_version_that_is_offered(
    name: str, version: int
) -> None:
    key, values, message, response = CLIENTS[name]
    codec = _codec()
    asked = request_frame(request_type(key, version), values, correlation_id=9, client_id="c")
    came = codec.incoming(ListenerType.BROKER, asked[4:], correlation=1)
    assert came.message == message
    answer = came.answer(response)[4:]
    assert correlation_of(answer) == 9
    assert read(response_type(key, version), answer) is not None


@pytest.mark.parametrize("version", range(4, 16))
def test_a_consumer_fetches_by_name_and_from_version_13_on_by_id(version: int) -> None:
    codec = _codec()
    kind = request_type(1, version)
    topics = [
        {
            "topic": "t",
            "topic_id": _uuid(KEY[0]),
            "partitions": [{"partition": 3, "fetch_offset": 10, "partition_max_bytes": 1}],
        }
    ]
    values = {"replica_id": -1, "max_wait": 500, "min_bytes": 1, "max_bytes": 9, "topics": topics}
    asked = request_frame(kind, values, correlation_id=9, client_id="c")
    came = codec.incoming(ListenerType.BROKER, asked[4:], correlation=1)
    assert came.message == data.FetchRequest(
        1, -1, -1, version, ((KEY, 10, -1, -1),), 500_000_000, 1, max_bytes=9
    )
    answer = came.answer(EXCHANGES["Fetch-14"][1])[4:]
    (topic,) = read(response_type(1, version), answer).responses
    assert getattr(topic, "topic", "t") == "t"
    assert bytes(topic.partitions[0].records)[:8] == (10).to_bytes(8)


@pytest.mark.parametrize("version", range(1, 9))
def test_offsets_of_a_group_are_fetched(version: int) -> None:
    codec = _codec()
    topics = [{"name": "t", "partition_indexes": [3]}]
    values = {"group_id": "g", "topics": topics, "groups": [{"group_id": "g", "topics": topics}]}
    asked = request_frame(request_type(9, version), values, correlation_id=9, client_id="c")
    came = codec.incoming(ListenerType.BROKER, asked[4:], correlation=1)
    assert came.message == client.OffsetFetchRequest(1, "g", (("t", 3),))
    answer = came.answer(client.OffsetFetchResponse(1, 0, (("t", 3, 9, -1, "", 0),)))
    found = read(response_type(9, version), answer[4:])
    (topic,) = getattr(found, "groups", (found,))[0].topics
    assert topic.partitions[0].committed_offset == 9


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed(version: int) -> None:
    codec = _codec()
    values = {"states_filter": ["Empty"], "types_filter": ["classic"]}
    asked = request_frame(request_type(16, version), values, correlation_id=9, client_id="c")
    came = codec.incoming(ListenerType.BROKER, asked[4:], correlation=1)
    states = ("Empty",) if version >= 4 else ()
    types = ("classic",) if version >= 5 else ()
    assert came.message == client.ListGroupsRequest(1, states, types)
    answer = came.answer(client.ListGroupsResponse(1, 0, ("g",)))
    (group,) = read(response_type(16, version), answer[4:]).groups
    assert (group.group_id, getattr(group, "group_state", "Empty")) == ("g", "Empty")


def test_two_topics_that_are_not_there_keep_their_names() -> None:
    codec = _codec()
    topics = [
        {"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]}
        for name in ("gone", "away")
    ]
    kind = request_type(2, 1)
    asked = request_frame(kind, {"topics": topics}, correlation_id=1, client_id="")
    came = codec.incoming(ListenerType.BROKER, asked[4:], correlation=1)
    keys = [key for key, _, _ in came.message.partitions]
    response = data.ListOffsetsResponse(1, tuple((key, 3, -1, -1) for key in keys))
    found = read(response_type(2, 1), came.answer(response)[4:])
    assert [topic.name for topic in found.topics] == ["gone", "away"]


def test_a_produce_without_acknowledgements_has_no_answer() -> None:
    key, values, _, _ = CLIENTS["Produce"]
    asked = request_frame(
        request_type(key, 9), values | {"acks": 0}, correlation_id=1, client_id=""
    )
    assert not _codec().incoming(ListenerType.BROKER, asked[4:], correlation=1).expects_answer


@pytest.mark.parametrize(
    "records",
    [None, b"", _PRODUCED[:-1], _PRODUCED * 2, _PRODUCED[:-1] + b"x"],
    ids=["null", "empty", "cut", "two", "changed"],
)
def test_a_produce_of_anything_but_one_whole_batch_is_refused(records: bytes | None) -> None:
    values = {"topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]}
    asked = request_frame(request_type(0, 9), values, correlation_id=1, client_id="")
    with pytest.raises(Unreadable):
        _codec().incoming(ListenerType.BROKER, asked[4:], correlation=1)


def test_e07_followers_epochs_are_offered_from_their_level_on() -> None:
    assert [_offered(ListenerType.BROKER, level=level)[1] for level in (1, 2, 3)] == [14, 15, 15]


def test_a_version_too_high_is_answered_by_what_there_is() -> None:
    asked = request_frame(request_type(18, 4), {}, correlation_id=8, client_id="c")
    came = _codec().incoming(ListenerType.BROKER, asked[4:], correlation=1)
    assert came.message is None
    found = read(response_type(18, 0), came.answer(None)[4:])
    assert found.error_code.value == 35
    assert {one.api_key: one.max_version for one in found.api_keys}[18] == 3


def test_a_controller_says_its_own_apis() -> None:
    offered = _offered(ListenerType.CONTROLLER, level=3)
    assert offered.keys() >= {1, 19, 52, 53, 54, 55, 56, 57, 58, 59, 63, 67}
    assert 0 not in offered


@pytest.mark.parametrize("key", [4, 5, 6, 7])
def test_k13_what_controllers_told_brokers_before_is_no_api_of_this_mode(key: int) -> None:
    """LeaderAndIsr, StopReplica, UpdateMetadata and ControlledShutdown are offered at no door."""
    for door in ListenerType:
        assert all(key not in _offered(door, level=level) for level in (1, 2, 3))
        asked = struct.pack(">hhih", key, 0, 1, 0)
        with pytest.raises(Unreadable, match=rf"API {key} on a \w+ listener"):
            _codec().incoming(door, asked, correlation=1)


def _offered(door: ListenerType, *, level: int) -> dict[int, int]:
    asked = request_frame(request_type(18, 3), {}, correlation_id=8, client_id="c")
    came = _codec().incoming(door, asked[4:], correlation=1)
    answer = came.answer(client.ApiVersionsResponse(1, level, ()))[4:]
    found = read(response_type(18, 3), answer)
    return {one.api_key: one.max_version for one in found.api_keys}


def _uuid(identifier: int) -> object:

    return UUID(int=identifier)
