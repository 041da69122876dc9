"""What nodes of the ZooKeeper generation ask each other survives the wire, in Kafka's own bytes."""

import zipfile
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_samples import image_with

from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka_zookeeper.releases import fetch_release
from fencepost.clusters.protocol.api_keys import GIVEN_UP
from fencepost.clusters.protocol.entities import Unreadable
from fencepost.clusters.protocol.framing import FrameBuffer, FrameError
from fencepost.clusters.protocol.message_definitions import parsed_message
from fencepost.clusters.protocol.message_encoder import encoder_of
from fencepost.clusters.provision.java import find_java
from fencepost.clusters.reference.codec.api import ListenerType
from fencepost.clusters.reference.codec.codec import Codec, correlation_of
from fencepost.clusters.reference.codec.zk_apis import ZK_APIS, ZK_BROKER_APIS
from fencepost.clusters.reference.nodes.messages import client, control
from fencepost.clusters.reference.zk import messages as zk

IMAGE = image_with()
CODEC = Codec(apis=ZK_APIS, image=lambda: IMAGE)

_i8 = st.integers(-1 << 7, (1 << 7) - 1)
_i32 = st.integers(-1 << 31, (1 << 31) - 1)
_i64 = st.integers(-1 << 63, (1 << 63) - 1)
_index = st.integers(0, (1 << 31) - 1)
_name = st.text(max_size=8)
_words = st.none() | _name
_error = st.sampled_from([0, 6, 11, 41, 77])
_ids = st.lists(_i32, max_size=3).map(tuple)
_topic_id = st.integers(1, (1 << 128) - 1)
_key = st.tuples(_topic_id, _index)


