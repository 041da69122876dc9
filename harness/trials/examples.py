"""Trials that show what a rule prevents: by the rule that is off, a play, and a seed.

`storm` in the place of a play: the seed draws its own cluster and faults, at levels at which the
rule does its work.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from clusters.reference.nodes.rules import RULES, ProtocolRule
from harness.scenario.scenario import load_scenario
from harness.scenario.sources import find_scenario
from harness.trials.plan import TrialPlan, drawn_plan, plan_of

__all__ = ["LEVELS", "PLAYS", "STORM", "Example", "example_of", "levels_of"]

STORM: Final = "storm"
LEVELS: Final = (2, 3)
"""The levels to try: below them KIP-903 is absent, and what it prevents happens."""
PLAYS: Final[Mapping[str, str]] = {
    "controller_ends_leases": "cut-off",
    "broker_ends_lease": "cut-off",
    "fenced_serves_nobody": "cut-off",
    "fenced_leaves_isr": "cut-off",
    "commit_in_own_epoch": "old-records",
    "high_watermark_of_maximal_isr": "held-join",
    "growth_needs_high_watermark": "late-catch-up",
    "growth_needs_epoch_start": "behind-the-epoch",
    "answer_epoch_checked": "late-answer",
    "only_leader_alters": "deposed-leader",
}
"""The scenario of the library, by rule, that was made to show soon what the rule prevents."""
_BY_NAME: Final = {rule.name: rule for rule in RULES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A trial of a rule switched off, by what it takes to have it again."""

    rule: ProtocolRule
    play: str
    """A scenario of the library, or `storm`: the seed's own."""
    seed: int

    def plan(self) -> TrialPlan:
        """Draw its plan."""
        if self.play == STORM:
            return drawn_plan(self.seed, levels=levels_of(self.rule))
        return plan_of(load_scenario(find_scenario(self.play), []), self.seed)

    def __str__(self) -> str:
        """Return its name, under which its run is kept."""
        return f"{self.rule.name}-{self.play}-{self.seed}"


def example_of(rule: str, play: str, seed: int) -> Example:
    """Find the rule by its name; raise KeyError for an unknown one."""
    return Example(rule=_BY_NAME[rule], play=play, seed=seed)


def levels_of(rule: ProtocolRule) -> tuple[int, ...]:
    """List the metadata.versions at which the rule is tried."""
    there = tuple(one for one in LEVELS if rule.level_min <= one <= rule.level_max)
    return there or (rule.level_max,)
