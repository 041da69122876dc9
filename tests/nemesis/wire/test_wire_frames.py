"""The walk over frames: the same bytes and frames however they are cut, and nonsense refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema
from wire_doubles import example, plain_request

from fencepost.clusters.protocol.framing import FRAME_BYTES_MAX, FrameError, request_frame
from fencepost.nemesis.wire.frames import Header, Walker, read_correlation_id, read_request_header

WANTED = 56


class Walk:
    """Walks over requests, and notes what is passed on and what is collected."""

    def __init__(self) -> None:
        self.walker = Walker(read_request_header, lambda header: header.api_key == WANTED)
        self.passed = b""
        self.frames: list[tuple[Header, bytes]] = []
        self.all = b""

    def feed(self, data: bytes) -> None:
        chunk = self.walker.joined(memoryview(data))
        at = 0
        while at < len(chunk):
            step = self.walker.walk(chunk, at)
            self.passed += bytes(chunk[at : step.passed_to])
            self.all += bytes(chunk[at : step.passed_to])
            if step.frame is not None:
                self.frames.append(step.frame)
                self.all += step.frame[1]
            at = step.at


frames = st.lists(
    st.builds(
        plain_request,
        st.integers(0, 1 << 30),
        api_key=st.sampled_from([3, WANTED]),
        size=st.integers(0, 40),
    ),
    max_size=8,
)


@given(frames=frames, cuts=st.lists(st.integers(1, 30)))
def test_wanted_frames_are_collected_and_all_others_passed_however_they_are_cut(
    frames: list[bytes], cuts: list[int]
) -> None:
    walk, stream = Walk(), b"".join(frames)
    for size in cuts:
        walk.feed(stream[:size])
        stream = stream[size:]
    walk.feed(stream)
    wanted = [frame for frame in frames if frame[5] == WANTED]
    assert [data for _, data in walk.frames] == wanted
    assert walk.passed == b"".join(frame for frame in frames if frame[5] != WANTED)
    assert walk.all == b"".join(frames)
    assert not walk.walker.inside
    assert walk.walker.rest() == b""


def test_the_beginning_of_a_frame_is_given_back_when_no_more_comes() -> None:
    for request in (plain_request(1, api_key=WANTED), plain_request(1)):
        for cut in range(1, len(request)):
            walk = Walk()
            walk.feed(request[:cut])
            assert walk.passed + walk.walker.rest() == request[:cut]


def test_an_attentive_walk_stops_behind_each_frame() -> None:
    walker = Walker(read_request_header, lambda _: False)
    one, two = plain_request(1), plain_request(2)
    walker.attentive = True
    chunk = memoryview(one + two)
    assert walker.walk(chunk, 0).at == len(one)
    assert not walker.inside
    assert walker.walk(chunk, len(one)).at == len(one + two)


@pytest.mark.parametrize("length", [-1, 0, 9, FRAME_BYTES_MAX + 1, 0x47455420, -(2**31)])
def test_what_cannot_be_a_length_is_refused_before_the_rest_has_come(length: int) -> None:
    with pytest.raises(FrameError, match=f"a frame of {length} bytes"):
        Walk().feed(struct.pack(">i", length))


@pytest.mark.parametrize(
    ("api_key", "version", "client_size"),
    [(-1, 0, 0), (5000, 0, 0), (3, -1, 0), (3, 999, 0), (3, 1, -2), (3, 1, 30_000)],
)
def test_a_header_that_cannot_be_is_refused(api_key: int, version: int, client_size: int) -> None:
    body = struct.pack(">hhih", api_key, version, 1, client_size) + b"x" * 20
    with pytest.raises(FrameError, match="not Kafka's protocol"):
        Walk().feed(struct.pack(">i", len(body)) + body)


def test_a_header_names_its_client_or_nobody() -> None:
    found = read_request_header(memoryview(plain_request(7)), 0)
    assert found == (34 + 2, Header(3, 9, 7, "me", answered=True))
    nobody = struct.pack(">ihhih", 10, 3, 1, 5, -1)
    assert read_request_header(memoryview(nobody), 0) == (14, Header(3, 1, 5, None, answered=True))


def test_a_response_has_a_correlation_id_once_it_is_there() -> None:
    response = struct.pack(">ii", 10, 77) + b"xxxxxx"
    assert read_correlation_id(memoryview(response), 0) == (14, 77)
    assert read_correlation_id(memoryview(response[:7]), 0) is None
    with pytest.raises(FrameError):
        read_correlation_id(memoryview(struct.pack(">ii", 3, 77)), 0)


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("acks", [-1, 0, 1])
@pytest.mark.parametrize("transactional_id", [None, "a transaction"])
def test_only_a_produce_without_acks_has_no_answer(
    version: int, acks: int, transactional_id: str | None
) -> None:
    kind = load_request_schema(0, version)
    request = kind(
        transactional_id=transactional_id,
        acks=acks,
        timeout=example(kind).timeout,
        topic_data=(),
    )
    data = request_frame(request, correlation_id=1, client_id="me")
    found = [read_request_header(memoryview(data[:end]), 0) for end in range(len(data) + 1)]
    known = [header for header in found if header is not None]
    assert known[-1][1].answered == (acks != 0)
    assert len(set(known)) == 1, "a header is read when all is there, and not before"


def test_a_produce_too_short_for_its_acks_is_taken_for_one_with_an_answer() -> None:
    body = struct.pack(">hhih", 0, 9, 1, -1)
    data = struct.pack(">i", len(body)) + body
    found = read_request_header(memoryview(data), 0)
    assert found is not None
    assert found[1].answered
