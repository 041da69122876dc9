"""Sentences of proofs as a reader sees them; what proofs rest on is pinned by their facts.

One of each way to write a rule: plain, going on, of one of several cases, of clauses.
"""

import pyarrow as pa
from ensemble_disks import disks as ensemble
from ensemble_disks import stored
from histories import history
from judging import found_in
from metadata_logs import FACTS, asked, facts, proofs, sentence, tables, told
from proving import only
from replica_disks import disks, faults

from fencepost.checkers.anomaly import anomalies_of
from fencepost.checkers.control_plane.nonlinearizable_isr import nonlinearizable_isrs
from fencepost.checkers.control_plane.stale_epoch_join import stale_epoch_joins
from fencepost.checkers.control_plane.stuck_replica import stuck_replicas
from fencepost.checkers.cycles.inference import inferred
from fencepost.checkers.cycles.judgement import cycles_in, reasons_in, spelled_cycle
from fencepost.checkers.linearizability.versioned import nonlinearizable
from fencepost.checkers.znodes.server_disks import orphan_ephemerals
from fencepost.generators.list_append import transactions_of
from fencepost.history.models import Isolation, Model
from fencepost.history.schema import MICRO_OPERATIONS, MODEL_OPERATIONS


def test_a_plain_rule() -> None:
    past = history("p1 send t-0 v1 -> ok @0\np1 send t-0 v2 -> ok @1\nc1 poll -> t-0 [v2@1]")
    (found,) = found_in(past, ["lost-write"])
    (one,) = anomalies_of(found.table)
    assert one.detail == sentence("""
        value 1 must have happened (operation 0) and stood at offset 0; operation 2 read up to
        offset 1, and no ok read returned it
    """)


def test_a_list() -> None:
    past = history("p1 send t-0 v1 -> info\nc1 poll -> t-0 [v1@0 v1@3]")
    (found,) = found_in(past, ["duplicate"])
    assert [one.detail for one in anomalies_of(found.table)] == [
        "value 1 stands at 2 offsets: 0, 3"
    ]


def test_operations_as_clauses() -> None:
    rows = [
        {"index": 0, "f": "cas", "call_ns": 0, "return_ns": 3, "expected": 0, "version": 1},
        {"index": 1, "f": "read", "call_ns": 4, "return_ns": 6, "version": 0},
    ]
    alike = {"process": 0, "key": "k", "outcome": "ok"}
    table = pa.Table.from_pylist([alike | row for row in rows], schema=MODEL_OPERATIONS)
    found = nonlinearizable("k", table, Model.VERSIONED_REGISTER)
    assert [one.detail for one in anomalies_of(found.table)] == [
        sentence("""
            version 1 appeared no earlier than 0.000000004 s (read 1 found version 0 with nothing
            in [0.000000004, 0.000000006 s]) and no later than 0.000000003 s (cas 0 made version 1
            with nothing, expecting 0 in [0.000, 0.000000003 s])
        """)
    ]


def test_ids_of_zookeeper() -> None:
    kept = stored("server-1", "/e", ephemeral_owner=0x17, session_open=False, czxid=0x30)
    ((proof,), _) = told(asked(orphan_ephemerals, ensemble(kept), FACTS))
    assert proof.sentence == (
        "server-1 has /e, made by transaction 0x30 for session 0x17, which is not open"
    )


def test_a_rule_that_goes_on() -> None:
    past = history("c1 poll -> t-0 [v5@5]\nc1 poll -> t-0 [v4@4]\np1 send t-0 v4 -> ok @4")
    (found,) = found_in(past, ["nonmonotonic-poll"])
    assert [one.detail for one in anomalies_of(found.table)] == [
        sentence("""
            process 0 went from offset 5 (operation 0) to offset 4 (operation 1), which leads back
            or stays: the delta is -1, not 1
        """)
    ]


def test_a_rule_of_one_of_several_cases() -> None:
    """What Kafka 3.4.1 writes when a delayed AlterPartition brings a wiped replica back."""
    log = """
        3 register 2
        11 topic t
        12 partition t-0 replicas 1,2 isr 1,2 leader 1
        19 change t-0 isr 1 leader 1
        33 register 2 at 20000
        34 unfence 2 at 20500
        36 change t-0 isr 1,2 at 22000
    """
    frames = """
        at 19990 broker-2 register -> ok 33 at 20010
        at 9812 passed 21990 broker-1 alter t-0 expecting 1 isr 1,2 -> ok 2 at 22010
    """
    proof = only(proofs(asked(stale_epoch_joins, tables(log, frames), FACTS)), "t-0")
    assert proof.sentence == sentence("""
        broker 2 joined the ISR of t-0 at metadata offset 36 by an AlterPartition sent at 9.812 s
        (frame 10) when it had broker epoch 3; at offset 33 (20.010 s) it had registered with 33
    """)


def test_clauses_of_one_rule_that_have_facts_of_one_name() -> None:
    log = """
        5 topic t
        6 partition t-0 replicas 1,2 isr 1,2 leader 1
        10 change t-0 isr 1
        90 noop
    """
    early = "at 790 broker-1 alter t-0 expecting 0 isr 1 -> ok 1 at 810"
    proof = only(proofs(asked(nonlinearizable_isrs, tables(log, early), FACTS)), "t-0")
    assert proof.sentence == sentence("""
        partition epoch 1 of t-0 cannot have appeared before 0.899 s (the controller appended it at
        metadata offset 10, not before 0.899 s), and partition epoch 1 had appeared before that
        (broker-1 asked for ISR [1] expecting partition epoch 0 at 0.790 s (frame 0) and was
        answered NONE at 0.810 s)
    """)


def test_a_clause_that_goes_on_only_where_something_is_known() -> None:
    log = """
        0 leader 1000
        1 register 1 unfenced
        2 register 2 unfenced
        3 register 3 unfenced
        5 topic t
        6 partition t-0 replicas 1,2,3 isr 1,2,3 leader 1
        7 fence 3 at 10000
        8 change t-0 isr 1,2 at 10000
        9 unfence 3 at 12000
        99 noop at 60000
    """
    left = disks("broker-1: 17@0 18@1 hw 2\nbroker-3: nothing hw 0")
    given = tables(log, **left, faults=faults(("kill", "broker-3", 9900)))
    run = facts(stuck_isr_limit_ns=20_000_000_000, healed_ns=41_000_000_000, end_ns=50_000_000_000)
    assert only(proofs(asked(stuck_replicas, given, run)), "t-0").sentence == sentence("""
        broker 3 is unfenced and out of the ISR of t-0 ([1, 2] of [1, 2, 3], leader 1, metadata
        offset 8) from 12.112 s until 49.000 s; all that time nothing that it depends on was broken,
        and the bound is 20.000 s; on the disks its log ends at 0, and that of its leader at 2
    """)


def test_clauses_in_a_row() -> None:
    rows = transactions_of("A 0-10 ok x+1 y=1\nB 0-10 ok y+1 x=1")
    part = inferred(pa.Table.from_pylist(rows, schema=MICRO_OPERATIONS))
    (cycle,) = cycles_in([part], promise=Isolation.STRICT_SERIALIZABLE).spelled
    proof = spelled_cycle(cycle, reasons_in(part.edges, part.names, cycle.links)).proof
    assert proof.sentence == sentence("""
        G1c, which read-committed forbids: 1 read 1 in x, which 0 appended; 0 read 1 in y, which 1
        appended (one component of 2 transactions)
    """)
