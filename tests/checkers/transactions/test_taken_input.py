"""The input of committed transactions: each record once."""

from typing import Any

import pyarrow as pa
import pytest
from metadata_logs import asked
from proving import assert_proof

from fencepost.checkers.anomaly import Found, anomalies_of
from fencepost.checkers.facts import Facts
from fencepost.checkers.proof import Proof
from fencepost.checkers.transactions.taken_input import input_not_once
from fencepost.history.request_schema import GROUP_OFFSETS

Row = dict[str, Any]


def row(f: str, outcome: str, process: int, *offsets: int, before: int | None = None) -> Row:
    return {
        "process": process,
        "f": f,
        "group": "g",
        "outcome": outcome,
        "keys": ["t-0"],
        "offsets": list(offsets),
        "offsets_before": None if before is None else [before],
    }


def told(offset: int, process: int = 0) -> Row:
    return row("fetch-offsets", "ok", process, offset)


def took(start: int, end: int, outcome: str = "ok", process: int = 0) -> Row:
    return row("send-offsets", outcome, process, end, before=start)


def judged(*rows: Row) -> Found:
    numbered = [
        one | {"index": n, "call_ns": 10 * n, "return_ns": 10 * n + 5} for n, one in enumerate(rows)
    ]
    table = pa.Table.from_pylist(numbered, schema=GROUP_OFFSETS)
    ((_, found),) = asked(input_not_once, {"group_offsets": table}, Facts(node_ids={}))
    return found


def wrong(*rows: Row) -> list[Proof]:
    return [one.proof for one in anomalies_of(judged(*rows).table)]


TWICE = [told(-1), took(0, 10), told(7, 1), took(7, 20, process=1)]
NEVER = [told(-1), took(0, 10), told(12, 1), took(12, 20, process=1)]


def test_a_range_of_a_committed_transaction_is_a_case() -> None:
    rows = told(-1), took(0, 10), took(10, 20), took(20, 30, "fail"), told(20), took(20, 31)
    assert not wrong(*rows)
    assert judged(*rows).case_count == 3


def test_a_record_that_two_transactions_took_is_found() -> None:
    (proof,) = wrong(*TWICE)
    assert_proof(proof, "both took offsets", row=1, other_row=3, first=7, last=9)
    (proof,) = wrong(told(-1), took(0, 10), told(-1, 1), took(0, 4, process=1))
    assert_proof(proof, "both took offsets", first=0, last=3)


def test_a_record_that_no_transaction_took_is_found() -> None:
    (proof,) = wrong(*NEVER)
    assert_proof(proof, "no transaction that may have been", row=3, start=12, first=10, last=11)
    # One that was aborted took nothing.
    (proof,) = wrong(told(-1), took(0, 10), took(10, 12, "fail"), told(12), took(12, 20))
    assert_proof(proof, "no transaction that may have been", first=10, last=11)
    (proof,) = wrong(told(5), took(5, 10))
    assert_proof(proof, "no transaction that may have been", first=0, last=4)


def test_a_crashed_transaction_that_was_gone_on_from_was_committed() -> None:
    crashed = [told(-1), took(0, 10, "info"), told(10, 1), took(10, 20, process=1)]
    assert not wrong(*crashed)
    assert judged(*crashed).case_count == 2
    (proof,) = wrong(*crashed, told(0, 2), took(0, 10, process=2))
    assert_proof(proof, "both took offsets", first=0, last=9)


@pytest.mark.parametrize(
    "rows",
    [
        # A crashed transaction may have been committed, or not.
        [told(-1), took(0, 10), took(10, 20, "info"), told(10, 1), took(10, 20, process=1)],
        [told(-1), took(0, 10), took(10, 20, "info"), told(20, 1), took(20, 30, process=1)],
        # Of two that ended there, either was.
        [
            *(told(-1), took(0, 10, "info"), told(-1, 1), took(0, 10, "info", 1)),
            *(told(10, 2), took(10, 20, process=2)),
        ],
        # The last input may not have been taken again before the run ended.
        [told(-1), took(0, 10), took(10, 20, "fail")],
        [told(-1), took(0, 10), told(10, 1), took(10, 20, "fail", 1), told(10, 2)],
    ],
)
def test_what_may_be_is_none(rows: list[Row]) -> None:
    assert not wrong(*rows)
    assert not judged(*rows).doubt


def test_groups_have_nothing_to_do_with_each_other() -> None:
    other = [one | {"group": "h"} for one in (told(-1, 1), took(0, 10, process=1))]
    numbered = [
        one | {"index": n, "call_ns": n, "return_ns": n}
        for n, one in enumerate([told(-1), took(0, 10), *other])
    ]
    table = pa.Table.from_pylist(numbered, schema=GROUP_OFFSETS)
    answers = dict(asked(input_not_once, {"group_offsets": table}, Facts(node_ids={})))
    assert sorted(answers) == ["t-0 of g", "t-0 of h"]
    assert not any(one.never_count for one in answers.values())


@pytest.mark.parametrize(
    ("rows", "doubt"),
    [
        ([told(-1), took(0, 10), took(7, 20)], "row 2 took t-0 from 7 on, and its process stood"),
        ([told(-1), took(0, 10), took(12, 20)], "row 2 took t-0 from 12 on, and its process stood"),
        ([told(-1), took(0, 10), took(10, 20, process=1)], "its process was not told where"),
        # A log that was cut is read from its beginning anew.
        ([told(-1), took(0, 10), took(10, 4), took(4, 12)], "row 2 took t-0 from 10 back to 4"),
    ],
)
def test_a_record_that_contradicts_itself_proves_nothing(rows: list[Row], doubt: str) -> None:
    assert not wrong(*rows)
    assert doubt in judged(*rows).doubt
    assert not judged(*rows).case_count
