"""A run on the reference cluster as processes: what of a scenario for Kafka it can perform.

The same wire, plays, clients, witness and checks as on Kafka; no release is fetched.
"""

from dataclasses import fields, replace
from typing import Final

from clusters.reference.levels import LEVEL_VISIBILITY
from clusters.reference.process_settings import ignored
from clusters.reference.rules import Rules
from clusters.reference.specs import level_of
from harness.options import RunOptions
from harness.progress import Progress
from harness.scenario import Scenario
from history.failure import UsageError
from history.manifest import Promises
from workloads.produce_poll_spec import Consume, ProducePollSpec

__all__ = ["fitted_to_reference", "promises_of", "release_like"]

_KAFKA_LIKE: Final = {1: "3.4.1", 2: "4.3.1", 3: "4.3.1"}
"""Whose expectations hold at a level: the releases that have and have not its rules (KIP-903)."""


def fitted_to_reference(scenario: Scenario, options: RunOptions, progress: Progress) -> Scenario:
    """The scenario as the reference cluster's clients perform it. UsageError if it cannot be."""
    known = {field.name for field in fields(Rules)}
    for rule in options.without_rules:
        if rule not in known:
            raise UsageError(f"--without-rule {rule}: there is no such rule")
    level_of(scenario.cluster)
    workload = scenario.workload
    if not isinstance(workload, ProducePollSpec):
        raise UsageError(f"{scenario.name}: the reference cluster has no transactions")
    for name in ignored(scenario.cluster):
        progress.say(f"{name} means nothing to a node of the reference cluster")
    if workload.consume is Consume.ASSIGN:
        return scenario
    progress.say("the reference cluster keeps no group's membership: every consumer assigns")
    return replace(scenario, workload=replace(workload, consume=Consume.ASSIGN))


def release_like(scenario: Scenario) -> str:
    """The release of Kafka whose expectations hold of the scenario's cluster."""
    return _KAFKA_LIKE[level_of(scenario.cluster)]


def promises_of(scenario: Scenario) -> Promises:
    """What clients are promised on nodes of our own, as processes or simulated.

    Leases; and at a level at which brokers hide what not all of them have acknowledged, that no
    read of metadata lacks what was known before it.
    """
    promises = replace(scenario.promises, leases=True)
    if level_of(scenario.cluster) < LEVEL_VISIBILITY:
        return promises
    return replace(promises, metadata_age_max_ms=0.0)
