"""Where partitions go: within bounds and budget, from any place, and as the seed says."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.workloads.clients.membership_client import Move, Moves, ReplicaChange, Replicas

BROKERS = (1, 2, 3, 4, 5)


def moves_of(
    replicas_min: int = 2,
    replicas_max: int = 4,
    *,
    moves_max: int | None = None,
    cancel_share: float = 0.0,
    seed: int = 7,
) -> Moves:
    return Moves(
        keys=range(3),
        broker_ids=BROKERS,
        replicas_min=replicas_min,
        replicas_max=replicas_max,
        moves_max=moves_max,
        cancel_share=cancel_share,
        cancel_after_s_max=0.5,
        draw=np.random.default_rng(seed),
    )


def simulated(moves: Moves, count: int) -> list[tuple[int, Replicas, Move]]:
    """So many moves of partitions that go where they are told: key, from where, the move."""
    placed: dict[int, Replicas] = dict.fromkeys(range(3), (1, 2, 3))
    done = []
    for _ in range(count):
        key = moves.next_key()
        move = moves.next(placed[key])
        done.append((key, placed[key], move))
        placed[key] = move.replicas
    return done


@given(
    st.integers(0, 10_000),
    st.integers(1, 4),
    st.integers(0, 4),
    st.permutations(BROKERS),
    st.integers(1, 5),
)
def test_a_move_is_one_change_towards_or_within_the_bounds(
    seed: int, replicas_min: int, more: int, order: list[int], count: int
) -> None:
    replicas_max = min(5, replicas_min + more)
    before = tuple(order[:count])
    move = moves_of(replicas_min, replicas_max, seed=seed).next(before)
    after = move.replicas
    assert len(set(after)) == len(after)
    assert set(after) <= set(BROKERS)
    gone, come = set(before) - set(after), set(after) - set(before)
    sizes = {ReplicaChange.ADD: (0, 1), ReplicaChange.REMOVE: (1, 0), ReplicaChange.REPLACE: (1, 1)}
    assert (len(gone), len(come)) == sizes[move.change]
    stayed = [one for one in before if one in after]
    assert [one for one in after if one in before] == stayed
    if replicas_min <= count <= replicas_max:
        assert replicas_min <= len(after) <= replicas_max
    else:
        # One that somebody else placed outside the bounds comes a step nearer to them.
        assert len(after) - count == (1 if count < replicas_min else -1)


def test_every_change_every_broker_and_every_preferred_leader_comes_up() -> None:
    done = simulated(moves_of(), 300)
    changes = Counter(move.change for _, _, move in done)
    assert min(changes[change] for change in ReplicaChange) > 30
    assert {move.replicas[0] for _, _, move in done} == set(BROKERS)
    assert {len(move.replicas) for _, _, move in done} == {2, 3, 4}


def test_each_key_is_moved_equally_often() -> None:
    counts = Counter(key for key, _, _ in simulated(moves_of(), 30))
    assert counts == {0: 10, 1: 10, 2: 10}


def test_the_same_seed_moves_the_same_way_and_another_does_not() -> None:
    assert simulated(moves_of(seed=1), 50) == simulated(moves_of(seed=1), 50)
    assert simulated(moves_of(seed=1), 50) != simulated(moves_of(seed=2), 50)


def test_the_budget_ends() -> None:
    moves = moves_of(moves_max=4)
    for _ in range(4):
        assert not moves.is_over
        moves.next((1, 2, 3))
    assert moves.is_over
    with pytest.raises(AssertionError, match="beyond the budget"):
        moves.next((1, 2, 3))


def test_so_many_are_called_off_within_their_time() -> None:
    after_s = [move.cancel_after_s for _, _, move in simulated(moves_of(cancel_share=0.25), 800)]
    called_off = [one for one in after_s if one is not None]
    assert 150 < len(called_off) < 250
    assert 0 <= min(called_off) < 0.1
    assert 0.4 < max(called_off) <= 0.5


def test_calling_off_changes_nothing_about_where_partitions_go() -> None:
    one, other = (simulated(moves_of(cancel_share=share), 50) for share in (0.0, 1.0))
    assert [move.replicas for *_, move in one] == [move.replicas for *_, move in other]


@pytest.mark.parametrize(("replicas_min", "replicas_max"), [(5, 5), (3, 2), (2, 6), (0, 2)])
def test_bounds_within_which_nothing_could_move_are_refused(
    replicas_min: int, replicas_max: int
) -> None:
    with pytest.raises(ValueError, match=f"{replicas_min} "):
        moves_of(replicas_min, replicas_max)
