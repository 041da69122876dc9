"""Trials that show what a rule prevents: by the rule that is off, a play, and a seed.

`storm` in the place of a play: the seed draws its own cluster and faults, as the rule's generation
has them.
"""

from dataclasses import dataclass
from typing import Final

from fencepost.clusters.reference.nodes.rules import ProtocolRule
from fencepost.harness.scenario.scenario import load_scenario
from fencepost.harness.scenario.sources import find_scenario
from fencepost.harness.trials.generations import GENERATIONS, generation_of
from fencepost.harness.trials.plan import TrialPlan, plan_of

STORM: Final = "storm"
_BY_NAME: Final = {rule.name: rule for one in GENERATIONS.values() for rule in one.tried}


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
            return generation_of(self.rule).storms(self.rule)(self.seed)
        return plan_of(load_scenario(find_scenario(self.play), []), self.seed)

    def __str__(self) -> str:
        """Return its name, under which its run is kept."""
        return f"{self.rule.name}-{self.play}-{self.seed}"


def example_of(rule: str, play: str, seed: int) -> Example:
    """Find the rule by its name; raise KeyError for an unknown one."""
    return Example(rule=_BY_NAME[rule], play=play, seed=seed)
