"""Followers' Fetches: which of them tell something new, and what their bytes say."""

import struct
from datetime import timedelta
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema
from kio.static.primitive import i32, i32Timedelta, i64
from wire_doubles import BROKER, Notes

from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.framing import request_frame
from fencepost.nemesis.wire.apis import FETCH
from fencepost.nemesis.wire.effects import Effect, Send, Side
from fencepost.nemesis.wire.fetches import Fetches, said_by
from fencepost.nemesis.wire.frame import TopicNames
from fencepost.nemesis.wire.frames import Header, read_request_header
from fencepost.nemesis.wire.pipe import HeldFrame
from fencepost.nemesis.wire.rulebook import Rulebook
from fencepost.nemesis.wire.rules import (
    Action,
    Answer,
    Clause,
    Hold,
    Link,
    Match,
    Operator,
    Rule,
    Watch,
)
from fencepost.nemesis.wire.sessions import Common, Session
from fencepost.nemesis.wire.streams import proxied
from fencepost.nemesis.wire.tape import Tape

EPOCHS_FROM, LATEST = 15, 18
LEADER = NodeName("broker-2")
TOPICS = st.dictionaries(
    st.integers(1, 1 << 100), st.lists(st.integers(0, 1 << 20), max_size=5, unique=True), max_size=3
)


def fetch(
    named: dict[int, list[int]],
    *,
    epoch: int = 7,
    version: int = 17,
    correlation_id: int = 1,
    client_id: str = "broker-1-fetcher-0",
    directory: int = 0,
    session: int = 0,
) -> bytes:
    """A Fetch of these partitions, by topic id."""
    kind: Any = load_request_schema(FETCH, version)
    module: Any = import_module(kind.__module__)
    more: dict[str, Any] = {"replica_directory_id": UUID(int=directory)} if version >= 17 else {}
    if version >= LATEST and directory % 2:
        more["high_watermark"] = i64(directory % 1000)
    topics = tuple(
        module.FetchTopic(
            topic_id=UUID(int=topic),
            partitions=tuple(
                module.FetchPartition(
                    partition=i32(one),
                    current_leader_epoch=i32(3),
                    fetch_offset=i64(99),
                    last_fetched_epoch=i32(2),
                    log_start_offset=i64(0),
                    partition_max_bytes=i32(1024),
                    **more,
                )
                for one in partitions
            ),
        )
        for topic, partitions in named.items()
    )
    states: dict[str, Any] = (
        {"replica_state": module.ReplicaState(replica_id=i32(1), replica_epoch=i64(epoch))}
        if version >= EPOCHS_FROM
        else {"replica_id": i32(1)}
    )
    request = kind(
        max_wait=i32Timedelta.parse(timedelta(milliseconds=500)),
        min_bytes=i32(1),
        max_bytes=i32(1 << 20),
        session_id=i32(5),
        session_epoch=i32(session),
        topics=topics,
        forgotten_topics_data=(),
        rack_id="a rack",
        **states,
    )
    return request_frame(request, correlation_id=correlation_id, client_id=client_id)


def header_of(frame: bytes) -> Header:
    found = read_request_header(memoryview(frame), 0)
    assert found is not None
    return found[1]


def named_by(named: dict[int, list[int]]) -> list[bytes]:
    return [
        UUID(int=topic).bytes + struct.pack(">i", one)
        for topic, ones in named.items()
        for one in ones
    ]


@given(
    named=TOPICS,
    epoch=st.integers(-1, 1 << 62),
    version=st.integers(EPOCHS_FROM, LATEST),
    client_id=st.text(max_size=20),
    directory=st.integers(0, 1 << 100),
)
def test_the_bytes_say_what_was_written(
    named: dict[int, list[int]], epoch: int, version: int, client_id: str, directory: int
) -> None:
    frame = fetch(named, epoch=epoch, version=version, client_id=client_id, directory=directory)
    said = said_by(header_of(frame), frame)
    assert said.partitions == named_by(named)
    assert struct.unpack(">iq", said.replica[2:-1]) == (1, epoch)


def test_a_version_without_epochs_and_one_of_tomorrow_name_nobody() -> None:
    for frame, version in ((fetch({7: [0]}, version=14), 14), (fetch({7: [0]}), 19)):
        header = header_of(frame)._replace(api_version=version)
        assert said_by(header, frame) == (b"", [])


@given(st.binary(max_size=200), st.integers(EPOCHS_FROM, LATEST))
def test_nonsense_is_read_to_its_end_at_most(body: bytes, version: int) -> None:
    frame = struct.pack(">ihhih", len(body) + 10, FETCH, version, 1, -1) + body
    assert len(said_by(header_of(frame), frame).partitions) <= len(frame)


