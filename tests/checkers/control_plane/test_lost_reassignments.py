"""C15b: acknowledged moves of replicas that the metadata log knows nothing of."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from metadata_logs import (
    FACTS,
    ON_ZOOKEEPER,
    asked,
    case_count,
    doubts,
    metadata_log,
    proofs,
    tables,
)
from proving import assert_proof

from fencepost.checkers.control_plane.lost_reassignment import lost_reassignments
from fencepost.checkers.proof import Proof
from fencepost.history.request_schema import PARTITION_WRITES

BEGUN = "3 change t-0 replicas 2,3,1 adding 3 removing 1 at 2000"
LOG = f"""
    1 topic t at 900
    2 partition t-0 replicas 1,2 isr 1,2 leader 1 at 1000
    {BEGUN}
    4 noop at 2600
    5 change t-0 replicas 2,3 isr 2,3 adding none removing none at 3000
    6 noop at 3600
    9 noop at 9000
"""
MOVE = {"f": "reassign", "replicas": [2, 3], "call_ns": 1950, "return_ns": 2050}
CANCEL = {"f": "cancel-reassignment", "call_ns": 2950, "return_ns": 3050}
WITHOUT = LOG.replace(BEGUN, "3 noop at 2000").replace("5 change", "# ")


def told(*writes: dict[str, Any], log: str = LOG, **others: Any) -> Any:
    rows = [
        {"process": 0, "node": "broker-1", "topic": "t", "partition": 0, "outcome": "ok"}
        | write
        | {"index": number}
        | {name: 1_000_000 * write[name] for name in ("call_ns", "return_ns") if write[name]}
        for number, write in enumerate(writes)
    ]
    run = others.get("facts", FACTS)
    given = tables(
        metadata_log(**{run.controllers[0]: log} if log else {}),
        partition_writes=pa.Table.from_pylist(rows, schema=PARTITION_WRITES),
    )
    return asked(lost_reassignments, given, run, lingering=True)


def lost(*writes: dict[str, Any], log: str = LOG) -> list[Proof]:
    return proofs(told(*writes, log=log)).get("t-0", [])


def test_a_move_that_was_acknowledged_left_no_trace() -> None:
    (proof,) = lost(MOVE, log=WITHOUT)
    assert_proof(
        proof,
        "the move to {asked} of {key}",
        asked="[2, 3]",
        key="t-0",
        call=1950,
        return_=2050,
        node="broker-1",
        write=0,
    )
    assert not lost(MOVE)
    assert case_count(told(MOVE)) == case_count(told(MOVE, log=WITHOUT)) == 1


def test_a_move_that_is_over_at_once_or_asks_for_what_is_so_needs_no_more() -> None:
    at_once = LOG.replace(BEGUN, "3 change t-0 replicas 2 isr 2 leader 2 at 2000")
    assert not lost(MOVE | {"replicas": [2]}, log=at_once)
    assert not lost(MOVE | {"replicas": [2, 1]}, log=WITHOUT)
    assert lost(MOVE | {"replicas": [3, 1]}, log=WITHOUT)


def test_a_move_from_another_time_is_not_the_one() -> None:
    assert lost(MOVE | {"call_ns": 1200, "return_ns": 1300})
    over = MOVE | {"call_ns": 5000, "return_ns": 5050}
    assert not lost(over)
    assert lost(over | {"replicas": [1, 2]})


def test_a_batch_that_was_begun_before_the_call_may_have_got_the_record_later() -> None:
    late = MOVE | {"call_ns": 2400, "return_ns": 2500}
    assert not lost(late, log=LOG)
    assert not lost(MOVE | {"call_ns": 1900, "return_ns": 2000})


def test_a_cancellation_ends_the_move() -> None:
    assert not lost(CANCEL)
    assert lost(CANCEL, log=LOG.replace("5 change", "# "))
    assert lost(CANCEL | {"call_ns": 4000, "return_ns": 4050}, log=LOG.replace("5 change", "# "))


@pytest.mark.parametrize("outcome", ["info", "fail"])
def test_a_crashed_move_may_never_have_begun(outcome: str) -> None:
    assert not lost(MOVE | {"outcome": outcome}, log=WITHOUT)
    assert not lost(MOVE | {"outcome": outcome, "return_ns": None}, log=WITHOUT)


def test_where_the_log_does_not_tell_nothing_is_judged() -> None:
    assert not lost(MOVE, log=WITHOUT[: WITHOUT.index("4 noop")])
    snapshot = "snapshot " + WITHOUT.strip().splitlines()[1].strip()
    assert not lost(MOVE, log=f"{snapshot}\n9 noop at 9000")
    migrating = replace(FACTS, node_ids={**FACTS.node_ids, "zookeeper-1": 2001})
    assert not list(told(MOVE, log=WITHOUT, facts=migrating))
    assert doubts(told(MOVE, log=""))


def test_in_zookeeper_the_content_of_the_topic_says_so_and_no_state_has_to_change() -> None:
    moving = LOG.replace("3 change", "3 moves").replace(
        "5 change t-0 replicas", "5 moves t-0 replicas"
    )
    assert not list(proofs(told(MOVE, log=moving, facts=ON_ZOOKEEPER)))
    assert proofs(told(MOVE, log=WITHOUT, facts=ON_ZOOKEEPER))
    assert not list(proofs(told(CANCEL, log=moving, facts=ON_ZOOKEEPER)))
