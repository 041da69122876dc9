"""The client port of ZooKeeper: requests and answers by xid, events, pings, holds with a bound."""

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kazoo.protocol import serialization as kazoo
from wire_doubles import Line
from zookeeper_doubles import (
    ACL,
    BROKER_LINK,
    CLIENT_LINK,
    PING,
    PONG,
    SESSION,
    STAT,
    TIMEOUT_MS,
    answer,
    buffer,
    connect,
    connected,
    event,
    request,
    set_data,
    text,
)

from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.nemesis.wire.carried import why_not_carried
from fencepost.nemesis.wire.effects import Broken, Wake
from fencepost.nemesis.wire.rules import (
    Action,
    Answer,
    Clause,
    Direction,
    Hold,
    Match,
    Operator,
    Rule,
    Watch,
)

SET = Match(api="setData", where=(Clause(field="path", operator=Operator.IS, value="/a"),))
THIRD_NS = TIMEOUT_MS * 1_000_000 // 3


def opened(*rules: Rule, link: object = BROKER_LINK) -> Line:
    """A line with a session, of which nothing is noted."""
    assert link in (BROKER_LINK, CLIENT_LINK)
    line = Line(BROKER_LINK if link is BROKER_LINK else CLIENT_LINK, *rules)
    line.ask(connect())
    line.tell(connected())
    line.far = line.near = b""
    line.notes.rows.clear()
    return line


ASKED = connect() + set_data(1, "/a") + PING + request(2, 4, text("/b") + b"\1")
TOLD = connected() + answer(1, 9, 0, STAT) + event("/b") + PONG + answer(2, 9, -101)


@given(cuts=st.lists(st.integers(1, 60), min_size=1))
def test_all_bytes_pass_and_the_tape_is_the_same_however_they_are_cut(cuts: Sequence[int]) -> None:
    line = Line(BROKER_LINK)
    for data, take in ((ASKED, line.ask), (TOLD, line.tell)):
        at = number = 0
        while at < len(data):
            size = cuts[number % len(cuts)]
            take(data[at : at + size])
            at, number = at + size, number + 1
    assert (line.far, line.near) == (ASKED, TOLD)
    assert [(row["api"], row["direction"].value) for row in line.notes.rows] == [
        *(("createSession", "request"), ("setData", "request"), ("getData", "request")),
        *(("createSession", "response"), ("setData", "response"), ("WatcherEvent", "response")),
        ("getData", "response"),
    ]
    assert line.others == []


def test_an_answer_is_read_by_its_request_and_the_tape_has_session_path_and_version() -> None:
    line = opened()
    line.ask(set_data(1, "/a", version=6) + request(2, 4, text("/b") + b"\0"))
    line.tell(answer(1, 9, 0, STAT) + answer(2, 9, -101) + event("/c"))
    asked, _, told, refused, seen = line.notes.rows
    assert (asked["path"], asked["znode_version"]) == ("/a", 6)
    assert (asked["client_id"], asked["correlation_id"]) == (f"0x{SESSION:x}", 1)
    assert (told["api"], told["znode_version"], told["zxid"]) == ("setData", 7, 9)
    assert (refused["error"], told["error"]) == ("NONODE", "NONE")
    assert (seen["path"], seen["detail"]) == ("/c", "NodeDataChanged")


def test_of_clients_the_tape_has_the_sessions_alone_unless_a_rule_asks() -> None:
    line = opened(Rule(name="seen", action=Watch(), match=SET), link=CLIENT_LINK)
    line.ask(set_data(1, "/a") + set_data(2, "/other") + PING + request(3, -11))
    assert [row["api"] for row in line.notes.rows] == ["setData", "closeSession"]


def test_a_session_that_is_taken_up_again_is_named_from_the_start() -> None:
    line = Line(BROKER_LINK)
    line.ask(connect(SESSION))
    assert line.notes.rows[0]["client_id"] == f"0x{SESSION:x}"


