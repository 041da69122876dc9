"""C20: who may lead is there, and nobody does."""

import pyarrow as pa
from metadata_logs import ON_ZOOKEEPER, asked, facts, metadata_log, tables, told
from proving import assert_proof
from replica_disks import faults

from fencepost.checkers.control_plane.leaderless import leaderless
from fencepost.checkers.facts import Facts
from fencepost.checkers.proof import Proof

S = 1_000_000_000
END = "99 noop at 60000"
LOG = f"""
    0 leader 1000
    1 register 1 unfenced
    2 register 2 unfenced
    5 topic t
    6 partition t-0 replicas 1,2 isr 1,2 leader 1
    7 fence 1 at 10000
    {{}}
    {END}
"""
KILL = ("kill", "broker-1", 9900)


def found(
    steps: str, *events: tuple[str, str, int], run: Facts | None = None
) -> tuple[list[Proof], int]:
    log: str | pa.Table = LOG.format(steps)
    given = tables(log, faults=faults(KILL, *events))
    return told(asked(leaderless, given, run or facts(end_ns=50 * S)))


def test_a_partition_has_no_leader_though_a_member_serves() -> None:
    (proof,), cases = found("8 change t-0 isr 2 leader -1 at 10000")
    assert_proof(
        proof,
        "{key} has no leader from {since} until {until}",
        key="t-0",
        broker_id=2,
        isr="[2]",
        metadata_offset=8,
        bound=10_000,
    )
    assert cases == 1
    assert found("8 change t-0 isr 2 leader 2 at 10000") == ([], 1)


def test_a_partition_keeps_a_leader_that_is_fenced() -> None:
    (proof,), _ = found("")
    assert_proof(proof, "{key} has leader {gone}, which is fenced or gone,", gone=1)
    assert found("8 unfence 1 at 15000") == ([], 0)


def test_a_leader_that_is_elected_in_time_holds_the_rule() -> None:
    late = "8 change t-0 isr 2 leader -1 at 10000\n9 change t-0 leader 2 at {}"
    assert found(late.format(15_000)) == ([], 1)
    assert found(late.format(25_000))[0]


def test_without_a_member_that_serves_nobody_can_lead() -> None:
    gone = "8 change t-0 isr 1 leader -1 at 10000"
    assert found(gone) == ([], 0)
    assert found(f"{gone}\n9 unfence 1 at 40000") == ([], 0)
    assert found(f"{gone}\n9 unfence 1 at 30000")[0]
    assert found("8 change t-0 isr 2 leader -1 at 10000\n9 stopping 2 at 10000") == ([], 0)
    of_elr = "8 change t-0 isr none elr 2 leader -1 at 10000"
    assert found(of_elr)[0]


def test_who_cannot_act_elects_nobody() -> None:
    gone = "8 change t-0 isr 2 leader -1 at 10000"
    for fault, target, is_late in (
        ("kill", "broker-3", True),
        ("pause", "controller-1", False),
        ("partition", "broker-3", False),
        ("pause", "broker-2", False),
    ):
        broken = faults((fault, target, 15_000), healed=False)
        given = tables(LOG.format(gone), faults=broken)
        judged, _ = told(asked(leaderless, given, facts(end_ns=50 * S)))
        assert bool(judged) is is_late, (fault, target)


def test_a_topic_that_is_to_be_deleted_needs_no_leader() -> None:
    gone = "8 change t-0 isr 2 leader -1 at 10000\n9 {} t at 12000"
    assert found(gone.format("delete")) == ([], 0)
    assert found(gone.format("to-delete")) == ([], 0)


def test_on_zookeeper_a_session_that_ends_leaves_a_partition_without_a_leader() -> None:
    log = """
        1 leader 2 at 100
        3 register 1 unfenced at 200
        4 register 2 unfenced at 200
        5 topic t at 300
        6 partition t-0 replicas 1,2 isr 1,2 leader 1 at 400
        7 fence 1 at 10000
        {}
        99 noop at 60000
    """
    for steps, is_late in (("", True), ("8 change t-0 isr 2 leader 2 at 10100", False)):
        given = tables(metadata_log(zookeeper_1=log.format(steps)), faults=faults())
        judged, _ = told(asked(leaderless, given, ON_ZOOKEEPER))
        assert bool(judged) is is_late
