"""A reference cluster in a simulated world: `clusters.port.Cluster` in virtual time.

Nothing happens unless the caller lets the world go on. What a port promises to be so on its return
(a topic is there, a node has ended) lets it go on until it is; `start_node`, `kill_node` and
the like take no time at all.

Hosts have the ids of their nodes as numbers: n for `broker-n`, 1000 + n for `controller-n`. From
CLIENTS_FROM on they are the workload's clients, from HARNESS_FROM on the harness's own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from clusters.abilities import LinkEnd
from clusters.compiled import is_compiled
from clusters.kafka_port import ClusterView, KafkaSpec, Role, TopicSpec, refuse_unplaceable, role_of
from clusters.node_port.effects import Node
from clusters.node_port.storage import META_PROPERTIES, MetaProperties
from clusters.port import NodeName, NodeState
from clusters.reference.nodes.broker import BrokerNode
from clusters.reference.nodes.configuration import MS, Configuration, S
from clusters.reference.nodes.controller import ControllerNode
from clusters.reference.nodes.rules import Rules
from clusters.reference.simulated.administration import Administration
from clusters.reference.simulated.asking import Operator
from clusters.reference.simulated.nodes import CLUSTER_ID, CONTROLLERS_FROM, configurations, ignored
from clusters.reference.simulated.observing import Watch
from clusters.reference.specs import DEFAULTS, level_of, own_settings
from clusters.simulation.host import Host, HostState
from clusters.simulation.network import Latency
from clusters.simulation.world import World
from history.failure import HarnessError

__all__ = ["CLIENTS_FROM", "HARNESS_FROM", "SimulatedCluster", "build"]

CLIENTS_FROM: Final = 1 << 20
HARNESS_FROM: Final = 1 << 21
_OPERATOR: Final = HARNESS_FROM
_WATCH: Final = HARNESS_FROM + 1
_START_NS_MAX: Final = 60 * S
_STEP_NS: Final = 10 * MS
_LOOK_NS_MAX: Final = 5 * S
_STATES: Final = {
    HostState.RUNNING: NodeState.RUNNING,
    HostState.PAUSED: NodeState.PAUSED,
    HostState.DOWN: NodeState.DOWN,
}


def build(
    spec: KafkaSpec,
    *,
    seed: int,
    rules: Rules | None = None,
    latency: Latency | None = None,
    digest: bool = True,
    witnessed: bool = False,
) -> "SimulatedCluster":
    """A cluster whose nodes are formatted and down, in a world of its own.

    Raises UsageError if the spec asks for what there is not.
    """
    world = World(seed, latency=latency, digest=digest, witnessed=witnessed)
    return SimulatedCluster(spec, world=world, seed=seed, rules=rules or Rules())


class SimulatedCluster:
    """A cluster in a world. It and `watch` are there from the start; nodes start with `start`."""

    def __init__(self, spec: KafkaSpec, *, world: World, seed: int, rules: Rules) -> None:
        self.world = world
        self.rules = rules
        self._spec = spec
        self.level = level_of(spec)
        """The metadata.version that it starts with."""
        self.configurations = configurations(spec, level=self.level, seed=seed)
        """The configurations by node."""
        self._in_force: dict[NodeName, Configuration] = {}
        self._hosts = {name: self._place(name) for name in self.configurations}
        self._nodes = tuple(self._hosts)
        self._names = {host.number: name for name, host in self._hosts.items()}
        self._operator = Operator(world, _OPERATOR)
        self.watch = Watch(self._running)
        """The watch that looks at the cluster all the time; it starts with the nodes."""
        self._watching = world.add(_WATCH, "observer", lambda: self.watch, tick_ns=0)
        self._administration = Administration(
            world, self._operator, leader=lambda: self.watch.leader_id, view=self.view
        )

    @property
    def spec(self) -> KafkaSpec:
        """The specification that it was built from."""
        return self._spec

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """The controllers first, then brokers, each in the order of their numbers."""
        return self._nodes

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of the brokers."""
        return tuple(range(1, self._spec.brokers + 1))

    @property
    def bootstrap_servers(self) -> str:
        """The addresses that brokers advertise; no real client finds them there."""
        return ",".join(f"broker-{number}:9092" for number in self.brokers)

    @property
    def versions(self) -> Mapping[str, str]:
        """Return the versions under test, for a manifest; `trace`: the digest of events so far."""
        found = {
            "cluster": "simulated",
            "metadata_version": str(self.level),
            "events": str(self.world.event_count),
            "virtual_s": f"{self.world.now_ns / S:.3f}",
            "trace": self.world.digest(),
            "simulator": "compiled" if is_compiled() else "plain Python",
        }
        off = [field.name for field in fields(Rules) if not getattr(self.rules, field.name)]
        return found | ({"rules_off": ", ".join(off)} if off else {})

    @property
    def ignored_settings(self) -> tuple[str, ...]:
        """Return the settings of the spec that mean nothing to these nodes."""
        spec = self._spec
        return ignored({**spec.settings, **spec.controller_settings, **spec.broker_settings})

    def settings(self, node: NodeName) -> Mapping[str, str]:
        """Return what a node was told, by Kafka's names."""
        return {
            **DEFAULTS,
            **own_settings(self._spec, role_of(node)),
            "node.id": str(self.broker_id(node)),
        }

    def host(self, node: NodeName) -> Host:
        """The host of a node."""
        return self._hosts[node]

    # What every cluster can do.

    def start(self) -> None:
        """Start every node, and let the world go on until all brokers show each other unfenced."""
        for host in self._hosts.values():
            self.world.start(host)
        if self._watching.state is HostState.DOWN:
            self.world.start(self._watching)
        wanted = frozenset(self.brokers)
        self._until(
            lambda: (
                self.watch.view is not None
                and self.watch.view.brokers == self.watch.view.serving == wanted
            ),
            within_ns=_START_NS_MAX,
            otherwise="not all brokers were unfenced a minute after the start",
        )

    def stop(self) -> None:
        """Stop every node: brokers first, as they take their leave from a controller."""
        if self._watching.state is not HostState.DOWN:
            self.world.kill(self._watching)
        for role in (Role.BROKER, Role.CONTROLLER):
            names = [name for name in self._hosts if name.startswith(role)]
            for name in names:
                if self.state(name) is NodeState.PAUSED:
                    self.kill_node(name)
                elif self.state(name) is NodeState.RUNNING:
                    self.world.stop(self._hosts[name])
            self._let_go(names, within_ns=10 * S)

    @property
    def view_ids(self) -> Mapping[NodeName, int]:
        """Kafka's ids of the brokers."""
        return {node: self.broker_id(node) for node in self.nodes if role_of(node) is Role.BROKER}

    def broker_id(self, node: NodeName) -> int:
        """Kafka's id of this node: n for `broker-n`, 1000 + n for `controller-n`."""
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
        """The metadata as the most current of the brokers shows it, in a round that begins now."""
        wanted = self.watch.begun_count + 1
        self._until(
            lambda: self.watch.ended_count >= wanted,
            within_ns=_LOOK_NS_MAX,
            otherwise="the observer does not come to the end of a round",
        )
        if self.watch.view is None:
            raise HarnessError("no broker answered")
        return self.watch.view

    def leader_now(self) -> NodeName | None:
        """The active controller as it said itself when it was asked last, or None."""
        leader_id = self.watch.leader_id
        return None if leader_id < 0 else self.node_of(leader_id)

    def logs(self, node: NodeName) -> tuple[Path, ...]:  # noqa: ARG002  # the port's
        """Return no files: simulated nodes write no logs."""
        return ()

    def links(self) -> tuple[LinkEnd, ...]:
        """Return links: nodes to controllers, brokers and clients to brokers; none to itself."""
        controllers = [name for name in self._hosts if name.startswith(Role.CONTROLLER)]
        brokers = [name for name in self._hosts if name.startswith(Role.BROKER)]
        between = [(source, target) for target in controllers for source in self._hosts]
        between += [(source, target) for target in brokers for source in brokers]
        outside = [(NodeName("clients"), target) for target in brokers]
        return tuple(
            LinkEnd(source=source, target=target, port=0)
            for source, target in (*between, *outside)
            if source != target
        )

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
        if host.state is not HostState.DOWN:
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
        host = self._hosts[node]
        old = host.disk.files.get(META_PROPERTIES)
        directory_id = old.directory_id if keep_directory_id and old is not None else 0
        host.disk.format(self._formatted(node, directory_id=directory_id))

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

    def reassign(self, key: str, replicas: tuple[int, ...], *, within_s: float) -> str:
        """Give the key these replicas; returns once the reassignment is over."""
        return self._administration.reassign(key, replicas, within_s=within_s)

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

    # What these are made of.

    def _target(self, via: NodeName | None) -> int | None:
        return None if via is None else self.broker_id(via)

    def _place(self, name: NodeName) -> Host:
        def built() -> Node:
            configuration = self._in_force.get(name, self.configurations[name])
            if configuration.is_controller:
                return ControllerNode(configuration, self.rules)
            return BrokerNode(configuration, self.rules)

        number = self.configurations[name].node_id
        host = self.world.add(number, name, built)
        host.disk.format(self._formatted(name, directory_id=0))
        return host

    def _formatted(self, node: NodeName, *, directory_id: int) -> dict[str, Any]:
        """Return what formatting a disk writes. `directory_id` 0: a new one."""
        node_id = self.configurations[node].node_id
        drawn = directory_id or self.world.new_id()
        return {
            META_PROPERTIES: MetaProperties(
                cluster_id=CLUSTER_ID, node_id=node_id, directory_id=drawn
            )
        }

    def _require_down(self, node: NodeName) -> None:
        if self.state(node) is not NodeState.DOWN:
            raise HarnessError(f"{node} is {self.state(node)}: its disk is in use")

    def _running(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        running = [h.number for h in self._hosts.values() if h.state is HostState.RUNNING]
        brokers = tuple(number for number in running if number < CONTROLLERS_FROM)
        return tuple(number for number in running if number >= CONTROLLERS_FROM), brokers

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
                why = "; ".join(self.obituary(NodeName(name)) for name in dead) or otherwise
                raise HarnessError(why)
            self.run(_STEP_NS)
