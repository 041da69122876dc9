"""Frames come out whole, however the bytes were cut, and nonsense is refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.request_header.v2.header import RequestHeader
from kio.serial import entity_reader

from fencepost.clusters.protocol.framing import (
    FRAME_BYTES_MAX,
    FrameBuffer,
    FrameError,
    RoundTrip,
    request_frame,
)

REQUEST = MetadataRequest(
    topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False
)
# Metadata v12: length, correlation id, no tags, throttle, no brokers, null cluster id, controller
# -1, no topics, no tags.
RESPONSE = bytes.fromhex("00000011 00000001 00 00000000 01 00 ffffffff 01 00".replace(" ", ""))


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def frames_of(buffer: FrameBuffer) -> list[bytes]:
    found = []
    while (frame := buffer.next_frame()) is not None:
        found.append(frame)
    return found


@given(payloads=st.lists(st.binary(max_size=50)), cuts=st.lists(st.integers(1, 9)))
def test_frames_are_the_same_however_the_bytes_are_cut(
    payloads: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(framed(payload) for payload in payloads)
    buffer, found = FrameBuffer(), []
    for size in cuts:
        buffer.feed(stream[:size])
        stream = stream[size:]
        found += frames_of(buffer)
    buffer.feed(stream)
    assert found + frames_of(buffer) == payloads


@pytest.mark.parametrize("length", [-1, FRAME_BYTES_MAX + 1, 0x48545450])
def test_what_cannot_be_a_frame_is_refused_at_its_length(length: int) -> None:
    buffer = FrameBuffer()
    buffer.feed(struct.pack(">i", length))
    with pytest.raises(FrameError, match=f"a frame of {length} bytes"):
        buffer.next_frame()


def test_a_request_is_a_frame_with_the_header_of_its_api() -> None:
    frame = request_frame(REQUEST, correlation_id=77, client_id="me")
    assert struct.unpack(">i", frame[:4]) == (len(frame) - 4,)
    header, offset = entity_reader(RequestHeader)(frame, 4)
    assert (header.request_api_key, header.request_api_version) == (3, 12)
    assert (header.correlation_id, header.client_id) == (77, "me")
    request, size = entity_reader(MetadataRequest)(frame, 4 + offset)
    assert request == REQUEST
    assert 4 + offset + size == len(frame)


def exchange() -> RoundTrip[MetadataResponse]:
    return RoundTrip(REQUEST, MetadataResponse, client_id="me")


def test_an_exchange_gives_its_response_once_it_is_whole() -> None:
    conversation = exchange()
    for position in range(len(RESPONSE) - 1):
        assert conversation.feed(RESPONSE[position : position + 1]) is None
    response = conversation.feed(RESPONSE[-1:])
    assert response is not None
    assert (response.brokers, response.controller_id, response.topics) == ((), -1, ())


def test_an_answer_to_another_request_is_refused() -> None:
    other = RESPONSE[:4] + struct.pack(">i", 5) + RESPONSE[8:]
    with pytest.raises(FrameError, match="answer to request 5, asked was 1"):
        exchange().feed(other)


def test_an_answer_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(FrameError, match="not a MetadataResponse"):
        exchange().feed(framed(RESPONSE[4:12]))
