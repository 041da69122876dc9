"""V1: the smallest stale reads, the nearest that are none, and writes without a clear end."""

import pytest
from metadata_histories import told
from proving import assert_proof

from fencepost.checkers.proof import Proof
from fencepost.checkers.visibility.stale import stale_reads

LIFE = """
    create A 0 10-20
    alter  1   30-40
    delete     50-60
    create B 2 70-80
"""


def ages(history: str) -> list[int]:
    table = stale_reads(told(history)).table
    return [row["call_ns"] - row["known_ns"] for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("read", "age"),
    [
        ("b2 none 25-26", 5),  # created and acknowledged
        ("b2 none 45-46", 25),  # and still the creation is what it lacks first
        ("b2 =0 45-46", 5),  # altered
        ("b2 A 65-66", 5),  # deleted
        ("b2 =1 65-66", 5),
        ("b2 A 85-86", 25),  # deleted, and created again
        ("b2 none 85-86", 5),
        ("b2 =0 85-86", 45),
    ],
)
def test_what_was_acknowledged_before_the_read_was_called_must_be_in_it(
    read: str, age: int
) -> None:
    assert ages(f"{LIFE} reads {read}") == [age]


@pytest.mark.parametrize(
    "read",
    [
        "b2 none 20-26",  # called when the answer came: concurrent
        "b2 none 5-90",  # called before all
        "b2 A 25-26",
        "b2 =0 39-46",  # the change was not acknowledged yet
        "b2 =1 35-36",  # seen before it was acknowledged
        "b2 A 60-66",
        "b2 none 45-55",  # returned after the deletion was called
        "b2 none 65-66",
        "b2 none 79-86",
        "b2 B 75-76",
        "b2 =2 85-86",
        "b2 C 85-86",  # an id that no write gave
        "b2 =7 85-86",  # a setting that no write made
    ],
)
def test_what_may_still_be_or_may_be_already_is_not_stale(read: str) -> None:
    assert ages(f"{LIFE} reads {read}") == []


@pytest.mark.parametrize("end", ["?", "!"])
def test_a_write_without_a_clear_end_outdates_nothing(end: str) -> None:
    assert ages(f"create A 0 10-20 \n alter 1 30-40{end} \n reads b2 =0 90-91") == []
    assert ages(f"create A 0 10-20 \n delete 30-40{end} \n reads b2 A 90-91") == []
    assert ages(f"create A 0 10-20{end} \n reads b2 none 90-91") == []


def test_what_a_write_without_a_clear_end_may_have_made_is_not_stale() -> None:
    """A deletion that timed out may be carried out at any later time, and so may a change."""
    assert ages("create A 0 10-20 \n delete 30-40? \n reads b2 none 90-91") == []
    assert ages("delete 5-6? \n create A 0 10-20 \n reads b2 none 90-91") == []
    twice = "delete 5-6? \n delete 10-20 \n create A 0 30-40"
    assert ages(f"{twice} \n reads b2 none 90-91") == []
    late = "create A 0 10-20 \n alter 1 30-40? \n alter 2 50-60 \n reads b2 =1 90-91"
    assert ages(late) == []


def test_but_a_deletion_that_failed_explains_nothing() -> None:
    assert ages("create A 0 10-20 \n delete 30-40! \n reads b2 none 90-91") == [70]


def test_an_id_is_gone_for_ever_whatever_else_is_unclear() -> None:
    history = "create A 0 10-20 \n delete 30-40? \n delete 50-60 \n create B 1 70-80?"
    assert ages(f"{history} \n reads b2 A 90-91") == [30]


def test_writes_that_overlap_make_no_read_stale() -> None:
    history = "create A 0 10-20 \n alter 1 30-60 \n alter 2 40-50"
    assert ages(f"{history} \n reads b2 =1 90-91") == []
    assert ages(f"{history} \n reads b2 =2 90-91") == []
    assert ages(f"{history} \n reads b2 =0 90-91") == [40]


def test_a_change_of_settings_proves_that_there_was_a_topic() -> None:
    history = "create A 0 10-20? \n alter 1 30-40"
    assert ages(f"{history} \n reads b2 none 90-91") == [50]


def test_the_clauses_name_what_was_shown_and_the_write() -> None:
    (row,) = stale_reads(told(f"{LIFE} reads b2 A 85-86")).table.to_pylist()
    assert (row["read"], row["node"]) == (0, "broker-2")
    assert_proof(Proof.of_columns(row["seen"]), "topic id {topic_id}", topic_id="A")
    assert_proof(Proof.of_columns(row["lacks"]), "the deletion", write=2, node="broker-1")


def test_what_could_be_compared_is_counted() -> None:
    history = f"{LIFE} reads b2 A 25-26 \n reads b2 C 25-26 \n reads b2 none 25-26"
    assert stale_reads(told(history)).judged_count == 2
    assert stale_reads(told(f"{LIFE} reads b2 A 85-86")).judged_count == 1


def test_a_read_before_anything_was_acknowledged_is_no_case() -> None:
    assert not stale_reads(told(f"{LIFE} reads b2 A 15-16")).judged_count
    assert not stale_reads(told(LIFE)).judged_count
