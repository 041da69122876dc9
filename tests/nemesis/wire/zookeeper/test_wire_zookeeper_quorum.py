"""The quorum and election ports of ZooKeeper: streams read packet by packet, held and taped."""

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_doubles import Line
from zookeeper_doubles import (
    ELECTION_LINK,
    GREETING,
    JOINING,
    QUORUM_LINK,
    SESSION,
    TAKING_IN,
    TREE,
    ack,
    buffer,
    commit,
    packet,
    proposal,
    text,
    vote,
)

from fencepost.nemesis.wire.effects import Broken
from fencepost.nemesis.wire.rules import Clause, Direction, Hold, Link, Match, Operator, Rule

COMMITS = Match(direction=Direction.RESPONSE, api="COMMIT")


def fed(line: Line, asked: bytes, told: bytes, cuts: Sequence[int]) -> None:
    """Both streams, in pieces of these sizes, over and over."""
    for data, take in ((asked, line.ask), (told, line.tell)):
        at = number = 0
        while at < len(data):
            size = cuts[number % len(cuts)] if cuts else len(data)
            take(data[at : at + size])
            at, number = at + size, number + 1


@pytest.mark.parametrize(
    ("link", "asked", "told", "apis"),
    [
        (
            QUORUM_LINK,
            JOINING,
            b"".join(TAKING_IN),
            [
                *("FOLLOWERINFO", "ACKEPOCH", "ACK", "LEADERINFO", "SNAP", "PROPOSAL", "COMMIT"),
                *("NEWLEADER", "UPTODATE"),
            ],
        ),
        (
            ELECTION_LINK,
            GREETING + vote(3) + vote(2),
            vote(3),
            ["InitialMessage", *["Notification"] * 3],
        ),
    ],
    ids=["quorum", "election"],
)
@given(cuts=st.lists(st.integers(1, 60)))
def test_all_bytes_pass_and_the_tape_is_the_same_however_they_are_cut(
    link: Link, asked: bytes, told: bytes, apis: Sequence[str], cuts: Sequence[int]
) -> None:
    line = Line(link)
    fed(line, asked, told, cuts)
    assert (line.far, line.near) == (asked, told)
    assert [row["api"] for row in line.notes.rows] == apis
    assert line.others == []


def test_the_tape_says_who_joins_what_is_proposed_and_under_which_epoch() -> None:
    line = Line(QUORUM_LINK)
    fed(line, JOINING, b"".join(TAKING_IN), ())
    said = {row["api"]: row for row in line.notes.rows}
    assert said["FOLLOWERINFO"]["broker_id"] == 1
    assert said["LEADERINFO"]["leader_epoch"] == 2
    proposed = said["PROPOSAL"]
    assert (proposed["path"], proposed["znode_version"], proposed["zxid"]) == ("/b", 3, 8)
    assert (proposed["detail"], proposed["api_key"]) == ("setData", 2)
    assert said["COMMIT"]["correlation_id"] == proposed["correlation_id"]


def test_writes_are_on_the_tape_only_until_the_follower_is_up_to_date() -> None:
    line = Line(QUORUM_LINK)
    fed(line, JOINING, b"".join(TAKING_IN), ())
    before = len(line.notes.rows)
    line.tell(proposal(9, "/c") + commit(9))
    line.ask(ack(9))
    line.tell(packet(14, 3))
    assert [row["api"] for row in line.notes.rows[before:]] == ["TRUNC"]


def test_a_held_commit_waits_with_all_behind_it_and_the_other_direction_goes_on() -> None:
    line = Line(QUORUM_LINK, Rule(name="late", action=Hold(), match=COMMITS))
    line.tell(proposal(9, "/c") + commit(9) + proposal(10, "/d"))
    line.ask(ack(9))
    assert (line.near, line.far) == (proposal(9, "/c"), ack(9))
    line.release("late")
    assert line.near == proposal(9, "/c") + commit(9) + proposal(10, "/d")
    (row,) = (row for row in line.notes.rows if row["api"] == "COMMIT")
    assert (row["action"], row["rule"], row["zxid"]) == ("released", "late", 9)


def test_a_rule_finds_the_proposal_of_one_path_in_a_multi_too() -> None:
    deleted, changed = text("/x"), text("/c") + buffer(b"y") + struct.pack(">i", 4)
    parts = struct.pack(">ii", 2, 2) + buffer(deleted) + struct.pack(">i", 5) + buffer(changed)
    multi = packet(2, 9, struct.pack(">qiqqi", SESSION, 1, 9, 1000, 14) + parts)
    where = (Clause(field="path", operator=Operator.IS, value="/c"),)
    match = Match(direction=Direction.RESPONSE, api="PROPOSAL", where=where)
    line = Line(QUORUM_LINK, Rule(name="one", action=Hold(), match=match))
    line.tell(proposal(8, "/other") + multi)
    assert line.near == proposal(8, "/other")
    (row,) = (row for row in line.notes.rows if row["action"] == "held")
    assert [item["path"] for item in row["items"]] == ["/x", "/c"]
    assert row["items"][1]["znode_version"] == 4


def test_a_snapshot_can_be_held_in_its_midst() -> None:
    match = Match(direction=Direction.RESPONSE, api="TREE")
    line = Line(QUORUM_LINK, Rule(name="half", action=Hold(), match=match))
    line.tell(b"".join(TAKING_IN))
    assert line.near == b"".join(TAKING_IN[:2])
    assert TREE not in line.near
    line.release("half")
    assert line.near == b"".join(TAKING_IN)


def test_requests_carry_ids_behind_their_data() -> None:
    forwarded = struct.pack(">qii", SESSION, 4, 2) + text("/gone") + struct.pack(">i", 5)
    line = Line(QUORUM_LINK)
    line.ask(packet(1, -1, forwarded, ids=["127.0.0.1", "::1"]) + ack(3))
    first, second = line.notes.rows
    assert (first["path"], first["znode_version"], first["detail"]) == ("/gone", 5, "delete")
    assert second["api"] == "ACK"


def test_a_probe_of_an_election_port_passes_and_is_not_taped() -> None:
    line = Line(ELECTION_LINK)
    line.ask(b"\xff" * 8)
    assert line.far == b"\xff" * 8
    assert line.notes.rows == line.others == []


def test_an_old_release_greets_with_its_id_alone() -> None:
    line = Line(ELECTION_LINK)
    line.ask(struct.pack(">q", 2) + vote(2))
    first, second = line.notes.rows
    assert (first["api"], first["broker_id"]) == ("InitialMessage", 2)
    assert (second["leader_id"], second["zxid"], second["leader_epoch"]) == (2, 1 << 32, 1)
    assert second["detail"] == "looking, round 1"


@pytest.mark.parametrize("link", [QUORUM_LINK, ELECTION_LINK])
def test_what_is_not_the_protocol_cuts_the_connection_with_the_reason(link: Link) -> None:
    line = Line(link)
    line.tell(b"\x7f" * 60)
    assert isinstance(line.others[0], Broken)
    assert line.near == b""


@pytest.mark.parametrize("link", [QUORUM_LINK, ELECTION_LINK])
@given(asked=st.binary(), told=st.binary())
def test_no_bytes_make_it_raise(link: Link, asked: bytes, told: bytes) -> None:
    everything = Match(direction=Direction.RESPONSE)
    line = Line(link, Rule(name="kept", action=Hold(), match=everything))
    line.ask(asked)
    line.tell(told)
