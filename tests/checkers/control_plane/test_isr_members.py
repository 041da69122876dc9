"""C3, C9 and C13: who may be in an ISR, and what an ISR may be."""

import pyarrow as pa
import pytest
from metadata_logs import FACTS, ON_ZOOKEEPER, asked, doubts, metadata_log, proofs, tables
from proving import assert_proof, only, source_of
from replica_disks import faults

from fencepost.checkers.control_plane.epoch_check_bypassed import bypassed_epoch_checks
from fencepost.checkers.control_plane.illegal_isr import elr_overlaps, empty_isrs, strange_isrs
from fencepost.checkers.control_plane.ineligible_member import ineligible_members
from fencepost.checkers.proof import Proof

BEGIN = """
    1 register 1
    2 unfence 1
    3 register 2
    4 unfence 2
    5 topic t
    6 partition t-0 replicas 1,2 isr 1,2 leader 1
"""
LED = "    0 leader 1000 at 0" + BEGIN


def members(log: str) -> list[Proof]:
    return proofs(asked(ineligible_members, tables(BEGIN + log), FACTS)).get("t-0", [])


def test_a_fenced_replica_joins_the_isr() -> None:
    log = """
        10 change t-0 isr 1
        11 fence 2
        {}
        13 change t-0 isr 1,2
    """
    (proof,) = members(log.format(""))
    rule = "joined the ISR of {key} at metadata offset {metadata_offset} (ISR {isr}), when it was "
    rule += "fenced since metadata offset {since}"
    assert_proof(proof, rule, broker_id=2, key="t-0", metadata_offset=13, isr="[1, 2]", since=11)
    assert not members(log.format("12 unfence 2"))


def test_neither_a_stopping_nor_an_unregistered_nor_an_unknown_replica_joins() -> None:
    log = "10 change t-0 isr 1\n{}\n13 change t-0 isr 1,{}"
    for step, joining, rule, facts in (
        ("11 stopping 2", 2, "was in controlled shutdown", {"since": 11}),
        ("11 unregister 2", 2, "was unregistered", {"since": 11}),
        ("11 register 2", 2, "was fenced", {"since": 11}),
        ("", 3, "had never registered", {}),
    ):
        (proof,) = members(log.format(step, joining))
        assert_proof(proof, rule, broker_id=joining, metadata_offset=13, **facts)


def test_a_snapshot_may_have_left_out_whom_it_does_not_name() -> None:
    log = """
        snapshot 9 topic t
        snapshot 9 partition t-0 replicas 1,2 isr 1 leader 1 partition-epoch 5
        10 change t-0 isr 1,2
    """
    assert not proofs(asked(ineligible_members, tables(log), FACTS))


def test_an_unclean_election_may_make_any_replica_the_leader() -> None:
    assert not members("10 fence 2\n11 change t-0 isr 3 leader 3 recovering")


@pytest.mark.parametrize(
    "log",
    [
        "10 fence 2 at 1000\n99 noop at {until}",
        """
        7 change t-0 isr 1 at 700
        10 fence 2 at 1000
        20 change t-0 isr 1,2 at {until}
        21 unfence 2 at {until}
        99 noop at 90000
        """,
    ],
    ids=["stays", "joins"],
)
def test_on_zookeeper_a_controller_gets_its_time_to_see_that_a_session_ended(log: str) -> None:
    def accused(until: int, *broken: tuple[str, str, int]) -> bool:
        told = metadata_log(**{"zookeeper-1": BEGIN + log.format(until=until)})
        given = tables(told, faults=faults(*broken))
        return bool(proofs(asked(ineligible_members, given, ON_ZOOKEEPER)).get("t-0"))

    assert accused(15_000)
    assert not accused(10_500)
    # Something was broken in between: it had less than its time.
    assert not accused(15_000, ("pause", "broker-1", 6000))
    assert accused(30_000, ("pause", "broker-1", 6000))


