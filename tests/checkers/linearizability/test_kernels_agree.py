"""Every kernel says what trying all orders says, on random histories of a few operations."""

import pytest
from agreement import CONTESTS, contested
from hypothesis import settings

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", CONTESTS)
def test_a_kernel_says_what_brute_force_says(name: str, fuzz_seeds: range) -> None:
    seeds = fuzz_seeds[: 4 * settings().max_examples]
    tally = contested(CONTESTS[name], seeds)
    assert min(tally.linearizable_count, tally.wrong_count) > len(seeds) // 10
