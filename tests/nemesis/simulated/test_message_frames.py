"""A simulated wire reads of a message what a proxy reads of the same message's bytes."""

import struct
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_samples import BATCHES, EXCHANGES, VOTERS, image_with

from fencepost.clusters.node_port.storage import Batch
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.controlled_states import ControlledState
from fencepost.clusters.reference.codec.api import ListenerType
from fencepost.clusters.reference.codec.codec import Codec, kraft_apis
from fencepost.clusters.reference.codec.identifiers import text_of
from fencepost.clusters.reference.codec.zk_apis import ZK_APIS, ZK_BROKER_APIS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages import data, quorum
from fencepost.clusters.reference.zk import messages as zk
from fencepost.nemesis.simulated.frames import TAPED_KINDS, frame_of, kinds_of
from fencepost.nemesis.wire.decoding.quorum import record_types
from fencepost.nemesis.wire.decoding.reference import meant
from fencepost.nemesis.wire.frame import Frame, TopicNames
from fencepost.nemesis.wire.frames import Header
from fencepost.nemesis.wire.rules import Direction, Link

IMAGE = image_with()
NAMES = TopicNames({text_of(number): name for number, name in IMAGE.names.items()})
LINK = Link(source=NodeName("broker-1"), target=NodeName("broker-2"), address="", port=0)
AT_BROKERS = {"Fetch-14", "Fetch-15", "OffsetForLeaderEpoch"}
KEY = (7, 0)
STATE = zk.PartitionState(KEY, "t", 4, 2, 3, (2, 1), 5, (1, 2), is_new=True, recovering=True)
LED = {
    "topic": "t",
    "topic_id": text_of(7),
    "partition": 0,
    "leader_id": 2,
    "leader_epoch": 3,
    "partition_epoch": 5,
    "isr": [2, 1],
}
CHANGE = zk.IsrChange(0, 3, (2, 1), (9, 8))
ZK_EXCHANGES = {
    "LeaderAndIsr": (
        zk.LeaderAndIsrRequest(1, 2, 4, 9, is_full=True, partitions=(STATE,)),
        zk.LeaderAndIsrResponse(1, 0, ((KEY, int(Error.STALE_BROKER_EPOCH)),)),
    ),
    "UpdateMetadata": (
        zk.UpdateMetadataRequest(1, 2, 4, 9, (STATE,), (zk.LiveBroker(1, ()),)),
        zk.UpdateMetadataResponse(1, 0),
    ),
    "StopReplica": (
        zk.StopReplicaRequest(1, 2, 4, 9, (zk.StoppedPartition("t", 0, 3, delete=True),)),
        zk.StopReplicaResponse(1, 0, (("t", 0, int(Error.STALE_BROKER_EPOCH)),)),
    ),
    "ControlledShutdown": (
        zk.ControlledShutdownRequest(1, 2, 9),
        zk.ControlledShutdownResponse(1, 0, (("t", 0),)),
    ),
    "MetadataHeartbeat": (
        zk.MetadataHeartbeatRequest(1, 2, 9, ControlledState.ACTIVE),
        zk.MetadataHeartbeatResponse(1, 0, None, ControlledState.INACTIVE),
    ),
    "IsrChange": (
        zk.IsrChangeRequest(1, 2, 9, 1, (("t", (CHANGE,)),)),
        zk.IsrChangeResponse(1, 0, None, ((0, "granted"),)),
    ),
}


def of_message(message: Any, request: Any) -> Frame:
    """The frame of a message on its way from broker-1."""
    answers = None if request is None else object()
    host = SimpleNamespace(name="broker-1", number=1)
    channel: Any = SimpleNamespace(connection=1, answers=answers, sender=host, receiver=host)
    return frame_of(channel, LINK, message, request, time_ns=5, names=NAMES)


def _of_bytes(codec: Codec, door: ListenerType, request: Any, response: Any) -> tuple[Frame, Frame]:
    sent = codec.outgoing(request, correlation_id=77, client_id="broker-1")
    came = codec.incoming(door, sent.frame[4:], correlation=12)
    key, version = struct.unpack_from(">hh", sent.frame, 4)
    header = Header(key, version, 77, "broker-1", answered=True)
    header = meant(header) if door is ListenerType.CONTROLLER else header
    answer = came.answer(replace(response, correlation=12))
    asked, answered = (
        Frame(
            connection=1,
            link=LINK,
            direction=direction,
            header=header,
            data=data,
            time_ns=5,
            names=NAMES,
        )
        for direction, data in ((Direction.REQUEST, sent.frame), (Direction.RESPONSE, answer))
    )
    return asked, answered


def _agree(codec: Codec, door: ListenerType, request: Any, response: Any) -> None:
    asked, answered = _of_bytes(codec, door, request, response)
    for frame, found in (
        (asked, of_message(request, None)),
        (answered, of_message(response, request)),
    ):
        assert found.rows == frame.rows
        assert found.header == frame.header._replace(correlation_id=1)
        assert record_types(found.decoded.entity) == record_types(frame.decoded.entity)