@pytest.mark.parametrize(
    ("fault", "target"),
    [("pause", "controller-1"), ("partition", "broker-1"), ("pause", "broker-2")],
)
def test_who_registered_is_unfenced_once_its_heartbeats_arrive_and_are_heard(
    fault: str, target: str
) -> None:
    log = BEGIN + "10 register 2 at 1000\n11 unfence 2 at 14000\n99 noop at 30000"
    assert _members(log)
    assert not _members(log, fault, target)


def test_a_fault_keeps_no_controller_from_what_it_does_as_it_fences() -> None:
    log = BEGIN + "10 fence 2 at 1000\n11 unfence 2 at 14000\n99 noop at 30000"
    assert _members(log, "partition", "broker-1")
    assert _members(log, "pause", "controller-1", lingering=False)
    assert not _members(log, "pause", "controller-1", lingering=True)


def _members(log: str, *fault: str, lingering: bool = False) -> dict[str, list[Proof]]:
    """Whom the check finds, while a fault is in effect from 1.1 to 13.9 s."""
    broken = faults((*fault, 1100)) if fault else faults()
    healed = broken.set_column(
        broken.schema.get_field_index("end_ns"),
        "end_ns",
        pa.array([13_900_000_000] * len(broken), pa.int64()),
    )
    given = tables(log, faults=healed)
    return proofs(asked(ineligible_members, given, FACTS, lingering=lingering))


def test_an_isr_is_empty() -> None:
    alone = BEGIN + "10 change t-0 isr none leader -1"
    led = BEGIN + "10 change t-0 isr none"
    elr = "\n7 feature eligible.leader.replicas.version 1"
    proof = only(proofs(asked(empty_isrs, tables(alone), FACTS)), "t-0")
    assert_proof(proof, "and its leader is {leader}", metadata_offset=10, isr="[]", leader=-1)
    assert not proofs(asked(empty_isrs, tables(BEGIN + elr + alone.removeprefix(BEGIN)), FACTS))
    assert not proofs(asked(empty_isrs, tables(alone + " elr 1"), FACTS))
    assert proofs(asked(empty_isrs, tables(BEGIN + elr + "\n" + led.removeprefix(BEGIN)), FACTS))


def test_an_isr_is_empty_before_the_cluster_had_eligible_leader_replicas() -> None:
    early = BEGIN + "10 change t-0 isr none leader -1"
    later = "\n11 feature eligible.leader.replicas.version 1"
    assert proofs(asked(empty_isrs, tables(early + later), FACTS))
    given_up = "\n7 feature eligible.leader.replicas.version {}"
    before = BEGIN + given_up.format(1) + given_up.format(0).replace("7", "8")
    assert not proofs(asked(empty_isrs, tables(before + early.removeprefix(BEGIN)), FACTS))


def test_a_member_of_the_isr_is_no_replica() -> None:
    found = proofs(asked(strange_isrs, tables(BEGIN + "10 change t-0 isr 1,3"), FACTS))
    rule = "{strange} are not among its replicas {replicas}"
    assert_proof(only(found, "t-0"), rule, strange="[3]", replicas="[1, 2]", isr="[1, 3]")
    moved = "10 change t-0 isr 1,3 replicas 1,3"
    assert not proofs(asked(strange_isrs, tables(BEGIN + moved), FACTS))


def test_a_replica_is_in_the_isr_and_in_the_elr() -> None:
    assert proofs(asked(elr_overlaps, tables(BEGIN + "10 change t-0 isr 1,2 elr 2"), FACTS))
    assert not proofs(asked(elr_overlaps, tables(BEGIN + "10 change t-0 isr 1 elr 2"), FACTS))
    cleared = "10 change t-0 isr 1 elr 2\n11 clear-elr t\n12 change t-0 isr 1,2"
    assert not proofs(asked(elr_overlaps, tables(BEGIN + cleared), FACTS))


