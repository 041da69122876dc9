"""C3, C9 and C13: who may be in an ISR, and what an ISR may be."""

import pytest
from metadata_logs import FACTS, asked, doubts, said, sentence, tables

from checkers.control_plane.epoch_check_bypassed import bypassed_epoch_checks
from checkers.control_plane.illegal_isr import elr_overlaps, empty_isrs, strange_isrs
from checkers.control_plane.ineligible_member import ineligible_members

BEGIN = """
    1 register 1
    2 unfence 1
    3 register 2
    4 unfence 2
    5 topic t
    6 partition t-0 replicas 1,2 isr 1,2 leader 1
"""


def members(log: str) -> list[str]:
    return said(asked(ineligible_members, tables(BEGIN + log), FACTS)).get("t-0", [])


def test_a_fenced_replica_joins_the_isr() -> None:
    log = """
        10 change t-0 isr 1
        11 fence 2
        {}
        13 change t-0 isr 1,2
    """
    assert members(log.format("")) == [
        sentence(
            """
            broker 2 joined the ISR of t-0 at metadata offset 13 (ISR [1, 2]), when it was
            fenced since metadata offset 11
            """
        )
    ]
    assert not members(log.format("12 unfence 2"))


def test_neither_a_stopping_nor_an_unregistered_nor_an_unknown_replica_joins() -> None:
    log = "10 change t-0 isr 1\n{}\n13 change t-0 isr 1,{}"
    assert "was in controlled shutdown" in members(log.format("11 stopping 2", 2))[0]
    assert "was unregistered" in members(log.format("11 unregister 2", 2))[0]
    assert "was fenced" in members(log.format("11 register 2", 2))[0]
    assert "had never registered" in members(log.format("", 3))[0]


def test_a_snapshot_may_have_left_out_whom_it_does_not_name() -> None:
    log = """
        snapshot 9 topic t
        snapshot 9 partition t-0 replicas 1,2 isr 1 leader 1 partition-epoch 5
        10 change t-0 isr 1,2
    """
    assert not said(asked(ineligible_members, tables(log), FACTS))


def test_an_unclean_election_may_make_a_leader_of_anybody() -> None:
    assert not members("10 fence 2\n11 change t-0 isr 3 leader 3 recovering")


def test_a_fenced_member_stays_only_if_it_is_the_last() -> None:
    log = "10 fence 2 at 1000\n{}\n99 noop at {}"
    assert "both for 10.1 s, though it was not the last member" in members(log.format("", 11100))[0]
    assert not members(log.format("", 11000))
    assert not members(log.format("11 change t-0 isr 1 at 1500", 30000))
    assert not members(log.format("11 change t-0 isr 2 leader 2 at 1500", 30000))
    assert not members(log.format("11 unfence 2 at 9000", 30000))
    assert not members(log.format("11 delete t at 9000", 30000))


def test_an_isr_is_empty() -> None:
    alone = BEGIN + "10 change t-0 isr none leader -1"
    led = BEGIN + "10 change t-0 isr none"
    elr = "\n7 feature eligible.leader.replicas.version 1"
    assert (
        "the ISR of t-0 is [], and its leader is -1"
        in (said(asked(empty_isrs, tables(alone), FACTS))["t-0"][0])
    )
    assert not said(asked(empty_isrs, tables(BEGIN + elr + alone.removeprefix(BEGIN)), FACTS))
    assert not said(asked(empty_isrs, tables(alone + " elr 1"), FACTS))
    assert said(asked(empty_isrs, tables(BEGIN + elr + "\n" + led.removeprefix(BEGIN)), FACTS))


def test_an_isr_is_empty_before_the_cluster_had_eligible_leader_replicas() -> None:
    early = BEGIN + "10 change t-0 isr none leader -1"
    later = "\n11 feature eligible.leader.replicas.version 1"
    assert said(asked(empty_isrs, tables(early + later), FACTS))
    given_up = "\n7 feature eligible.leader.replicas.version {}"
    before = BEGIN + given_up.format(1) + given_up.format(0).replace("7", "8")
    assert not said(asked(empty_isrs, tables(before + early.removeprefix(BEGIN)), FACTS))


def test_a_member_of_the_isr_is_no_replica() -> None:
    assert (
        "[3] are not among its replicas [1, 2]"
        in (said(asked(strange_isrs, tables(BEGIN + "10 change t-0 isr 1,3"), FACTS))["t-0"][0])
    )
    moved = "10 change t-0 isr 1,3 replicas 1,3"
    assert not said(asked(strange_isrs, tables(BEGIN + moved), FACTS))


