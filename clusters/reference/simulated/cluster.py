"""A cluster of our own nodes in a simulated world: `clusters.port.Cluster` in virtual time.

Nothing happens unless the caller lets the world go on. What a port promises to be so on its return
(a topic is there) lets it go on until it is; `start_node` and the like take no time. What differs
between generations is in `quorum_cluster` and `clusters.reference_zookeeper.simulated`.

Hosts have the ids of their nodes as numbers: n for `broker-n`, 1000 + n for `controller-n`, 2000 +
n for `zookeeper-n`. From CLIENTS_FROM on they are the workload's clients, from HARNESS_FROM on the
harness's own.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from clusters.abilities import LinkEnd
from clusters.kafka_port import BrokersSpec, ClusterView, refuse_unplaceable
from clusters.node_port.effects import Node
from clusters.node_port.storage import META_PROPERTIES
from clusters.port import NodeName, NodeRoles, NodeState, SystemView
from clusters.reference.nodes.configuration import MS, Configuration, S
from clusters.reference.nodes.rules import Rules
from clusters.reference.simulated.administration import Administration
from clusters.reference.simulated.append_times import AppendTimes
from clusters.reference.simulated.observing import WatchingNode
from clusters.reference.simulated.simulated_operator import SimulatedOperator
from clusters.simulation.host import ProcessState, SimulatedHost
from clusters.simulation.world import World
from clusters.topic_spec import TopicSpec
from history.failure import HarnessError

CLIENTS_FROM: Final = 1 << 20
HARNESS_FROM: Final = 1 << 21
_OPERATOR: Final = HARNESS_FROM
_WATCH: Final = HARNESS_FROM + 1
START_NS_MAX: Final = 60 * S
"""The longest that a cluster may take to be up."""
_STEP_NS: Final = 10 * MS
_LOOK_NS_MAX: Final = 5 * S
_STATES: Final = {one: NodeState[one.name] for one in ProcessState}


class SimulatedCluster(ABC):
    """A cluster in a world. It and `watch` are there from the start; nodes start with `start`.

    `level`: of its protocol, at the start.
    """

    def __init__(
        self, spec: BrokersSpec, *, world: World, level: int, nodes: Mapping[NodeName, int]
    ) -> None:
        """`nodes`: the numbers of their hosts, those that others need first."""
        self.world = world
        self.level = level
        self.node_roles: NodeRoles = spec.node_roles
        """The roles of the nodes."""
        self._spec = spec
        self._in_force: dict[NodeName, Configuration] = {}
        self._hosts = {name: self._place(name, number) for name, number in nodes.items()}
        self._nodes = tuple(nodes)
        self._names = {number: name for name, number in nodes.items()}
        self._operator = SimulatedOperator(world, _OPERATOR)
        self.watch = self._observer()
        """The watch that looks at the cluster all the time; it starts with the nodes."""
        self._watching = world.add(_WATCH, "observer", lambda: self.watch, tick_ns=0)
        self._administration = Administration(
            world, self._operator, leader=self._active_controller, view=self.view
        )

    @property
    @abstractmethod
    def rules(self) -> Rules:
        """The rules that its nodes keep."""

    @property
    @abstractmethod
    def configurations(self) -> Mapping[NodeName, Configuration]:
        """The settings of each node of our own."""

    @property
    @abstractmethod
    def tables(self) -> tuple[str, ...]:
        """The tables of evidence that a recording of it sets out to fill."""

    @property
    @abstractmethod
    def versions(self) -> Mapping[str, str]:
        """Return the versions under test, for a manifest; `trace`: the digest of events so far."""

    @property
    @abstractmethod
    def ignored_settings(self) -> tuple[str, ...]:
        """Return the settings of the spec that mean nothing to these nodes."""

    @abstractmethod
    def settings(self, node: NodeName) -> Mapping[str, str]:
        """Return what a node was told, by Kafka's names."""

    @abstractmethod
    def start(self) -> None:
        """Start every node, and let the world go on until all brokers show each other."""

    @abstractmethod
    def stop(self) -> None:
        """Stop every node, those that others need last."""

    @property
    @abstractmethod
    def view_ids(self) -> Mapping[NodeName, int]:
        """Kafka's ids of the nodes that a view shows."""

    @abstractmethod
    def leader_now(self) -> NodeName | None:
        """The active controller as it is known at this time, or None."""

    @abstractmethod
    def links(self) -> tuple[LinkEnd, ...]:
        """Return the links between nodes, and from clients to nodes."""

    @abstractmethod
    def recorded(self, raw: Path, *, topics: Collection[str]) -> AbstractContextManager[object]:
        """Record in `raw`, while entered, what the nodes show."""

    @abstractmethod
    def keep_metadata(self, raw: Path, *, times: AppendTimes) -> None:
        """Keep in `raw` what nodes drop of their metadata logs from now on, for the witness."""

    @abstractmethod
    def write_witness(
        self, raw: Path, *, topics: Collection[str], times: AppendTimes
    ) -> tuple[int, int]:
        """Write what the disks hold as raw tables; how many metadata records, and replicas'."""

    @property
    def spec(self) -> BrokersSpec:
        """The specification that it was built from."""
        return self._spec

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """The nodes that others need first, each role in the order of its numbers."""
        return self._nodes

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of the brokers."""
        return tuple(range(1, self._spec.brokers + 1))

    @property
    def bootstrap_servers(self) -> str:
        """The addresses that brokers advertise; no real client finds them there."""
        return ",".join(f"broker-{number}:9092" for number in self.brokers)

    def host(self, node: NodeName) -> SimulatedHost:
        """The host of a node."""
        return self._hosts[node]

    # The port of every cluster.

    @property
    def node_ids(self) -> Mapping[NodeName, int]:
        """Kafka's ids of all nodes; -1 for one that had several."""
        return {node: self.broker_id(node) for node in self._nodes}

    def broker_id(self, node: NodeName) -> int:
        """Kafka's id of this node."""
        return self._hosts[node].number

    def node_of(self, broker_id: int) -> NodeName:
        """The node with this id of Kafka's."""
        return self._names[broker_id]

    def state(self, node: NodeName) -> NodeState:
        """Return the state of its host."""
        return _STATES[self._hosts[node].state]

    @property
    def states(self) -> Mapping[NodeName, NodeState]:
        """The states of all nodes."""
        return {node: _STATES[host.state] for node, host in self._hosts.items()}

    def create_topics(self, topics: Sequence[TopicSpec]) -> None:
        """Create topics; return when every unfenced broker shows a leader for each partition."""
        refuse_unplaceable(topics, brokers=self._spec.brokers)
        for topic in topics:
            self._administration.create_topic(topic, via=None, within_s=30.0)
        keys = {key for topic in topics for key in topic.keys}
        self._until(
            lambda: self.watch.notices(keys),
            within_ns=30 * S,
            otherwise="the topics were not seen everywhere within 30 s",
        )

    def view(self) -> ClusterView:
        """Return the metadata that it shows, in a round of looks that begins now."""
        wanted = self.watch.begun_count + 1
        self._until(
            lambda: self.watch.ended_count >= wanted,
            within_ns=_LOOK_NS_MAX,
            otherwise="the observer does not come to the end of a round",
        )
        if self.watch.view is None:
            raise HarnessError("no broker answered")
        return self.watch.view

    @property
    def shown(self) -> SystemView | None:
        """Return what the last round of looks has shown; None: nothing."""
        return self.watch.view

    @property
    def shown_parts(self) -> tuple[object, ...]:
        """Return the parts of that, the same ones as before where nothing has changed."""
        view = self.watch.view
        return () if view is None else (view.brokers, view.serving, view.partitions)

    def logs(self, node: NodeName) -> tuple[Path, ...]:  # noqa: ARG002  # the port's
        """Return no files: simulated nodes write no logs."""
        return ()

    # Abilities.

    def start_node(self, node: NodeName) -> None:
        """Start a node that is down, on the disk that it has."""
        if self.state(node) is not NodeState.DOWN:
            raise HarnessError(f"{node} is not down")
        self.world.start(self._hosts[node])

    def stop_node(self, node: NodeName, *, timeout_s: float = 30.0) -> bool:
        """Send SIGTERM and wait; kill it after `timeout_s`. True if it ended on SIGTERM."""
        if self.state(node) is NodeState.DOWN:
            return True
        self.world.stop(self._hosts[node])
        return self._let_go([node], within_ns=int(timeout_s * S))

    def kill_node(self, node: NodeName) -> None:
        """End the process at once."""
        if self.state(node) is not NodeState.DOWN:
            self.world.kill(self._hosts[node])

    def cut_power(self, nodes: Sequence[NodeName], *, torn_seed: int | None = None) -> str:
        """End the machines at once: a random part of what was not synced is lost, torn or not."""
        del torn_seed
        return "; ".join(f"{node}: {self._cut_power(node)}" for node in nodes)

    def _cut_power(self, node: NodeName) -> str:
        host = self._hosts[node]
        before = host.disk.batch_count
        if host.state is not ProcessState.DOWN:
            self.world.cut_power(host)
        return f"{before - host.disk.batch_count} batches of {before} that it had written are lost"

    def pause_node(self, node: NodeName) -> None:
        """Stop the process."""
        if self.state(node) is not NodeState.RUNNING:
            raise HarnessError(f"{node} does not run: there is nothing to pause")
        self.world.pause(self._hosts[node])

    def resume_node(self, node: NodeName) -> None:
        """Let the process go on."""
        if self.state(node) is not NodeState.PAUSED:
            raise HarnessError(f"{node} is not paused")
        self.world.resume(self._hosts[node])

    def wipe_node(self, node: NodeName, *, keep_directory_id: bool = False) -> None:
        """Delete all data of a node that is down, and format it anew with its old node id."""
        self._require_down(node)
        disk = self._hosts[node].disk
        old = disk.files.get(META_PROPERTIES) if keep_directory_id else None
        disk.format(self._formatted(node, directory_id=0 if old is None else old.directory_id))

    def snapshot_node(self, node: NodeName, name: str) -> None:
        """Copy the node's disk under `name`, replacing an older copy."""
        self._hosts[node].disk.snapshot(name)

    def rollback_node(self, node: NodeName, name: str) -> None:
        """Replace the disk of a node that is down by the copy `name`."""
        self._require_down(node)
        try:
            self._hosts[node].disk.rollback(name)
        except KeyError:
            raise HarnessError(f"{node} has no snapshot {name!r}") from None

    def create_topic(self, topic: TopicSpec, *, via: NodeName | None, within_s: float) -> str:
        """Ask `via` (None: the active controller) for the topic; returns once it was granted."""
        return self._administration.create_topic(topic, via=self._target(via), within_s=within_s)

    def delete_topic(self, name: str, *, via: NodeName | None, within_s: float) -> str:
        """Ask `via` (None: the active controller) to delete it; returns once it was granted."""
        return self._administration.delete_topic(name, via=self._target(via), within_s=within_s)

    def move_leader(self, key: str, leader: int, *, within_s: float) -> str:
        """Make this broker the preferred replica and have it elected; returns once it leads."""
        return self._administration.move_leader(key, leader, within_s=within_s)

    def reassign(
        self, key: str, replicas: tuple[int, ...], *, within_s: float, awaited: bool = True
    ) -> str:
        """Give the key these replicas; returns once that is over, or granted if not `awaited`."""
        return self._administration.reassign(key, replicas, within_s=within_s, awaited=awaited)

    def obituary(self, node: NodeName) -> str:
        """Return why the process of a node that is down ended of its own accord."""
        reason = self._hosts[node].exit_reason
        return f"{node} ended: {'killed' if reason is None else reason or 'cleanly'}"

    def log_end(self, node: NodeName, key: str) -> int | None:
        """The log end offset on the broker's disk; None if it has no replica of the key."""
        topic, _, partition = key.rpartition("-")
        disk = self._hosts[node].disk
        for log, name in disk.topics.items():
            if name == topic and log[1] == int(partition):
                batches = disk.batches(log)
                return batches[-1].end_offset if batches else 0
        return None

    def configure(self, node: NodeName, configuration: Configuration) -> None:
        """Have a node start with this configuration from its next start on."""
        self._in_force[node] = configuration

    def run(self, for_ns: int) -> None:
        """Let the world go on."""
        self.world.run(self.world.now_ns + for_ns)

    @abstractmethod
    def _built(self, node: NodeName) -> Node:
        """Make the node of a new incarnation."""

    @abstractmethod
    def _formatted(self, node: NodeName, *, directory_id: int) -> dict[str, Any]:
        """Return what formatting a disk writes. `directory_id` 0: a new one."""

    @abstractmethod
    def _observer(self) -> WatchingNode:
        """Make the watch."""

    @abstractmethod
    def _active_controller(self) -> int:
        """Return the id of the controller that operators ask; -1: none is known."""

    def _configuration(self, node: NodeName) -> Configuration:
        return self._in_force.get(node, self.configurations[node])

    def _place(self, name: NodeName, number: int) -> SimulatedHost:
        host = self.world.add(number, name, lambda: self._built(name))
        host.disk.format(self._formatted(name, directory_id=0))
        return host

    def _start_all(self) -> None:
        for host in self._hosts.values():
            self.world.start(host)
        if self._watching.state is ProcessState.DOWN:
            self.world.start(self._watching)

    def _stop_in_order(self, roles: Iterable[str]) -> None:
        """Stop the nodes, role by role; kill those that stand still or take too long."""
        if self._watching.state is not ProcessState.DOWN:
            self.world.kill(self._watching)
        for role in roles:
            names = [name for name in self._hosts if name.startswith(role)]
            for name in names:
                if self.state(name) is NodeState.PAUSED:
                    self.kill_node(name)
                elif self.state(name) is NodeState.RUNNING:
                    self.world.stop(self._hosts[name])
            self._let_go(names, within_ns=10 * S)

    def _running(self, role: str) -> Callable[[], tuple[int, ...]]:
        """Return what lists the numbers of the hosts of a role that run; rounds of looks ask it."""
        hosts = [self._hosts[name] for name in self.node_roles.among(self._hosts, role)]
        return lambda: tuple(host.number for host in hosts if host.state is ProcessState.RUNNING)

    def _target(self, via: NodeName | None) -> int | None:
        return None if via is None else self._hosts[via].number

    def _require_down(self, node: NodeName) -> None:
        if self.state(node) is not NodeState.DOWN:
            raise HarnessError(f"{node} is {self.state(node)}: its disk is in use")

    def _let_go(self, nodes: Sequence[NodeName], *, within_ns: int) -> bool:
        """Wait for the ends of these; kill those that are late. Whether none was."""
        end_ns = self.world.now_ns + within_ns
        while late := [node for node in nodes if self.state(node) is not NodeState.DOWN]:
            if self.world.now_ns >= end_ns:
                for node in late:
                    self.kill_node(node)
                return False
            self.run(_STEP_NS)
        return True

    def _until(self, reached: Callable[[], bool], *, within_ns: int, otherwise: str) -> None:
        end_ns = self.world.now_ns + within_ns
        while not reached():
            dead = [name for name, host in self._hosts.items() if host.exit_reason]
            if dead or self.world.now_ns >= end_ns:
                raise HarnessError("; ".join(map(self.obituary, dead)) or otherwise)
            self.run(_STEP_NS)