ANYONE = kazoo.ACL(31, kazoo.Id("world", "anyone"))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (kazoo.Create("/a", b"x", [ANYONE], 3), ("/a", None, "create ephemeral sequential")),
        (kazoo.Create2("/a", b"", [ANYONE], 0), ("/a", None, "create2")),
        (kazoo.Delete("/a", 4), ("/a", 4, None)),
        (kazoo.SetData("/a", b"x", 5), ("/a", 5, None)),
        (kazoo.SetACL("/a", [ANYONE], 6), ("/a", 6, None)),
        (kazoo.Exists("/a", None), ("/a", None, None)),
        (kazoo.GetChildren2("/a", None), ("/a", None, None)),
        (kazoo.Sync("/a"), ("/a", None, None)),
        (kazoo.CheckVersion("/a", 2), ("/a", 2, None)),
        (kazoo.Auth(0, "digest", "a:b"), (None, None, None)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_requests_as_kazoo_writes_them_are_read(
    made: kazoo.Create, said: tuple[str | None, int | None, str | None]
) -> None:
    line = opened()
    line.ask(request(1, made.type, bytes(made.serialize())))
    (row,) = line.notes.rows
    found = (row.get("path"), row.get("znode_version"), row.get("detail"))
    created = isinstance(made, kazoo.Create2)
    assert found == ((said[0], said[1], None) if created else said)


def test_a_multi_has_an_item_for_each_operation_and_for_each_result() -> None:
    parts = [kazoo.CheckVersion("/c", 2), kazoo.SetData("/a", b"x", 5), kazoo.Delete("/d", -1)]
    line = opened()
    line.ask(request(1, 14, bytes(kazoo.Transaction(parts).serialize())))
    results = struct.pack(">i?ii?i", 13, False, -1, 5, False, -1) + STAT
    results += struct.pack(">i?ii", -1, False, -101, -101) + struct.pack(">i?i", -1, True, -1)
    line.tell(answer(1, 9, 0, results))
    asked, told = line.notes.rows
    assert [(one["path"], one["znode_version"], one["detail"]) for one in asked["items"]] == [
        *(("/c", 2, "check"), ("/a", 5, "setData"), ("/d", -1, "delete")),
    ]
    assert [one["error"] for one in told["items"]] == ["NONE", "NONE", "NONODE"]


def test_a_rule_tells_the_change_of_a_znode_in_a_multi_from_a_check_of_it() -> None:
    where = tuple(
        Clause(field=name, operator=Operator.IS, value=value)
        for name, value in (("path", "/c"), ("detail", "setData"))
    )
    line = opened(Rule(name="changed", action=Watch(), match=Match(api="multi", where=where)))
    check, change = kazoo.CheckVersion("/c", 2), kazoo.SetData("/c", b"x", 2)
    for xid, parts in enumerate(([check, kazoo.SetData("/a", b"x", 5)], [check, change]), start=1):
        line.ask(request(xid, 14, bytes(kazoo.Transaction(parts).serialize())))
    assert [row.get("rule") for row in line.notes.rows] == [None, "changed"]


def test_a_create_with_time_to_live_is_read_over_its_acl() -> None:
    line = opened()
    line.ask(request(1, 21, text("/t") + buffer(None) + ACL + struct.pack(">iq", 5, 1000)))
    assert line.notes.rows[0]["path"] == "/t"


def test_a_held_request_goes_on_by_itself_before_its_session_would_end() -> None:
    line = opened(Rule(name="late", action=Hold(), match=SET))
    line.ask(set_data(1, "/a"), now_ns=0)
    line.ask(PING + set_data(2, "/a"), now_ns=THIRD_NS // 2)
    assert (line.far, line.others) == (b"", [Wake(THIRD_NS)])
    line.session.due(THIRD_NS)
    assert line.far == set_data(1, "/a") + PING, "the second is late by its own arrival"
    line.session.due(THIRD_NS + THIRD_NS // 2)
    assert line.far == set_data(1, "/a") + PING + set_data(2, "/a")
    assert [row["action"] for row in line.notes.rows] == ["released", "released"]


@pytest.mark.parametrize("match", [Match(), Match(api="ping")])
def test_a_rule_that_holds_pings_is_meant_to_end_the_session(match: Match) -> None:
    line = opened()
    line.book.add(Rule(name="mute", action=Hold(), match=match))
    line.ask(PING)
    assert line.others == []
    line.session.due(10 * THIRD_NS)
    assert line.far == b""
    line.release("mute")
    assert line.far == PING


def test_a_held_answer_is_bounded_too_and_requests_go_on() -> None:
    answers = Match(direction=Direction.RESPONSE, api="setData")
    line = opened(Rule(name="late", action=Hold(), match=answers))
    line.ask(set_data(1, "/a"))
    line.tell(answer(1, 9, 0, STAT), now_ns=5)
    line.ask(PING)
    assert (line.near, line.far) == (b"", set_data(1, "/a") + PING)
    assert line.others == [Wake(5 + THIRD_NS)]


def test_a_four_letter_word_has_no_frames() -> None:
    line = Line(CLIENT_LINK)
    line.ask(b"srvr")
    line.tell(b"Zookeeper version: 3.9.5\n")
    assert (line.far, line.near) == (b"srvr", b"Zookeeper version: 3.9.5\n")
    assert line.others == line.notes.rows == []


def test_an_answer_that_was_not_asked_for_cuts_the_connection() -> None:
    line = opened()
    line.tell(answer(7))
    assert isinstance(line.others[0], Broken)


@given(asked=st.binary(), told=st.binary())
def test_no_bytes_make_it_raise(asked: bytes, told: bytes) -> None:
    line = opened()
    line.ask(buffer(struct.pack(">ii", 1, 14) + asked) + asked)
    line.tell(answer(1, 9, 0, told) + told)


ZOOKEEPER = {LinkProtocol.ZOOKEEPER_CLIENT, LinkProtocol.ZOOKEEPER_QUORUM}


@pytest.mark.parametrize(
    ("action", "match", "why"),
    [
        (Hold(), Match(api="AlterPartition"), "carries AlterPartition"),
        (Hold(), Match(api="Notification"), "carries Notification"),
        (Hold(), Match(version_min=3), "no versions"),
        (Answer(error="NONE"), Match(), "only be late or lost"),
    ],
)
def test_what_cannot_be_done_to_its_messages_is_refused(
    action: Action, match: Match, why: str
) -> None:
    assert why in (why_not_carried(action, match, ZOOKEEPER) or "")


def test_what_can_be_done_is_not_and_kafka_beside_it_stays_as_it_was() -> None:
    assert why_not_carried(Hold(), SET, ZOOKEEPER) is None
    both = {*ZOOKEEPER, LinkProtocol.KAFKA}
    assert why_not_carried(Answer(error="NONE"), Match(version_min=3), both) is None
    assert why_not_carried(Answer(error="NONE"), SET, both) is not None
