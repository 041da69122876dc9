"""Counters: bounds, order, equal adds that find no place, and sums that no adds come to."""

from random import Random
from typing import Any

import pytest
from object_histories import info, ok, rows, table
from proving import assert_proof

from fencepost.checkers.anomaly import Anomaly, Found, anomalies_of
from fencepost.checkers.linearizability.budget import Budget
from fencepost.checkers.linearizability.counters import counter

BUDGET = Budget(seconds=60.0, bytes=1 << 30)


def judged(*operations: dict[str, Any]) -> Found:
    found = counter("x", table(rows(*operations)), BUDGET)
    assert not found.doubt
    return found


def anomaly(*operations: dict[str, Any]) -> Anomaly:
    (only,) = anomalies_of(judged(*operations).table)
    return only


def add(value: int, call: int, end: int) -> dict[str, Any]:
    return ok("add", call, end, value=value)


def read(value: int, call: int, end: int) -> dict[str, Any]:
    return ok("read", call, end, value=value)


def test_a_read_is_a_case_and_an_add_is_none() -> None:
    for last in (read(0, 2, 3), read(1, 2, 3)):
        assert judged(add(1, 0, 1), last).case_count == 1
    assert judged(add(1, 0, 1), add(2, 0, 1), read(3, 2, 3)).case_count == 1  # By a search.
    assert judged(add(1, 0, 1), add(2, 0, 1)).case_count == 0


def test_what_was_added_counts() -> None:
    found = anomaly(add(1, 0, 1), read(0, 2, 3))
    assert found.operations == (0, 1)
    named = {"value": 0, "bound_word": "least", "bound": 1}
    assert_proof(found, "and all that can have been added by then", read_operation=1, **named)
    assert judged(add(1, 0, 2), read(0, 2, 3)).never_count == 0


def test_what_was_not_yet_added_does_not_count() -> None:
    found = anomaly(read(1, 0, 1), add(1, 2, 3))
    assert found.operations == (0,)
    named = {"value": 1, "bound_word": "most", "bound": 0}
    assert_proof(found, "and all that can have been added by then", operation=0, **named)
    assert judged(read(1, 0, 2), add(1, 2, 3)).never_count == 0


def test_a_counter_of_positive_adds_does_not_go_back() -> None:
    found = anomaly(add(2, 0, 9), read(2, 1, 2), read(0, 3, 4))
    assert found.operations == (1, 2)
    assert_proof(
        found,
        "no add is {bound_word}",
        found=2,
        end=2,
        later_found=0,
        call=3,
        bound_word="negative",
    )
    assert judged(add(2, 0, 9), add(-2, 0, 9), read(2, 1, 2), read(0, 3, 4)).never_count == 0


def test_a_counter_of_negative_adds_does_not_go_forth() -> None:
    assert judged(add(-1, 0, 9), read(-1, 1, 2), read(0, 3, 4)).never_count == 1
    assert judged(add(-1, 0, 9), read(0, 1, 2), read(-1, 3, 4)).never_count == 0


def test_equal_adds_come_to_multiples() -> None:
    found = anomaly(add(2, 0, 9), add(2, 0, 9), read(3, 1, 2))
    assert_proof(found, "every add is of {step}", operation=2, value=3, step=2)


def test_more_adds_than_fit_between_two_reads() -> None:
    """Each read is within its bounds, as the first add may have crashed for good."""
    wrong = (
        info("add", 0, value=1),
        read(1, 1, 2),
        add(1, 3, 4),
        add(1, 3, 4),
        read(2, 5, 6),
    )
    found = anomaly(*wrong)
    assert found.operations == (1, 2, 3, 4)
    assert_proof(
        found,
        "it cannot have found {bound_word} than {bound}",
        adds_count=2,
        step=1,
        since_operation=1,
        end=2,
        operation=[2, 3],
        read_operation=4,
        call=5,
        found=2,
        bound_word="less",
        bound=3,
    )
    assert judged(*wrong[:2], add(1, 2, 4), *wrong[3:]).never_count == 0


def test_a_crashed_add_may_take_effect_late_or_never() -> None:
    crashed = info("add", 0, 1, value=1)
    assert judged(crashed, read(0, 5, 6)).never_count == 0
    assert judged(crashed, read(0, 5, 6), read(1, 7, 8)).never_count == 0
    assert judged(crashed, read(1, 5, 6), read(0, 7, 8)).never_count == 1


def test_a_sum_within_the_bounds_that_no_adds_come_to_is_found_by_search() -> None:
    found = anomaly(add(2, 0, 9), add(5, 0, 9), read(3, 1, 2))
    assert_proof(found, "fits no order", operation=2, answer=3, wanted=3, end=2)
    states = {fact.value for fact in found.proof.facts if fact.name.startswith("state")}
    assert states == {0, 2, 5, 7}
    assert judged(add(2, 0, 9), add(5, 0, 9), read(5, 1, 2)).never_count == 0


def test_adding_nothing_changes_nothing() -> None:
    assert judged(add(0, 0, 1), read(0, 2, 3), info("add", 1, value=0)).never_count == 0
    assert judged(add(0, 0, 1), add(3, 2, 3), read(3, 4, 5)).never_count == 0


def test_an_add_of_an_unknown_number_is_refused() -> None:
    with pytest.raises(ValueError, match="operation 0 is a add of a counter without value"):
        judged(ok("add", 0, 1))


def test_ten_thousand_equal_adds_need_no_search() -> None:
    """Fifty are open at once, which no search would survive."""
    random, drawn = Random(7), []
    for number in range(10_000):
        call = 10 * number
        drawn.append(add(1, call, call + random.randint(1, 500)))
    drawn += [read(number, 10 * number + 1, 10 * number + 1) for number in range(1, 9_900, 97)]
    no_time = Budget(seconds=0.0, bytes=0)
    found = counter("x", table(rows(*drawn)), no_time)
    assert not found.doubt
