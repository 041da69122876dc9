"""C22: moves of replicas that do not end, though nothing keeps them from that."""

import pytest
from metadata_logs import asked, doubts, facts, metadata_log, proofs, tables
from proving import assert_proof
from replica_disks import faults

from fencepost.checkers.control_plane.stuck_reassignment import stuck_reassignments
from fencepost.checkers.facts import Facts
from fencepost.checkers.proof import Proof

S = 1_000_000_000
BEGUN = "7 change m-0 replicas 1,2,3 adding 3 removing 2 at 10000"
LOG = f"""
    0 leader 1000
    1 register 1 unfenced
    2 register 2 unfenced
    3 register 3 unfenced
    5 topic m
    6 partition m-0 replicas 1,2 isr 1,2 leader 1
    {BEGUN}
    99 noop at 60000
"""
ENDED = "20 change m-0 replicas 1,3 isr 1,3 adding none removing none at {}"
IDS = {"zookeeper-1": 2001, "broker-1": 1, "broker-2": 2, "broker-3": 3}


def found(
    log: str = LOG,
    *events: tuple[str, str, int],
    limit_s: int = 20,
    end_s: int = 50,
    node_ids: dict[str, int] | None = None,
) -> tuple[list[Proof], int, str]:
    """What is said of the partition, how many cases there were, and the doubt."""
    run = facts(stuck_isr_limit_ns=limit_s * S, healed_ns=41 * S, end_ns=end_s * S)
    if node_ids is not None:
        run = Facts(node_ids=node_ids, stuck_isr_limit_ns=limit_s * S, end_ns=end_s * S)
    given = tables(metadata_log(**{run.controllers[0]: log}), faults=faults(*events))
    judged = list(asked(stuck_reassignments, given, run))
    stuck = proofs(judged).get("m-0", [])
    return stuck, sum(one.case_count for _, one in judged), "; ".join(doubts(judged).values())


def test_a_move_that_goes_on_for_ever_is_stuck() -> None:
    (proof,), cases, doubt = found()
    assert_proof(
        proof,
        "all that time nothing that it depends on was broken, and the bound is {limit}",
        key="m-0",
        target="[1, 3]",
        adding="[3]",
        removing="[2]",
        isr="[1, 2]",
        leader=1,
        metadata_offset=7,
        since=10_110,
        until=49_000,
        limit=20_000,
    )
    assert (cases, doubt) == (1, "")


def test_a_move_that_ends_within_the_bound_is_a_case_that_holds() -> None:
    assert found(LOG + ENDED.format(25_000)) == ([], 1, "")
    (proof,), cases, _ = found(LOG + ENDED.format(35_000))
    assert_proof(proof, "{target}", since=10_110, until=34_865)
    assert cases == 2


def test_growth_of_the_isr_on_the_way_does_not_begin_the_bound_anew() -> None:
    (proof,), _, _ = found(LOG + "20 change m-0 isr 1,2,3 at 20000")
    assert_proof(proof, "{target}", since=10_110, until=49_000, isr="[1, 2, 3]", metadata_offset=20)


@pytest.mark.parametrize(
    "line",
    [
        "20 change m-0 leader 1 at 29000",
        "20 change m-0 adding none removing none replicas 1,2 at 29000",
        "20 change m-0 replicas 1,2,3,4 adding 3,4 at 29000",
        "20 fence 3 at 29000",
        "20 register 1 unfenced at 29000",
        "20 stopping 1 at 29000",
        "20 leader 1000 at 29000",
        "20 delete m at 29000",
    ],
)
def test_whatever_changes_begins_the_bound_anew(line: str) -> None:
    assert found(limit_s=25)[0]
    assert not found(LOG + line, limit_s=25)[0]


def test_a_replica_that_is_to_go_may_be_gone() -> None:
    assert found(LOG + "20 fence 2 at 29000", limit_s=25)[0]
    assert found(LOG, ("kill", "broker-2", 29_000), limit_s=25)[0]


@pytest.mark.parametrize(
    "event",
    [
        ("kill", "broker-3", 29_000),
        ("pause", "controller-1", 29_000),
        ("delay", "broker-2", 29_000),
    ],
)
def test_while_a_fault_that_it_may_depend_on_is_in_effect_nothing_is_judged(
    event: tuple[str, str, int],
) -> None:
    assert not found(LOG, event, limit_s=25)[0]


def test_a_move_that_the_end_of_the_run_cuts_off_is_a_doubt() -> None:
    stuck, cases, doubt = found(end_s=30)
    assert (stuck, cases) == ([], 0)
    assert "the run ended before the bound had passed" in doubt
    assert found(end_s=15) == ([], 0, "")


def test_in_zookeeper_a_move_is_told_by_the_topic_and_no_state_has_to_change() -> None:
    """The state of the partition tells of a move only when it changes."""
    moving = LOG.replace("0 leader 1000", "0 leader 1").replace("change m-0", "moves m-0")
    (proof,), _, _ = found(moving, node_ids=IDS)
    assert_proof(proof, "{target}", adding="[3]", isr="[1, 2]", metadata_offset=7)
    ended = "20 moves m-0 replicas 1,3 adding none removing none at 25000"
    assert found(moving + ended, node_ids=IDS) == ([], 1, "")


def test_without_a_bound_or_a_log_nothing_is_judged() -> None:
    assert found(limit_s=0) == ([], 0, "")
    assert not list(asked(stuck_reassignments, tables(LOG, faults=faults()), facts()))
    assert doubts(
        asked(stuck_reassignments, tables("", faults=faults()), facts(stuck_isr_limit_ns=S))
    )
