"""Every kernel says what trying all orders says, on random histories of a few operations."""

import pytest
from agreement import CONTESTS, contested

SEEDS = range(1_000_000, 1_000_400)


@pytest.mark.parametrize("name", CONTESTS)
def test_a_kernel_says_what_brute_force_says(name: str) -> None:
    tally = contested(CONTESTS[name], SEEDS)
    assert min(tally.linearizable_count, tally.wrong_count) > len(SEEDS) // 5
