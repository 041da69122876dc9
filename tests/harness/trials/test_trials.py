"""Trials: nothing is found with all rules on, each rule's absence is, and a seed is one world."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from clusters.reference.rules import RULES, Rules
from harness.library import find_scenario
from harness.scenario import load_scenario
from harness.trial_spec import Storm
from harness.trials.examples import levels_of
from harness.trials.plan import drawn_plan, plan_of
from harness.trials.series import repeated_trial
from harness.trials.trial import run_trial

BY_NAME = {rule.name: rule for rule in RULES}
SOON = (
    "epoch_from_offset",
    "live_id_refused",
    "controller_ends_leases",
    "broker_ends_lease",
    "fenced_serves_nobody",
    "fenced_leads_nothing",
    "fenced_leaves_isr",
    "last_member_stays",
    "leaderships_moved_first",
    "leader_from_isr",
    "leader_epoch_bumped",
    "answer_epoch_checked",
)
"""Rules whose absence most seeds show."""


@pytest.mark.parametrize(
    "first", [1, *(pytest.param(first, marks=pytest.mark.slow) for first in (11, 21, 31))]
)
def test_a_clean_cluster_is_not_accused(first: int) -> None:
    for seed in range(first, first + 10):
        result = run_trial(drawn_plan(seed), Rules())
        assert (result.seed, result.crash, result.findings) == (seed, "", ())
        assert result.acknowledged_count > 0


@pytest.mark.slow
def test_a_clean_cluster_is_not_accused_in_hundreds_of_seeds(fuzz_seeds: range) -> None:
    for seed in fuzz_seeds[:300]:
        result = run_trial(drawn_plan(seed), Rules())
        assert (result.seed, result.crash, result.findings) == (seed, "", ())


@pytest.mark.parametrize("name", SOON)
def test_a_rule_switched_off_is_found_out(name: str) -> None:
    rule = BY_NAME[name]
    assert _seeds_to_detection(name, seeds=30) is not None, rule.prevents


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "member_epochs_checked",
        "partition_epoch_compared",
        "vote_for_longest",
        "commit_in_own_epoch",
        "stale_epoch_refused",
        "growth_needs_epoch_start",
        "fetch_epoch_checked",
        "renegotiates_late",
    ],
)
def test_a_rule_that_matters_in_a_window_is_found_out(name: str) -> None:
    assert _seeds_to_detection(name, seeds=400) is not None


def _seeds_to_detection(name: str, *, seeds: int) -> int | None:
    rule = BY_NAME[name]
    for seed in range(1, seeds + 1):
        plan = drawn_plan(seed, levels=levels_of(rule))
        result = run_trial(plan, Rules().without(name, *rule.beside))
        if not set(result.anomalies).isdisjoint(rule.shows_as):
            return seed
    return None


@pytest.mark.slow
def test_a_seed_is_one_world_under_every_order_of_hashes() -> None:
    digests = {_digest_in_a_process(seed=7, hash_seed=hash_seed) for hash_seed in ("0", "1", "77")}
    assert len(digests) == 1
    assert digests != {""}


def _digest_in_a_process(*, seed: int, hash_seed: str) -> str:
    code = (
        "from harness.trials.plan import drawn_plan\n"
        "from harness.trials.trial import run_trial\n"
        "from clusters.reference.rules import Rules\n"
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
    assert set(met) == {str(one) for one in Storm} - {str(Storm.NONE), str(Storm.PLAY)}
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
