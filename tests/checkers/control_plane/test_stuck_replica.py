"""C12b: who should have been in the ISR long ago, whatever its log holds."""

import pyarrow as pa
import pytest
from metadata_logs import asked, doubts, facts, proofs, tables
from proving import assert_proof
from replica_disks import disks, faults

from fencepost.checkers.control_plane.stuck_isr import stuck_isrs
from fencepost.checkers.control_plane.stuck_replica import stuck_replicas
from fencepost.checkers.proof import Proof
from fencepost.history.cluster_schema import REPLICAS
from fencepost.history.schema import FAULTS

S = 1_000_000_000
LOG = """
    0 leader 1000
    1 register 1 unfenced
    2 register 2 unfenced
    3 register 3 unfenced
    5 topic m
    6 partition m-0 replicas 1,2,3 isr 1,2,3 leader 1
    7 fence 3 at 10000
    8 change m-0 isr 1,2 at 10000
    9 unfence 3 at 12000
    99 noop at 60000
"""
KILL = ("kill", "broker-3", 9900)


def found(
    log: str = LOG,
    *events: tuple[str, str, int],
    limit_s: int = 20,
    lines: str = "",
    end_s: int = 50,
) -> tuple[list[Proof], int, str]:
    """What is said of the partitions of topic m, how many cases there were, and the doubt."""
    given = tables(log, replicas=disks(lines)["replicas"], faults=faults(KILL, *events))
    run = facts(stuck_isr_limit_ns=limit_s * S, healed_ns=41 * S, end_ns=end_s * S)
    judged = list(asked(stuck_replicas, given, run))
    stuck = [proof for all_of_it in proofs(judged).values() for proof in all_of_it]
    return stuck, sum(one.case_count for _, one in judged), "; ".join(doubts(judged).values())


def test_a_replica_of_a_topic_made_on_the_way_that_never_comes_back_is_stuck() -> None:
    (proof,), cases, doubt = found()
    assert_proof(
        proof,
        "all that time nothing that it depends on was broken, and the bound is {limit}",
        broker_id=3,
        key="m-0",
        isr="[1, 2]",
        replicas="[1, 2, 3]",
        leader=1,
        metadata_offset=8,
        since=12_112,
        until=49_000,
        limit=20_000,
    )
    assert (cases, doubt) == (1, "")
    # C12 does not judge it: it is no key of the run.
    given = tables(LOG, replicas=REPLICAS.empty_table(), faults=faults(KILL))
    run = facts(stuck_isr_limit_ns=20 * S, healed_ns=41 * S, end_ns=50 * S)
    assert not proofs(asked(stuck_isrs, given, run))


def test_a_fault_of_a_node_that_it_does_not_depend_on_stops_no_bound() -> None:
    for fault, target, stuck in (
        ("kill", "broker-2", True),
        ("crash_client", "producer-1", True),
        ("kill", "broker-1", False),
        ("pause", "broker-3", False),
        ("kill", "controller-1", False),
        ("partition", "broker-2", False),
    ):
        broken = faults((fault, target, 15_000), healed=False)
        given = tables(LOG, replicas=REPLICAS.empty_table(), faults=broken)
        run = facts(stuck_isr_limit_ns=20 * S, healed_ns=41 * S, end_ns=50 * S)
        assert bool(proofs(asked(stuck_replicas, given, run))) is stuck, (fault, target)


def test_what_the_teardown_does_to_the_others_is_not_told_of_a_stuck_replica() -> None:
    leaving = LOG + "100 stopping 2 at 49950\n101 change m-0 isr 1 at 49950\n102 noop at 60100"
    ((proof,), _, _) = found(leaving)
    assert_proof(proof, "out of the ISR", isr="[1, 2]", leader=1, metadata_offset=8)


def test_a_replica_that_comes_back_within_the_bound_is_a_case_that_holds() -> None:
    assert found(LOG + "100 change m-0 isr 1,2,3 at 31000") == ([], 1, "")


def test_a_replica_that_comes_back_after_the_bound_was_stuck_along_the_way() -> None:
    (proof,), cases, _ = found(LOG + "100 change m-0 isr 1,2,3 at 34000")
    assert_proof(proof, "from {since} until {until}", since=12_112, until=33_866)
    assert cases == 1


def test_a_topic_that_was_deleted_is_judged_as_long_as_it_lived() -> None:
    (proof,), _, _ = found(LOG + "100 delete m at 40000")
    assert_proof(proof, "from {since} until {until}", until=39_860)
    assert found(LOG + "100 delete m at 31000") == ([], 0, "")


