"""Fetch sessions (KIP-227): what crosses the wire is less, what either node sees is the same."""

from copy import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_samples import EXCHANGES, TOPIC_ID, VOTERS, image_with

from fencepost.clusters.protocol.entities import read, request_frame, request_type, response_type
from fencepost.clusters.reference.codec.api import ListenerType
from fencepost.clusters.reference.codec.codec import Codec, Incoming, kraft_apis
from fencepost.clusters.reference.codec.fetch_sessions import FetchSessions, FollowerSession
from fencepost.clusters.reference.nodes.messages.data import (
    FetchedPartition,
    FetchRequest,
    FetchResponse,
)

_FETCH = 1
_MINUTES_NS = 60_000_000_000
_RECORDS = EXCHANGES["Fetch-14"][1].partitions[0].batches
_OTHER_ID = TOPIC_ID + 1


class _Leader:
    """The codec of a broker that is fetched from."""

    def __init__(self, *, slots: int = 2, seed: int = 1) -> None:
        self.now = 0
        image = image_with()
        sessions = FetchSessions(slots=slots, seed=seed, now_ns=lambda: self.now)
        self.codec = Codec(apis=kraft_apis(VOTERS), image=lambda: image, sessions=sessions)

    def take(self, frame: bytes) -> Incoming:
        return self.codec.incoming(ListenerType.BROKER, frame[4:], correlation=1)

    def ask(self, *, version: int = 12, **values: Any) -> Any:
        """A consumer's fetch, and what it is answered with, of partitions at high watermark 5."""
        asked = request_frame(
            request_type(_FETCH, version),
            {"replica_id": -1, **values},
            correlation_id=9,
            client_id="c",
        )
        came = self.take(asked)
        told = () if came.message is None else [key for key, *_ in came.message.partitions]
        answer = came.answer(FetchResponse(1, 0, tuple(fetched(key, mark=5) for key in told)))
        return read(response_type(_FETCH, version), answer[4:])


class _Follower:
    """The codec of a follower, and its connection."""

    def __init__(self, leader: _Leader) -> None:
        self.leader = leader
        self.codec = leader.codec
        self.session = FollowerSession()
        self.stated: Any = None
        """The request as it was on the wire."""

    def ask(self, *entries: Any, **marks: int) -> tuple[Any, FetchResponse]:
        """Fetch; return what the leader saw and what came back."""
        request = fetch(*entries)
        sent = self.codec.outgoing(
            request, correlation_id=7, client_id="f", highest=15, session=self.session
        )
        self.stated = read(request_type(_FETCH, 15), sent.frame[4:])
        came = self.leader.take(sent.frame)
        parts = tuple(fetched(entry[0], **marks) for entry in entries)
        answer = came.answer(FetchResponse(1, 0, parts))
        response = self.codec.answered(
            answer[4:], request, version=sent.version, node=1, session=self.session
        )
        return came.message, response

    @property
    def named(self) -> list[tuple[int, int]]:
        """The partitions that it stated last, by topic's number and index."""
        return [
            (topic.topic_id.int, one.partition)
            for topic in self.stated.topics
            for one in topic.partitions
        ]


def fetch(*entries: Any) -> FetchRequest:
    return FetchRequest(1, 2, 44, 15, entries, 500_000_000, max_bytes=1 << 20)


def fetched(key: tuple[int, int], *, mark: int = 5, error: int = 0) -> FetchedPartition:
    return FetchedPartition(key, error, 4, -1 if error else mark, 0, ())


A, B = (TOPIC_ID, 0), (TOPIC_ID, 1)
AT_3, AT_4, OTHER = (A, 3, 4, 1), (A, 4, 4, 1), (B, 9, 4, 1)


def test_a_follower_states_what_changed_and_the_leader_sees_all() -> None:
    follower = _Follower(_Leader())
    seen, _ = follower.ask(AT_3, OTHER)
    assert (follower.stated.session_id, follower.stated.session_epoch) == (0, 0)
    assert follower.named == [A, B]
    for epoch in (1, 2):
        seen, _ = follower.ask(AT_4, OTHER)
        assert follower.stated.session_epoch == epoch
        assert follower.named == ([A] if epoch == 1 else [])
        assert seen.partitions == (AT_4, OTHER)
        assert (seen.replica_id, seen.replica_epoch) == (2, 44)


def test_an_answer_has_the_partitions_with_news() -> None:
    follower = _Follower(_Leader())
    _, answer = follower.ask(AT_3, OTHER)
    assert [one.key for one in answer.partitions] == [A, B]
    _, answer = follower.ask(AT_3, OTHER)
    assert answer.partitions == ()
    _, answer = follower.ask(AT_3, OTHER, mark=6)
    assert [one.high_watermark for one in answer.partitions] == [6, 6]
    for _ in range(2):
        _, answer = follower.ask(AT_3, OTHER, error=6)
        assert [one.error for one in answer.partitions] == [6, 6]
    _, answer = follower.ask(AT_3, OTHER, mark=6)
    assert [one.high_watermark for one in answer.partitions] == [6, 6]


@pytest.mark.parametrize(
    "news",
    [{"batches": _RECORDS}, {"diverging_epoch": 3, "diverging_end_offset": 2}],
    ids=["records", "divergence"],
)
def test_records_and_divergences_are_always_news(news: dict[str, Any]) -> None:
    follower = _Follower(_Leader())
    follower.ask(AT_3)
    sent = follower.codec.outgoing(
        fetch(AT_3), correlation_id=7, client_id="f", session=follower.session
    )
    part = replace(fetched(A), **news)
    answer = follower.leader.take(sent.frame).answer(FetchResponse(1, 0, (part,)))
    found = read(response_type(_FETCH, 15), answer[4:])
    assert len(found.responses) == 1


