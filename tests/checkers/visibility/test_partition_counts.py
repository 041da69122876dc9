"""V1 to V3 of the number of partitions: smallest, nearest, unclear, and against plain loops."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metadata_histories import GROWTH, a_growth, a_read, a_write, numbered, of_clients, told
from proving import assert_proof

from fencepost.checkers.proof import Proof
from fencepost.checkers.visibility.stale import (
    StaleReads,
    backward_sessions,
    nonrepeatable_reads,
    stale_reads,
)

pytestmark = pytest.mark.slow

LIFE = """
    create A 0 10-20
    grow   2   30-40
    delete     50-60
    create B 2 70-80
"""

Rows = list[dict[str, Any]]


def counted(found: StaleReads) -> list[tuple[object, int]]:
    """How many partitions were shown, and the age."""
    return [
        (Proof.of_columns(row["seen"]).fact("partition_count"), row["call_ns"] - row["known_ns"])
        for row in found.table.to_pylist()
        if "partition" in row["seen"]["rule"]
    ]


def test_fewer_partitions_than_were_given_are_stale() -> None:
    found = stale_reads(told(f"{LIFE} reads b2 A 45-46"))
    assert counted(found) == [(1, 5)]
    (row,) = found.table.to_pylist()
    lacks = Proof.of_columns(row["lacks"])
    assert_proof(lacks, "the growth to", partition_count=2, write=1, node="broker-1")
    assert row["node"] == "broker-2"
    # The id is as new as can be, and so is one partition fewer.
    assert found.judged_count == 2


@pytest.mark.parametrize(
    "read",
    [
        "b2 A 40-46",  # called when the answer came: concurrent
        "b2 A*2 45-46",
        "b2 A*3 45-46",  # somebody else gave it another
        "b2 B 85-86",  # another topic of that name
        "b2 C 45-46",  # when it was created is not known
    ],
)
def test_a_read_that_may_be_right_is_not(read: str) -> None:
    assert counted(stale_reads(told(f"{LIFE} reads {read}"))) == []


@pytest.mark.parametrize(
    "writes",
    [
        "create A 0 10-20 \n grow 2 30-40?",  # may not have happened yet
        "create A 0 10-20 \n grow 2 30-40!",
        "create A 0 10-20? \n grow 2 30-40",  # its id is not known
        "create A 0 10-20 \n grow 2 19-40",  # was called before the topic was surely there
    ],
)
def test_a_write_of_which_too_little_is_known_makes_no_read_stale(writes: str) -> None:
    assert counted(stale_reads(told(f"{writes} \n reads b2 A 45-46"))) == []


def test_partitions_that_were_seen_and_are_gone_went_back() -> None:
    across = told("reads b1 A*3 10-11 \n reads b2 A*2 12-13")
    assert counted(nonrepeatable_reads(across)) == [(2, 1)]
    assert counted(backward_sessions(across)) == []
    within = told("reads b1 A*3 10-11 \n reads b1 A*2 12-13")
    assert counted(nonrepeatable_reads(within)) == []
    assert counted(backward_sessions(within)) == [(2, 1)]
    (row,) = within_rows = backward_sessions(within).table.to_pylist()
    assert len(within_rows) == 1
    lacks = Proof.of_columns(row["lacks"])
    by = {"read": 0, "node": "broker-1", "process": 1}
    assert_proof(lacks, "had shown", partition_count=3, **by)


@pytest.mark.parametrize(
    "reads",
    [
        "reads b1 A*3 10-12 \n reads b2 A*2 12-13",  # concurrent
        "reads b1 A*3 10-11 \n reads b2 B*2 12-13",  # another topic of that name
        "reads b1 A*2 10-11 \n reads b2 A*3 12-13",
    ],
)
def test_partitions_that_did_not_go_back(reads: str) -> None:
    assert counted(nonrepeatable_reads(told(reads))) == []


@st.composite
def honest(draw: st.DrawFn) -> tuple[Rows, Rows]:
    """One topic in one place, whose every write and read takes effect at one moment."""
    moments: list[tuple[int, int, str, Any]] = []
    for number in range(draw(st.integers(1, 7))):
        call_ns = 4 * draw(st.integers(0, 20))
        at_ns = call_ns + 2 * draw(st.integers(0, 4)) + 1
        kind = draw(st.sampled_from(["create", "grow", "grow", "delete"]))
        moments.append((at_ns, number, kind, (call_ns, draw(st.integers(2, 5)))))
    for number in range(draw(st.integers(1, 8))):
        call_ns = 4 * draw(st.integers(0, 25))
        at_ns = call_ns + 2 * draw(st.integers(0, 4)) + 1
        moments.append((at_ns, 10 + number, "read", (call_ns, draw(st.integers(1, 2)))))
    unclear = draw(st.sets(st.integers(0, 6)))
    return _taking_place(sorted(moments), unclear)


def _taking_place(moments: list[tuple[int, int, str, Any]], unclear: set[int]) -> tuple[Rows, Rows]:
    writes: Rows = []
    reads: Rows = []
    topic_id, count = "", 0
    for at_ns, number, kind, (call_ns, drawn) in moments:
        if kind == "read":
            shown = f"{topic_id}*{count}" if topic_id else "none"
            reads.append(a_read(f"broker-{drawn}", shown, call_ns, at_ns + 1))
            continue
        possible = {
            "create": not topic_id,
            "grow": bool(topic_id) and drawn > count,
            "delete": bool(topic_id),
        }[kind]
        outcome = "info" if number in unclear else "ok" if possible else "fail"
        times = (call_ns, at_ns + 1)
        if kind == "grow":
            writes.append(a_growth(drawn, *times, outcome=outcome))
        elif kind == "create":
            new_id = "ABCDEFG"[number]
            writes.append(
                a_write("create-topic", *times, outcome=outcome, topic_id=new_id, number=number)
            )
        else:
            writes.append(a_write("delete-topic", *times, outcome=outcome))
        if possible:
            count = drawn if kind == "grow" else 1
            topic_id = {"create": "ABCDEFG"[number], "grow": topic_id, "delete": ""}[kind]
    return writes, reads


@settings(max_examples=4 * settings().max_examples)
@given(honest())
def test_a_topic_that_grows_at_one_moment_is_never_accused(history: tuple[Rows, Rows]) -> None:
    for check in (stale_reads, nonrepeatable_reads, backward_sessions):
        assert check(of_clients(numbered(*history))).table.to_pylist() == []


@st.composite
def noise(draw: st.DrawFn) -> tuple[Rows, Rows]:
    """Writes and reads that have nothing to do with each other."""
    times = st.tuples(st.integers(0, 30), st.integers(1, 12))
    outcomes = st.sampled_from(["ok", "ok", "ok", "info", "fail"])
    writes: Rows = []
    for topic_id in draw(st.lists(st.sampled_from("AABC"), max_size=3)):
        call_ns, length = draw(times)
        outcome = draw(outcomes)
        writes.append(
            a_write("create-topic", call_ns, call_ns + length, outcome=outcome, topic_id=topic_id)
        )
    for count in draw(st.lists(st.integers(1, 4), max_size=4)):
        call_ns, length = draw(times)
        writes.append(a_growth(count, call_ns, call_ns + length, outcome=draw(outcomes)))
    reads: Rows = []
    for shown in draw(st.lists(st.sampled_from("ABC"), max_size=7)):
        call_ns, length = draw(times)
        node = draw(st.sampled_from(["broker-1", "broker-2"]))
        count = draw(st.integers(1, 4))
        reads.append(a_read(node, f"{shown}*{count}", call_ns, call_ns + length))
    return writes, reads


@settings(max_examples=4 * settings().max_examples)
@given(noise())
def test_the_kernels_find_what_plain_loops_find(history: tuple[Rows, Rows]) -> None:
    table = of_clients(numbered(*history))
    writes, reads = history
    assert _found(stale_reads(table)) == _slow_stale(writes, reads)
    assert _found(nonrepeatable_reads(table)) == _slow_backward(reads, across=True)
    assert _found(backward_sessions(table)) == _slow_backward(reads, across=False)


def _found(found: StaleReads) -> dict[int, int]:
    """When what the read lacks was known, of those about partitions."""
    return {
        row["read"]: row["known_ns"]
        for row in found.table.to_pylist()
        if "partition" in row["seen"]["rule"]
    }


def _slow_stale(writes: Rows, reads: Rows) -> dict[int, int]:
    found: dict[int, int] = {}
    for read in reads:
        creations = [one for one in writes if one["topic_id"] == read["topic_id"]]
        if len(creations) != 1:
            continue
        known = [
            write["return_ns"]
            for write in writes
            if write["f"] == GROWTH
            and write["outcome"] == "ok"
            and write["call_ns"] >= creations[0]["return_ns"]
            and write["return_ns"] < read["call_ns"]
            and write["partition_count"] > read["count"]
        ]
        if known:
            found[read["read"]] = min(known)
    return found


def _slow_backward(reads: Rows, *, across: bool) -> dict[int, int]:
    found: dict[int, int] = {}
    for second in reads:
        known = [
            first["return_ns"]
            for first in reads
            if (first["node"] != second["node"]) is across
            and first["topic_id"] == second["topic_id"]
            and first["return_ns"] < second["call_ns"]
            and first["count"] > second["count"]
        ]
        if known:
            found[second["read"]] = min(known)
    return found
