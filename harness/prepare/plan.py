"""A run before anything of it starts: its scenario as cluster and host will perform it.

Whatever can be refused is refused here, without a host, a Java or a directory: a run carries out
the plan that `--dry-run` shows, so that the two cannot differ.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, assert_never

from clusters.port import Cluster
from clusters.reference.specs import level_of
from harness.prepare.abilities import There, refuse_missing_abilities
from harness.prepare.disks import with_disks
from harness.prepare.hardships import with_hardships
from harness.prepare.placement import refuse_unplaceable
from harness.prepare.reference import (
    fitted_to_reference,
    refuse_what_is_kafkas,
    release_like,
    rules_without,
)
from harness.scenario.expectation import Expectation, expectation_for
from harness.scenario.options import ClusterKind, RunOptions
from harness.scenario.scenario import Scenario
from history.failure import HarnessError, UsageError

__all__ = ["Plan", "cluster_class", "planned"]

_FREE_BYTES_MIN: Final = 1 << 30
"""A smoke run writes about 200 MB (logs, segments, node data); below this it would not end well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run will do."""

    scenario: Scenario
    """Fitted to its cluster and its host."""
    options: RunOptions

    @property
    def there(self) -> There:
        """Where its faults are performed."""
        options = self.options
        cluster = cluster_class(options.cluster)
        return There(cluster=cluster, host=options.host, wired=options.wire)

    @property
    def release(self) -> str:
        """Whose expectations hold, as far as it is known before a build is looked at."""
        if self.options.cluster is ClusterKind.KAFKA:
            return self.scenario.cluster.release
        return release_like(self.scenario)

    @property
    def level(self) -> int | None:
        """The metadata.version of a cluster of our own."""
        of_our_own = self.options.cluster is not ClusterKind.KAFKA
        return level_of(self.scenario.cluster) if of_our_own else None

    @property
    def expectation(self) -> Expectation | None:
        """What its scenario expects of it."""
        return expectation_for(self.scenario.expect, release=self.release, level=self.level)


def planned(scenario: Scenario, options: RunOptions, say: Callable[[str], None]) -> Plan:
    """The plan of a run. UsageError or HarnessError for what cannot be, with its place."""
    _refuse_full_disk(options.results)
    refuse_unplaceable(options)
    plan = Plan(scenario=scenario, options=options)
    refuse_missing_abilities(scenario, plan.there)
    scenario = with_disks(scenario, options, say)
    scenario = with_hardships(_fitted(scenario, options, say), options)
    return replace(plan, scenario=scenario)


def cluster_class(kind: ClusterKind) -> type[Cluster]:
    """The class of these clusters, which says what can be done to them."""
    # Each is imported when it is asked for: a second to say no is too long.
    match kind:
        case ClusterKind.KAFKA:
            from clusters.kafka.cluster import KafkaCluster  # noqa: PLC0415

            return KafkaCluster
        case ClusterKind.REFERENCE:
            from clusters.reference.processes import ReferenceCluster  # noqa: PLC0415

            return ReferenceCluster
        case ClusterKind.SIMULATED:
            from clusters.reference.simulated.cluster import SimulatedCluster  # noqa: PLC0415

            return SimulatedCluster
        case _:
            assert_never(kind)


def _fitted(scenario: Scenario, options: RunOptions, say: Callable[[str], None]) -> Scenario:
    """The scenario as this kind of cluster performs it. UsageError if it cannot."""
    if scenario.trial is not None and options.cluster is not ClusterKind.SIMULATED:
        raise UsageError(f"{scenario.name} is a trial: pass --cluster simulated")
    match options.cluster:
        case ClusterKind.KAFKA:
            _refuse_as_kafka(scenario, options)
            return scenario
        case ClusterKind.REFERENCE:
            return fitted_to_reference(scenario, options, say)
        case ClusterKind.SIMULATED:
            _refuse_as_simulated(scenario, options)
            return scenario
        case _:
            assert_never(options.cluster)


def _refuse_as_kafka(scenario: Scenario, options: RunOptions) -> None:
    from clusters.kafka.configuration import refuse_impossible  # noqa: PLC0415
    from harness.prepare.releases import refuse_missing_releases  # noqa: PLC0415

    if options.without_rules:
        raise UsageError(
            "--without-rule is for our own nodes: pass --cluster reference, or simulated"
        )
    refuse_impossible(scenario.cluster)
    refuse_missing_releases(scenario, image=options.image)


def _refuse_as_simulated(scenario: Scenario, options: RunOptions) -> None:
    rules_without(options.without_rules)
    refuse_what_is_kafkas(scenario)
    if scenario.trial is not None:
        from harness.trials.plan import plan_of  # noqa: PLC0415

        plan_of(scenario, options.seed)
    elif scenario.membership is not None:
        raise UsageError(f"{scenario.name}: simulated clients move no partitions")


def _refuse_full_disk(results: Path) -> None:
    there = next(path for path in (results, *results.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        why = "Permission denied" if there.is_dir() else "Not a directory"
        raise HarnessError(f"{results}: cannot write results there: {why}")
    free_bytes = shutil.disk_usage(there).free
    if free_bytes < _FREE_BYTES_MIN:
        raise HarnessError(
            f"{results}: {free_bytes / 2**20:,.0f} MiB free, a run needs "
            f"{_FREE_BYTES_MIN / 2**20:,.0f}; make room or pass --results DIR on another disk"
        )
