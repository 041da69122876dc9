"""Sets that only grow: each way to be wrong, beside the nearest history that is right."""

from typing import Any

from object_histories import fail, info, ok, rows, table
from proving import assert_proof

from fencepost.checkers.anomaly import Anomaly, Found, anomalies_of
from fencepost.checkers.linearizability.budget import Budget
from fencepost.checkers.linearizability.sets import grow_only_set

BUDGET = Budget(seconds=60.0, bytes=1 << 30)


def judged(*operations: dict[str, Any]) -> Found:
    return grow_only_set("x", table(rows(*operations)), BUDGET)


def anomaly(*operations: dict[str, Any]) -> Anomaly:
    (only,) = anomalies_of(judged(*operations).table)
    return only


def add(value: int, call: int, end: int) -> dict[str, Any]:
    return ok("add", call, end, value=value)


def read(call: int, end: int, *values: int) -> dict[str, Any]:
    return ok("read", call, end, values=list(values))


def test_a_read_is_a_case_and_an_add_is_none() -> None:
    for last in (read(2, 3), read(2, 3, 1)):
        assert judged(add(1, 0, 1), last).case_count == 1
    assert judged(add(1, 0, 1), info("read", 2)).case_count == 0


def test_what_was_added_is_not_lost() -> None:
    found = anomaly(add(1, 0, 1), read(2, 3))
    assert found.operations == (0, 1)
    assert_proof(found, "is without {value}", add_operation=0, end=1, operation=1, call=2, value=1)
    assert judged(add(1, 0, 2), read(2, 3)).never_count == 0
    assert judged(add(1, 0, 1), read(2, 3, 1)).never_count == 0


def test_nothing_is_found_before_it_is_added() -> None:
    found = anomaly(read(0, 1, 5), add(5, 2, 3))
    assert_proof(found, "whose first add", read_operation=0, end=1, value=5, add=1, call=2)
    assert judged(read(0, 2, 5), add(5, 2, 3)).never_count == 0


def test_a_read_after_another_one_contains_it() -> None:
    found = anomaly(add(1, 0, 9), read(1, 2, 1), read(3, 4))
    assert_proof(found, "and is without it", first_operation=1, end=2, value=1, operation=2, call=3)
    assert judged(add(1, 0, 9), read(1, 3, 1), read(3, 4)).never_count == 0


def test_of_two_reads_one_contains_the_other() -> None:
    both = (add(1, 0, 9), add(2, 0, 9))
    for found in anomalies_of(judged(*both, read(1, 8, 1), read(2, 7, 2)).table):
        assert found.operations == (2, 3)
        assert_proof(found, "one of two reads contains the other")
        assert {found.proof.fact("here"), found.proof.fact("there")} == {1, 2}
    assert judged(*both, read(1, 8, 1), read(2, 7, 2)).never_count == 2
    assert judged(*both, read(1, 8, 1), read(2, 7, 2, 1)).never_count == 0


def test_an_element_is_not_overtaken_by_one_that_was_added_after_it() -> None:
    wrong = (add(1, 0, 1), add(2, 2, 9), read(0, 9, 2))
    found = anomaly(*wrong)
    assert found.operations == (0, 1, 2)
    named = {"value": 1, "later_value": 2, "operation": 1}
    assert_proof(
        found, "before the first add", add_operation=0, end=1, later_add=2, call=2, **named
    )
    assert judged(add(1, 0, 2), *wrong[1:]).never_count == 0


def test_a_crashed_add_may_take_effect_late_or_never() -> None:
    crashed = info("add", 0, 1, value=1)
    assert judged(crashed, read(5, 6)).never_count == 0
    assert judged(crashed, read(5, 6), read(7, 8, 1)).never_count == 0
    assert judged(crashed, read(5, 6, 1), read(7, 8)).never_count == 1


def test_an_element_may_be_added_twice() -> None:
    assert judged(add(1, 0, 1), read(2, 3, 1), add(1, 4, 5), read(6, 7, 1)).never_count == 0
    assert judged(add(1, 0, 1), read(2, 3), add(1, 4, 5)).never_count == 1
    assert judged(info("add", 0, value=1), read(2, 3), add(1, 4, 5)).never_count == 0


def test_what_nobody_added_is_not_there() -> None:
    found = anomaly(fail("add", 0, 1, value=7), read(2, 3, 7))
    assert_proof(found, "which no operation can have added", operation=1, value=7)
    assert judged(read(0, 1, 7)).never_count == 1


def test_a_read_that_lists_an_element_twice_found_it_once() -> None:
    assert judged(add(1, 0, 1), add(2, 0, 1), read(2, 3, 2, 1, 2)).never_count == 0


def test_a_read_of_an_unknown_answer_says_nothing() -> None:
    assert judged(add(1, 0, 1), ok("read", 2, 3)).never_count == 0
    assert judged(ok("read", 2, 3)).never_count == 0
