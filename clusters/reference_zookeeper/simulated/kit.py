"""A simulated cluster of the ZooKeeper generation: a model of an ensemble, and our brokers.

Brokers have the ids of their hosts' numbers, servers are 2000 + their `myid`.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from clusters.abilities import LinkEnd
from clusters.compiled import is_compiled
from clusters.identities import Identities
from clusters.kafka_port import Role, role_of
from clusters.kafka_zookeeper.metadata_log import write_metadata_log
from clusters.kafka_zookeeper.view import KafkaZooKeeperView
from clusters.node_port.effects import Node
from clusters.node_port.storage import META_PROPERTIES, MetaProperties
from clusters.port import CLIENTS, NodeName
from clusters.reference.nodes.configuration import Configuration, S
from clusters.reference.shell.zk_properties import CONNECT, HOST, parsed
from clusters.reference.simulated.append_times import AppendTimes
from clusters.reference.simulated.cluster import START_NS_MAX, SimulatedCluster
from clusters.reference.simulated.nodes import CLUSTER_ID
from clusters.reference.simulated.notebook import RecordedNotebook
from clusters.reference.simulated.observing import WatchingNode
from clusters.reference.zk.broker import zk_broker
from clusters.reference.zk.configuration import ZkConfiguration
from clusters.reference.zk.rules import ZkRules
from clusters.reference_zookeeper.configuration import (
    BROKER_ID,
    DISK_ID,
    finds_ids,
    ignored,
    settings_of,
)
from clusters.reference_zookeeper.simulated.addressed import AddressedNode
from clusters.reference_zookeeper.simulated.log_files import write_log
from clusters.reference_zookeeper.simulated.znode_sight import ZkWatchingNode
from clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
from clusters.setting_changes import SettingChange, SettingChanges
from clusters.simulation.host import SimulatedHost
from clusters.simulation.network import Latency
from clusters.simulation.world import World
from clusters.simulation.zookeeper.ensemble import SimulatedEnsemble
from clusters.simulation.zookeeper.sessioned import SessionedNode
from clusters.simulation.zookeeper.timing import Timing
from clusters.simulation.zookeeper.transactions import transactions
from clusters.witness.witness import WitnessReport
from clusters.zookeeper.stored.tables import write_server_disks
from history.failure import HarnessError, UsageError
from history.journal import RowJournal

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
) -> "SimulatedZkCluster":
    """A cluster whose nodes are down, in a world of its own.

    Raises UsageError if the spec asks for what there is not.
    """
    world = World(seed, latency=latency, digest=digest, witnessed=witnessed)
    return SimulatedZkCluster(spec, world=world, seed=seed, rules=rules or ZkRules())


class SimulatedZkCluster(SimulatedCluster):
    """`level`: its inter-broker protocol."""

    def __init__(
        self, spec: ReferenceZooKeeperSpec, *, world: World, seed: int, rules: ZkRules
    ) -> None:
        self._rules = rules
        self._seed = seed
        self._zk_spec = spec
        self._setting_changes = SettingChanges()
        numbers = spec.view_ids
        self._identities = Identities(numbers)
        self._settings = {
            node: _told(spec, node, broker_id=numbers[node])
            for node in spec.nodes
            if role_of(node) is Role.BROKER
        }
        self._configurations = {
            node: _configured(one, seed=seed) for node, one in self._settings.items()
        }
        kept = spec.ensemble
        timing = Timing(tick_ns=kept.tick_ms * _MS, sessions_ms=kept.session_timeouts_ms)
        self.ensemble = SimulatedEnsemble(world, spec.zookeepers, timing=timing)
        super().__init__(spec, world=world, level=spec.inter_broker_protocol, nodes=numbers)

    @property
    def rules(self) -> ZkRules:
        """The rules that its brokers keep."""
        return self._rules

    @property
    def configurations(self) -> Mapping[NodeName, Configuration]:
        """The configuration of each broker."""
        return self._configurations

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of evidence that a recording of it sets out to fill."""
        of_ensemble = ("ensemble", "server_disks", "transaction_log", "znodes")
        of_brokers = ("describes", "metadata_log", "replicas", "replica_records", "node_settings")
        return (*of_brokers, *of_ensemble)

    @property
    def versions(self) -> Mapping[str, str]:
        """Return the versions under test, for a manifest; `trace`: the digest of events so far."""
        found = {
            "cluster": "simulated-zookeeper",
            "inter_broker_protocol": str(self.level),
            "events": str(self.world.event_count),
            "virtual_s": f"{self.world.now_ns / S:.3f}",
            "trace": self.world.digest(),
            "simulator": "compiled" if is_compiled() else "plain Python",
        }
        off = [one.name for one in fields(ZkRules) if not getattr(self._rules, one.name)]
        return found | ({"rules_off": ", ".join(off)} if off else {})

    @property
    def ignored_settings(self) -> tuple[str, ...]:
        """Return the settings of the spec that mean nothing to these nodes."""
        return ignored(self._zk_spec)

    def settings(self, node: NodeName) -> Mapping[str, str]:
        """Return what a node was told, by Kafka's names; nothing of a server."""
        told = self._settings.get(node, {})
        if not told or not finds_ids(self._zk_spec):
            return told
        return {**told, DISK_ID: str(self.host(node).number)}

    def change_settings(self, node: NodeName, settings: Mapping[str, str]) -> str:
        """Have a broker run with these properties from its next start on; evidence in words."""
        if node not in self._settings:
            raise HarnessError(f"{node} has no properties of Kafka's")
        now = {**self._setting_changes.over(self._settings[node], node), **settings}
        try:
            self.configure(node, _configured(now, seed=self._seed))
        except UsageError as error:
            raise HarnessError(str(error)) from None
        return self._setting_changes.note(self.world.now_ns, node, settings)

    def setting_changes(self) -> Sequence[SettingChange]:
        """Return the changes so far, in order."""
        return self._setting_changes.made

    def start(self) -> None:
        """Start every node, and let the world go on until all brokers serve and one controls."""
        self._start_all()
        wanted = frozenset(self.brokers)
        self._until(
            lambda: (
                self.watch.view is not None
                and self.watch.view.brokers == self.watch.view.serving == wanted
                and self._active_controller() >= 0
            ),
            within_ns=START_NS_MAX,
            otherwise="not all brokers served a minute after the start",
        )

    def stop(self) -> None:
        """Stop every node, brokers first."""
        self._stop_in_order((Role.BROKER, Role.ZOOKEEPER))

    @property
    def view_ids(self) -> Mapping[NodeName, int]:
        """Kafka's ids of brokers, as they are now; of servers, 2000 and their `myid`."""
        return self._identities.now

    @property
    def node_ids(self) -> Mapping[NodeName, int]:
        """Kafka's ids of all nodes; -1 for one that had several."""
        return self._identities.of_whole_run

    @property
    def last_ids(self) -> Mapping[NodeName, int]:
        """The present ids of nodes that had several."""
        return self._identities.last

    def broker_id(self, node: NodeName) -> int:
        """Kafka's id of this node, as it is now."""
        return self._identities.now[node]

    def node_of(self, broker_id: int) -> NodeName:
        """The node with this id of Kafka's."""
        return next(node for node, one in self._identities.now.items() if one == broker_id)

    @property
    def shown(self) -> KafkaZooKeeperView | None:
        """Return what the last round of looks has shown; None: no server leads."""
        return self._zk_watch.shown

    @property
    def shown_parts(self) -> tuple[object, ...]:
        """Return the parts of that, the same ones as before where nothing has changed."""
        shown = self.shown
        if shown is None:
            return ()
        kafka, servers = shown.kafka, shown.ensemble.servers
        return (kafka.brokers, kafka.serving, kafka.partitions, servers)

    def leader_now(self) -> NodeName | None:
        """The active controller by its znode; None if no broker is, or no server leads."""
        controller = self._zk_watch.controller_now()
        return None if controller is None else self._identities.node_of(controller)

    def latest_registration(self, broker: NodeName) -> int:
        """The zxid that made the znode of its latest session; -1: none was seen."""
        return self._identities.epochs.get(broker, -1)

    def links(self) -> tuple[LinkEnd, ...]:
        """Return links: brokers and servers among themselves, brokers to servers, clients."""
        servers = [name for name in self.nodes if role_of(name) is Role.ZOOKEEPER]
        brokers = [name for name in self.nodes if role_of(name) is Role.BROKER]
        between = [(source, target) for target in servers for source in self.nodes]
        between += [(source, target) for target in brokers for source in brokers]
        outside = [(CLIENTS, target) for target in brokers]
        return tuple(
            LinkEnd(source=source, target=target, port=0)
            for source, target in (*between, *outside)
            if source != target
        )

    def recorded(self, raw: Path, *, topics: Collection[str]) -> AbstractContextManager[object]:
        """Record in `raw`, while entered, what brokers and servers show."""
        stack = ExitStack()
        stack.enter_context(self.servers_recorded(raw))
        notebook = RecordedNotebook(raw, topics=topics, node_of=self._names.__getitem__)
        self.watch.notebook = stack.enter_context(notebook)
        return stack

    def servers_recorded(self, raw: Path) -> AbstractContextManager[object]:
        """Record in `raw`, while entered, what servers show."""
        journal = RowJournal(raw, "ensemble")
        self._zk_watch.ensemble_journal = journal
        return closing(journal)

    def keep_metadata(self, raw: Path, *, times: AppendTimes) -> None:
        """Do nothing: these servers drop nothing of their logs, and send them whole."""

    def write_witness(
        self, raw: Path, *, topics: Collection[str], times: AppendTimes
    ) -> tuple[int, int]:
        """Write what the disks hold as raw tables; how many metadata records, and replicas'.

        The servers' logs are written as real ones have them, and read by the same witness.
        """
        # With pyarrow, which a trial does not take.
        from clusters.reference.simulated.witness import write_simulated_replicas  # noqa: PLC0415

        brokers = {node: self.host(node).disk for node in self._configurations}
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
        replicas = write_simulated_replicas(brokers, topics=topics, times=times, raw=raw)
        return sum(report.metadata_record_counts.values()), replicas.replica_record_count

    @property
    def _zk_watch(self) -> ZkWatchingNode:
        assert isinstance(self.watch, ZkWatchingNode)
        return self.watch

    def _built(self, node: NodeName) -> Node:
        configuration = self._configuration(node)
        assert isinstance(configuration, ZkConfiguration)
        broker = zk_broker(configuration, self._rules)
        number = self.host(node).number
        session = SessionedNode(broker, number=number, servers=self.ensemble.numbers)
        return AddressedNode(broker, session, self._registered)

    def _registered(self, broker_id: int) -> int | None:
        node = self._zk_watch.holder_of(broker_id)
        return None if node is None else self.host(node).number

    def _place(self, name: NodeName, number: int) -> SimulatedHost:
        if role_of(name) is Role.ZOOKEEPER:
            return self.world.hosts[number]
        host = super()._place(name, number)
        if finds_ids(self._zk_spec):
            host.disk.format({META_PROPERTIES: _meta(number)})
        return host

    def _formatted(self, node: NodeName, *, directory_id: int) -> dict[str, Any]:  # noqa: ARG002  # of KRaft
        """Return nothing: this generation formats no disks."""
        return {}

    def _observer(self) -> WatchingNode:
        brokers = [name for name in self._hosts if role_of(name) is Role.BROKER]
        running = self._running(Role.BROKER)
        return ZkWatchingNode(
            lambda: ((), running()),
            self.ensemble,
            names={self._hosts[name].number: name for name in brokers},
            identities=self._identities,
        )

    def _active_controller(self) -> int:
        controller = self.leader_now()
        return -1 if controller is None else self.host(controller).number


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
