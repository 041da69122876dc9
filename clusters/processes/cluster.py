"""A cluster whose nodes are processes, each in a place of its own: what all such clusters can do.

Controllers are `controller-n`, brokers `broker-n`. Each node lives in `directory/<node>/`:
`server.properties`, `hosts`, `disk/data/`, `snapshots/`, and `server.log`, to which every start
appends. What the nodes run is a subclass's.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, assert_never

from clusters.abilities import LinkEnd, NodeUsage
from clusters.hosts.place import DATA, LOOPBACK, Host
from clusters.hosts.ports import ReservedPorts
from clusters.kafka.admin import KafkaAdmin
from clusters.kafka.asking import Address, is_answered
from clusters.kafka.configuration import (
    CLIENTS,
    Listener,
    Node,
    Route,
    first_members,
    hosts_file,
    links_between,
    nodes_of,
    refuse_impossible,
)
from clusters.kafka.metadata_watch import MetadataWatch
from clusters.kafka.node_tables import write_log_findings, write_settings
from clusters.kafka.observation import ask_metadata, best_of, quorum_leader, view_of
from clusters.kafka.topics import create_topics
from clusters.kafka_port import ClusterView, FlippedPart, KafkaSpec, Role, TopicSpec, role_of
from clusters.port import Disks, DiskTrouble, NodeName, NodeState
from clusters.processes.disks import ImageDisks, NodeDisks
from clusters.processes.followed import FollowedDisks
from clusters.processes.hardships import Hardships, HeldBack
from clusters.processes.networks import NodeNetworks
from clusters.processes.node import ProcessNode, Software
from clusters.processes.readiness import await_brokers, listed
from clusters.protocol.metadata_records import Definitions
from clusters.witness.live import log_end_offset
from clusters.witness.witness import WitnessReport, write_witness
from history.clock import Clock
from history.failure import HarnessError, UsageError

__all__ = ["ProcessCluster"]

_STOP_TIMEOUT_S: Final = 10.0


class ProcessCluster(HeldBack, ABC):
    """`clusters.kafka_port.BrokerCluster` with all its abilities, but for what its nodes run.

    Calls for different nodes may come from different threads; calls for one node may not.
    `host`: where the nodes run. `software`: what each of them runs. `port_base`: use the ports from
    there on, one for each controller and two for each broker; None: any that are free. `route`:
    where each node, and the clients, find each node.
    """

    def __init__(
        self,
        spec: KafkaSpec,
        *,
        host: Host,
        directory: Path,
        clock: Clock,
        software: Callable[[tuple[Node, ...]], Mapping[NodeName, Software]],
        port_base: int | None,
        route: Route,
    ) -> None:
        refuse_impossible(spec)
        self._spec = spec
        self._clock = clock
        self._route = route
        # Where a proxy listens for a link it uses the very port of the target.
        self._ports = ReservedPorts(LOOPBACK)
        nodes = nodes_of(spec, ports=lambda count: self._ports.take(count, base=port_base))
        # Absolute, since each process starts inside its own directory.
        places = {
            node.name: host.place(node.name, directory=directory.absolute() / node.name)
            for node in nodes
        }
        nodes = tuple(replace(node, address=places[node.name].address) for node in nodes)
        runs = software(nodes)
        self._nodes = {
            node.name: ProcessNode(
                node,
                place=places[node.name],
                software=runs[node.name],
                staging=directory.absolute(),
            )
            for node in nodes
        }
        self._networks = NodeNetworks(places, route=route, clients=CLIENTS)
        self._disks: NodeDisks | None = None
        match spec.disks:
            case Disks.IMAGE:
                self._disks = ImageDisks(self._nodes, host=host)
            case Disks.FOLLOWED:
                self._disks = FollowedDisks(self._nodes)
            case Disks.SHARED:
                pass
            case _:
                assert_never(spec.disks)
        self._hardships = Hardships(self._nodes, ledger=host.ledger, now_ns=clock.now_ns)
        self._admin = KafkaAdmin(
            leader=self._leader,
            brokers=lambda: self._running(Role.BROKER),
            nodes=lambda: {name: self._address(name) for name in self._nodes},
        )

    @property
    @abstractmethod
    def versions(self) -> Mapping[str, str]:
        """What is under test."""

    @abstractmethod
    def _properties(self, node: ProcessNode, *, nodes: tuple[Node, ...]) -> dict[str, str]:
        """The node's server.properties."""

    @abstractmethod
    def _definitions(self) -> Definitions:
        """The records of the metadata logs that its nodes write."""

    @abstractmethod
    def _await_quorum(self) -> None:
        """Return when brokers may be started; the controllers were."""

    @property
    def spec(self) -> KafkaSpec:
        """What it was built from."""
        return self._spec

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """Controllers first, then brokers, each in the order of their numbers."""
        return tuple(self._nodes)

    @property
    def bootstrap_servers(self) -> str:
        """Every broker as clients find it: `host:port,…`."""
        return ",".join(
            f"{self._route(CLIENTS, name) or node.node.address}:{node.node.ports[Listener.CLIENT]}"
            for name, node in self._nodes.items()
            if node.node.role is Role.BROKER
        )

    def start(self) -> None:
        """Format all nodes, start all but spare ones; return when all brokers show all unfenced.

        Raises HarnessError with the node, its last words and its log if one dies, or with what is
        missing if they are not there after two minutes.
        """
        if self._disks is not None:
            self._disks.make()
        self._hardships.prepare(self._spec)
        for node in self._nodes.values():
            self._configure(node)
            node.format()
            self._sync_disk(node.node.name)
        first = self._first_members()
        for role in Role:
            for name in first:
                if role_of(name) is role:
                    self._nodes[name].start()
            if role is Role.CONTROLLER:
                self._await_quorum()
        brokers = [name for name in first if role_of(name) is Role.BROKER]
        await_brokers(self._nodes, {name: self._address(name) for name in brokers})

    def stop(self) -> None:
        """Stop every node: brokers first, since they take their leave from a controller."""
        try:
            for role in (Role.BROKER, Role.CONTROLLER):
                self._stop_all(role)
        finally:
            self._ports.close()

    def broker_id(self, node: NodeName) -> int:
        """Kafka's id of this node: n for `broker-n`, 1000 + n for `controller-n`."""
        return self._nodes[node].node.node_id

    def node_of(self, broker_id: int) -> NodeName:
        """The node with this id of Kafka's."""
        return next(name for name, node in self._nodes.items() if node.node.node_id == broker_id)

    def pid_of(self, node: NodeName) -> int | None:
        """The pid of the node's latest start; None if it was never started."""
        return self._nodes[node].process.pid

    def port_of(self, node: NodeName, listener: Listener) -> int:
        """Where a listener of this node is bound on its address; known before the start."""
        return self._nodes[node].node.ports[listener]

    def data_of(self, node: NodeName) -> Path:
        """What the node's data directory holds now, as a directory of this machine."""
        return self._nodes[node].place.fetch(DATA)

    def links(self) -> tuple[LinkEnd, ...]:
        """Nodes to controllers, brokers to brokers, and clients to brokers; none to itself."""
        return links_between(tuple(node.node for node in self._nodes.values()))

    def state(self, node: NodeName) -> NodeState:
        """What the host says of the node's process, now."""
        return self._nodes[node].process.state()

    def usage(self, node: NodeName) -> NodeUsage | None:
        """What the node's process uses now; None if it has none."""
        return self._nodes[node].process.usage()

    def create_topics(self, topics: Sequence[TopicSpec]) -> None:
        """Create topics; return when every unfenced broker shows a leader for each partition.

        Brokers in an assignment are named by their number. Raises UsageError if Kafka finds a
        topic impossible, HarnessError if it exists already or is not there within 30 s.
        """
        for topic in topics:
            if topic.assignment is None and topic.replication_factor > self._spec.brokers:
                raise UsageError(
                    f"topic {topic.name} asks for {topic.replication_factor} replicas of each "
                    f"partition, but there are {self._spec.brokers} brokers"
                )
        create_topics(topics, leader=self._leader, brokers=lambda: self._running(Role.BROKER))

    def view(self) -> ClusterView:
        """The metadata as the most current of the brokers shows it, within 2 s.

        Raises HarnessError if no broker answers.
        """
        answers = ask_metadata(self._running(Role.BROKER))
        if not answers:
            states = {name: self.state(name) for name in self._nodes}
            raise HarnessError(f"no broker answered; nodes: {listed(states)}")
        by_id = {self.broker_id(name): answer for name, answer in answers.items()}
        return view_of(best_of(by_id), answers=by_id, time_ns=self._clock.now_ns())

    def view_by(self, broker: NodeName) -> ClusterView | None:
        """The metadata as this broker shows it, current or not; None if it does not answer."""
        answers = ask_metadata({broker: self._address(broker)})
        if not answers:
            return None
        by_id = {self.broker_id(broker): answers[broker]}
        return view_of(answers[broker], answers=by_id, time_ns=self._clock.now_ns())

    def controller_leader(self) -> NodeName | None:
        """The active controller as it says itself, or None if none does."""
        leader = quorum_leader(self._running(Role.CONTROLLER))
        return None if leader is None else self.node_of(leader)

    def logs(self, node: NodeName) -> tuple[Path, ...]:
        """The node's log files, there whatever happened to it."""
        return self._nodes[node].logs()

    def obituary(self, node: NodeName) -> str:
        """How the process of a node that is down ended, its last errors, and its log."""
        return self._nodes[node].obituary()

    def start_node(self, node: NodeName) -> None:
        """Start a node that is down, on the disk that it has; joining the cluster takes longer."""
        self._nodes[node].start()
        self._networks.renew(node)

    def stop_node(self, node: NodeName, *, timeout_s: float = 30.0) -> bool:
        """SIGTERM, and wait; kill it after `timeout_s`. True if it went by itself."""
        self._let_disk_go(node)
        return self._nodes[node].stop(timeout_s=timeout_s)

    def kill_node(self, node: NodeName) -> None:
        """SIGKILL, also of a paused node; returns when the process is gone."""
        self._let_disk_go(node)
        self._nodes[node].kill()

    def pause_node(self, node: NodeName) -> None:
        """SIGSTOP; returns when every thread is stopped."""
        self._nodes[node].process.pause()

    def resume_node(self, node: NodeName) -> None:
        """SIGCONT; returns when it runs."""
        self._nodes[node].process.resume()

    def wipe_node(self, node: NodeName, *, keep_directory_id: bool = False) -> None:
        """Delete all data of a node that is down, and format it anew with its old node id.

        `keep_directory_id`: as if only the data were lost. A new directory id (KIP-858, since 3.7)
        is a change of the registration by itself, which some bugs do not survive.
        """
        self._nodes[node].wipe(keep_directory_id=keep_directory_id)
        self._sync_disk(node)

    def snapshot_node(self, node: NodeName, name: str) -> None:
        """Copy the node's data under `name`, replacing an older copy.

        A running node is paused for the time of the copy, so that it is of one point in time.
        """
        self._nodes[node].snapshot(name)

    def rollback_node(self, node: NodeName, name: str) -> None:
        """Replace the data of a node that is down by the copy `name`."""
        self._nodes[node].rollback(name)
        self._sync_disk(node)

    def cut_power(self, nodes: Sequence[NodeName], *, torn_seed: int | None = None) -> str:
        """End the nodes at once, all together, and lose what their disks had not synced."""
        return self._own_disks().cut_power(nodes, torn_seed=torn_seed)

    def trouble_disk(self, node: NodeName, trouble: DiskTrouble, *, stall_s: float) -> str:
        """Let this happen to the node's disk; what shows that it has, in words."""
        return self._own_disks().bring_trouble(node, trouble, stall_s=stall_s)

    def mend_disk(self, node: NodeName) -> None:
        """End the trouble of the node's disk, and start the node if it died of it."""
        self._own_disks().mend(node)

    def flip_bit(self, node: NodeName, part: FlippedPart, *, seed: int) -> str:
        """Flip one bit, drawn from the seed, on the disk of a node that is down."""
        return self._nodes[node].flip_bit(part, seed=seed)

    def why_no_packets(self) -> str | None:
        """Why nothing can be done to packets where the nodes run; None if it can."""
        return self._networks.refusal()

    def drop_packets(self, name: str, flows: Collection[tuple[NodeName, NodeName]]) -> None:
        """Drop what is sent from the first to the second of each, until `pass_packets`."""
        self._networks.drop_packets(name, flows)

    def pass_packets(self, name: str) -> int:
        """Drop no more for that name; so many packets were dropped."""
        return self._networks.pass_packets(name)

    def reaches(self, source: NodeName, target: NodeName, *, timeout_s: float) -> bool:
        """Whether a request gets its answer that is sent on the way that the source takes."""
        link = next(one for one in self.links() if (one.source, one.target) == (source, target))
        return self._networks.reaches(link, timeout_s=timeout_s)

    def answers(self, node: NodeName, *, timeout_s: float) -> bool:
        """Whether a request from this machine, on no link, gets its answer."""
        return is_answered(node, self._address(node), timeout_s=timeout_s)

    def limit_bandwidth(self, node: NodeName, *, bits_per_s: int) -> float:
        """Bound what the node sends; the rate that was measured then, in bits a second."""
        return self._networks.limit_bandwidth(node, bits_per_s=bits_per_s)

    def free_bandwidth(self, node: NodeName) -> None:
        """Bound it no more."""
        self._networks.free_bandwidth(node)

    def create_topic(self, topic: TopicSpec, *, via: NodeName | None, within_s: float) -> str:
        """Ask `via` (None: the active controller) for the topic; returns once it was granted."""
        return self._admin.create_topic(topic, via=via, within_s=within_s)

    def move_leader(self, key: str, leader: int, *, within_s: float) -> str:
        """Make this broker the preferred replica and have it elected; returns once it leads."""
        return self._admin.move_leader(key, leader, within_s=within_s)

    def reassign(self, key: str, replicas: tuple[int, ...], *, within_s: float) -> str:
        """Give the key these replicas; returns once the reassignment is over."""
        return self._admin.reassign(key, replicas, within_s=within_s)

    def log_end(self, node: NodeName, key: str) -> int | None:
        """The log end offset on the broker's disk; None if it has no replica of the key."""
        return log_end_offset(self._nodes[node].place.fetch(f"{DATA}/{key}").parent, key)

    def watch(self, raw: Path, *, topics: Sequence[str]) -> MetadataWatch:
        """Record in `raw`, while entered, what brokers show of topics, and who leads the quorum."""
        return MetadataWatch(
            raw,
            clock=self._clock,
            topics=topics,
            brokers={name: self._address(name) for name in self._names(Role.BROKER)},
            controllers=lambda: self._running(Role.CONTROLLER),
            node_of=self.node_of,
        )

    def testify(self, raw: Path, *, topics: Sequence[str]) -> WitnessReport:
        """Record in `raw` what the disks hold: metadata logs, replicas of topics, nodes' logs."""
        write_settings(raw, {name: node.settings for name, node in self._nodes.items()})
        logs: dict[str, Iterable[Path]] = {name: self.logs(name) for name in self._nodes}
        skewed = {skew.node for skew in self._hardships.clock_skews()}
        write_log_findings(raw, logs, clock=self._clock, skewed=skewed)
        return write_witness(
            # A spare node that nobody needed has nothing to tell.
            {name: self.data_of(name) for name in self._nodes if self.pid_of(name) is not None},
            topics=topics,
            definitions=self._definitions(),
            raw=raw,
        )

    def _first_members(self) -> tuple[NodeName, ...]:
        nodes = tuple(node.node for node in self._nodes.values())
        return tuple(node.name for node in first_members(self._spec, nodes))

    def _configure(self, node: ProcessNode) -> None:
        """Write what the node has to know of itself and of the others. A start reads it anew."""
        nodes = tuple(one.node for one in self._nodes.values())
        hosts = hosts_file(node.node, nodes=nodes, route=self._route)
        node.configure(self._properties(node, nodes=nodes), hosts=hosts)

    def _stop_all(self, role: Role) -> None:
        """Ask all at once; kill those that do not go in time, or cannot hear."""
        for name in self._names(role):
            self._let_disk_go(name)
            if self.state(name) is NodeState.PAUSED:
                self.kill_node(name)
            else:
                self._nodes[name].process.terminate()
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        for name in self._names(role):
            self.stop_node(name, timeout_s=max(0.0, deadline - time.monotonic()))

    def _own_disks(self) -> NodeDisks:
        if self._disks is None:
            raise HarnessError(
                "the nodes have no disks of their own; they do with: disks: image, or followed"
            )
        return self._disks

    def _sync_disk(self, node: NodeName) -> None:
        """A power cut is to tell of what a node does, not of how we set it up."""
        if self._disks is not None:
            self._disks.sync(node)

    def _let_disk_go(self, node: NodeName) -> None:
        if self._disks is not None:
            self._disks.let_go(node)

    def _names(self, role: Role) -> tuple[NodeName, ...]:
        return tuple(name for name, node in self._nodes.items() if node.node.role is role)

    def _running(self, role: Role) -> dict[NodeName, Address]:
        return {
            name: self._address(name)
            for name in self._names(role)
            if self.state(name) is NodeState.RUNNING
        }

    def _leader(self) -> dict[NodeName, Address]:
        leader = self.controller_leader()
        return {} if leader is None else {leader: self._address(leader)}

    def _address(self, node: NodeName) -> Address:
        """Where the harness itself finds a node: always directly."""
        own = self._nodes[node].node
        listener = Listener.CLIENT if own.role is Role.BROKER else Listener.CONTROLLER
        return (own.address, own.ports[listener])