def test_a_partition_that_is_fetched_no_more_is_forgotten() -> None:
    follower = _Follower(_Leader())
    follower.ask(AT_3, OTHER)
    seen, _ = follower.ask(OTHER)
    (forgotten,) = follower.stated.forgotten_topics_data
    assert (forgotten.topic_id.int, forgotten.partitions) == (TOPIC_ID, (0,))
    assert seen.partitions == (OTHER,)
    seen, answer = follower.ask(OTHER, AT_3)
    assert sorted(seen.partitions) == sorted((OTHER, AT_3))
    assert [one.key for one in answer.partitions] == [A]


def test_a_session_that_the_leader_does_not_know_begins_anew() -> None:
    follower = _Follower(_Leader())
    follower.ask(AT_3)
    follower.leader = _Leader(seed=2)  # its next process
    seen, answer = follower.ask(AT_4)
    assert (seen, answer.error, answer.partitions) == (None, 70, ())
    seen, _ = follower.ask(AT_4)
    assert (follower.stated.session_epoch, seen.partitions) == (0, (AT_4,))
    follower.ask(AT_4)
    assert follower.stated.session_epoch == 1


def test_a_fetch_of_another_epoch_is_refused_and_the_session_begins_anew() -> None:
    follower = _Follower(_Leader())
    follower.ask(AT_3)
    lost = copy(follower.session)
    follower.ask(AT_4)
    follower.session = lost  # as if the answer had been lost, and the same connection went on
    seen, answer = follower.ask(AT_4)
    assert (seen, answer.error) == (None, 71)
    number = follower.stated.session_id
    seen, _ = follower.ask(AT_4)
    assert (follower.stated.session_id, follower.stated.session_epoch) == (number, 0)
    assert seen.partitions == (AT_4,)


def test_without_a_slot_every_fetch_is_whole() -> None:
    follower = _Follower(_Leader(slots=0))
    for entry in (AT_3, AT_4, AT_4):
        seen, answer = follower.ask(entry, OTHER)
        assert follower.stated.session_epoch == 0
        assert seen.partitions == (entry, OTHER)
        assert len(answer.partitions) == 2


def _topics(*indices: int) -> list[dict[str, Any]]:
    return [{"topic": "t", "partitions": [{"partition": one} for one in indices]}]


def test_a_consumer_has_a_session_by_names_of_topics() -> None:
    leader = _Leader()
    first = leader.ask(topics=_topics(0, 1), session_epoch=0)
    assert first.session_id > 0
    assert [len(topic.partitions) for topic in first.responses] == [2]
    again = {"session_id": first.session_id, "topics": []}
    assert leader.ask(session_epoch=1, **again).responses == ()
    forgotten = [{"topic": "t", "partitions": [0]}]
    left = leader.ask(session_epoch=2, forgotten_topics_data=forgotten, **again)
    assert (left.error_code.value, left.session_id) == (0, first.session_id)
    # Without a partition a session is over.
    forgotten = [{"topic": "t", "partitions": [1]}]
    assert leader.ask(session_epoch=3, forgotten_topics_data=forgotten, **again).session_id == 0
    assert leader.ask(session_epoch=4, **again).error_code.value == 70


def test_a_session_ends_by_a_fetch_without_one() -> None:
    leader = _Leader()
    number = leader.ask(topics=_topics(0), session_epoch=0).session_id
    ended = leader.ask(topics=_topics(0), session_id=number, session_epoch=-1)
    assert (ended.session_id, len(ended.responses)) == (0, 1)
    found = leader.ask(topics=[], session_id=number, session_epoch=1)
    assert found.error_code.value == 70


def test_a_session_is_of_one_version() -> None:
    leader = _Leader()
    number = leader.ask(topics=_topics(0), session_epoch=0).session_id
    found = leader.ask(version=11, topics=[], session_id=number, session_epoch=1)
    assert found.error_code.value == 70


def test_a_follower_takes_a_consumers_slot_and_a_consumer_an_idle_one() -> None:
    leader = _Leader(slots=1)

    def begun() -> int:
        number: int = leader.ask(topics=_topics(0), session_epoch=0).session_id
        return number

    consumer = begun()
    assert consumer > 0
    assert begun() == 0
    follower = _Follower(leader)
    follower.ask(AT_3)
    follower.ask(AT_4)
    assert follower.stated.session_epoch == 1
    assert leader.ask(topics=[], session_id=consumer, session_epoch=1).error_code.value == 70
    leader.now += 2 * _MINUTES_NS - 1
    assert begun() == 0
    leader.now += 1
    assert begun() > 0


_ENTRIES = st.dictionaries(
    st.sampled_from([A, B, (_OTHER_ID, 0), (_OTHER_ID, 7)]), st.integers(0, 3), min_size=1
)


@given(st.lists(_ENTRIES, max_size=8), st.integers(0, 1))
def test_whatever_changes_the_leader_sees_what_the_follower_means(
    wanted: list[dict[tuple[int, int], int]], slots: int
) -> None:
    follower = _Follower(_Leader(slots=slots))
    for one in wanted:
        entries = [(key, offset, 4, 1) for key, offset in one.items()]
        seen, _ = follower.ask(*entries)
        assert sorted(seen.partitions) == sorted(entries)
