"""Trials that show what a rule prevents: by the rule that is off, a play, and a seed.

`storm` in the place of a play: the seed draws its own cluster and faults, at levels at which the
rule does its work.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clusters.reference.rules import RULES, Rule
from harness.library import find_scenario
from harness.scenario import load_scenario
from harness.trials.checked import Subject
from harness.trials.plan import TrialPlan, drawn_plan, plan_of

__all__ = ["LEVELS", "PLAYS", "STORM", "Example", "levels_of", "subject_of"]

STORM: Final = "storm"
LEVELS: Final = (2, 3)
"""Below them KIP-903 is not there, and what it prevents happens."""
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
"""By rule: a scenario of the library that was made to show soon what it prevents."""

_BY_NAME: Final = {rule.name: rule for rule in RULES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A trial, by what it takes to have it again."""

    rule: str
    play: str
    """A scenario of the library, or `storm`."""
    seed: int


def levels_of(rule: Rule) -> tuple[int, ...]:
    """The metadata.versions at which the rule is tried."""
    there = tuple(one for one in LEVELS if rule.level_min <= one <= rule.level_max)
    return there or (rule.level_max,)


def subject_of(example: Example, *, kept_in: Path | None = None) -> Subject:
    """The trial to be judged; `kept_in`: where its run goes, under its name, if it is found."""
    rule = _BY_NAME[example.rule]
    root = None if kept_in is None else kept_in / f"{example.rule}-{example.play}-{example.seed}"
    return Subject(rule=rule, plan=_plan(example, rule), play=example.play, root=root)


def _plan(example: Example, rule: Rule) -> TrialPlan:
    if example.play == STORM:
        return drawn_plan(example.seed, levels=levels_of(rule))
    return plan_of(load_scenario(find_scenario(example.play), []), example.seed)
