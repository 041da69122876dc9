"""Helpers of rows that several tables are read with."""

import numpy as np
import pytest

from fencepost.checkers.rows import places_in_runs
from fencepost.checkers.slices import slice_count


@pytest.mark.parametrize(
    ("codes", "places"),
    [([], []), ([7], [0]), ([0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 1, 2]), ([-1, -1], [0, 1])],
)
def test_places_are_counted_anew_in_each_run(codes: list[int], places: list[int]) -> None:
    assert places_in_runs(np.array(codes, dtype=np.int64)).tolist() == places


@pytest.mark.parametrize(("rows", "count"), [(0, 1), (1, 1), (10, 1), (11, 2), (20, 2)])
def test_a_slice_holds_no_more_rows_than_it_may(rows: int, count: int) -> None:
    assert slice_count(rows, 10) == count
