"""The nodes of a simulated cluster of the ZooKeeper generation: an ensemble's model, our brokers.

Brokers have the ids of their hosts' numbers, servers are 2000 + their `myid`.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from fencepost.clusters.identities import Identities
from fencepost.clusters.kafka_port import Role, role_of
from fencepost.clusters.kafka_zookeeper.metadata_log import write_metadata_log
from fencepost.clusters.node_port.effects import Node
from fencepost.clusters.node_port.storage import META_PROPERTIES, MetaProperties
from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.nodes.configuration import Configuration
from fencepost.clusters.reference.shell.zk_properties import CONNECT, HOST, parsed
from fencepost.clusters.reference.simulated.append_times import AppendTimes
from fencepost.clusters.reference.simulated.cluster import SimulatedCluster
from fencepost.clusters.reference.simulated.nodes import CLUSTER_ID
from fencepost.clusters.reference.zk.broker import zk_broker
from fencepost.clusters.reference.zk.configuration import ZkConfiguration
from fencepost.clusters.reference.zk.rules import ZkRules
from fencepost.clusters.reference_zookeeper.configuration import (
    BROKER_ID,
    DISK_ID,
    finds_ids,
    ignored,
    settings_of,
)
from fencepost.clusters.reference_zookeeper.simulated.addressed import AddressedNode
from fencepost.clusters.reference_zookeeper.simulated.log_files import write_log
from fencepost.clusters.reference_zookeeper.simulated.znode_sight import ZnodeSight
from fencepost.clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
from fencepost.clusters.simulation.disk import Disk
from fencepost.clusters.simulation.network import Latency
from fencepost.clusters.simulation.world import World
from fencepost.clusters.simulation.zookeeper.ensemble import SimulatedEnsemble
from fencepost.clusters.simulation.zookeeper.entries import transactions
from fencepost.clusters.simulation.zookeeper.sessioned import SessionedNode
from fencepost.clusters.simulation.zookeeper.timing import Timing
from fencepost.clusters.witness.witness import WitnessReport
from fencepost.clusters.zookeeper.stored.tables import write_server_disks

_MS = 1_000_000
_PORT = 9092


def build(
    spec: ReferenceZooKeeperSpec,
    *,
    seed: int,
    rules: ZkRules | None = None,
    latency: Latency | None = None,
    digest: bool = True,
    witnessed: bool = False,
) -> SimulatedCluster:
    """A cluster whose nodes are down, in a world of its own.

    Raises UsageError if the spec asks for what there is not.
    """
    world = World(seed, latency=latency, digest=digest, witnessed=witnessed)
    return SimulatedCluster(ZkKit(spec, world=world, seed=seed, rules=rules or ZkRules()))


class ZkKit:
    """`Kit` of the ZooKeeper generation. `level`: the inter-broker protocol."""

    make = "simulated-zookeeper"
    level_name = "inter_broker_protocol"
    others: Final[str] = Role.ZOOKEEPER
    tables = (
        *("describes", "metadata_log", "replicas", "replica_records", "node_settings"),
        *("ensemble", "server_disks", "transaction_log", "znodes"),
    )

    def __init__(
        self, spec: ReferenceZooKeeperSpec, *, world: World, seed: int, rules: ZkRules
    ) -> None:
        self.world = world
        self.spec = spec
        self.rules = rules
        self.level = spec.inter_broker_protocol
        self._seed = seed
        self.identities = Identities(spec.view_ids)
        self._hosts = dict(spec.view_ids)
        """The numbers of the hosts."""
        self._settings = {
            node: _told(spec, node, broker_id=number)
            for node, number in self._hosts.items()
            if role_of(node) is Role.BROKER
        }
        self.configurations = {
            node: _configured(one, seed=seed) for node, one in self._settings.items()
        }
        kept = spec.ensemble
        timing = Timing(tick_ns=kept.tick_ms * _MS, sessions_ms=kept.session_timeouts_ms)
        self.ensemble = SimulatedEnsemble(world, spec.zookeepers, timing=timing)
        self.sight = ZnodeSight(
            self.ensemble,
            names={self._hosts[node]: node for node in self.configurations},
            identities=self.identities,
        )
        self.ignored_settings = ignored(spec)

    @property
    def view_ids(self) -> Mapping[NodeName, int]:
        """The ids of brokers, as they are now; of servers, 2000 and their `myid`."""
        return self.identities.now

    def settings(self, node: NodeName) -> Mapping[str, str]:
        """Return what a node was told at first, by Kafka's names; nothing of a server."""
        told = self._settings.get(node, {})
        if not told or not finds_ids(self.spec):
            return told
        return {**told, DISK_ID: str(self._hosts[node])}

    def configured(self, node: NodeName, given: Mapping[str, str]) -> ZkConfiguration:
        """Return the configuration of a node that was given this later. Raises UsageError."""
        return _configured({**self._settings[node], **given}, seed=self._seed)

    def built(self, node: NodeName, configuration: Configuration) -> Node:
        """Make the node of a new incarnation."""
        assert isinstance(configuration, ZkConfiguration)
        broker = zk_broker(configuration, self.rules)
        session = SessionedNode(broker, number=self._hosts[node], servers=self.ensemble.numbers)
        return AddressedNode(broker, session, self._registered)

    def first_files(self, node: NodeName) -> dict[str, Any]:
        """Return what is on a broker's disk at first: its id, if it found that before."""
        return {META_PROPERTIES: _meta(self._hosts[node])} if finds_ids(self.spec) else {}

    def formatted_files(self, node: NodeName, *, directory_id: int) -> dict[str, Any]:  # noqa: ARG002  # of KRaft
        """Return nothing: this generation formats no disks."""
        return {}

    def keep_metadata(
        self, disks: Mapping[NodeName, Disk], raw: Path, *, times: AppendTimes
    ) -> None:
        """Do nothing: these servers drop nothing of their logs, and send them whole."""

    def write_witness(
        self,
        disks: Mapping[NodeName, Disk],
        raw: Path,
        *,
        topics: Collection[str],
        times: AppendTimes,
    ) -> WitnessReport:
        """Write what the disks hold as raw tables.

        The servers' logs are written as real ones have them, and read by the same witness.
        """
        # With pyarrow, which a trial does not take.
        from fencepost.clusters.reference.simulated.witness import write_simulated_replicas  # noqa: PLC0415

        report = WitnessReport()
        with TemporaryDirectory() as directory:
            servers: dict[NodeName, Path] = {}
            for host in self.ensemble.hosts:
                node = NodeName(host.name)
                servers[node] = Path(directory) / node
                log = transactions(self.ensemble.log(host))
                write_log(servers[node], log, origin_ms=times.stamp_ms(0))
            write_metadata_log(servers, raw=raw, report=report)
            write_server_disks(servers, raw)
        replicas = write_simulated_replicas(disks, topics=topics, times=times, raw=raw)
        return replace(
            replicas,
            metadata_record_counts=report.metadata_record_counts,
            damages=[*report.damages, *replicas.damages],
        )

    def _registered(self, broker_id: int) -> int | None:
        node = self.sight.holder_of(broker_id)
        return None if node is None else self._hosts[node]


def _meta(broker_id: int) -> MetaProperties:
    """Return what the disk of a broker has that found its id before."""
    return MetaProperties(cluster_id=CLUSTER_ID, node_id=broker_id, directory_id=0, mode="")


def _told(spec: ReferenceZooKeeperSpec, node: NodeName, *, broker_id: int) -> Mapping[str, str]:
    """Return the properties of a broker."""
    servers = range(1, spec.zookeepers + 1)
    return {
        **settings_of(spec, {"listeners": f"CLIENT://{node}:{_PORT}"}),
        BROKER_ID: "-1" if finds_ids(spec) else str(broker_id),
        HOST: str(node),
        "log.dirs": str(node),
        CONNECT: ",".join(f"{Role.ZOOKEEPER}-{one}:2181" for one in servers),
    }


def _configured(settings: Mapping[str, str], *, seed: int) -> ZkConfiguration:
    """Return what a broker with these properties is told. Raises UsageError."""
    configuration = parsed(settings).configuration
    assert isinstance(configuration, ZkConfiguration)
    return replace(configuration, cluster_id=CLUSTER_ID, seed=seed)
