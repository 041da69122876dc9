"""Registers: the smallest histories that are wrong, their neighbours that are not, and crashes."""

from typing import Any

import pytest
from object_histories import fail, info, ok, refused, rows, table
from proving import assert_proof, source_of

from fencepost.checkers.anomaly import Anomaly, Found, anomalies_of
from fencepost.checkers.linearizability.budget import Budget
from fencepost.checkers.linearizability.register import register

BUDGET = Budget(seconds=60.0, bytes=1 << 30)


def judged(*operations: dict[str, Any]) -> Found:
    found = register("x", table(rows(*operations)), BUDGET)
    assert not found.doubt
    return found


def anomaly(*operations: dict[str, Any]) -> Anomaly:
    (only,) = anomalies_of(judged(*operations).table)
    return only


def write(value: int, call: int, end: int) -> dict[str, Any]:
    return ok("write", call, end, value=value)


def read(value: int | None, call: int, end: int) -> dict[str, Any]:
    return ok("read", call, end, value=value)


def cas(expected: int | None, value: int, call: int, end: int) -> dict[str, Any]:
    return ok("cas", call, end, expected=expected, value=value)


def test_reads_and_swaps_are_cases_and_writes_are_none() -> None:
    wrong, right = read(None, 2, 3), read(1, 2, 3)
    assert judged(write(1, 0, 1), wrong).case_count == judged(write(1, 0, 1), right).case_count == 1
    assert (
        judged(write(1, 0, 1), write(2, 2, 3), info("cas", 4, expected=1, value=2)).case_count == 0
    )
    assert judged(write(1, 0, 1), refused(2, 3, expected=2, value=3)).case_count == 1
    assert judged().case_count == 0


def test_a_read_after_a_write_finds_it() -> None:
    assert judged(write(1, 0, 1), read(1, 2, 3)).never_count == 0
    found = anomaly(write(1, 0, 1), read(None, 2, 3))
    assert found.operations == (0, 1)
    rule = "nothing was there from the beginning to {last} s"
    assert_proof(found, rule, last=2, other_value=1, other_span_last=0, first=1, written=1)
    assert source_of(found.proof, "last") == "operation 1"
    assert judged(write(1, 0, 2), read(None, 2, 3)).never_count == 0


def test_a_value_is_not_read_before_it_is_written() -> None:
    found = anomaly(read(1, 0, 1), write(1, 2, 3))
    assert found.operations == (0, 1)
    assert_proof(found, "was read before it was written", value=1, end=1, call=2)
    assert source_of(found.proof, "end") == "operation 0"
    assert source_of(found.proof, "call") == "operation 1"
    assert judged(read(1, 0, 2), write(1, 2, 3)).never_count == 0


def test_a_value_that_was_replaced_does_not_come_back() -> None:
    found = anomaly(write(1, 0, 1), write(2, 2, 3), read(2, 4, 5), read(1, 6, 7), read(1, 8, 9))
    assert_proof(
        found,
        "what was replaced cannot come back",
        held_value=1,
        first=1,
        last=8,
        other_value=2,
        other_span_first=3,
        other_span_last=4,
    )
    assert found.operations == (0, 1, 2, 4)


def test_two_values_that_were_each_seen_twice_exclude_each_other() -> None:
    wrong = (write(1, 0, 9), write(2, 0, 9), read(1, 1, 2), read(2, 3, 4), read(1, 5, 6))
    assert judged(*wrong).never_count == 1
    assert judged(*wrong[:-1]).never_count == 0
    crossed = (*wrong[:-1], read(2, 0, 0), read(1, 5, 6))
    assert judged(*crossed).never_count == 1


def test_a_crashed_write_may_take_effect_late_or_never() -> None:
    crashed = info("write", 0, 1, value=1)
    assert judged(crashed, read(None, 5, 6)).never_count == 0
    assert judged(crashed, read(None, 5, 6), read(1, 7, 8)).never_count == 0
    assert judged(crashed, read(1, 5, 6), read(None, 7, 8)).never_count == 1


def test_a_write_that_failed_wrote_nothing() -> None:
    found = anomaly(fail("write", 0, 1, value=1), read(1, 2, 3))
    assert_proof(found, "which no operation can have written", operation=1, value=1)
    assert judged(fail("write", 0, 1, value=1), write(1, 2, 3), read(1, 4, 5)).never_count == 0


def test_a_value_that_is_written_twice_may_come_back() -> None:
    twice = (write(1, 0, 1), write(2, 2, 3), read(1, 6, 7))
    assert judged(*twice).never_count == 1
    assert judged(*twice, write(1, 4, 5)).never_count == 0


def test_a_swap_expects_what_is_there() -> None:
    assert judged(write(1, 0, 1), cas(1, 2, 2, 3), read(2, 4, 5)).never_count == 0
    found = anomaly(write(1, 0, 1), cas(7, 2, 2, 3))
    assert 1 in found.operations
    named = {"expected": 7, "written": 2, "end": 3, "state": 1, "wanted": 7}
    assert_proof(found, "cas({expected}, {written}), fits no order", operation=1, **named)


def test_a_swap_is_refused_only_where_something_else_was() -> None:
    held = (write(1, 0, 1), read(1, 8, 9))
    assert judged(*held, refused(2, 3, expected=1, value=5)).never_count == 1
    assert judged(*held, refused(2, 3, expected=3, value=5)).never_count == 0
    assert judged(*held, refused(0, 3, expected=1, value=5)).never_count == 0


def test_a_crashed_swap_may_be_what_made_a_value() -> None:
    crashed = info("cas", 2, expected=1, value=2)
    assert judged(write(1, 0, 1), crashed, read(2, 5, 6)).never_count == 0
    assert judged(write(3, 0, 1), crashed, read(2, 5, 6)).never_count == 1


def test_every_contradiction_is_counted() -> None:
    many = [write(1, 0, 1)]
    many += [read(None, 10 * number, 10 * number + 1) for number in range(1, 4)]
    many += [read(900 + number, 50, 51) for number in range(3)]
    assert judged(*many).never_count == 3
    assert judged(*many[:4]).never_count == 1


@pytest.mark.parametrize("broken", [{"f": "add"}, {"return_ns": -5}])
def test_rows_that_are_no_history_of_a_register_are_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"returned before it was called|expected one of"):
        judged(write(1, 0, 1) | broken)


def test_a_proof_of_a_search_is_small_in_a_long_history() -> None:
    steps = [write(n % 3, 10 * n, 10 * n + 4) for n in range(400)]
    steps += [read(n % 3, 10 * n + 5, 10 * n + 9) for n in range(400)]
    assert judged(*steps).never_count == 0
    found = anomaly(*steps, read(0, 3015, 3016))
    assert len(found.operations) <= 3
