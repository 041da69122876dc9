import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fencepost.workloads.generators.keys import KeyCycle, by_key

KEYS = st.lists(st.integers(0, 50), min_size=1, max_size=12, unique=True)


@given(keys=KEYS, counts=st.lists(st.integers(0, 40), max_size=20), seed=st.integers(0, 2**32))
def test_at_any_moment_each_key_was_chosen_equally_often_to_within_one(
    keys: list[int], counts: list[int], seed: int
) -> None:
    cycle = KeyCycle(keys, np.random.default_rng(seed))
    chosen: list[int] = []
    for count in counts:
        taken = cycle.take(count)
        assert len(taken) == count
        chosen.extend(taken.tolist())
        often = [chosen.count(key) for key in keys]
        assert sum(often) == len(chosen)
        assert max(often) - min(often) <= 1


def test_the_order_is_the_seeds() -> None:
    def order(seed: int) -> list[int]:
        taken: list[int] = KeyCycle(range(8), np.random.default_rng(seed)).take(64).tolist()
        return taken

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert order(1)[:8] != order(1)[8:16]


@given(keys=st.lists(st.integers(0, 5), max_size=60))
def test_by_key_splits_a_batch_and_keeps_the_order_within_a_key(keys: list[int]) -> None:
    groups = {key: positions.tolist() for key, positions in by_key(np.array(keys, dtype=np.int32))}
    expected = {
        key: [position for position, other in enumerate(keys) if other == key]
        for key in sorted(set(keys))
    }
    assert groups == expected
