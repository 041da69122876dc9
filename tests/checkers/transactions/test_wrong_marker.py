"""D32: the markers of logs say what clients were told of their transactions."""

from typing import Any

import pyarrow as pa
import pytest
from metadata_logs import FACTS, asked, case_count, proofs
from proving import assert_proof, only

from fencepost.checkers.proof import Proof
from fencepost.checkers.transactions.wrong_marker import wrong_markers
from fencepost.history.cluster_schema import REPLICA_RECORDS
from fencepost.history.request_schema import TRANSACTIONS

Row = dict[str, Any]


def transaction(*values: int, index: int = 0, intent: str = "commit", outcome: str = "ok") -> Row:
    return {
        "index": index,
        "process": 3,
        "transactional_id": "a",
        "intent": intent,
        "begin_ns": 0,
        "return_ns": 5_000_000,
        "outcome": outcome,
        "keys": ["t-0"] * len(values),
        "values": list(values),
    }


def log(*records: int | bool | None, node: str = "broker-1", producer: int = 7) -> list[Row]:
    """Records by their values, markers by whether they commit; None: of another producer."""
    return [
        {
            "key": "t-0",
            "node": node,
            "offset": offset,
            "leader_epoch": 0,
            "timestamp_ms": 0,
            "control": isinstance(one, bool) or one is None,
            "committed": one if isinstance(one, bool) else one is None or None,
            "transactional": True,
            "producer_id": 99 if one is None else producer,
            "producer_epoch": 0,
            "value": None if isinstance(one, bool) else one,
            "digest": 0,
        }
        for offset, one in enumerate(records)
    ]


def judged(transactions: list[Row], *logs: list[Row]) -> tuple[dict[str, list[Proof]], int]:
    rows = [row for one in logs for row in one]
    tables = {
        "transactions": pa.Table.from_pylist(transactions, schema=TRANSACTIONS),
        "replica_records": pa.Table.from_pylist(rows, schema=REPLICA_RECORDS),
    }
    found = list(asked(wrong_markers, tables, FACTS))
    return proofs(found), case_count(found)


@pytest.mark.parametrize(("intent", "committed"), [("commit", False), ("abort", True)])
def test_a_marker_says_the_opposite(intent: str, *, committed: bool) -> None:
    found, cases = judged([transaction(17, 18, intent=intent)], log(17, 18, None, committed))
    told = {"value": 17, "offset": 0, "marker": 3, "intent": intent, "transaction": 0}
    assert_proof(only(found, "t-0"), "the marker at {marker}", **told)
    assert cases == 1


@pytest.mark.parametrize(("intent", "committed"), [("commit", True), ("abort", False)])
def test_a_marker_says_what_was_told(intent: str, *, committed: bool) -> None:
    assert judged([transaction(17, intent=intent)], log(17, None, committed)) == ({}, 1)


def test_the_first_marker_of_the_producer_behind_a_record_ends_it() -> None:
    two = [transaction(17), transaction(18, index=1, intent="abort")]
    assert judged(two, log(17, True, 18, False)) == ({}, 2)
    assert judged(two, log(17, True, 18, True))[0]


def test_a_marker_between_two_transactions_is_missing() -> None:
    found, cases = judged([transaction(17), transaction(18, index=1)], log(17, None, 18, True))
    told = {"value": 17, "offset": 0, "value_behind": 18, "behind": 2, "other_transaction": 1}
    assert_proof(only(found, "t-0"), "have no marker of their producer between", **told)
    assert cases == 2


def test_one_replica_is_enough() -> None:
    found, cases = judged([transaction(17)], log(17, True), log(17, False, node="broker-2"))
    assert (only(found, "t-0").fact("node"), cases) == ("broker-2", 1)


@pytest.mark.parametrize("outcome", ["info", "fail"])
def test_a_transaction_whose_end_is_not_known_is_no_case(outcome: str) -> None:
    assert judged([transaction(17, outcome=outcome)], log(17, False)) == ({}, 0)


def test_records_without_a_marker_are_no_case() -> None:
    assert judged([transaction(17)], log(17, None)) == ({}, 0)
    assert judged([transaction(17)], log(17), log(18, False, producer=8, node="broker-1")) == (
        {},
        0,
    )
