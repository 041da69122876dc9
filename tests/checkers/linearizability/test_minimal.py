"""What is left of a history is still wrong, and nothing of it can be spared."""

from collections.abc import Callable

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers.linearizability.budget import Budget, OverBudgetError
from fencepost.checkers.linearizability.searched import minimal

AMPLE = Budget(seconds=60.0, bytes=1 << 30)
NO_TIME = Budget(seconds=-1.0, bytes=1 << 30)


def rows(*indices: int) -> pa.Table:
    return pa.table({"index": pa.array(indices, type=pa.int64())})


def has(*culprits: set[int]) -> Callable[[pa.Table], bool]:
    """Wrong as soon as all of some set of culprits are there."""

    def is_wrong(table: pa.Table) -> bool:
        there = set(table.column("index").to_pylist())
        return any(culprit <= there for culprit in culprits)

    return is_wrong


def kept(table: pa.Table) -> list[int]:
    found: list[int] = table.column("index").to_pylist()
    return found


def test_two_operations_far_apart_are_found() -> None:
    found = minimal(rows(*range(100)), is_wrong=has({3, 97}), budget=AMPLE)
    assert kept(found) == [3, 97]


def test_one_operation_may_be_enough() -> None:
    assert kept(minimal(rows(1, 2, 3), is_wrong=has({2}), budget=AMPLE)) == [2]
    assert kept(minimal(rows(5), is_wrong=has({5}), budget=AMPLE)) == [5]


def test_without_time_everything_is_kept() -> None:
    assert kept(minimal(rows(1, 2, 3), is_wrong=has({2}), budget=NO_TIME)) == [1, 2, 3]


def test_a_trial_that_runs_out_of_its_budget_proves_nothing() -> None:
    def is_wrong(table: pa.Table) -> bool:
        if table.num_rows < 4:
            raise OverBudgetError("too hard")
        return has({2})(table)

    found = kept(minimal(rows(*range(10)), is_wrong=is_wrong, budget=AMPLE))
    assert 2 in found
    assert len(found) == 4


@given(
    st.lists(st.sets(st.integers(0, 30), min_size=1, max_size=6), min_size=1, max_size=3),
)
def test_what_is_left_is_wrong_and_one_minimal(culprits: list[set[int]]) -> None:
    is_wrong = has(*culprits)
    found = kept(minimal(rows(*range(31)), is_wrong=is_wrong, budget=AMPLE))
    assert is_wrong(rows(*found))
    assert found == sorted(found)
    for spared in found:
        rest = [one for one in found if one != spared]
        assert not rest or not is_wrong(rows(*rest))
