"""How transactions are to end: in a fixed order, or by a share of the seed."""

import numpy as np

from fencepost.workloads.generators.intents import Intent, Intents

COMMIT, ABORT = Intent.COMMIT, Intent.ABORT


def taken(intents: Intents, count: int) -> list[Intent]:
    return [intents.next() for _ in range(count)]


def of(*pattern: Intent, abort_share: float = 0.3, seed: int = 1) -> Intents:
    return Intents(pattern, abort_share=abort_share, rng=np.random.default_rng(seed))


def test_a_pattern_is_repeated_from_its_start() -> None:
    intents = of(COMMIT, ABORT, ABORT)
    assert taken(intents, 5) == [COMMIT, ABORT, ABORT, COMMIT, ABORT]
    assert intents.count == 5


def test_without_a_pattern_the_share_of_aborts_is_the_one_asked_for() -> None:
    assert 250 < taken(of(abort_share=0.3), 1000).count(ABORT) < 350
    assert set(taken(of(abort_share=0.0), 100)) == {COMMIT}
    assert set(taken(of(abort_share=1.0), 100)) == {ABORT}


def test_one_seed_makes_one_order() -> None:
    assert taken(of(seed=3), 50) == taken(of(seed=3), 50) != taken(of(seed=4), 50)
