"""V2 through several brokers and V3 through one: smallest, nearest, and with unclear writes."""

import pytest
from metadata_histories import told
from proving import assert_proof

from fencepost.checkers.proof import Proof
from fencepost.checkers.visibility.stale import StaleReads, backward_sessions, nonrepeatable_reads

# Nothing is acknowledged: only reads can tell what is newer.
OPEN = """
    create A 0 10-20
    alter  1   30-900
    delete     910-920
    create B 2 930-990
"""


def through(other: str, first: str, second: str) -> tuple[int, int]:
    """How many reads go back: across brokers, within one."""
    history = told(f"{OPEN} reads b1 {first} \n reads {other} {second}")
    across, within = nonrepeatable_reads(history), backward_sessions(history)
    return len(across.table), len(within.table)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("=1 40-50", "=0 60-61"),  # a setting
        ("=1 40-50", "none 60-61"),  # a topic that had a setting changed
        ("B 940-941", "A 942-943"),  # an id
        ("=2 940-941", "A 942-943"),  # the setting came with the second creation
        ("B 940-941", "=1 942-943"),
        ("B 940-941", "none 942-943"),
    ],
)
def test_a_read_after_a_newer_one_goes_back(first: str, second: str) -> None:
    assert through("b2", first, second) == (1, 0)
    assert through("b1", first, second) == (0, 1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("=1 40-50", "=0 50-61"),  # called when the other returned: concurrent
        ("=0 40-50", "=1 60-61"),  # forward
        ("=1 40-50", "A 60-61"),  # the same topic
        ("none 912-913", "A 914-915"),  # deleted, or not seen yet to be created
        ("=1 40-50", "=7 60-61"),
        ("C 40-50", "A 60-61"),
    ],
)
def test_a_read_that_may_be_as_new_does_not(first: str, second: str) -> None:
    assert through("b2", first, second) == through("b1", first, second) == (0, 0)


@pytest.mark.parametrize(
    ("first", "second", "case_count"),
    [
        ("=1 40-50", "=0 60-61", 1),  # it went back
        ("=1 40-50", "=1 60-61", 1),  # it did not
        ("=1 40-50", "=1 50-61", 0),  # at the same time
        ("=7 40-50", "=1 60-61", 0),  # a setting that was never written says nothing
    ],
)
def test_a_case_is_a_sighting_after_another(first: str, second: str, case_count: int) -> None:
    for other, of_across, of_within in (("b2", case_count, 0), ("b1", 0, case_count)):
        history = told(f"{OPEN} reads b1 {first} \n reads {other} {second}")
        assert nonrepeatable_reads(history).judged_count == of_across
        assert backward_sessions(history).judged_count == of_within


def test_an_info_write_that_was_seen_counts_from_then_on() -> None:
    history = """
        create A 0 10-20
        alter  1   30-40?
        reads b1 =1 50-51
        reads b2 =0 60-61
    """
    (row,) = nonrepeatable_reads(told(history)).table.to_pylist()
    assert row["known_ns"] == 51
    lacks = Proof.of_columns(row["lacks"])
    assert_proof(lacks, "had shown", setting=1, read=0, node="broker-1", process=1)


def test_what_an_info_write_may_have_made_does_not_go_back() -> None:
    history = """
        create A 0 10-20
        alter  1   30-40?
        alter  2   50-60
        reads b1 =2 70-71
        reads b2 =1 80-81
    """
    assert len(nonrepeatable_reads(told(history)).table) == 0


def went_back(found: StaleReads) -> list[tuple[str, object]]:
    return [
        (row["key"], Proof.of_columns(row["seen"]).fact("leader_epoch"))
        for row in found.table.to_pylist()
    ]


def test_a_leader_epoch_goes_back_without_any_write() -> None:
    history = told("reads b1 A/5 10-11 \n reads b2 A/4 12-13 \n reads b1 A/5 14-15")
    assert went_back(nonrepeatable_reads(history)) == [("m-000001-0", 4)]
    assert went_back(backward_sessions(history)) == []
    same = told("reads b2 A/5 10-11 \n reads b2 A/4 12-13")
    assert went_back(backward_sessions(same)) == [("m-000001-0", 4)]
    assert went_back(nonrepeatable_reads(same)) == []


@pytest.mark.parametrize(
    "reads",
    [
        "reads b1 A/5 10-11 \n reads b2 A/4 11-13",  # concurrent
        "reads b1 A/5 10-11 \n reads b2 B/0 12-13",  # another topic of that name
        "reads b1 A/4 10-11 \n reads b2 A/5 12-13",
    ],
)
def test_leader_epochs_that_do_not_go_back(reads: str) -> None:
    assert went_back(nonrepeatable_reads(told(reads))) == []