def test_a_replica_is_in_the_isr_and_in_the_elr() -> None:
    assert said(asked(elr_overlaps, tables(BEGIN + "10 change t-0 isr 1,2 elr 2"), FACTS))
    assert not said(asked(elr_overlaps, tables(BEGIN + "10 change t-0 isr 1 elr 2"), FACTS))
    cleared = "10 change t-0 isr 1 elr 2\n11 clear-elr t\n12 change t-0 isr 1,2"
    assert not said(asked(elr_overlaps, tables(BEGIN + cleared), FACTS))


def test_a_request_that_named_another_epoch_was_not_refused() -> None:
    log = BEGIN + "10 change t-0 isr 1\n11 change t-0 isr 1,2"
    alter = "at 1050 broker-1 alter t-0 expecting 1 isr 1:1,2:{} -> {} at 1110"
    for epoch, answer, bad in (
        (2, "ok 2", True),
        (3, "ok 2", False),
        (-1, "ok 2", False),
        (2, "INELIGIBLE_REPLICA", False),
        (2, "ok 1", False),  # it changed nothing: nobody knows when it was looked at
    ):
        judged = asked(bypassed_epoch_checks, tables(log, alter.format(epoch, answer)), FACTS)
        assert bool(said(judged)) == bad, (epoch, answer)
    unanswered = alter.format(2, "ok 2").partition(" -> ")[0] + " -> nothing"
    assert not said(asked(bypassed_epoch_checks, tables(log, unanswered), FACTS))


def test_a_request_whose_sender_had_registered_anew_was_not_refused() -> None:
    log = BEGIN + "10 change t-0 isr 1\n11 change t-0 isr 1,2"
    alter = "at 1050 broker-1 alter t-0 expecting 1 isr 1,2 under {} -> {} at 1110"
    assert said(asked(bypassed_epoch_checks, tables(log, alter.format(9, "ok 2")), FACTS))[
        "t-0"
    ] == [
        sentence("""
            the AlterPartition of t-0 sent at 1.050 s (frame 0) named its sender, broker 1, with
            broker epoch 9; it had registered with 1 at metadata offset 1, and controller-1 made the
            change at metadata offset 11 instead of answering STALE_BROKER_EPOCH
        """)
    ]
    for epoch, answer in ((1, "ok 2"), (-1, "ok 2"), (9, "STALE_BROKER_EPOCH"), (9, "ok 1")):
        judged = asked(bypassed_epoch_checks, tables(log, alter.format(epoch, answer)), FACTS)
        assert not said(judged), (epoch, answer)


@pytest.mark.parametrize(
    ("alter", "words"),
    [
        (
            "broker-1 alter t-0 expecting 0 isr 1,2 -> ok 2",
            "expected partition epoch 0, and it was at 1 since metadata offset 10",
        ),
        (
            "broker-1 alter t-0 expecting 1 isr 1,2 leader-epoch 4 -> ok 2",
            "named leader epoch 4, and that was 0 since metadata offset 10",
        ),
        (
            "broker-2 alter t-0 expecting 1 isr 1,2 -> ok 2",
            "came from broker 2, and broker 1 led since metadata offset 10",
        ),
    ],
)
def test_a_request_out_of_date_was_not_refused(alter: str, words: str) -> None:
    log = BEGIN + "10 change t-0 isr 1\n11 change t-0 isr 1,2"
    found = said(asked(bypassed_epoch_checks, tables(log, f"at 1050 {alter} at 1110"), FACTS))
    assert [words in one for one in found["t-0"]] == [True]
    good = "at 1050 broker-1 alter t-0 expecting 1 isr 1,2 -> ok 2 at 1110"
    assert not said(asked(bypassed_epoch_checks, tables(log, good), FACTS))


def test_the_proof_of_a_bypassed_check_names_both_epochs() -> None:
    log = BEGIN + "10 change t-0 isr 1\n11 change t-0 isr 1,2"
    alter = "at 1050 broker-1 alter t-0 expecting 1 isr 1:1,2:2 -> ok 2 at 1110"
    assert said(asked(bypassed_epoch_checks, tables(log, alter), FACTS))["t-0"] == [
        sentence(
            """
            the AlterPartition of t-0 sent at 1.050 s (frame 0) named broker 2 with broker
            epoch 2; it had registered with 3 at metadata offset 3, and controller-1 made
            the change at metadata offset 11 instead of answering INELIGIBLE_REPLICA
            """
        )
    ]


def test_without_a_log_of_record_no_isr_is_judged() -> None:
    for kernel in (
        ineligible_members,
        empty_isrs,
        strange_isrs,
        elr_overlaps,
        bypassed_epoch_checks,
    ):
        assert doubts(asked(kernel, tables(""), FACTS))
