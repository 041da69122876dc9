"""The generations of the reference cluster that `fencepost selftest` tries, by their systems.

Each has the rules that it keeps as switches, the storms in which they are tried, and plays of the
library for those that prevent a situation which storms draw seldom, or cannot draw.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from fencepost.clusters.reference.nodes.rules import RULES, ProtocolRule, Rules
from fencepost.clusters.reference.zk.rules import ZK_RULES
from fencepost.clusters.reference_zookeeper.system import SYSTEM as ON_ZOOKEEPER
from fencepost.harness.prepare.reference import rules_of
from fencepost.harness.trials.plan import TrialPlan, drawn_plan
from fencepost.harness.trials.zk_plan import drawn_zk_plan

_LEVELS: Final = (2, 3)
"""The levels to try: below them KIP-903 is absent, and what it prevents happens."""
_Plans = Callable[[int], TrialPlan]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One generation, as the self-test takes it."""

    system: str
    """The system of its scenarios; the first of `GENERATIONS` is the default."""
    title: str
    rules_of_its_own: tuple[ProtocolRule, ...]
    """The rules that it alone has."""
    plays: Mapping[str, str]
    """The scenario of the library, by rule, that was made to show soon what the rule prevents."""
    storms: Callable[[ProtocolRule | None], _Plans]
    """Return the storms in which a rule is tried; without one, those of a series of all rules."""

    @property
    def tried(self) -> tuple[ProtocolRule, ...]:
        """The rules that are tried: but for those whose absence no check can see."""
        return tuple(one for one in self.rules_of_its_own if not one.unseen)

    def rules(self) -> Rules:
        """Return the rules that the clusters of its storms keep."""
        return rules_of(self.storms(None)(1).cluster)


def _of_levels(rule: ProtocolRule | None) -> _Plans:
    return partial(drawn_plan, levels=_LEVELS if rule is None else _levels_of(rule))


def _levels_of(rule: ProtocolRule) -> tuple[int, ...]:
    """List the metadata.versions at which the rule is tried."""
    there = tuple(one for one in _LEVELS if rule.level_min <= one <= rule.level_max)
    return there or (rule.level_max,)


KRAFT: Final = Generation(
    system="kafka",
    title="The KRaft generation",
    rules_of_its_own=RULES,
    plays={
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
    },
    storms=_of_levels,
)
_ON_ZOOKEEPER: Final = Generation(
    system=ON_ZOOKEEPER.name,
    title="The ZooKeeper generation",
    rules_of_its_own=ZK_RULES,
    plays={
        "state_written_by_version": "leader-writes-over",
        "controller_epoch_checked": "late-controller",
        "broker_epoch_checked": "late-word",
        "new_incarnation_told_all": "restart-behind-the-controller",
        "old_incarnation_refused": "late-heartbeat",
        "bad_heartbeat_refused": "garbled-requests",
        "inactive_at_first": "unheard-leader",
        "inactive_left_out": "unheard-leader",
        "active_once_told": "untold-and-active",
        "controller_ends_silence": "cut-off-from-controller",
        "broker_ends_silence": "cut-off-from-controller",
        "timeouts_ordered": "timeouts-of-one-length",
        "isr_change_of_old_incarnation_refused": "late-isr-change",
        "isr_change_of_leader_alone": "deposed-isr-change",
        "empty_isr_refused": "garbled-requests",
        "member_incarnations_checked": "old-incarnation-refused",
        "new_behaviour_gated": "cut-off-from-controller-below",
        "legacy_always_active": "rolled-back",
        "id_sources_agree": "other-id",
        "id_of_disk_before_zookeeper": "quick-restart",
        "host_keeps_its_id": "lost-disk",
        "one_missing_id_alone": "two-missing-ids",
        "host_mapping_written": "lost-disk",
        "host_garbage_removed": "two-missing-ids",
    },
    storms=lambda _: drawn_zk_plan,
)
GENERATIONS: Final[Mapping[str, Generation]] = {one.system: one for one in (KRAFT, _ON_ZOOKEEPER)}
"""All generations, by their systems."""


def generation_of(rule: ProtocolRule) -> Generation:
    """Return the generation that has a rule of its own."""
    return next(one for one in GENERATIONS.values() if rule in one.tried)
