import numpy as np

from fencepost.workloads.clients.consumer import Rereads

SECOND_NS = 1_000_000_000


def reassign(mean_s: float, seed: int = 1) -> Rereads:
    return Rereads(mean_s=mean_s, key_count=3, rng=np.random.default_rng(seed), now_ns=0)


def read(decider: Rereads, *, key: int, up_to: int) -> None:
    decider.read(np.full(up_to, key, dtype=np.int32), np.arange(up_to, dtype=np.int64))


def test_mean_0_never_reassigns() -> None:
    assert not reassign(0).is_due(10**18)


def test_it_starts_at_or_before_the_next_unread_offset_and_not_before_the_first() -> None:
    decider = reassign(5)
    read(decider, key=0, up_to=100_000)
    read(decider, key=1, up_to=3)
    for _ in range(50):
        far, near, never = decider.offsets(0)
        assert 100_000 - 10_000 // 3 <= far <= 100_000
        assert 0 <= near <= 3
        assert never == 0


def test_it_waits_for_about_the_mean_and_a_second_at_least() -> None:
    waits_s = []
    for seed in range(300):
        decider = reassign(5, seed)
        waits_s.append(next(s for s in range(1000) if decider.is_due(s * SECOND_NS)))
    assert min(waits_s) >= 1
    assert 5 < np.mean(waits_s) < 8
