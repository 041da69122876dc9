"""A run before anything of it starts: its scenario as cluster and host will perform it.

All refusals come from here, without a host, a Java or a directory: a run carries out the plan that
`--dry-run` shows, so that the two cannot differ.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from clusters.kafka_port import of_kafka
from clusters.systems import KAFKA, system_of
from harness.prepare.abilities import There, refuse_missing_abilities
from harness.prepare.placement import refuse_unplaceable, with_disks, with_hardships
from harness.prepare.reference import (
    fitted_to_reference,
    level_of,
    refuse_unsimulated_clients,
    refuse_what_is_kafkas,
    release_like,
    rules_of,
    rules_without,
)
from harness.prepare.releases import refuse_missing_releases
from harness.scenario.expectation import Expectation, expectation_for
from harness.scenario.options import RunOptions
from harness.scenario.scenario import Scenario
from history.failure import HarnessError, UsageError

__all__ = ["RunPlan", "planned"]

_FREE_BYTES_MIN: Final = 1 << 30
"""A smoke run writes about 200 MB (logs, segments, node data); below this it would not end well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """The plan of a run: its scenario, fitted, and its options."""

    scenario: Scenario
    """The scenario, fitted to its cluster and its host."""
    options: RunOptions

    @property
    def there(self) -> There:
        """The cluster and the host on which its faults are performed."""
        options = self.options
        cluster = options.cluster.driver.cluster
        carried = system_of(self.scenario.cluster).protocols
        return There(cluster=cluster, host=options.host, wired=options.wire, protocols=carried)

    @property
    def release(self) -> str:
        """The release whose expectations hold, as far as it is known before a build is examined."""
        spec = self.scenario.cluster
        return release_like(spec) if self.options.cluster.of_our_own else spec.release

    @property
    def level(self) -> int | None:
        """The level of its protocol that a cluster of our own starts with."""
        of_our_own = self.options.cluster.of_our_own
        return level_of(self.scenario.cluster) if of_our_own else None

    @property
    def expectation(self) -> Expectation | None:
        """The expectation that its scenario has of it."""
        return expectation_for(self.scenario.expect, release=self.release, level=self.level)


def planned(scenario: Scenario, options: RunOptions, say: Callable[[str], None]) -> RunPlan:
    """Return the plan of a run.

    Raise UsageError or HarnessError, with its place, for an impossible one.
    """
    _refuse_full_disk(options.results)
    _refuse_make(scenario, options)
    refuse_unplaceable(options)
    # Before the cluster's class is imported, which says what can be done to it.
    plan = RunPlan(scenario=_fitted(scenario, options, say), options=options)
    refuse_missing_abilities(plan.scenario, plan.there)
    scenario = with_disks(plan.scenario, options, say)
    return replace(plan, scenario=with_hardships(scenario, options))


def _refuse_make(scenario: Scenario, options: RunOptions) -> None:
    """Raise UsageError if the scenario's cluster cannot be made of such nodes."""
    system, make = system_of(scenario.cluster), options.cluster
    if make not in system.makes:
        raise UsageError(
            f"--cluster {make}: {scenario.name} has a cluster of {system.name}, which is made of: "
            f"{', '.join(system.by_name)}"
        )
    if scenario.trial is not None and not make.in_virtual_time:
        raise UsageError(f"{scenario.name} is a trial: pass --cluster simulated")
    if options.without_rules and not make.of_our_own:
        raise UsageError(
            "--without-rule is for our own nodes: pass --cluster reference, or simulated"
        )


def _fitted(scenario: Scenario, options: RunOptions, say: Callable[[str], None]) -> Scenario:
    """Return the scenario as this kind of cluster performs it; raise UsageError if it cannot."""
    if options.cluster.in_virtual_time:
        _refuse_as_simulated(scenario, options)
    elif options.cluster.of_our_own:
        return fitted_to_reference(scenario, options, say)
    else:
        if options.cluster is KAFKA:
            from clusters.kafka.configuration import refuse_impossible  # noqa: PLC0415

            refuse_impossible(of_kafka(scenario.cluster))
        refuse_missing_releases(scenario, options.cluster, image=options.image)
    return scenario


def _refuse_as_simulated(scenario: Scenario, options: RunOptions) -> None:
    rules_without(options.without_rules, rules_of(scenario.cluster))
    refuse_what_is_kafkas(scenario)
    if scenario.trial is not None:
        from harness.trials.plan import plan_of  # noqa: PLC0415

        plan_of(scenario, options.seed)
    refuse_unsimulated_clients(scenario)


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