@given(st.lists(st.tuples(st.integers(0, 2), st.sets(st.integers(0, 3)), st.booleans())))
def test_a_fetch_tells_what_no_fetch_under_its_epoch_has_told(
    fetches: list[tuple[int, set[int], bool]],
) -> None:
    told: list[tuple[int, set[int]]] = []
    kept = Fetches()
    for epoch, named, passes in fetches:
        under_it: set[int] = set()
        for before, others in reversed(told):
            if before != epoch:
                break
            under_it |= others
        new = not told or told[-1][0] != epoch or not named <= under_it
        assert kept.tells(epoch, named) is new
        if passes:
            kept.told(epoch, named)
            told.append((epoch, named))


class Bench:
    """One connection from a follower to its leader."""

    def __init__(self, source: NodeName = BROKER, role: str = "") -> None:
        self.notes = Notes()
        self.book: Rulebook[HeldFrame] = Rulebook()
        self.sent = b""
        self.count = 0
        link = Link(source=source, target=LEADER, address="127.77.1.1", port=1, role=role)
        self.session = proxied(
            0,
            link,
            Common(book=self.book, tape=Tape(self.notes), names=TopicNames(), act=self._act),
        )

    def _act(self, _: Session, effect: Effect) -> None:
        if isinstance(effect, Send) and effect.side is Side.FAR:
            self.sent += bytes(effect.data)

    def lay(self, action: Action, **match: Any) -> None:
        self.book.add(Rule(name="rule", action=action, match=Match(api="Fetch", **match)))

    def ask(self, *named: int, epoch: int = 7, version: int = 17, session: int = 0) -> None:
        self.count += 1
        data = fetch(
            {7: list(named)},
            epoch=epoch,
            version=version,
            correlation_id=self.count,
            session=session,
        )
        self.session.receive(Side.NEAR, memoryview(data), self.count)

    def tape(self) -> list[int]:
        """The correlation ids of the requests on it."""
        asked = (row for row in self.notes.rows if row["direction"] == "request")
        return [row["correlation_id"] for row in asked]


def test_the_tape_has_a_fetch_of_another_epoch_or_partition_and_no_other() -> None:
    bench = Bench()
    for named in ((0,), (0,), (), (0, 1), (1,), (0, 1)):
        bench.ask(*named)
    bench.ask(session=4, epoch=9)
    bench.ask(1, session=5, epoch=9)
    bench.ask(1, session=6, epoch=9)
    assert bench.tape() == [1, 4, 7, 8]
    row = bench.notes.rows[1]
    assert (row["broker_id"], row["broker_epoch"], row["session_epoch"]) == (1, 7, 0)
    assert [item["partition"] for item in row["items"]] == [0, 1]
    assert bench.notes.rows[2]["session_epoch"] == 4


def test_of_a_broker_that_is_a_controller_too_the_listener_says_what_is_fetched() -> None:
    """The tape has every Fetch of the metadata log; a rule can ask for either kind."""
    benches = {role: Bench(role=role) for role in ("controller", "broker")}
    for bench in benches.values():
        for _ in range(3):
            bench.ask(0)
        where = Clause(field="metadata", operator=Operator.IS, value=False)
        bench.lay(Hold(), where=(where,))
        bench.ask(0)
        bench.ask(0)
    taped = {role: [row["action"] for row in one.notes.rows] for role, one in benches.items()}
    assert taped["controller"] == ["forwarded"] * 5
    assert taped["broker"] == ["forwarded", "held"], "what follows waits behind it"


def test_every_fetch_is_passed_on_as_it_came() -> None:
    bench = Bench()
    bench.ask(0)
    bench.ask(0)
    assert bench.sent == fetch({7: [0]}, correlation_id=1) + fetch({7: [0]}, correlation_id=2)


@pytest.mark.parametrize("action", [Hold(), Answer(error="NOT_LEADER_OR_FOLLOWER")])
def test_what_a_rule_kept_back_has_told_nobody_anything(action: Action) -> None:
    bench = Bench()
    bench.lay(action, times=1)
    bench.ask(0)
    entry = bench.book.remove("rule")
    assert entry is not None
    for waiting in list(entry.held):
        entry.let_go(waiting, delivered=waiting.connection.resume(waiting, 5))
    bench.ask(0)
    bench.ask(0)
    assert bench.tape() == [1, 2]


def test_what_a_rule_only_counts_is_on_the_tape_each_time_and_has_told() -> None:
    bench = Bench()
    bench.lay(Watch())
    bench.ask(0)
    bench.ask(0)
    bench.book.remove("rule")
    bench.ask(0)
    assert bench.tape() == [1, 2]


def test_below_version_15_the_first_one_alone_is_there() -> None:
    bench = Bench()
    bench.ask(0, version=14)
    bench.ask(1, version=14)
    assert bench.tape() == [1]
