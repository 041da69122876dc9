"""A cluster of our own nodes in a simulated world: `clusters.port.Cluster` in virtual time.

Nothing happens unless the caller lets the world go on. What a port promises to be so on its return
(a topic is there) lets it go on until it is; `start_node` and the like take no time. What differs
between generations is in the `Kit`.

Hosts have the ids of their nodes as numbers: n for `broker-n`, 1000 + n for `controller-n`, 2000 +
n for `zookeeper-n`. From CLIENTS_FROM on they are the workload's clients, from HARNESS_FROM on the
harness's own.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Final

from fencepost.clusters.abilities import LinkEnd
from fencepost.clusters.compiled import is_compiled
from fencepost.clusters.kafka_port import BrokersSpec, ClusterView, Role, refuse_unplaceable
from fencepost.clusters.node_port.storage import META_PROPERTIES
from fencepost.clusters.port import CLIENTS, NodeName, NodeRoles, NodeState, SystemView
from fencepost.clusters.reference.nodes.configuration import MS, Configuration, S
from fencepost.clusters.reference.simulated.administration import Administration
from fencepost.clusters.reference.simulated.kit import Kit
from fencepost.clusters.reference.simulated.notebook import RecordedNotebook
from fencepost.clusters.reference.simulated.observing import WorldObserver
from fencepost.clusters.reference.simulated.simulated_operator import SimulatedOperator
from fencepost.clusters.setting_changes import SettingChange, SettingChanges
from fencepost.clusters.simulation.disk import Disk
from fencepost.clusters.simulation.host import ProcessState, SimulatedHost
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.failure import HarnessError, UsageError

CLIENTS_FROM: Final = 1 << 20
HARNESS_FROM: Final = 1 << 21
_OPERATOR: Final = HARNESS_FROM
_WATCH: Final = HARNESS_FROM + 1
_STEP_NS: Final = 10 * MS
_LOOK_NS_MAX: Final = 5 * S
_STATES: Final = {one: NodeState[one.name] for one in ProcessState}


class SimulatedCluster:
    """A cluster in the world of its kit, its nodes down: they start with `start`."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.world = kit.world
        self.node_roles: NodeRoles = kit.spec.node_roles
        """The roles of the nodes."""
        self._in_force: dict[NodeName, Configuration] = {}
        self._setting_changes = SettingChanges()
        numbers = kit.identities.now
        self._hosts = {name: self._place(name, number) for name, number in numbers.items()}
        self._nodes = tuple(numbers)
        self._names = {number: name for name, number in numbers.items()}
        self._operator = SimulatedOperator(self.world, _OPERATOR)
        self.watch = WorldObserver(
            kit.sight,
            controllers=self._running(Role.CONTROLLER),
            brokers=self._running(Role.BROKER),
        )
        """The watch that looks at the cluster all the time; it starts with the nodes."""
        self._watching = self.world.add(_WATCH, "observer", lambda: self.watch, tick_ns=0)
        self._administration = Administration(
            self.world, self._operator, leader=self._active_controller, view=self.view
        )

    @property
    def versions(self) -> Mapping[str, str]:
        """Return the versions under test, for a manifest; `trace`: the digest of events so far."""
        rules = self.kit.rules
        found = {
            "cluster": self.kit.make,
            self.kit.level_name: str(self.kit.level),
            "events": str(self.world.event_count),
            "virtual_s": f"{self.world.now_ns / S:.3f}",
            "trace": self.world.digest(),
            "simulator": "compiled" if is_compiled() else "plain Python",
        }
        off = [field.name for field in fields(rules) if not getattr(rules, field.name)]
        return found | ({"rules_off": ", ".join(off)} if off else {})

    @property
    def spec(self) -> BrokersSpec:
        """The specification that it was built from."""
        return self.kit.spec

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """The nodes that others need first, each role in the order of its numbers."""
        return self._nodes

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of the brokers."""
        return tuple(range(1, self.kit.spec.brokers + 1))

    @property
    def bootstrap_servers(self) -> str:
        """The addresses that brokers advertise; no real client finds them there."""
        return ",".join(f"broker-{number}:9092" for number in self.brokers)

    @property
    def disks(self) -> Mapping[NodeName, Disk]:
        """The disks of our own nodes."""
        return {node: self._hosts[node].disk for node in self.kit.configurations}

    def host(self, node: NodeName) -> SimulatedHost:
        """The host of a node."""
        return self._hosts[node]

    def start(self) -> None:
        """Start every node, and let the world go on until all brokers serve and one controls."""
        for host in self._hosts.values():
            self.world.start(host)
        if self._watching.state is ProcessState.DOWN:
            self.world.start(self._watching)
        wanted = frozenset(self.brokers)
        self._until(
            lambda: self.kit.sight.is_up(self.watch.view, wanted),
            within_ns=60 * S,
            otherwise="not all brokers served a minute after the start",
        )

    def stop(self) -> None:
        """Stop every node, brokers first; kill those that stand still or take too long."""
        if self._watching.state is not ProcessState.DOWN:
            self.world.kill(self._watching)
        for role in (Role.BROKER, self.kit.others):
            names = [name for name in self._hosts if name.startswith(role)]
            for name in names:
                if self.state(name) is NodeState.PAUSED:
                    self.kill_node(name)
                elif self.state(name) is NodeState.RUNNING:
                    self.world.stop(self._hosts[name])
            self._let_go(names, within_ns=10 * S)

    @property
    def view_ids(self) -> Mapping[NodeName, int]:
        """Kafka's ids of the nodes that a view shows, as they are now."""
        return self.kit.view_ids

    @property
    def node_ids(self) -> Mapping[NodeName, int]:
        """Kafka's ids of all nodes; -1 for one that had several."""
        return self.kit.identities.of_whole_run

    @property
    def last_ids(self) -> Mapping[NodeName, int]:
        """The present ids of nodes that had several."""
        return self.kit.identities.last

    def broker_id(self, node: NodeName) -> int:
        """Kafka's id of this node, as it is now."""
        return self.kit.identities.now[node]

    def node_of(self, broker_id: int) -> NodeName:
        """The node with this id of Kafka's; raises KeyError if none has it."""
        node = self.kit.identities.node_of(broker_id)
        if node is None:
            raise KeyError(broker_id)
        return node

    def state(self, node: NodeName) -> NodeState:
        """Return the state of its host."""
        return _STATES[self._hosts[node].state]

    @property
    def states(self) -> Mapping[NodeName, NodeState]:
        """The states of all nodes."""
        return {node: _STATES[host.state] for node, host in self._hosts.items()}

    def create_topics(self, topics: Sequence[TopicSpec]) -> None:
        """Create topics; return when every unfenced broker shows a leader for each partition."""
        refuse_unplaceable(topics, brokers=self.kit.spec.brokers)
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
        return self.kit.sight.shown

    @property
    def shown_parts(self) -> tuple[object, ...]:
        """Return the parts of that, the same ones as before where nothing has changed."""
        return self.kit.sight.parts

    def leader_now(self) -> NodeName | None:
        """The active controller as it is known at this time, or None."""
        number = self._active_controller()
        return None if number < 0 else self._names[number]

    def links(self) -> tuple[LinkEnd, ...]:
        """Return who dials whom: brokers and those that they need, and clients brokers."""
        others = self.node_roles.among(self._nodes, self.kit.others)
        brokers = self.node_roles.among(self._nodes, Role.BROKER)
        between = [(source, target) for target in others for source in self._nodes]
        between += [(source, target) for target in brokers for source in brokers]
        outside = [(CLIENTS, target) for target in brokers]
        return tuple(
            LinkEnd(source=source, target=target, port=0)
            for source, target in dict.fromkeys((*between, *outside))
            if source != target
        )

    def logs(self, node: NodeName) -> tuple[Path, ...]:  # noqa: ARG002  # the port's
        """Return no files: simulated nodes write no logs."""
        return ()

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
        return "; ".join(f"{node}: {self._cut_power(self._hosts[node])}" for node in nodes)

    def _cut_power(self, host: SimulatedHost) -> str:
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
        directory_id = 0 if old is None else old.directory_id
        disk.format(self.kit.formatted_files(node, directory_id=directory_id))

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
        disk = self._hosts[node].disk
        for log, topic in disk.topics.items():
            if f"{topic}-{log[1]}" == key:
                batches = disk.batches(log)
                return batches[-1].end_offset if batches else 0
        return None

    def configure(self, node: NodeName, configuration: Configuration) -> None:
        """Have a node start with this configuration from its next start on."""
        self._in_force[node] = configuration

    def change_settings(self, node: NodeName, settings: Mapping[str, str]) -> str:
        """Have a node run with these properties from its next start on; evidence in words."""
        if node not in self.kit.configurations:
            raise HarnessError(f"{node} has no properties of Kafka's")
        given = {**self._setting_changes.over({}, node), **settings}
        try:
            self.configure(node, self.kit.configured(node, given))
        except UsageError as error:
            raise HarnessError(str(error)) from None
        return self._setting_changes.note(self.world.now_ns, node, settings)

    def setting_changes(self) -> Sequence[SettingChange]:
        """Return the changes so far, in order."""
        return self._setting_changes.made

    def recorded(self, raw: Path, *, topics: Collection[str]) -> AbstractContextManager[object]:
        """Record in `raw`, while entered, what the nodes show."""
        stack = ExitStack()
        stack.enter_context(self.kit.sight.recorded(raw))
        notebook = RecordedNotebook(raw, topics=topics, node_of=self._names.__getitem__)
        self.watch.notebook = stack.enter_context(notebook)
        return stack

    def run(self, for_ns: int) -> None:
        """Let the world go on."""
        self.world.run(self.world.now_ns + for_ns)

    def _active_controller(self) -> int:
        return self.kit.sight.controller(self.watch.leader_id)

    def _place(self, name: NodeName, number: int) -> SimulatedHost:
        if name not in self.kit.configurations:
            return self.world.hosts[number]  # a server, which the kit has placed
        kit = self.kit
        host = self.world.add(number, name, lambda: kit.built(name, self._configuration(name)))
        host.disk.format(kit.first_files(name))
        return host

    def _configuration(self, node: NodeName) -> Configuration:
        return self._in_force.get(node, self.kit.configurations[node])

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