def test_a_request_that_named_another_epoch_was_not_refused() -> None:
    log = BEGIN + "10 change t-0 isr 1\n11 change t-0 isr 1,2"
    alter = "at 1050 broker-1 alter t-0 expecting 1 isr 1:1,2:{} -> {} at 1110"
    for epoch, answer, bad in (
        (2, "ok 2", True),
        (3, "ok 2", False),
        (-1, "ok 2", False),
        (2, "INELIGIBLE_REPLICA", False),
        (2, "NEW_LEADER_ELECTED", True),  # granted, and the sender's leadership taken by it
        (3, "NEW_LEADER_ELECTED", False),
        (2, "ok 1", False),  # it changed nothing: when it was looked at is not known
    ):
        judged = asked(bypassed_epoch_checks, tables(log, alter.format(epoch, answer)), FACTS)
        assert bool(proofs(judged)) == bad, (epoch, answer)
    unanswered = alter.format(2, "ok 2").partition(" -> ")[0] + " -> nothing"
    assert not proofs(asked(bypassed_epoch_checks, tables(log, unanswered), FACTS))


def test_a_request_whose_sender_had_registered_anew_was_not_refused() -> None:
    log = BEGIN + "10 change t-0 isr 1\n11 change t-0 isr 1,2"
    alter = "at 1050 broker-1 alter t-0 expecting 1 isr 1,2 under {} -> {} at 1110"
    found = proofs(asked(bypassed_epoch_checks, tables(log, alter.format(9, "ok 2")), FACTS))
    assert_proof(
        only(found, "t-0"),
        "named its sender, broker {broker_id}, with broker epoch {named}; it had registered with "
        "{in_force} at metadata offset {offset}",
        asked=1050,
        frame=0,
        broker_id=1,
        named=9,
        in_force=1,
        offset=1,
        target="controller-1",
        metadata_offset=11,
        refusal="STALE_BROKER_EPOCH",
    )
    for epoch, answer in ((1, "ok 2"), (-1, "ok 2"), (9, "STALE_BROKER_EPOCH"), (9, "ok 1")):
        judged = asked(bypassed_epoch_checks, tables(log, alter.format(epoch, answer)), FACTS)
        assert not proofs(judged), (epoch, answer)


@pytest.mark.parametrize(
    ("alter", "rule", "named", "in_force"),
    [
        (
            "broker-1 alter t-0 expecting 0 isr 1,2 -> ok 2",
            "expected partition epoch {named}, and it was at {in_force} since",
            0,
            1,
        ),
        (
            "broker-1 alter t-0 expecting 1 isr 1,2 leader-epoch 4 -> ok 2",
            "named leader epoch {named}, and that was {in_force} since",
            4,
            0,
        ),
        (
            "broker-2 alter t-0 expecting 1 isr 1,2 -> ok 2",
            "came from broker {named}, and broker {in_force} led since",
            2,
            1,
        ),
    ],
)
def test_a_request_out_of_date_was_not_refused(
    alter: str, rule: str, named: int, in_force: int
) -> None:
    log = BEGIN + "10 change t-0 isr 1\n11 change t-0 isr 1,2"
    found = proofs(asked(bypassed_epoch_checks, tables(log, f"at 1050 {alter} at 1110"), FACTS))
    assert_proof(only(found, "t-0"), rule, named=named, in_force=in_force, offset=10)
    good = "at 1050 broker-1 alter t-0 expecting 1 isr 1,2 -> ok 2 at 1110"
    assert not proofs(asked(bypassed_epoch_checks, tables(log, good), FACTS))


def test_on_zookeeper_a_request_for_what_is_so_already_made_no_version() -> None:
    log = BEGIN + "10 change t-0 isr 1\n11 change t-0 isr 1,2\n12 change t-0 isr 1"
    held = "at 950 passed 1300 broker-1 alter t-0 expecting 0 isr 1 -> ok {} at 1310"

    def told(epoch: int) -> dict[str, list[Proof]]:
        given = tables(metadata_log(zookeeper_1=log), held.format(epoch))
        return proofs(asked(bypassed_epoch_checks, given, ON_ZOOKEEPER))

    assert not told(3)
    assert not told(1)
    assert proofs(asked(bypassed_epoch_checks, tables(log, held.format(3)), FACTS))["t-0"]


