"""Under a storm of requests the controller keeps its rules; without any one of them it shows."""

import pytest
from storm import Storm

pytestmark = pytest.mark.slow

STEPS = 400


def _wrong(seeds: range) -> dict[int, list[str]]:
    """What went wrong, by seed."""
    found = {seed: Storm(seed).run(STEPS) for seed in seeds}
    return {seed: wrong for seed, wrong in found.items() if wrong}


def test_whatever_it_is_asked_the_controller_keeps_its_rules() -> None:
    assert _wrong(range(100)) == {}


def test_whatever_it_is_asked_for_long_the_controller_keeps_its_rules(fuzz_seeds: range) -> None:
    assert _wrong(fuzz_seeds[:2_900]) == {}


RULES = (
    "epoch_from_offset",
    "live_id_refused",
    "features_checked",
    "controller_ends_leases",
    "stale_heartbeat_refused",
    "fenced_leads_nothing",
    "fenced_leaves_isr",
    "last_member_stays",
    "unfenced_when_caught_up",
    "leaderships_moved_first",
    "partition_epoch_compared",
    "members_eligible",
    "leader_from_isr",
    "leader_epoch_bumped",
    "answer_after_commit",
    "producer_ids_unique",
    "lowest_of_all",
    "lowest_never_back",
    "write_waits",
)


"""Those without which a storm shows something soon; for the others a proposal has to be held across
the restart of its subject, which `test_controller_alter_partition.py` does."""


@pytest.mark.parametrize("rule", RULES)
def test_without_a_rule_a_storm_shows_its_bug(rule: str) -> None:
    assert any(Storm(seed, rule).run(STEPS) for seed in range(200))