@pytest.mark.parametrize("name", list(EXCHANGES))
def test_a_message_says_what_its_bytes_say(name: str) -> None:
    codec = Codec(apis=kraft_apis(VOTERS), image=lambda: IMAGE, wall_offset_ns=0)
    door = ListenerType.BROKER if name in AT_BROKERS else ListenerType.CONTROLLER
    _agree(codec, door, *EXCHANGES[name])


@pytest.mark.parametrize("name", list(ZK_EXCHANGES))
def test_so_does_one_of_the_zookeeper_generation(name: str) -> None:
    codec = Codec(apis=ZK_APIS, image=lambda: IMAGE)
    _agree(codec, ListenerType.BROKER, *ZK_EXCHANGES[name])


_number = st.just(-1) | st.integers(-1, (1 << 31) - 1)
_request = st.builds(
    quorum.MetadataFetchRequest,
    *(st.just(1), _number, _number, _number, _number, st.just(0), st.booleans()),
)
_response = st.builds(
    quorum.MetadataFetchResponse,
    *(st.just(1), st.sampled_from([0, 6, 74]), _number, _number, _number),
    batches=st.sampled_from([(), BATCHES[:1], BATCHES]),
    diverging_epoch=_number,
    diverging_end_offset=_number,
    snapshot_end_offset=_number,
    snapshot_epoch=_number,
)


@given(_request, _response)
def test_a_fetch_of_metadata_says_the_same_though_it_is_read_by_a_shorter_way(
    request: quorum.MetadataFetchRequest, response: quorum.MetadataFetchResponse
) -> None:
    codec = Codec(apis=kraft_apis(VOTERS), image=lambda: IMAGE, wall_offset_ns=0)
    _agree(codec, ListenerType.CONTROLLER, request, response)


CONTROLLER = {"controller_epoch": 4, "broker_epoch": 9}
ACTIVE = {"fenced": False, "shutting_down": False, "detail": "ACTIVE"}
INACTIVE = {"fenced": True, "shutting_down": False, "detail": "INACTIVE"}
OF_T = {"topic": "t", "partition": 0}
CHANGED = {"leader_epoch": 3, "isr": [2, 1], "isr_epochs": [9, 8]}
NONE, STALE = {"error": "NONE"}, {"error": "STALE_BROKER_EPOCH"}


@pytest.mark.parametrize(
    ("name", "asked", "answered"),
    [
        (
            "LeaderAndIsr",
            CONTROLLER | LED | {"detail": "replicas [1, 2], new, recovering"},
            {"topic_id": text_of(7), "partition": 0} | STALE,
        ),
        ("UpdateMetadata", CONTROLLER | LED | {"detail": "live brokers [1]"}, NONE),
        ("StopReplica", CONTROLLER | OF_T | {"leader_epoch": 3, "delete": True}, OF_T | STALE),
        ("ControlledShutdown", {"broker_id": 2, "broker_epoch": 9}, OF_T | NONE),
        ("MetadataHeartbeat", {"broker_id": 2, "broker_epoch": 9} | ACTIVE, INACTIVE | NONE),
        (
            "IsrChange",
            {"broker_id": 2, "broker_epoch": 9} | OF_T | CHANGED,
            NONE | {"detail": "granted"},
        ),
    ],
)
def test_a_frame_has_the_columns_of_its_message_and_those_of_its_item(
    name: str, asked: dict[str, Any], answered: dict[str, Any]
) -> None:
    request, response = ZK_EXCHANGES[name]
    assert of_message(request, None).rows == (asked,)
    assert of_message(response, request).rows == (answered,)


def test_a_fetch_of_metadata_says_which_records_it_carries() -> None:
    request, response = EXCHANGES["metadata-fetch"]
    found = record_types(of_message(response, request).decoded.entity)
    carried = {type(one).__name__ for batch in response.batches for one in batch.records}
    assert found == carried - {"LeaderChangeMessage"}  # a control record, which is no metadata


def test_batches_of_values_are_counted_as_batches_of_bytes_are() -> None:
    batches = tuple(Batch(at, 4, 3, -1, -1, -1, ("a", "b", "c")) for at in (6, 9))
    fetched = data.FetchedPartition(KEY, 0, 4, 12, 0, batches)
    request = data.FetchRequest(1, 2, 7, 15, ((KEY, 6, 4, 4),), 0)
    (row,) = of_message(data.FetchResponse(1, 0, (fetched,)), request).rows
    assert (row["high_watermark"], row["detail"]) == (12, "6 records")
    produced = data.ProduceRequest(1, -1, 0, ((KEY, replace(batches[0], base_offset=-1)),))
    (row,) = of_message(produced, None).rows
    assert row["detail"] == "3 records"


def test_all_of_them_are_taped_and_found_by_their_names() -> None:
    kinds = {one.kind for one in ZK_BROKER_APIS}
    assert {more for kind in kinds for more in (kind, kind + 1)} <= TAPED_KINDS
    assert kinds_of("IsrChange", Direction.RESPONSE) == [zk.IsrChangeResponse.kind]
