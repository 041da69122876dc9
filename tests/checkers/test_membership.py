"""Sets of values, against Python's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers.membership import distinct, has_repeats, is_among

VALUES = st.lists(st.integers(-5, 5), max_size=20)


def numbers(values: list[int]) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(values, dtype=np.int64)


@given(VALUES, VALUES)
def test_they_say_what_sets_say(values: list[int], others: list[int]) -> None:
    assert distinct(numbers(values)).tolist() == sorted(set(values))
    assert has_repeats(numbers(values)) == (len(set(values)) < len(values))
    assert is_among(numbers(values), numbers(others)).tolist() == [v in others for v in values]
