"""The operations on znodes that a client draws."""

from collections import Counter

import numpy as np
import pytest

from fencepost.workloads.generators.znodes import ZnodeDraws, ZnodeF, ZnodeIntent, znode_keys

WEIGHTS = {
    ZnodeF.READ: 30,
    ZnodeF.SYNC_READ: 0,
    ZnodeF.SET: 20,
    ZnodeF.CAS: 20,
    ZnodeF.CREATE: 10,
    ZnodeF.DELETE: 20,
}


def draws(seed: int = 1, *, deleted_share: float = 0.5) -> ZnodeDraws:
    keys = znode_keys(10, deleted_share=deleted_share)
    return ZnodeDraws(*keys, weights=WEIGHTS, draw=np.random.default_rng(seed))


def drawn(source: ZnodeDraws, count: int = 5000) -> list[ZnodeIntent]:
    return [source.next() for _ in range(count)]


def test_the_same_seed_draws_the_same_operations() -> None:
    assert drawn(draws(7), 300) == drawn(draws(7), 300)
    assert drawn(draws(7), 300) != drawn(draws(8), 300)


@pytest.mark.parametrize(("share", "lasting", "deleted"), [(0, 10, 0), (0.5, 5, 5), (1, 0, 10)])
def test_a_share_of_the_keys_is_deleted(share: float, lasting: int, deleted: int) -> None:
    keys = znode_keys(10, deleted_share=share)
    assert [len(part) for part in keys] == [lasting, deleted]
    ended = {one.key for one in drawn(draws(deleted_share=share)) if one.f is ZnodeF.DELETE}
    assert ended == set(keys[1])


def test_operations_are_drawn_as_often_as_their_weights_say() -> None:
    counts = Counter(one.f for one in drawn(draws(deleted_share=1)))
    assert counts[ZnodeF.SYNC_READ] == 0
    assert {f: round(10 * count / 5000) for f, count in counts.items()} == {
        ZnodeF.READ: 3,
        ZnodeF.SET: 2,
        ZnodeF.CAS: 2,
        ZnodeF.CREATE: 1,
        ZnodeF.DELETE: 2,
    }


def test_a_swap_expects_the_version_that_was_seen_last() -> None:
    source = draws()
    for number in range(10):
        for part in znode_keys(10, deleted_share=0.5):
            for key in part:
                source.saw(key, number)
    expected = {one.expected for one in drawn(source) if one.f is ZnodeF.CAS}
    assert expected == {9}