@pytest.mark.parametrize(
    ("change", "rule", "refusal"),
    [
        ("broker-1 changes t-0 isr 1,2 under 9", "named its sender", "INVALID_INCARNATION_ID"),
        ("broker-2 changes t-0 isr 1,2 under 3", "led since", "NOT_LEADER_OR_FOLLOWER"),
        (
            "broker-1 changes t-0 isr 1,2 leader-epoch 4 under 1",
            "named leader epoch",
            "NOT_LEADER_OR_FOLLOWER",
        ),
        (
            "broker-1 changes t-0 isr 1:1,2:2 under 1",
            "named broker {broker_id}",
            "INELIGIBLE_REPLICA",
        ),
    ],
)
def test_an_isr_change_out_of_date_was_not_refused(change: str, rule: str, refusal: str) -> None:
    log = LED + "10 change t-0 isr 1 at 500\n11 change t-0 isr 1,2 at 9100"
    answered = f"at 9050 {change} -> {{}} at 9110"
    given = tables(log, answered.format("ok"))
    (proof,) = proofs(asked(bypassed_epoch_checks, given, FACTS))["t-0"]
    assert_proof(proof, rule, api="IsrChange", key="t-0", refusal=refusal)
    for good in (
        answered.format(refusal),
        "at 9050 broker-1 changes t-0 isr 1:1,2:3 under 1 -> ok at 9110",
        # Another change than the one that was made.
        answered.replace("isr 1,2", "isr 1").replace("isr 1:1,2:2", "isr 1:1").format("ok"),
        # Answered before the change was made.
        "at 50 broker-1 changes t-0 isr 1,2 under 9 -> ok at 60",
    ):
        assert not proofs(asked(bypassed_epoch_checks, tables(log, good), FACTS)), good


def test_what_a_legacy_leader_wrote_itself_no_isr_change_made() -> None:
    """In a double roll: broker 2 led and wrote, and broker 1 asked for the same ISR a moment on."""
    log = LED + "10 change t-0 isr 1,2 leader 2 at 500\n11 change t-0 isr 2 at 1100"
    given = "at 1050 broker-1 changes t-0 isr 2 under 1 -> ok at 1110"
    asked_for = tables(log, given)
    assert proofs(asked(bypassed_epoch_checks, asked_for, FACTS))["t-0"]
    of_old = log.replace("10 change", "9 runs-on 2 h2 version 4 at 400\n10 change")
    assert not proofs(asked(bypassed_epoch_checks, tables(of_old, given), FACTS))


def test_what_begins_a_leader_epoch_no_isr_change_made() -> None:
    """Broker 2 asks a moment after its election for the ISR that it was elected with."""
    log = LED + "10 change t-0 isr 1,2 at 500\n11 change t-0 isr 2{} at 1100"
    given = "at 1050 broker-2 changes t-0 isr 2 under 3 -> ok at 1110"
    assert proofs(asked(bypassed_epoch_checks, tables(log.format(""), given), FACTS))["t-0"]
    elected = log.format(" leader 2 leader-epoch 9")
    assert not proofs(asked(bypassed_epoch_checks, tables(elected, given), FACTS))


def test_the_proof_of_a_bypassed_check_names_both_epochs() -> None:
    log = BEGIN + "10 change t-0 isr 1\n11 change t-0 isr 1,2"
    alter = "at 1050 broker-1 alter t-0 expecting 1 isr 1:1,2:2 -> ok 2 at 1110"
    proof = only(proofs(asked(bypassed_epoch_checks, tables(log, alter), FACTS)), "t-0")
    assert_proof(
        proof,
        "named broker {broker_id} with broker epoch {named}; it had registered with {in_force}",
        broker_id=2,
        named=2,
        in_force=3,
        offset=3,
        refusal="INELIGIBLE_REPLICA",
    )
    assert source_of(proof, "named") == "frame 0"
    assert source_of(proof, "in_force") == "metadata offset 3"


def test_without_a_log_of_record_no_isr_is_judged() -> None:
    for kernel in (
        ineligible_members,
        empty_isrs,
        strange_isrs,
        elr_overlaps,
        bypassed_epoch_checks,
    ):
        assert doubts(asked(kernel, tables(""), FACTS))