def test_a_topic_that_is_to_be_deleted_is_judged_until_that_was_decided() -> None:
    (proof,), _, _ = found(LOG + "100 to-delete m at 40000")
    assert_proof(proof, "from {since} until {until}", until=39_860)
    assert found(LOG + "100 to-delete m at 31000") == ([], 0, "")
    assert found(LOG + "100 to-delete m at 31000\n101 delete m at 58000") == ([], 0, "")
    assert found(LOG + "100 to-delete n at 31000")[0]


@pytest.mark.parametrize(
    "lines",
    [
        "100 fence 3 at 30000\n101 unfence 3 at 31000",
        "100 register 3 at 30000\n101 unfence 3 at 30000",
        "100 stopping 1 at 30000",
        "100 fence 1 at 30000\n101 unfence 1 at 31000",
        "100 change m-0 leader 2 at 30000",
        "100 change m-0 leader 1 at 30000",
        "100 change m-0 isr none leader -1 at 13000",
        "100 leader 1000 at 30000",
        "100 change m-0 replicas 1,2 at 30000",
        "100 change m-0 replicas 1,2,3 adding 3 at 13000",
        "100 change m-0 replicas 1,2,3 removing 3 at 13000",
    ],
)
def test_whatever_changes_begins_the_bound_anew(lines: str) -> None:
    assert found(limit_s=25)[0]
    assert not found(LOG + lines, limit_s=25)[0]


def test_a_change_that_concerns_somebody_else_does_not_begin_the_bound_anew() -> None:
    assert found(LOG + "100 change m-0 isr 1 at 30000", limit_s=25)[0]
    assert found(LOG + "100 fence 2 at 30000\n101 unfence 2 at 31000", limit_s=25)[0]


def test_while_a_fault_that_it_may_depend_on_is_in_effect_nothing_is_judged() -> None:
    assert found(LOG, limit_s=35)[0]
    assert not found(LOG, ("delay", "broker-2", 30_000), limit_s=35)[0]
    before, after = found(LOG, ("delay", "broker-2", 30_000), limit_s=15)[0]
    assert_proof(before, "from {since} until {until}", since=12_112, until=30_000)
    assert_proof(after, "from {since} until {until}", since=30_100, until=49_000)


def test_a_fault_that_was_never_healed_is_in_effect_for_good() -> None:
    rows = [row | {"end_ns": None} for row in faults(KILL).to_pylist()]
    open_ended = pa.Table.from_pylist(rows, schema=FAULTS)
    run = facts(stuck_isr_limit_ns=20 * S, healed_ns=41 * S, end_ns=50 * S)
    judged = asked(
        stuck_replicas, tables(LOG, replicas=REPLICAS.empty_table(), faults=open_ended), run
    )
    assert not proofs(judged)


def test_a_flipped_bit_is_never_healed_on_the_disks_it_is_on() -> None:
    for node, stuck in (("broker-1", False), ("broker-3", False), ("broker-2", True)):
        assert bool(found(LOG, ("flip_bit", node, 12_500))[0]) is stuck


def test_an_absence_that_the_end_of_the_run_cuts_off_is_a_doubt() -> None:
    stuck, cases, doubt = found(end_s=30)
    assert (stuck, cases) == ([], 0)
    assert "until 29.000 s, where the run ended before the bound had passed" in doubt
    assert found(end_s=20) == ([], 0, "")


def test_the_logs_ends_are_named_where_the_disks_have_them() -> None:
    lines = "broker-1: 17@0 18@1 hw 2\nbroker-3: nothing hw 0"
    own = LOG.replace("topic m", "topic t").replace("m-0", "t-0")
    ((proof,), _, _) = found(own, lines=lines)
    ends = {"log_end_offset": 0, "leaders_log_end_offset": 2}
    assert_proof(proof, "; on the disks its log ends at", **ends)
    (back,), _, _ = found(own + "100 change t-0 isr 1,2,3 at 34000", lines=lines)
    (partly,), _, _ = found(own, lines="broker-1: 17@0 18@1 hw 2")
    assert not any("on the disks" in one.rule for one in (back, partly))


def test_without_a_bound_or_a_log_nothing_is_judged() -> None:
    given = tables(LOG, replicas=REPLICAS.empty_table(), faults=faults(KILL))
    assert not list(asked(stuck_replicas, given, facts()))
    run = facts(stuck_isr_limit_ns=20 * S, end_ns=50 * S)
    empty = tables("", replicas=REPLICAS.empty_table(), faults=faults())
    assert list(doubts(asked(stuck_replicas, empty, run))) == ["metadata"]
    quiet = tables(LOG.replace("isr 1,2 at", "isr 1,2,3 at"), **disks(""), faults=faults())
    assert sum(one.case_count for _, one in asked(stuck_replicas, quiet, run)) == 0
