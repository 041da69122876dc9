"""Transactional clients that were told an error which ends them."""

from typing import Any

import pyarrow as pa
import pytest
from metadata_logs import asked
from proving import assert_proof

from fencepost.checkers.anomaly import Found, anomalies_of
from fencepost.checkers.facts import Facts
from fencepost.checkers.transactions.fatal_errors import fatal_errors
from fencepost.history.request_schema import TRANSACTIONS

Row = dict[str, Any]
COMMITTED: Row = {"intent": "commit", "outcome": "ok"}
ABORTED: Row = {"intent": "abort", "outcome": "ok", "failure": "INVALID_PRODUCER_EPOCH"}
ENDED: Row = {"intent": "commit", "outcome": "fail", "failure": "INVALID_TXN_STATE"}
OPEN: Row = {"intent": "commit", "outcome": "info"}


def fatal(row: Row, *, is_fatal: bool = True) -> Row:
    return row | {"fatal": is_fatal}


def judged(*rows: Row, bound: int = 0) -> dict[str, Found]:
    told = [
        {"process": 0, "transactional_id": "x", "begin_ns": n, "index": n, "keys": [], "values": []}
        | row
        for n, row in enumerate(rows)
    ]
    table = pa.Table.from_pylist(told, schema=TRANSACTIONS)
    facts = Facts(node_ids={}, bounds={"fatal_errors_max_count": bound})
    return dict(asked(fatal_errors, {"transactions": table}, facts))


def test_an_error_that_ends_its_client_is_found() -> None:
    found = judged(COMMITTED, fatal(ENDED), COMMITTED)["x"]
    (one,) = anomalies_of(found.table)
    assert_proof(one, "can do nothing more", transaction=1, failure="INVALID_TXN_STATE")
    assert (found.never_count, found.case_count) == (1, 3)


def test_an_abort_that_failed_for_good_names_both_errors() -> None:
    row = fatal(ABORTED) | {"outcome": "info", "error": "INVALID_TXN_STATE"}
    (one,) = anomalies_of(judged(row)["x"].table)
    assert_proof(one, "and then", failure="INVALID_PRODUCER_EPOCH", error="INVALID_TXN_STATE")


@pytest.mark.parametrize("row", [COMMITTED, fatal(ABORTED, is_fatal=False), ENDED, OPEN])
def test_what_leaves_an_abort_or_tells_nothing_of_it_is_none(row: Row) -> None:
    assert judged(row)["x"].never_count == 0


def test_the_bound_is_one_of_all_producers() -> None:
    rows = [fatal(ENDED), fatal(ENDED) | {"transactional_id": "y"}]
    assert [one.never_count for one in judged(*rows, bound=2).values()] == [0, 0]
    assert [one.never_count for one in judged(*rows, bound=1).values()] == [1, 1]


def test_a_run_without_transactions_has_no_case() -> None:
    assert not judged()
