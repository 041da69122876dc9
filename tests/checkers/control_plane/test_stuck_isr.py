"""C12: when a replica should have been back."""

from metadata_logs import asked, doubts, facts, proofs, tables
from proving import assert_proof
from replica_disks import disks, faults

from fencepost.checkers.control_plane.stuck_isr import stuck_isrs
from fencepost.checkers.proof import Proof
from fencepost.history.clock import ClockSkew

S = 1_000_000_000
LOG = """
    1 register 2
    2 unfence 2
    5 topic t
    6 partition t-0 replicas 1,2 isr 1,2 leader 1
    7 fence 2 at 10000
    8 change t-0 isr 1 at 10000
    9 unfence 2 at 21000
    99 noop at 60000
"""
EQUAL = "broker-1: 17@0 18@1 hw 2\nbroker-2: 17@0 18@1 hw 2"
KILL = (("kill", "broker-2", 9900),)


def found(
    log: str = LOG,
    lines: str = EQUAL,
    events: tuple[tuple[str, str, int], ...] = KILL,
    keys: tuple[str, ...] = ("t-0",),
) -> tuple[list[Proof], str]:
    given = tables(log, **disks(lines), faults=faults(*events))
    run = facts(stuck_isr_limit_ns=20 * S, healed_ns=41 * S, end_ns=42 * S, keys=keys)
    judged = list(asked(stuck_isrs, given, run))
    return proofs(judged).get("t-0", []), doubts(judged).get("t-0", "")


def test_a_replica_that_has_caught_up_is_still_out_when_the_bound_has_passed() -> None:
    (proof,), doubt = found()
    assert_proof(
        proof,
        "its log ends where that of leader {leader} does",
        broker_id=2,
        key="t-0",
        isr="[1]",
        metadata_offset=8,
        leader=1,
        healed=10_000,
        limit=20_000,
    )
    assert not doubt


def test_a_replica_that_came_back_is_not_stuck_whatever_the_teardown_does_to_it() -> None:
    back = LOG + "100 change t-0 isr 1,2 at 40000\n101 change t-0 isr 1 at 59000"
    assert found(back) == ([], "")


def test_a_replica_that_its_leader_brings_in_at_the_very_end_is_not_stuck() -> None:
    assert found(LOG + "100 change t-0 isr 1,2 at 59500") == ([], "")
    (proof,), _ = found(LOG + "100 change t-0 isr 1,2 leader 2 at 59500")
    assert_proof(proof, "is unfenced and out of the ISR of {key}", broker_id=2, key="t-0")


def test_a_change_that_a_wrong_clock_may_show_too_late_ends_what_is_judged() -> None:
    """Broker 2 leads, and brings itself in, at 43 s or 14 s before: then nobody left it out."""
    led = LOG + "100 change t-0 isr 1,2 leader 2 at {}\n101 noop at 60000"
    assert found(led.format(43_000))[0]
    for ahead_s, accused in ((14, False), (1, True)):
        wrong = ClockSkew(
            node="controller-1",
            from_ns=0,
            until_ns=42 * S,
            ahead_min_ns=ahead_s * S,
            ahead_max_ns=ahead_s * S,
        )
        given = tables(led.format(43_000), **disks(EQUAL), faults=faults(*KILL))
        run = facts(
            stuck_isr_limit_ns=20 * S,
            healed_ns=41 * S,
            end_ns=42 * S,
            keys=("t-0",),
            skews=(wrong,),
        )
        judged = list(asked(stuck_isrs, given, run))
        assert bool(proofs(judged).get("t-0")) is accused


def test_a_replica_that_is_fenced_stopping_or_behind_is_not_stuck() -> None:
    assert found(LOG.replace("9 unfence 2", "9 fence 2")) == ([], "")
    assert found(LOG + "100 stopping 2 at 30000") == ([], "")
    assert found(lines="broker-1: 17@0 18@1 hw 2\nbroker-2: 17@0 hw 1") == ([], "")


def test_a_replica_that_a_reassignment_removes_need_not_come_back() -> None:
    """On ZooKeeper it leaves the ISR before it leaves the replicas."""
    assert found(LOG.replace("8 change t-0", "8 change t-0 removing 2")) == ([], "")


def test_before_the_bound_has_passed_it_is_unknown() -> None:
    late = (("kill", "broker-2", 9900), ("kill", "broker-1", 23000))
    stuck, doubt = found(events=late)
    assert not stuck
    assert "the bound has not passed" in doubt
    assert "the bound has not passed" in found(LOG.replace("at 21000", "at 35000"))[1]


def test_a_replica_that_is_in_a_later_isr_leaves_no_doubt_whoever_leads() -> None:
    """The bound has not passed, and nothing is left to wait for."""
    late = (("kill", "broker-2", 9900), ("kill", "broker-1", 41000))
    led = "100 change t-0 isr 1 leader -1 at 41200\n101 change t-0 isr 1 leader 1 at 41400"
    assert "the bound has not passed" in found(LOG + led, events=late)[1]
    assert found(LOG + led + "\n102 change t-0 isr 1,2 at 41800", events=late) == ([], "")


def test_a_replica_that_is_not_surely_unfenced_before_the_end_is_not_judged() -> None:
    assert found(LOG.replace("at 21000", "at 40950")) == ([], "")
    assert found(LOG.replace("at 21000", "at 40850"))[1]


def test_without_the_disks_it_is_unknown_whether_it_has_caught_up() -> None:
    assert "the disks do not tell" in found(lines="broker-1: 17@0 18@1 hw 2")[1]
    assert "the disks do not tell" in found(lines=EQUAL + " damaged")[1]


def test_without_a_bound_nothing_is_judged_and_without_a_heal_it_is_unknown() -> None:
    given = tables(LOG, **disks(EQUAL), faults=faults())
    assert not list(asked(stuck_isrs, given, facts()))
    assert doubts(asked(stuck_isrs, given, facts(stuck_isr_limit_ns=S)))


def test_a_partition_that_is_not_the_runs_is_not_judged() -> None:
    assert found(keys=("u-0",)) == ([], "")


def test_replicas_that_were_out_and_can_be_judged_in_the_end_are_the_cases() -> None:
    def counted(log: str, lines: str = EQUAL) -> int:
        given = tables(log, **disks(lines), faults=faults(*KILL))
        run = facts(stuck_isr_limit_ns=20 * S, healed_ns=41 * S, end_ns=42 * S)
        return sum(one.case_count for _, one in asked(stuck_isrs, given, run))

    assert counted(LOG) == 1
    assert counted(LOG + "100 change t-0 isr 1,2 at 40000") == 1
    assert counted(LOG, "broker-1: 17@0 18@1 hw 2\nbroker-2: 17@0 hw 1") == 1
    assert counted(LOG, "broker-1: 17@0 18@1 hw 2") == 0
    assert counted(LOG.replace("isr 1 at", "isr 1,2 at")) == 0
    assert counted(LOG.replace("9 unfence", "9 fence")) == 0
