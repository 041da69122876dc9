"""Drawn windows are plays like any other: they read back, contradict nothing, and all differ."""

import random

import pytest

from clusters.port import NodeName
from clusters.stage import Stage
from nemesis.play import parse_play, refuse_contradictions, step_data
from nemesis.verbs.await_condition import Await
from nemesis.verbs.cut_power import CutPower
from nemesis.verbs.kill import Kill
from nemesis.verbs.lift import Lift
from nemesis.verbs.rule import Lay
from nemesis.windows import drawn_window
from nemesis.wire.rules import Hold

NODES = tuple(map(NodeName, ("controller-1", "broker-1", "broker-2", "broker-3")))
STAGE = Stage(nodes=NODES, keys=("t-0",), broker_ids=(1, 2, 3), replicas={"t-0": (1, 2, 3)})


@pytest.mark.parametrize("seed", range(200))
def test_a_window_reads_back_as_it_was_drawn_and_can_be_performed(seed: int) -> None:
    play = drawn_window(random.Random(seed), key="t-0", replicas=(1, 2, 3), nodes=NODES)
    refuse_contradictions(play, STAGE)
    assert parse_play([step_data(step) for step in play], STAGE) == play


def test_every_window_holds_a_message_awaits_it_and_lets_it_go() -> None:
    for seed in range(200):
        play = drawn_window(random.Random(seed), key="t-0", replicas=(1, 2), nodes=NODES)
        laid = {s.name for s in play if isinstance(s, Lay) and isinstance(s.action, Hold)}
        assert "window" in laid
        assert any(isinstance(step, Await) for step in play)
        assert laid <= {s.name for s in play if isinstance(s, Lift)}


def test_only_the_strikes_that_were_allowed_are_drawn() -> None:
    for seed in range(100):
        play = drawn_window(
            random.Random(seed), key="t-0", replicas=(1, 2), nodes=NODES, strikes=(Kill,)
        )
        assert not any(isinstance(s, CutPower) for s in play)


def test_one_seed_draws_one_window_and_seeds_differ() -> None:
    def drawn(seed: int) -> object:
        return drawn_window(random.Random(seed), key="t-0", replicas=(1, 2, 3), nodes=NODES)

    assert drawn(3) == drawn(3)
    assert len({str(drawn(seed)) for seed in range(50)}) > 45
