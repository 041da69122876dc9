"""The cluster of a trial and the oracle that judges it, in either generation."""

from collections.abc import Collection
from typing import Protocol

from fencepost.clusters.kafka_port import KafkaSpec, Role, role_of
from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.oracle.finding import Finding
from fencepost.clusters.reference.oracle.metadata_oracle import Decisions
from fencepost.clusters.reference.oracle.oracle import DELIVERED, SENT, Oracle
from fencepost.clusters.reference.oracle.record_oracle import RecordOracle
from fencepost.clusters.reference.oracle.world_view import WorldView, ZkWorldView
from fencepost.clusters.reference.oracle.zk_oracle import ZK_DELIVERED, ZK_SENT, ZkOracle
from fencepost.clusters.reference.simulated.cluster import CLIENTS_FROM, SimulatedCluster
from fencepost.clusters.reference.simulated.quorum_kit import build as build_quorum
from fencepost.clusters.reference.zk.configuration import ZkConfiguration
from fencepost.clusters.reference.zk.rules import ZkRules
from fencepost.clusters.reference_zookeeper.simulated.kit import ZkKit
from fencepost.clusters.reference_zookeeper.simulated.kit import build as build_zk
from fencepost.clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
from fencepost.clusters.simulation.world import Watcher


class Judge(Watcher, Protocol):
    """An oracle, of either generation."""

    findings: list[Finding]
    records: RecordOracle

    @property
    def decided(self) -> Decisions:
        """The decisions so far, as the oracle saw them."""

    def disk_lost(self, node: int, keys: tuple[PartitionKey, ...] | None = None) -> None:
        """A node's disk lost something, of these partitions or of all."""

    def finish(self, now: int) -> None:
        """Everything was healed, and the cluster is quiet."""


def build_cluster(
    spec: KafkaSpec | ReferenceZooKeeperSpec,
    rules: Rules,
    *,
    seed: int,
    digest: bool,
    witnessed: bool,
) -> SimulatedCluster:
    """Build the trial's cluster in a new world; no node runs yet."""
    if isinstance(spec, KafkaSpec):
        return build_quorum(spec, seed=seed, rules=rules, digest=digest, witnessed=witnessed)
    assert isinstance(rules, ZkRules), rules
    return build_zk(spec, seed=seed, rules=rules, digest=digest, witnessed=witnessed)


def build_oracle(cluster: SimulatedCluster) -> Judge:
    """Return the oracle over a cluster."""
    some = next(iter(cluster.kit.configurations.values()))
    if not isinstance(cluster.kit, ZkKit):
        return Oracle(
            WorldView(cluster.world.hosts),
            lease_ns=some.lease_timeout_ns,
            min_isr=some.min_insync_replicas,
            clients_from=CLIENTS_FROM,
        )
    assert isinstance(some, ZkConfiguration)
    insides = ZkWorldView(cluster.world.hosts)
    return ZkOracle(
        insides,
        broker_epoch=insides.incarnation,
        speaks=insides.speaks,
        timeouts_ns=insides.timeouts_ns,
        controller_side_ns=some.controller_side_timeout_ns,
        broker_side_ns=some.broker_side_timeout_ns,
        refusal=int(Error.INVALID_INCARNATION_ID),
        min_isr=some.min_insync_replicas,
        clients_from=CLIENTS_FROM,
    )


def watched_kinds(cluster: SimulatedCluster) -> tuple[Collection[int], Collection[int]]:
    """Return the kinds of messages that the oracle is shown: sent, delivered."""
    on_zookeeper = isinstance(cluster.kit, ZkKit)
    return (ZK_SENT, ZK_DELIVERED) if on_zookeeper else (SENT, DELIVERED)


def stale_brokers(cluster: SimulatedCluster, judge: Judge) -> frozenset[NodeName]:
    """Return the brokers that run under another incarnation than is registered.

    The data shown of them are old.
    """
    hosts, brokers = cluster.world.hosts, judge.decided.brokers
    insides = (ZkWorldView if isinstance(cluster.kit, ZkKit) else WorldView)(hosts)
    return frozenset(
        node
        for node in cluster.nodes
        if role_of(node) is Role.BROKER
        and (known := brokers.get(cluster.broker_id(node))) is not None
        and known.incarnation_id != insides.incarnation(cluster.host(node).number)
    )
