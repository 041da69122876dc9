"""The search: what it may cost, what it gives back, and what it does not have to try."""

from random import Random
from typing import Any

import pytest
from object_histories import info, ok, refused, rows, table

from fencepost.checkers.linearizability.budget import Budget, Meter, OverBudgetError
from fencepost.checkers.linearizability.kernels import KERNELS
from fencepost.checkers.linearizability.operations import columns_of, operations_of
from fencepost.checkers.linearizability.search import stuck
from fencepost.checkers.linearizability.sequential import SEQUENTIAL
from fencepost.history.models import Model

pytestmark = pytest.mark.slow

AMPLE = Budget(seconds=120.0, bytes=1 << 30)


def write(value: int, call: int, end: int) -> dict[str, Any]:
    return ok("write", call, end, value=value)


def read(value: int | None, call: int, end: int) -> dict[str, Any]:
    return ok("read", call, end, value=value)


def impossible(open_count: int) -> list[dict[str, Any]]:
    """Adds of powers of two that are all open while a read finds a sum between two of them."""
    adds = [ok("add", 0, 100, value=2 << power) for power in range(open_count)]
    return rows(*adds, ok("read", 1, 99, value=3))


def judged(history: list[dict[str, Any]], model: Model, budget: Budget = AMPLE) -> Any:
    return KERNELS[model]("x", table(history), budget)


def wrong_count(history: list[dict[str, Any]], model: Model) -> int:
    found = judged(history, model)
    assert not found.doubt
    count: int = found.never_count
    return count


def test_a_key_that_takes_too_long_is_unknown_and_says_why() -> None:
    found = judged(impossible(30), Model.COUNTER, Budget(seconds=0.2, bytes=1 << 30))
    assert found.never_count == 0
    assert "ran out of its 0.2 s on the 31 operations of x" in found.doubt


def test_a_key_that_needs_too_much_memory_is_unknown_and_says_why() -> None:
    found = judged(impossible(30), Model.COUNTER, Budget(seconds=600.0, bytes=1 << 20))
    assert "ran out of its 1 MiB" in found.doubt
    large = judged(impossible(30), Model.COUNTER, Budget(seconds=600.0, bytes=1000))
    assert "needs more than" in large.doubt


def test_the_same_key_is_decided_where_the_budget_allows() -> None:
    assert wrong_count(impossible(8), Model.COUNTER) == 1


def test_a_search_gives_its_memory_back() -> None:
    model = SEQUENTIAL[Model.COUNTER]
    operations = operations_of(columns_of(table(impossible(8)), Model.COUNTER), Model.COUNTER)
    meter = Meter.started(AMPLE)
    assert stuck(operations, model=model, start=model.initial, meter=meter) is not None
    assert meter.held_bytes == 0


def test_a_meter_raises_when_its_clock_has_passed_the_deadline() -> None:
    now = [0.0]
    meter = Meter.started(Budget(seconds=2.0, bytes=10), clock=lambda: now[0])
    meter.check()
    now[0] = 1.5
    assert meter.rest.seconds == 0.5
    now[0] = 2.5
    assert meter.rest.seconds == 0.0
    with pytest.raises(OverBudgetError, match="ran out of its 2 s"):
        meter.check()


def test_many_writes_that_are_open_at_once_do_not_matter_where_an_order_is_near() -> None:
    writes = [write(number % 5, 0, 1000) for number in range(60)]
    reads = [read(number % 5, 10 * number, 10 * number + 5) for number in range(60)]
    assert wrong_count(rows(*writes, *reads), Model.REGISTER) == 0


def test_many_crashed_swaps_that_nobody_needs_cost_nothing() -> None:
    crashed = [info("cas", 0, expected=90 + number, value=1) for number in range(50)]
    steps = [write(number % 3, 10 * number, 10 * number + 5) for number in range(50)]
    history = rows(*crashed, *steps, read(1, 600, 601), refused(602, 603, expected=2, value=3))
    assert wrong_count(history, Model.REGISTER) == 0


def test_sums_that_somebody_waits_for_are_tried_first() -> None:
    """Forty adds of either sign are open all the time, while reads find what most of them made."""
    adds = [ok("add", 0, 1000, value=1 + number % 7 - 4 * (number % 2)) for number in range(40)]
    reads, total = [], 0
    for number, add in enumerate(Random(3).sample(adds, len(adds))):
        total += add["value"]
        reads.append(ok("read", 10 * number, 10 * number + 9, value=total))
    assert wrong_count(rows(*adds, *reads), Model.COUNTER) == 0


def simulated(count: int, process_count: int, seed: int) -> list[dict[str, Any]]:
    """Swaps, writes and reads of three values by processes that wait between their operations."""
    random = Random(seed)
    free = [random.randrange(50) for _ in range(process_count)]
    drawn = []
    for _ in range(count):
        process = min(range(process_count), key=lambda one: free[one])
        call = free[process]
        end = call + random.randrange(1, 30)
        free[process] = end + random.randrange(1, 30)
        drawn.append((random.randrange(call, end + 1), call, end, process))
    value = None
    history = []
    for _, call, end, process in sorted(drawn):
        times = {"call_ns": call, "return_ns": end, "process": process}
        drawn_value, expected = random.randrange(3), random.randrange(3)
        match random.randrange(3):
            case 0:
                history.append(read(value, 0, 0) | times)
            case 1:
                history.append(write(drawn_value, 0, 0) | times)
                value = drawn_value
            case _ if value == expected:
                history.append(ok("cas", 0, 0, expected=expected, value=drawn_value) | times)
                value = drawn_value
            case _:
                history.append(refused(0, 0, expected=expected, value=drawn_value) | times)
    return rows(*history)


def test_a_long_history_with_many_processes_is_decided() -> None:
    assert wrong_count(simulated(3000, 8, seed=1), Model.REGISTER) == 0


def test_a_wrong_read_in_a_long_history_is_found_with_a_small_proof() -> None:
    history = simulated(2000, 4, seed=2)
    places = [place for place, row in enumerate(history) if row["f"] == "read"]
    for place in places[len(places) // 2 :]:
        spoiled = [dict(row) for row in history]
        spoiled[place]["value"] = (spoiled[place]["value"] + 1) % 3
        found = judged(spoiled, Model.REGISTER)
        if found.never_count:
            assert len(found.table["operations"][0].as_py()) <= 8
            return
    raise AssertionError("no spoiled read was wrong")
