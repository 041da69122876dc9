import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers.visibility.newer import NONE, first_known_above

CLAIMS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12)


@given(CLAIMS, CLAIMS)
def test_it_is_the_first_that_was_known_of_all_that_are_above(
    claims: list[tuple[int, int]], asked: list[tuple[int, int]]
) -> None:
    found = first_known_above(
        *(np.array([one[place] for one in claims], dtype=np.int64) for place in (0, 1)),
        asked=np.array([rank for rank, _ in asked], dtype=np.int64),
        before_ns=np.array([before_ns for _, before_ns in asked], dtype=np.int64),
    )
    for (rank, before_ns), claim in zip(asked, found.tolist(), strict=True):
        known = [known_ns for above, known_ns in claims if above > rank and known_ns < before_ns]
        if claim == NONE:
            assert known == []
        else:
            assert claims[claim][0] > rank
            assert claims[claim][1] == min(known)