def _tuples(of: st.SearchStrategy[Any], **bounds: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(of, max_size=4, **bounds).map(tuple)


def _grouped(partitions: Sequence[zk.PartitionState]) -> tuple[zk.PartitionState, ...]:
    """In the order of the wire, which has the topics one after the other."""
    topics = list(dict.fromkeys((one.key[0], one.topic) for one in partitions))
    return tuple(sorted(partitions, key=lambda one: topics.index((one.key[0], one.topic))))


def _state(**own: st.SearchStrategy[Any]) -> st.SearchStrategy[zk.PartitionState]:
    shared = {
        "key": _key,
        "topic": _name,
        "controller_epoch": _i32,
        "leader": _i32,
        "leader_epoch": _i32,
        "isr": _ids,
        "partition_epoch": _i32,
        "replicas": _ids,
    }
    return st.builds(zk.PartitionState, **shared, **own)


_CONTROLLER = {
    "correlation": st.just(1),
    "controller_id": _i32,
    "controller_epoch": _i32,
    "broker_epoch": _i64,
}
_CORRELATION = st.just(1)
_LISTENER = st.tuples(_name, _name, st.integers(0, 65_535), st.just(0))
_STOPPED = st.builds(
    zk.StoppedPartition, topic=st.just("t"), partition=_i32, leader_epoch=_i32, delete=st.booleans()
)
EXCHANGES = {
    "LeaderAndIsr": (
        st.builds(
            zk.LeaderAndIsrRequest,
            **_CONTROLLER,
            is_full=st.booleans(),
            partitions=st.lists(
                _state(adding=_ids, removing=_ids, is_new=st.booleans(), recovering=st.booleans()),
                max_size=3,
            ).map(_grouped),
        ),
        st.builds(
            zk.LeaderAndIsrResponse,
            _CORRELATION,
            _error,
            _tuples(st.tuples(_key, _error), unique_by=lambda one: one[0][0]),
        ),
    ),
    "StopReplica": (
        st.builds(zk.StopReplicaRequest, **_CONTROLLER, partitions=_tuples(_STOPPED)),
        st.builds(
            zk.StopReplicaResponse,
            _CORRELATION,
            _error,
            _tuples(st.tuples(_name, _i32, _error)),
        ),
    ),
    "UpdateMetadata": (
        st.builds(
            zk.UpdateMetadataRequest,
            **_CONTROLLER,
            partitions=st.lists(_state(offline=_ids), max_size=3).map(_grouped),
            brokers=_tuples(
                st.builds(zk.LiveBroker, _i32, _tuples(_LISTENER), _words),
            ),
            is_full=st.booleans(),
        ),
        st.builds(zk.UpdateMetadataResponse, _CORRELATION, _error),
    ),
    "ControlledShutdown": (
        st.builds(zk.ControlledShutdownRequest, _CORRELATION, _i32, _i64),
        st.builds(
            zk.ControlledShutdownResponse, _CORRELATION, _error, _tuples(st.tuples(_name, _i32))
        ),
    ),
    "MetadataHeartbeat": (
        st.builds(zk.MetadataHeartbeatRequest, _CORRELATION, _i32, _i64, _i8),
        st.builds(zk.MetadataHeartbeatResponse, _CORRELATION, _error | st.just(1000), _words, _i8),
    ),
    "IsrChange": (
        st.integers(0, 1).flatmap(
            lambda version: st.builds(
                zk.IsrChangeRequest,
                _CORRELATION,
                broker_id=_i32,
                incarnation_id=_i64,
                version=st.just(version),
                topics=_tuples(
                    st.tuples(
                        _name,
                        _tuples(
                            st.builds(
                                zk.IsrChange,
                                _i32,
                                _i32,
                                _ids,
                                st.lists(_i64, max_size=3 * version).map(tuple),
                            )
                        ),
                    )
                ),
            )
        ),
        st.builds(
            zk.IsrChangeResponse,
            _CORRELATION,
            _error | st.just(1000),
            _words,
            _tuples(st.tuples(_error | st.just(1000), _words)),
        ),
    ),
}


def _frame(data: bytes, *, by_byte: bool) -> bytes:
    buffer = FrameBuffer()
    for at in range(len(data) if by_byte else 0):
        assert buffer.next_frame() is None
        buffer.feed(data[at : at + 1])
    if not by_byte:
        buffer.feed(data)
    frame = buffer.next_frame()
    assert frame is not None
    return frame


@pytest.mark.parametrize("name", list(EXCHANGES))
@given(data=st.data(), by_byte=st.booleans())
def test_a_request_and_its_response_come_over_the_wire_as_they_were(
    name: str,
    data: st.DataObject,
    by_byte: bool,  # noqa: FBT001 -- drawn by its name
) -> None:
    request, response = map(data.draw, EXCHANGES[name])
    sent = CODEC.outgoing(request, correlation_id=77, client_id="1")
    came = CODEC.incoming(ListenerType.BROKER, _frame(sent.frame, by_byte=by_byte), correlation=12)
    assert came.message == replace(request, correlation=12)
    answer = _frame(came.answer(replace(response, correlation=12)), by_byte=by_byte)
    assert correlation_of(answer) == 77
    assert CODEC.answered(answer, request, version=sent.version, node=1) == response


@pytest.mark.parametrize("name", list(EXCHANGES))
@given(data=st.data())
def test_what_is_cut_short_is_refused(name: str, data: st.DataObject) -> None:
    frame = CODEC.outgoing(data.draw(EXCHANGES[name][0]), correlation_id=1, client_id="1").frame[4:]
    whole = data.draw(st.integers(0, len(frame) - 1))
    with pytest.raises((Unreadable, FrameError)):
        CODEC.incoming(ListenerType.BROKER, frame[:whole], correlation=1)


STATE = zk.PartitionState((7, 3), "t", 4, 1, 5, (1, 2), 9, (1, 2, 3), adding=(3,), is_new=True)
SAMPLES = {
    "LeaderAndIsr": (
        zk.LeaderAndIsrRequest(1, 2, 4, 77, is_full=True, partitions=(STATE,)),
        {
            "controllerId": 2,
            "controllerEpoch": 4,
            "brokerEpoch": 77,
            "type": 2,
            "topicStates": [
                {
                    "topicName": "t",
                    "topicId": "AAAAAAAAAAAAAAAAAAAABw",
                    "partitionStates": [
                        {
                            "partitionIndex": 3,
                            "controllerEpoch": 4,
                            "leader": 1,
                            "leaderEpoch": 5,
                            "isr": [1, 2],
                            "partitionEpoch": 9,
                            "replicas": [1, 2, 3],
                            "addingReplicas": [3],
                            "isNew": True,
                        }
                    ],
                }
            ],
        },
    ),
    "StopReplica": (
        zk.StopReplicaRequest(1, 2, 4, 77, (zk.StoppedPartition("t", 3, -2, delete=True),)),
        {
            "controllerId": 2,
            "controllerEpoch": 4,
            "brokerEpoch": 77,
            "topicStates": [
                {
                    "topicName": "t",
                    "partitionStates": [
                        {"partitionIndex": 3, "leaderEpoch": -2, "deletePartition": True}
                    ],
                }
            ],
        },
    ),
    "UpdateMetadata": (
        zk.UpdateMetadataRequest(
            1,
            2,
            4,
            77,
            (replace(STATE, adding=(), is_new=False, offline=(3,)),),
            (zk.LiveBroker(1, (("CLIENT", "h", 9092, 0),), None),),
        ),
        {
            "controllerId": 2,
            "controllerEpoch": 4,
            "brokerEpoch": 77,
            "topicStates": [
                {
                    "topicName": "t",
                    "topicId": "AAAAAAAAAAAAAAAAAAAABw",
                    "partitionStates": [
                        {
                            "partitionIndex": 3,
                            "controllerEpoch": 4,
                            "leader": 1,
                            "leaderEpoch": 5,
                            "isr": [1, 2],
                            "zkVersion": 9,
                            "replicas": [1, 2, 3],
                            "offlineReplicas": [3],
                        }
                    ],
                }
            ],
            "liveBrokers": [
                {
                    "id": 1,
                    "endpoints": [
                        {"port": 9092, "host": "h", "listener": "CLIENT", "securityProtocol": 0}
                    ],
                    "rack": None,
                }
            ],
        },
    ),
    "ControlledShutdown": (
        zk.ControlledShutdownRequest(1, 3, 77),
        {"brokerId": 3, "brokerEpoch": 77},
    ),
}


@pytest.mark.parametrize("name", list(SAMPLES))
def test_the_bytes_are_those_of_kafkas_definition(name: str) -> None:
    request, stated = SAMPLES[name]
    sent = CODEC.outgoing(request, correlation_id=77, client_id="1")
    place = files("fencepost.clusters.protocol") / "messages" / f"{name}Request.json"
    body = encoder_of(parsed_message(place.read_text()), sent.version)(stated)
    # Key, version, correlation id, client id "1", and no tags.
    head = next(one.key for one in ZK_BROKER_APIS if one.name == name).to_bytes(2)
    head += sent.version.to_bytes(2) + (77).to_bytes(4) + b"\x00\x011" + b"\x00"
    assert sent.frame[4:] == head + body


@pytest.mark.kafka
def test_the_definitions_are_those_of_kafkas_jars() -> None:
    with Warden(run_id="test") as warden:
        release = fetch_release("3.9.2", java=find_java(), warden=warden, progress=print)
    [jar] = [one for one in release.jars if one.name.startswith("kafka-clients")]
    with zipfile.ZipFile(jar) as archive:
        for api in GIVEN_UP:
            for way in ("Request", "Response"):
                folder = files("fencepost.clusters.protocol") / "messages"
                own = (folder / f"{api}{way}.json").read_text()
                kafkas = parsed_message(archive.read(f"common/message/{api}{way}.json").decode())
                # Version 0 of ControlledShutdown is left out.
                assert parsed_message(own).fields == kafkas.fields, api
                assert parsed_message(own).flexible == kafkas.flexible, api
                assert parsed_message(own).versions.last == kafkas.versions.last, api


def test_z03_a_heartbeat_and_its_answer_have_the_drafts_layout() -> None:
    request = zk.MetadataHeartbeatRequest(1, 3, 77, 2)
    sent = CODEC.outgoing(request, correlation_id=5, client_id="")
    assert sent.frame[4:].hex() == f"0384000000000005000000000003{77:016x}02"
    came = CODEC.incoming(ListenerType.BROKER, sent.frame[4:], correlation=1)
    refused = zk.MetadataHeartbeatResponse(1, 1000, "old", 1)
    assert came.answer(refused)[4:].hex() == "0000000503e80003" + b"old".hex() + "01"


def test_z09_an_isr_change_has_the_drafts_layout() -> None:
    change = zk.IsrChange(3, 5, (1, 2))
    request = zk.IsrChangeRequest(1, 3, 77, 0, (("t", (change,)),))
    sent = CODEC.outgoing(request, correlation_id=5, client_id="")
    body = f"00000003{77:016x}0000000100017400000001"
    body += "0000000500000003000000020000000100000002"
    assert sent.frame[4:].hex() == "03850000000000050000" + body


def test_a_broker_offers_what_clients_use_and_no_level() -> None:
    asking = CODEC.asking_versions(correlation_id=0, client_id="1")[4:]
    came = CODEC.incoming(ListenerType.BROKER, asking, correlation=1)
    answer = came.answer(client.ApiVersionsResponse(1, 0, ()))
    for request in (control.CreateTopicsRequest, zk.IsrChangeRequest):
        assert CODEC.highest_offered(answer[4:], request.kind) >= 1
    assert not {55, 56, 57, 62, 63, 67} & {
        one.key for one in ZK_APIS if ListenerType.BROKER in one.doors
    }
