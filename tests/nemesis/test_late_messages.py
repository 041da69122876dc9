"""Drawn late fetches are plays like any other; what they lay bare is KIP-903's and nothing else."""

import random

import pytest

from clusters.port import NodeName
from clusters.reference.nodes.rules import Rules
from clusters.stage import Stage
from harness.scenario.trial_spec import Storm
from harness.trials.plan import drawn_plan
from harness.trials.trial import run_trial
from nemesis.late_messages import drawn_late_fetch
from nemesis.play import parse_play, refuse_contradictions, step_data
from nemesis.verbs.lift import Lift
from nemesis.verbs.rule import Lay
from nemesis.verbs.step import Play

NODES = tuple(map(NodeName, ("controller-1", "broker-1", "broker-2", "broker-3")))
STAGE = Stage(nodes=NODES, keys=("t-0",), broker_ids=(1, 2, 3), replicas={"t-0": (1, 2, 3)})


def drawn(seed: int) -> Play:
    return drawn_late_fetch(random.Random(seed), key="t-0", replicas=(1, 2, 3))


@pytest.mark.parametrize("seed", range(50))
def test_a_late_fetch_reads_back_as_it_was_drawn_and_can_be_performed(seed: int) -> None:
    play = drawn(seed)
    refuse_contradictions(play, STAGE)
    assert parse_play([step_data(step) for step in play], STAGE) == play


def test_whatever_it_lays_it_lifts() -> None:
    for seed in range(50):
        laid = [step.name for step in drawn(seed) if isinstance(step, Lay)]
        lifted = [step.name for step in drawn(seed) if isinstance(step, Lift)]
        assert sorted(laid) == sorted(lifted)


def test_one_seed_draws_one_and_seeds_differ() -> None:
    assert drawn(3) == drawn(3)
    assert len({str(drawn(seed)) for seed in range(50)}) > 40


@pytest.mark.slow
def test_nearly_each_shows_that_an_epoch_was_not_taken_from_the_fetch_and_no_rule_missing() -> None:
    plans = [plan for plan in map(drawn_plan, range(1, 800)) if plan.storm is Storm.LATE_FETCHES]
    assert 10 < len(plans) < 50
    off = Rules().without("epoch_from_fetch")
    found = [run_trial(plan, off).anomalies for plan in plans[:10]]
    assert sum("stale-epoch-join" in anomalies for anomalies in found) >= 8
    for plan in plans[:10]:
        result = run_trial(plan, Rules())
        assert (result.crash, result.findings) == ("", ())
