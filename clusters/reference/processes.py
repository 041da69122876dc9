"""A reference cluster as processes on this machine, which stock clients of Kafka talk to.

It stands where a cluster of Kafka's stands: the same nodes, ports and links, the same proxy in
between, the same files for the witness. Each node lives in `directory/<node>/`:
`server.properties`, `hosts`, `data/`, `snapshots/`, and `server.log`.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from clusters.hosts.ports import ReservedPorts
from clusters.hosts.warden import Warden
from clusters.kafka.admin import KafkaAdmin
from clusters.kafka.asking import Address
from clusters.kafka.configuration import (
    CLIENTS,
    LOOPBACK,
    Listener,
    Route,
    direct,
    hosts_file,
    links_between,
    nodes_of,
    refuse_impossible,
)
from clusters.kafka.metadata_watch import MetadataWatch
from clusters.kafka.node_tables import write_log_findings, write_settings
from clusters.kafka.observation import ask_metadata, best_of, quorum_leader, view_of
from clusters.kafka.topics import create_topics
from clusters.port import (
    ClusterSpec,
    ClusterView,
    LinkEnd,
    NodeName,
    NodeState,
    NodeUsage,
    Quorum,
    Role,
    TopicSpec,
)
from clusters.reference.formatting import new_id
from clusters.reference.node_process import ReferenceNode
from clusters.reference.process_settings import settings_of
from clusters.reference.specs import level_of
from clusters.reference.wire.record_definitions import definitions
from clusters.witness.live import log_end_offset
from clusters.witness.witness import WitnessReport, write_witness
from history.clock import Clock
from history.failure import HarnessError, UsageError

__all__ = ["ReferenceCluster"]

_STOP_TIMEOUT_S: Final = 10.0
_START_TIMEOUT_S: Final = 60.0
"""A start takes two seconds; on a machine that does much else, several times that."""
_POLL_S: Final = 0.02


class ReferenceCluster:
    """`clusters.port.Cluster` with all the abilities of a cluster of processes.

    Calls for different nodes may come from different threads; calls for one node may not.
    `rules_off`: the rules that its nodes do not keep. `port_base` and `route` as for Kafka's.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        *,
        warden: Warden,
        directory: Path,
        clock: Clock,
        rules_off: Sequence[str] = (),
        port_base: int | None = None,
        route: Route = direct,
    ) -> None:
        refuse_impossible(spec)
        if spec.quorum is not Quorum.STATIC:
            raise UsageError("the reference cluster has a static quorum alone")
        self._spec = spec
        self._level = level_of(spec)
        self._rules_off = tuple(rules_off)
        self._clock = clock
        self._route = route
        self._ports = ReservedPorts(LOOPBACK)
        cluster_id = new_id()
        self._nodes = {
            node.name: ReferenceNode(
                node,
                # Absolute, since each process starts inside its own directory.
                directory=directory.absolute() / node.name,
                warden=warden,
                cluster_id=cluster_id,
            )
            for node in nodes_of(spec, ports=lambda count: self._ports.take(count, base=port_base))
        }
        self._admin = KafkaAdmin(
            leader=self._leader,
            brokers=lambda: self._running(Role.BROKER),
            nodes=lambda: {name: self._address(name) for name in self._nodes},
        )

    @property
    def spec(self) -> ClusterSpec:
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
            f"{self._route(CLIENTS, name)}:{node.node.ports[Listener.CLIENT]}"
            for name, node in self._nodes.items()
            if node.node.role is Role.BROKER
        )

    @property
    def versions(self) -> Mapping[str, str]:
        """What is under test."""
        found = {"cluster": "reference", "metadata_version": str(self._level)}
        return found | ({"rules_off": ", ".join(self._rules_off)} if self._rules_off else {})

    def start(self) -> None:
        """Format and start every node; return when each broker shows all brokers unfenced.

        Raises HarnessError with the node, its last words and its log if one dies, or with what is
        missing if they are not there after a minute.
        """
        nodes = tuple(node.node for node in self._nodes.values())
        for node in self._nodes.values():
            properties = settings_of(
                self._spec,
                node.node,
                nodes=nodes,
                data=node.data,
                hosts=node.hosts,
                rules_off=self._rules_off,
                route=self._route,
            )
            hosts = hosts_file(node.node, nodes=nodes, route=self._route)
            node.configure(properties, hosts=hosts)
            node.format()
        for node in self._nodes.values():
            node.start()
        self._await_brokers()

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
        """The node with this id."""
        return next(name for name, node in self._nodes.items() if node.node.node_id == broker_id)

    def pid_of(self, node: NodeName) -> int | None:
        """The pid of the node's latest start; None if it was never started."""
        return self._nodes[node].process.pid

    def port_of(self, node: NodeName, listener: Listener) -> int:
        """Where a listener of this node is bound on 127.0.0.1; known before the start."""
        return self._nodes[node].node.ports[listener]

    def data_of(self, node: NodeName) -> Path:
        """The node's data directory."""
        return self._nodes[node].data

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

        Raises UsageError if a topic is impossible, HarnessError if it exists already or is not
        there within 30 s.
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
            states = ", ".join(f"{name} {self.state(name)}" for name in self._nodes)
            raise HarnessError(f"no broker answered; nodes: {states}")
        by_id = {self.broker_id(name): answer for name, answer in answers.items()}
        return view_of(best_of(by_id), answers=by_id, time_ns=self._clock.now_ns())

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

    def stop_node(self, node: NodeName, *, timeout_s: float = 30.0) -> bool:
        """SIGTERM, and wait; kill it after `timeout_s`. True if it went by itself."""
        return self._nodes[node].process.stop(timeout_s=timeout_s)

    def kill_node(self, node: NodeName) -> None:
        """SIGKILL, also of a paused node; returns when the process is gone."""
        self._nodes[node].process.kill()

    def pause_node(self, node: NodeName) -> None:
        """SIGSTOP; returns when every thread is stopped."""
        self._nodes[node].process.pause()

    def resume_node(self, node: NodeName) -> None:
        """SIGCONT; returns when it runs."""
        self._nodes[node].process.resume()

    def wipe_node(self, node: NodeName, *, keep_directory_id: bool = False) -> None:
        """Delete all data of a node that is down, and format it anew with its old node id."""
        self._nodes[node].wipe(keep_directory_id=keep_directory_id)

    def snapshot_node(self, node: NodeName, name: str) -> None:
        """Copy the node's data under `name`, replacing an older copy."""
        self._nodes[node].snapshot(name)

    def rollback_node(self, node: NodeName, name: str) -> None:
        """Replace the data of a node that is down by the copy `name`."""
        self._nodes[node].rollback(name)

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
        return log_end_offset(self._nodes[node].data, key)

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
        write_log_findings(raw, {name: self.logs(name) for name in self._nodes}, clock=self._clock)
        return write_witness(
            {name: node.data for name, node in self._nodes.items()},
            topics=topics,
            definitions=definitions(),
            raw=raw,
        )

    def _await_brokers(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        brokers = {name: self._address(name) for name in self._names(Role.BROKER)}
        wanted = frozenset(self.broker_id(name) for name in brokers)
        while True:
            answers = ask_metadata(brokers)
            seen = {name: view_of(answer, time_ns=0).brokers for name, answer in answers.items()}
            if all(seen.get(name) == wanted for name in brokers):
                return
            dead = [node for node in self._nodes.values() if node.process.exit_code is not None]
            if dead:
                raise HarnessError("; ".join(node.obituary() for node in dead))
            if time.monotonic() > deadline:
                shown = ", ".join(f"{name} {sorted(seen.get(name, ()))}" for name in brokers)
                raise HarnessError(
                    f"brokers {sorted(wanted)} were not all unfenced {_START_TIMEOUT_S:.0f} s "
                    f"after the start; shown by {shown}"
                )
            time.sleep(_POLL_S)

    def _stop_all(self, role: Role) -> None:
        """Ask all at once; kill those that do not go in time, or cannot hear."""
        for name in self._names(role):
            if self.state(name) is NodeState.PAUSED:
                self.kill_node(name)
            else:
                self._nodes[name].process.terminate()
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        for name in self._names(role):
            self.stop_node(name, timeout_s=max(0.0, deadline - time.monotonic()))

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
        return (LOOPBACK, own.ports[listener])
