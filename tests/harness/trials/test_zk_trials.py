"""Storms over clusters of the ZooKeeper generation: clean with the rules on, found out without."""

import pytest

from clusters.reference.zk.rules import ZkRules
from harness.trials.trial import TrialResult, run_trial
from harness.trials.zk_plan import drawn_zk_plan


def rules(*off: str) -> ZkRules:
    """All rules but these, with the one that the drafts lack."""
    kept = ZkRules()
    kept.member_incarnations_checked = True
    return kept.without(*off)


def tried(seed: int, *off: str, digest: bool = False, witnessed: bool = False) -> TrialResult:
    return run_trial(drawn_zk_plan(seed), rules(*off), digest=digest, witnessed=witnessed)


@pytest.mark.parametrize("seed", [*range(1, 13), 145])
def test_a_clean_cluster_is_not_accused(seed: int) -> None:
    """In seed 145 a new controller told a wiped broker to lead what another was about to."""
    result = tried(seed)
    assert (result.findings, result.crash) == ((), "")
    assert result.acknowledged_count > 0


def test_the_same_seed_makes_the_same_world() -> None:
    assert tried(3, digest=True).digest == tried(3, digest=True).digest != ""


def test_no_node_changes_a_message_that_it_was_sent() -> None:
    assert not tried(4, witnessed=True).crash


def test_without_incarnation_ids_a_restarted_broker_stays_out() -> None:
    found = {one for seed in range(1, 5) for one in tried(seed, "incarnation_from_czxid").anomalies}
    assert "stuck-isr" in found
