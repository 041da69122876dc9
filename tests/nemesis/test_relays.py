"""Drawn relays are plays like any other: they read back, contradict nothing, and all differ."""

import random
from itertools import pairwise

import pytest

from clusters.port import NodeName
from clusters.stage import Stage
from nemesis.play import parse_play, refuse_contradictions, step_data, step_word
from nemesis.relays import drawn_relay
from nemesis.verbs.lift import Lift
from nemesis.verbs.move_leader import MoveLeader
from nemesis.verbs.rule import Lay
from nemesis.verbs.step import OnNodes, Play

NODES = tuple(map(NodeName, ("controller-1", "broker-1", "broker-2", "broker-3")))
STAGE = Stage(nodes=NODES, keys=("t-0",), broker_ids=(1, 2, 3), replicas={"t-0": (1, 2, 3)})


def drawn(seed: int) -> Play:
    return drawn_relay(random.Random(seed), key="t-0", replicas=(1, 2, 3))


@pytest.mark.parametrize("seed", range(50))
def test_a_relay_reads_back_as_it_was_drawn_and_can_be_performed(seed: int) -> None:
    play = drawn(seed)
    refuse_contradictions(play, STAGE)
    assert parse_play([step_data(step) for step in play], STAGE) == play


def test_every_relay_hands_the_leadership_on_to_somebody_else() -> None:
    for seed in range(100):
        leaders = [1, *(s.leaders["t-0"] for s in drawn(seed) if isinstance(s, MoveLeader))]
        assert len(leaders) > 1
        assert all(a != b for a, b in pairwise(leaders))


def test_what_a_relay_holds_arrives_and_whom_it_pauses_comes_back() -> None:
    laid_count = paused_count = 0
    for seed in range(100):
        play = drawn(seed)
        laid = [step.name for step in play if isinstance(step, Lay)]
        assert sorted(laid) == sorted(step.name for step in play if isinstance(step, Lift))
        words = [step_word(step) for step in play if isinstance(step, OnNodes)]
        assert words in ([], ["pause", "resume"])
        laid_count += bool(laid)
        paused_count += bool(words)
    assert laid_count > 80
    assert 20 < paused_count < 80


def test_one_seed_draws_one_relay_and_seeds_differ() -> None:
    assert drawn(3) == drawn(3)
    assert len({str(drawn(seed)) for seed in range(50)}) > 45
