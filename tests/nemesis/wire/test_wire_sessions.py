"""A session fed with bytes: what it passes on, holds, says of those that are gone."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.api_versions.v0.request import ApiVersionsRequest
from kio.schema.errors import ErrorCode
from wire_doubles import (
    LINK,
    Notes,
    beat_request,
    beat_response,
    join_request,
    join_response,
    plain_request,
    plain_response,
)

from fencepost.clusters.kafka.multi_node_requests import CLIENT_ID
from fencepost.clusters.protocol.framing import request_frame
from fencepost.nemesis.wire.effects import (
    Broken,
    Effect,
    Finish,
    ProxyRequest,
    Reset,
    Resumed,
    Send,
    Side,
    Wake,
)
from fencepost.nemesis.wire.frame import TopicNames
from fencepost.nemesis.wire.pipe import HeldFrame
from fencepost.nemesis.wire.rulebook import Rulebook
from fencepost.nemesis.wire.rules import (
    Action,
    Answer,
    Clause,
    Cut,
    Delay,
    Direction,
    Drop,
    Duplicate,
    Hold,
    LowerVersion,
    Match,
    Operator,
    Reorder,
    Rule,
    Stall,
    Watch,
)
from fencepost.nemesis.wire.sessions import Common, Session
from fencepost.nemesis.wire.streams import proxied
from fencepost.nemesis.wire.tape import Tape

REQUEST, RESPONSE = Direction.REQUEST, Direction.RESPONSE
JOIN = Match(
    api="AlterPartition", where=(Clause(field="isr", operator=Operator.INCLUDES, value=2),)
)
MS = 1_000_000


class Bench:
    """Sessions on one link, and what came out of them."""

    def __init__(self, *rules: tuple[Action, Match], count: int = 1) -> None:
        self.notes = Notes()
        self.book: Rulebook[HeldFrame] = Rulebook()
        self.sent: dict[tuple[Session, Side], bytes] = defaultdict(bytes)
        self.others: list[Effect] = []
        self.common = Common(
            book=self.book, tape=Tape(self.notes), names=TopicNames(), act=self._act
        )
        self.sessions = [proxied(number, LINK, self.common) for number in range(count)]
        for number, (action, match) in enumerate(rules):
            self.book.add(Rule(name=f"rule-{number}", action=action, match=match))

    def _act(self, session: Session, effect: Effect) -> None:
        if isinstance(effect, Send):
            self.sent[session, effect.side] += bytes(effect.data)
        elif not isinstance(effect, Resumed):
            self.others.append(effect)

    def ask(self, data: bytes, *, session: int = 0, now_ns: int = 1) -> None:
        self.sessions[session].receive(Side.NEAR, memoryview(data), now_ns)

    def tell(self, data: bytes, *, session: int = 0, now_ns: int = 2) -> None:
        self.sessions[session].receive(Side.FAR, memoryview(data), now_ns)

    def far(self, session: int = 0) -> bytes:
        return self.sent[self.sessions[session], Side.FAR]

    def near(self, session: int = 0) -> bytes:
        return self.sent[self.sessions[session], Side.NEAR]

    def release(self, name: str = "rule-0", *, now_ns: int = 9) -> list[bool]:
        entry = self.book.remove(name)
        assert entry is not None
        delivered = []
        for waiting in tuple(entry.held):
            delivered.append(waiting.connection.resume(waiting, now_ns))
            entry.let_go(waiting, delivered=delivered[-1])
        return delivered

    def status(self, name: str = "rule-0") -> Any:
        return self.book.statuses()[name]


STREAM = plain_request(1) + join_request(2) + beat_request(3) + plain_request(4, size=200)
ANSWERS = plain_response(1) + join_response(2) + beat_response(3) + plain_response(4, size=300)


@given(st.lists(st.integers(1, 60)), st.lists(st.integers(1, 60)))
def test_all_bytes_pass_and_the_tape_is_the_same_however_they_are_cut(
    asked: list[int], told: list[int]
) -> None:
    bench = Bench()
    for piece in pieces(STREAM, asked):
        bench.ask(piece)
    for piece in pieces(ANSWERS, told):
        bench.tell(piece)
    assert (bench.far(), bench.near()) == (STREAM, ANSWERS)
    assert bench.notes.fates() == [
        ("AlterPartition", "request", "forwarded"),
        ("BrokerHeartbeat", "request", "forwarded"),
        ("AlterPartition", "response", "forwarded"),
        ("BrokerHeartbeat", "response", "forwarded"),
    ]
    assert [row["correlation_id"] for row in bench.notes.rows] == [2, 3, 2, 3]


def pieces(stream: bytes, sizes: Sequence[int]) -> list[bytes]:
    found = []
    for size in sizes:
        found.append(stream[:size])
        stream = stream[size:]
    return [one for one in [*found, stream] if one]


@given(st.lists(st.integers(1, 60)))
def test_a_held_request_and_all_behind_it_wait_and_come_in_order(sizes: list[int]) -> None:
    bench = Bench((Hold(), JOIN))
    for piece in pieces(STREAM, sizes):
        bench.ask(piece)
    assert bench.far() == plain_request(1)
    assert not bench.sessions[0].reads(Side.NEAR)
    assert bench.sessions[0].reads(Side.FAR)
    bench.tell(plain_response(1))
    assert bench.near() == plain_response(1)
    assert bench.release(now_ns=50) == [True]
    assert bench.far() == STREAM
    assert bench.sessions[0].reads(Side.NEAR)
    held = bench.notes.rows[0]
    assert (held["action"], held["rule"], held["forwarded_ns"]) == ("released", "rule-0", 50)


def test_a_held_frame_outlives_its_sender() -> None:
    bench = Bench((Hold(), JOIN))
    bench.ask(join_request(1))
    bench.ask(beat_request(2))
    bench.sessions[0].lose(Side.NEAR, 3)
    assert bench.others == []
    assert bench.release() == [True]
    assert bench.far() == join_request(1) + beat_request(2)
    assert bench.others == [Finish(Side.FAR)]
    bench.tell(join_response(1))
    assert bench.near() == b""
    assert bench.notes.fates()[-1] == ("AlterPartition", "response", "undeliverable")


def test_a_sender_that_merely_ends_does_not_end_its_connection_before_its_bytes_came() -> None:
    bench = Bench((Hold(), JOIN))
    bench.ask(join_request(1))
    bench.sessions[0].end(Side.NEAR, 3)
    assert bench.others == []
    bench.release()
    assert bench.others == [Finish(Side.FAR)]
    bench.tell(join_response(1))
    assert bench.near() == join_response(1)


@pytest.mark.parametrize("how", ["end", "lose"])
def test_what_waits_for_a_target_that_is_gone_is_undeliverable(how: str) -> None:
    bench = Bench((Hold(), JOIN))
    bench.ask(join_request(1))
    getattr(bench.sessions[0], how)(Side.FAR, 3)
    assert bench.others == [Finish(Side.NEAR)]
    assert bench.status().held_now == 1
    assert bench.release() == [False]
    assert bench.far() == b""
    assert bench.notes.fates() == [("AlterPartition", "request", "undeliverable")]
    assert bench.status().undeliverable_count == 1


def test_no_rule_waits_for_a_target_that_is_gone_already() -> None:
    bench = Bench((Hold(), JOIN))
    bench.sessions[0].end(Side.FAR, 1)
    bench.ask(join_request(1))
    assert bench.status().held_now == 0
    assert bench.notes.fates() == [("AlterPartition", "request", "undeliverable")]


def test_the_retry_on_a_new_connection_is_held_too_and_delivered_second() -> None:
    bench = Bench((Hold(), JOIN), count=2)
    bench.ask(join_request(1, epoch=5))
    bench.sessions[0].end(Side.NEAR, 2)
    bench.ask(join_request(7, epoch=5), session=1)
    assert bench.status().held_now == 2
    assert bench.release() == [True, True]
    assert (bench.far(0), bench.far(1)) == (join_request(1), join_request(7))


def test_what_comes_free_behind_a_held_frame_may_be_held_by_another_rule() -> None:
    bench = Bench((Hold(), JOIN), (Hold(), Match(api="BrokerHeartbeat")))
    bench.ask(join_request(1) + beat_request(2) + plain_request(3))
    bench.release()
    assert bench.far() == join_request(1)
    assert bench.status("rule-1").held_now == 1
    bench.release("rule-1")
    assert bench.far() == join_request(1) + beat_request(2) + plain_request(3)


def test_a_held_response_keeps_the_requests_going() -> None:
    held = Match(direction=RESPONSE, api="AlterPartition")
    bench = Bench((Hold(), held))
    bench.ask(join_request(1) + beat_request(2))
    bench.tell(join_response(1) + beat_response(2))
    assert bench.near() == b""
    bench.sessions[0].lose(Side.FAR, 4)
    assert bench.others == []
    bench.release()
    assert bench.near() == join_response(1) + beat_response(2)
    assert bench.others == [Finish(Side.NEAR)]


def test_skip_and_times_choose_which_of_the_fitting_frames() -> None:
    match = Match(api="BrokerHeartbeat", skip=1, times=1)
    bench = Bench((Hold(), match))
    bench.ask(beat_request(1) + beat_request(2) + beat_request(3))
    assert bench.far() == beat_request(1)
    [waiting] = next(iter(bench.book.laid)).held
    waiting.entry.let_go(waiting, delivered=waiting.connection.resume(waiting, 5))
    assert bench.far() == beat_request(1) + beat_request(2) + beat_request(3)
    assert bench.status().matched_count == 1


def test_the_rule_that_was_laid_first_decides_and_watchers_only_count() -> None:
    bench = Bench((Watch(), JOIN), (Drop(), JOIN), (Hold(), JOIN))
    bench.ask(join_request(1))
    assert bench.notes.fates() == [("AlterPartition", "request", "dropped")]
    assert [bench.status(f"rule-{n}").matched_count for n in range(3)] == [1, 1, 0]
    assert bench.notes.rows[0]["rule"] == "rule-1"


def test_a_watched_frame_of_any_api_is_on_the_tape() -> None:
    bench = Bench((Watch(), Match(api="Metadata")))
    bench.ask(plain_request(1) + plain_request(2, api_key=10))
    assert bench.far() == plain_request(1) + plain_request(2, api_key=10)
    assert [(row["api"], row["rule"]) for row in bench.notes.rows] == [("Metadata", "rule-0")]


def test_a_probe_of_the_harness_is_not_taped_and_no_rule_concerns_it() -> None:
    probe = request_frame(ApiVersionsRequest(), correlation_id=1, client_id=CLIENT_ID)
    nodes_own = request_frame(ApiVersionsRequest(), correlation_id=2, client_id="1")
    bench = Bench((Drop(), Match()), (Hold(), Match(direction=RESPONSE)))
    bench.ask(probe)
    bench.tell(plain_response(1))
    assert (bench.far(), bench.near()) == (probe, plain_response(1))
    bench.ask(nodes_own)
    assert bench.far() == probe
    assert bench.notes.fates() == [("ApiVersions", "request", "dropped")]
    assert bench.status().matched_count == 1


@pytest.mark.parametrize("action", [Drop(), Cut(passed_on=False)])
def test_a_dropped_frame_costs_its_connection(action: Action) -> None:
    bench = Bench((action, JOIN))
    bench.ask(plain_request(1) + join_request(2) + beat_request(3))
    assert bench.far() == plain_request(1)
    assert bench.others == [Reset(Side.NEAR), Reset(Side.FAR)]
    assert len(bench.notes.rows) == 1
    assert bench.notes.rows[0]["action"] == ("dropped" if action == Drop() else "cut")


def test_a_cut_behind_a_frame_lets_it_arrive_and_its_answer_go_nowhere() -> None:
    bench = Bench((Cut(), JOIN))
    bench.ask(join_request(1) + beat_request(2))
    assert bench.far() == join_request(1)
    assert bench.others == [Reset(Side.NEAR), Finish(Side.FAR)]
    bench.tell(join_response(1))
    assert bench.near() == b""
    assert bench.notes.fates() == [
        ("AlterPartition", "request", "cut"),
        ("AlterPartition", "response", "undeliverable"),
    ]


def test_a_delayed_frame_waits_for_its_time_and_all_behind_it_keep_their_order() -> None:
    bench = Bench((Delay(min_ms=10, max_ms=10), Match(api="BrokerHeartbeat")))
    bench.ask(beat_request(1) + plain_request(2), now_ns=0)
    bench.ask(beat_request(3), now_ns=4 * MS)
    assert bench.sessions[0].reads(Side.NEAR)
    assert bench.others == [Wake(10 * MS)]
    bench.sessions[0].due(9 * MS)
    assert bench.far() == b""
    bench.sessions[0].due(10 * MS)
    assert bench.far() == beat_request(1) + plain_request(2)
    assert bench.others[-1] == Wake(14 * MS)
    bench.sessions[0].due(14 * MS)
    assert bench.far() == beat_request(1) + plain_request(2) + beat_request(3)
    assert [(row["action"], row["time_ns"], row["forwarded_ns"]) for row in bench.notes.rows] == [
        ("delayed", 0, 10 * MS),
        ("delayed", 4 * MS, 14 * MS),
    ]


def test_delays_are_drawn_between_their_bounds_and_again_the_same_from_the_same_seed() -> None:
    def draws(seed: int) -> list[int]:
        delay = Delay(min_ms=5, max_ms=50, seed=seed)
        bench = Bench((delay, Match(api="BrokerHeartbeat")))
        for number in range(20):
            bench.ask(beat_request(number), now_ns=0)
            bench.sessions[0].due(100 * MS)
        return [effect.at_ns for effect in bench.others if isinstance(effect, Wake)]

    assert draws(1) == draws(1)
    assert draws(1) != draws(2)
    assert all(5 * MS <= draw <= 50 * MS for draw in draws(1))
    assert len(set(draws(1))) > 10


def test_a_duplicate_is_an_errand_of_its_own() -> None:
    bench = Bench((Duplicate(), JOIN))
    bench.ask(join_request(1))
    assert bench.far() == join_request(1)
    [errand] = bench.others
    assert isinstance(errand, ProxyRequest)
    runner = proxied(1, LINK, bench.common, errand=True)
    runner.run_errand(errand.frame, 5, copy=errand.copy)
    assert bench.sent[runner, Side.FAR] == join_request(1)
    assert len(bench.others) == 1
    runner.receive(Side.FAR, memoryview(join_response(1)), 6)
    assert bench.others[1:] == [Finish(Side.FAR)]
    assert bench.notes.fates() == [
        ("AlterPartition", "request", "duplicated"),
        ("AlterPartition", "request", "duplicated"),
        ("AlterPartition", "response", "undeliverable"),
    ]
    assert [row["connection"] for row in bench.notes.rows] == [0, 1, 1]


def test_the_next_request_of_the_link_overtakes() -> None:
    bench = Bench((Reorder(), JOIN), count=3)
    bench.ask(join_request(1))
    assert bench.far(0) == b""
    bench.ask(join_request(2), session=1)
    assert (bench.far(1), bench.far(0)) == (join_request(2), join_request(1))
    assert [row["action"] for row in bench.notes.rows] == ["reordered", "forwarded"]
    bench.ask(join_request(3), session=2)
    assert bench.far(2) == b"", "it waits for the next one again"


def test_a_request_to_another_listener_of_the_target_overtakes_nothing() -> None:
    bench = Bench((Reorder(), JOIN), count=2)
    bench.sessions[1] = proxied(1, replace(LINK, port=2), bench.common)
    bench.ask(join_request(1))
    bench.ask(join_request(2), session=1)
    assert (bench.far(0), bench.far(1)) == (b"", b"")
    assert [row["action"] for row in bench.notes.rows] == ["reordered", "reordered"]


def test_an_overtaken_request_whose_target_has_hung_up_goes_another_way() -> None:
    bench = Bench((Reorder(), JOIN), count=2)
    bench.ask(join_request(1))
    bench.sessions[0].end(Side.FAR, 2)
    bench.ask(join_request(2), session=1)
    [errand] = [effect for effect in bench.others if isinstance(effect, ProxyRequest)]
    assert errand.frame.data == join_request(1)
    assert not errand.copy


def test_an_answer_is_given_in_the_targets_place() -> None:
    bench = Bench((Answer(error="INELIGIBLE_REPLICA"), JOIN))
    bench.ask(join_request(1))
    assert bench.far() == b""
    assert bench.notes.fates() == [
        ("AlterPartition", "request", "answered"),
        ("AlterPartition", "response", "answered"),
    ]
    assert bench.notes.rows[1]["items"][0]["error"] == "INELIGIBLE_REPLICA"
    assert bench.near()[4:8] == (1).to_bytes(4)
    bench.ask(beat_request(2))
    bench.tell(beat_response(2))
    assert bench.near().endswith(beat_response(2))


@given(cut=st.integers(1, 500), whole_first=st.booleans())
def test_an_answer_waits_for_the_answers_to_the_requests_before_its_own(
    *, cut: int, whole_first: bool
) -> None:
    bench = Bench((Answer(error="INELIGIBLE_REPLICA"), JOIN))
    before = plain_request(1) + beat_request(2)
    first, told = plain_response(1, size=150), beat_response(2)
    bench.ask(before)
    if not whole_first:
        bench.tell(first[:cut])
        first = first[cut:]
    bench.ask(join_request(3) + plain_request(4))
    for piece in pieces(first + told + plain_response(4), [cut]):
        bench.tell(piece)
    answers = frames(bench.near())
    assert [int.from_bytes(one[4:8]) for one in answers] == [1, 2, 3, 4]
    assert bench.far() == before + plain_request(4)


def frames(stream: bytes) -> list[bytes]:
    found = []
    while stream:
        end = 4 + int.from_bytes(stream[:4])
        found.append(stream[:end])
        stream = stream[end:]
    return found


def test_a_request_that_cannot_be_answered_is_a_broken_connection() -> None:
    bench = Bench((Answer(error="NOT_CONTROLLER"), Match(api="Metadata")))
    bench.ask(plain_request(1, size=0))
    assert isinstance(bench.others[0], Broken)
    assert bench.others[1:] == [Reset(Side.NEAR), Reset(Side.FAR)]


def test_a_stall_passes_its_frame_on_and_nothing_behind_it() -> None:
    bench = Bench((Stall(), JOIN))
    bench.ask(join_request(1) + beat_request(2))
    assert bench.far() == join_request(1)
    assert not bench.sessions[0].reads(Side.NEAR)
    assert bench.release() == [True]
    assert bench.far() == join_request(1) + beat_request(2)


def test_a_version_is_lowered_in_the_answers_to_api_versions_alone() -> None:
    bench = Bench((LowerVersion(api="AlterPartition", max_version=2), Match()))
    bench.ask(plain_request(1, api_key=18) + beat_request(2))
    body = (35).to_bytes(2) + (1).to_bytes(4) + b"\0\x38" + b"\0\0" + b"\0\x03"
    bench.tell((len(body) + 4).to_bytes(4) + (1).to_bytes(4) + body + beat_response(2))
    assert bench.near()[: 8 + len(body)].endswith(b"\0\x38\0\0\0\x02")
    assert bench.near().endswith(beat_response(2))
    told = [(row["api"], row["action"]) for row in bench.notes.rows if row["direction"] == RESPONSE]
    assert told == [("ApiVersions", "rewritten"), ("BrokerHeartbeat", "forwarded")]


def test_a_blocked_direction_passes_nothing_on_and_then_all() -> None:
    bench = Bench()
    bench.ask(beat_request(1))
    bench.sessions[0].block(RESPONSE)
    bench.tell(beat_response(1))
    assert bench.near() == b""
    assert bench.sessions[0].carried_bytes(RESPONSE) == len(beat_response(1))
    bench.ask(beat_request(2))
    assert bench.far() == beat_request(1) + beat_request(2)
    bench.sessions[0].lose(Side.FAR, 4)
    assert bench.others == []
    bench.sessions[0].unblock(RESPONSE, 5)
    assert bench.near() == beat_response(1)
    assert bench.others == [Finish(Side.NEAR)]
    [told] = [row for row in bench.notes.rows if row["direction"] == RESPONSE]
    assert (told["time_ns"], told["forwarded_ns"]) == (2, 5)


def test_what_is_released_behind_a_partition_arrives_when_it_heals() -> None:
    bench = Bench((Hold(), JOIN))
    bench.ask(join_request(1))
    bench.sessions[0].block(REQUEST)
    assert bench.release(now_ns=20) == [True]
    row = bench.notes.rows[0]
    assert (row["action"], row["forwarded_ns"]) == ("released", None)
    bench.sessions[0].unblock(REQUEST, 30)
    assert (row["action"], row["forwarded_ns"]) == ("released", 30)
    assert bench.far() == join_request(1)


def test_an_answer_nobody_asked_for_breaks_the_connection() -> None:
    bench = Bench()
    bench.ask(beat_request(1))
    bench.tell(beat_response(2))
    assert isinstance(bench.others[0], Broken)
    assert "request 2, which was not sent" in bench.others[0].reason
    assert bench.others[1:] == [Reset(Side.NEAR), Reset(Side.FAR)]


def test_a_held_request_survives_nonsense_from_its_target() -> None:
    bench = Bench((Hold(), JOIN))
    bench.ask(join_request(1))
    bench.tell(b"HTTP/1.1 400 Bad Request")
    assert Reset(Side.FAR) not in bench.others
    assert Reset(Side.NEAR) in bench.others
    assert bench.release() == [True]


def test_cutting_a_connection_leaves_the_way_of_what_is_held() -> None:
    bench = Bench((Hold(), JOIN))
    bench.ask(join_request(1))
    bench.sessions[0].close()
    assert bench.others == [Reset(Side.NEAR)]
    assert bench.release() == [True]
    assert bench.far() == join_request(1)
    assert bench.others == [Reset(Side.NEAR), Finish(Side.FAR)]


def test_what_is_discarded_is_dropped_with_its_connection() -> None:
    bench = Bench((Hold(), JOIN))
    bench.ask(join_request(1))
    entry = bench.book.remove("rule-0")
    assert entry is not None
    bench.sessions[0].discard(entry.held[0])
    assert bench.others == [Reset(Side.NEAR), Reset(Side.FAR)]
    assert bench.notes.fates() == [("AlterPartition", "request", "dropped")]


def test_an_error_of_the_system_is_seen_by_clauses_on_answers() -> None:
    refused = Clause(field="error", operator=Operator.IS, value="INELIGIBLE_REPLICA")
    match = Match(direction=RESPONSE, api="AlterPartition", where=(refused,))
    bench = Bench((Watch(), match))
    bench.ask(join_request(1) + join_request(2))
    bench.tell(join_response(1) + join_response(2, error=ErrorCode.ineligible_replica))
    assert bench.status().matched_count == 1
    assert bench.status().first is not None
    assert bench.status().first.endswith("INELIGIBLE_REPLICA")
