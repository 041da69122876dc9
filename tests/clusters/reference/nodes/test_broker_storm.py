"""Whole clusters under storms keep what they acknowledged, show no metadata twice, and recover."""

import pytest
from broker_storm import storm

from clusters.reference.nodes.rules import Rules

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(12))
def test_a_cluster_keeps_its_word_in_a_storm(seed: int) -> None:
    acknowledged, reads = storm(seed)
    assert acknowledged > 10
    assert reads > 10


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_clusters_keep_their_word_in_many_storms(fuzz_seeds: range, first: int) -> None:
    for seed in fuzz_seeds[first : first + 50]:
        storm(seed)


@pytest.mark.parametrize(
    "rule", ["sequence_checked", "read_waits", "leader_from_isr", "acks_all_waits"]
)
def test_storms_find_what_is_open_without_a_rule(rule: str) -> None:
    def is_found(seed: int) -> bool:
        try:
            storm(seed, rules=Rules().without(rule))
        except AssertionError:
            return True
        return False

    assert any(is_found(seed) for seed in range(40))
