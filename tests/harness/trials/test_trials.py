"""Trials: nothing is found with all rules on, and a seed is one world. See test_selftest, too."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from fencepost.clusters.reference.nodes.rules import RULES, Rules
from fencepost.harness.scenario.scenario import load_scenario
from fencepost.harness.scenario.sources import find_scenario
from fencepost.harness.scenario.trial_spec import Storm
from fencepost.harness.trials.plan import drawn_plan, plan_of
from fencepost.harness.trials.series import repeated_trial
from fencepost.harness.trials.trial import run_trial
from fencepost.nemesis.mix_spec import MixSpec

pytestmark = pytest.mark.slow

BY_NAME = {rule.name: rule for rule in RULES}


@pytest.mark.parametrize(
    "first", [1, *(pytest.param(first, marks=pytest.mark.slow) for first in (11, 21, 31))]
)
def test_a_clean_cluster_is_not_accused(first: int) -> None:
    for seed in range(first, first + 10):
        result = run_trial(drawn_plan(seed), Rules())
        assert (result.seed, result.crash, result.findings) == (seed, "", ())
        assert result.acknowledged_count > 10


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_a_clean_cluster_is_not_accused_in_many_seeds(fuzz_seeds: range, first: int) -> None:
    for seed in fuzz_seeds[first : first + 100]:
        result = run_trial(drawn_plan(seed), Rules())
        assert (result.seed, result.crash, result.findings) == (seed, "", ())


@pytest.mark.parametrize("seed", range(12))
def test_as_long_as_no_disk_loses_records_level_one_keeps_its_word_too(seed: int) -> None:
    plan = drawn_plan(seed, levels=(1,))
    mix = replace(plan.mix or MixSpec(), faults=("kill", "pause", "restart", "partition", "delay"))
    loss = 0.02 if seed % 2 else 0.0
    result = run_trial(replace(plan, storm=Storm.MIX, mix=mix, wipes=0.0, loss=loss), Rules())
    assert (result.crash, result.findings) == ("", ())
    assert result.acknowledged_count > 10


def test_a_seed_is_one_world_under_every_order_of_hashes() -> None:
    digests = {_digest_in_a_process(seed=7, hash_seed=hash_seed) for hash_seed in ("0", "1", "77")}
    assert len(digests) == 1
    assert digests != {""}


def _digest_in_a_process(*, seed: int, hash_seed: str) -> str:
    code = (
        "from fencepost.harness.trials.plan import drawn_plan\n"
        "from fencepost.harness.trials.trial import run_trial\n"
        "from fencepost.clusters.reference.nodes.rules import Rules\n"
        f"print(run_trial(drawn_plan({seed}), Rules(), digest=True).digest)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_nobody_changes_a_message_that_was_sent(seed: int) -> None:
    # In this mode every message is compared with what it was when it was sent.
    plan = replace(drawn_plan(seed), faults_s=3.0)
    assert run_trial(plan, Rules(), witnessed=True).crash == ""


def test_a_trial_that_is_repeated_gives_the_same_world() -> None:
    result = repeated_trial(replace(drawn_plan(20), faults_s=2.0), Rules())
    assert (result.crash, result.findings) == ("", ())
    assert result.digest


def test_every_storm_is_drawn_and_carries_its_plan_out() -> None:
    met: dict[str, int] = {}
    for seed in range(1, 300):
        plan = drawn_plan(seed)
        met.setdefault(str(plan.storm), seed)
    assert set(met) == {str(one) for one in Storm} - {"none", "play", "late-words"}
    for storm, seed in met.items():
        result = run_trial(drawn_plan(seed), Rules())
        assert result.storm == storm
        assert result.virtual_ns > 9_000_000_000


@pytest.mark.parametrize("name", ["kip-903", "kip-903-controller-change"])
@pytest.mark.parametrize(("level", "found"), [("1", True), ("2", False), ("3", False)])
def test_e08_the_very_scenario_of_kafka_fires_below_level_two_alone(
    name: str,
    level: str,
    found: bool,  # noqa: FBT001
) -> None:
    override = (("cluster", "metadata_version"), level, "--metadata-version")
    plan = plan_of(load_scenario(find_scenario(name), [override]), seed=5)
    result = run_trial(plan, Rules())
    assert result.crash == ""
    assert ("stale-epoch-join" in result.anomalies) is found
    assert bool(result.findings) is found
