"""A run on nodes of our own: what of a scenario for Kafka they can perform.

As processes with the same wire, plays, clients, witness and checks as on Kafka; no release is
fetched.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TypeVar

from fencepost.clusters.kafka_port import Quorum, of_kafka
from fencepost.clusters.port import ClusterSpec
from fencepost.clusters.reference import process_settings, specs
from fencepost.clusters.reference.nodes.levels import LEVEL_VISIBILITY
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference_zookeeper.configuration import ignored as ignored_on_zookeeper
from fencepost.clusters.reference_zookeeper.configuration import stated_rules
from fencepost.clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import Scenario
from fencepost.history.failure import SpecError, UsageError
from fencepost.history.manifest import Promises
from fencepost.nemesis.words import did_you_mean
from fencepost.workloads.client_library import ClientLibrary
from fencepost.workloads.metadata_spec import MetadataSpec, ReadingClient
from fencepost.workloads.produce_poll_spec import Consume, ProducePollSpec
from fencepost.workloads.registry import kind_of

AnyRules = TypeVar("AnyRules", bound=Rules)


def rules_without(names: Sequence[str], rules: AnyRules) -> AnyRules:
    """Return all of these rules but those named.

    Raise UsageError, with the nearest name, if there is no such rule.
    """
    known = [field.name for field in fields(rules)]
    for name in names:
        if name not in known:
            raise UsageError(
                f"--without-rule {name}: there is no such rule; {did_you_mean(name, known)}"
            )
    return rules.without(*names)


def rules_of(spec: ClusterSpec) -> Rules:
    """Return the rules that nodes of our own keep in such a cluster."""
    return stated_rules(spec) if isinstance(spec, ReferenceZooKeeperSpec) else Rules()


def level_of(spec: ClusterSpec) -> int:
    """Return the level of its protocol with which a cluster of our own nodes starts."""
    if isinstance(spec, ReferenceZooKeeperSpec):
        return spec.inter_broker_protocol
    return specs.level_of(of_kafka(spec))


def release_like(spec: ClusterSpec) -> str:
    """Return the release of Kafka whose expectations hold of a cluster of our own nodes."""
    if isinstance(spec, ReferenceZooKeeperSpec):
        return spec.release
    return specs.release_like(of_kafka(spec))


def refuse_what_is_kafkas(scenario: Scenario) -> None:
    """Raise UsageError, with its place, for what nodes of our own cannot do or be."""
    document = scenario.document
    if ("cluster", "kafka") in document.flags:
        found = "the reference cluster runs no release of Kafka: leave --kafka or --cluster out"
        raise document.error(SpecError(("cluster", "kafka"), found))
    spec = scenario.cluster
    is_kraft = not isinstance(spec, ReferenceZooKeeperSpec)
    if is_kraft and of_kafka(spec).quorum is not Quorum.STATIC:
        found = "the reference cluster has static quorums only"
        raise document.error(SpecError(("cluster", "quorum"), found))
    level_of(spec)
    if not isinstance(scenario.workload, ProducePollSpec):
        raise UsageError(f"{scenario.name}: the reference cluster has no transactions")
    if scenario.workload.client is ClientLibrary.JAVA:
        found = "client: java comes with a release of Kafka, and the reference cluster runs none"
        raise document.error(SpecError(("workload", "client"), found))


def fitted_to_reference(
    scenario: Scenario, options: RunOptions, say: Callable[[str], None]
) -> Scenario:
    """Return the scenario as the reference cluster's clients perform it.

    Raise UsageError if it cannot be.
    """
    spec = scenario.cluster
    rules_without(options.without_rules, rules_of(spec))
    refuse_what_is_kafkas(scenario)
    workload = scenario.workload
    assert isinstance(workload, ProducePollSpec)
    for name in _ignored(spec):
        say(f"{name} means nothing to a node of the reference cluster")
    if workload.consume is Consume.ASSIGN:
        return scenario
    say("the reference cluster keeps no group's membership: every consumer assigns")
    return replace(scenario, workload=replace(workload, consume=Consume.ASSIGN))


def promises_of(scenario: Scenario) -> Promises:
    """Return the promises to clients on nodes of our own, as processes or simulated.

    Leases; and at a level at which brokers hide what not all of them have acknowledged, that no
    read of metadata lacks what was known before it. On ZooKeeper the broker-side time-out is the
    lease, from the protocol on that has heartbeats, and nothing is hidden.
    """
    if isinstance(scenario.cluster, ReferenceZooKeeperSpec):
        return replace(scenario.promises, leases=level_of(scenario.cluster) > 1)
    promises = replace(scenario.promises, leases=True)
    if level_of(scenario.cluster) < LEVEL_VISIBILITY:
        return promises
    return replace(promises, metadata_age_max_ms=0.0)


def refuse_unsimulated_clients(scenario: Scenario) -> None:
    """Raise UsageError for a workload that has no clients in virtual time."""
    for one in scenario.workloads:
        if isinstance(one, MetadataSpec) and one.reader is not ReadingClient.OWN:
            raise UsageError(f"{scenario.name}: {one.reader} cannot be a reader in virtual time")
    for kind in map(kind_of, scenario.workloads):
        if kind.simulated is None:
            raise UsageError(f"{scenario.name}: workload {kind.word} cannot run in virtual time")


def _ignored(spec: ClusterSpec) -> Sequence[str]:
    if isinstance(spec, ReferenceZooKeeperSpec):
        return ignored_on_zookeeper(spec)
    return process_settings.ignored(of_kafka(spec))
