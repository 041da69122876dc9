"""A cluster of Kafka's kind as processes: controllers, brokers, and what an operator asks of them.

Controllers are `controller-n`, brokers `broker-n`; a node's directory has `server.properties` and
`hosts`. What the nodes run is a subclass's: a release of Apache Kafka, or the reference cluster.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from clusters.abilities import LinkEnd, Route
from clusters.hosts.place import DATA, LOOPBACK, Host
from clusters.hosts.ports import ReservedPorts
from clusters.kafka.admin import KafkaAdmin
from clusters.kafka.asking import Address, is_answered
from clusters.kafka.configuration import (
    HOSTS,
    PROPERTIES,
    KafkaNode,
    Listener,
    first_members,
    hosts_file,
    links_between,
    nodes_of,
    properties_file,
    refuse_impossible,
)
from clusters.kafka.metadata_watch import MetadataWatch
from clusters.kafka.node_tables import write_log_findings, write_settings
from clusters.kafka.observation import ask_metadata, best_of, quorum_leader, view_of
from clusters.kafka.readiness import await_brokers, listed
from clusters.kafka.topics import create_topics
from clusters.kafka_port import (
    ClusterView,
    FlippedPart,
    KafkaSpec,
    Role,
    TopicSpec,
    refuse_unplaceable,
)
from clusters.port import CLIENTS, NodeName
from clusters.processes.cluster import ProcessCluster
from clusters.processes.node import ProcessNode, Software
from clusters.protocol.metadata_records import Definitions
from clusters.witness.bits import flip_bit
from clusters.witness.live import log_end_offset
from clusters.witness.witness import WitnessReport, write_witness
from history.clock import Clock
from history.failure import HarnessError

__all__ = ["BrokerProcesses"]


class BrokerProcesses(ProcessCluster):
    """`clusters.kafka_port.BrokerCluster` with all its abilities, but for what its nodes run.

    `host`: where the nodes run. `software`: what each of them runs. `port_base`: use the ports from
    there on, one for each controller and two for each broker; None: any that are free.
    """

    def __init__(
        self,
        spec: KafkaSpec,
        *,
        host: Host,
        directory: Path,
        clock: Clock,
        software: Callable[[tuple[KafkaNode, ...]], Mapping[NodeName, Software]],
        port_base: int | None,
        route: Route,
    ) -> None:
        refuse_impossible(spec)
        self._spec = spec
        # Where a proxy listens for a link it uses the very port of the target.
        ports = ReservedPorts(LOOPBACK)
        nodes = nodes_of(spec, ports=lambda count: ports.take(count, base=port_base))
        # Absolute, since each process starts inside its own directory.
        home = directory.absolute()
        places = {node.name: host.place(node.name, directory=home / node.name) for node in nodes}
        nodes = tuple(replace(node, address=places[node.name].address) for node in nodes)
        self._listed = {node.name: node for node in nodes}
        runs = software(nodes)
        super().__init__(
            spec,
            host=host,
            clock=clock,
            nodes={
                name: ProcessNode(name, place=place, software=runs[name], staging=home)
                for name, place in places.items()
            },
            route=route,
            ports=ports,
            is_answered=is_answered,
        )
        self._admin = KafkaAdmin(
            leader=self._leader,
            brokers=lambda: self._running(Role.BROKER),
            nodes=lambda: {name: self._address(name) for name in self._nodes},
        )

    @abstractmethod
    def _properties(self, node: ProcessNode, *, nodes: tuple[KafkaNode, ...]) -> dict[str, str]:
        """The node's server.properties."""

    @abstractmethod
    def _definitions(self) -> Definitions:
        """The records of the metadata logs that its nodes write."""

    @abstractmethod
    def _await_quorum(self) -> None:
        """Return when brokers may be started; the controllers were."""

    @property
    def spec(self) -> KafkaSpec:
        """The specification that it was built from."""
        return self._spec

    @property
    def bootstrap_servers(self) -> str:
        """The address of every broker as clients find it: `host:port,…`."""
        return ",".join(
            f"{self._route(CLIENTS, name) or node.address}:{node.ports[Listener.CLIENT]}"
            for name, node in self._listed.items()
            if node.role is Role.BROKER
        )

    @property
    def node_ids(self) -> Mapping[NodeName, int]:
        """Kafka's ids of all nodes."""
        return {name: self.broker_id(name) for name in self._nodes}

    @property
    def view_ids(self) -> Mapping[NodeName, int]:
        """Kafka's ids of the brokers."""
        return {name: self.broker_id(name) for name in self._names(Role.BROKER)}

    def broker_id(self, node: NodeName) -> int:
        """Kafka's id of this node: n for `broker-n`, 1000 + n for `controller-n`."""
        return self._listed[node].node_id

    def node_of(self, broker_id: int) -> NodeName:
        """The node with this id of Kafka's."""
        return next(name for name, node in self._listed.items() if node.node_id == broker_id)

    def port_of(self, node: NodeName, listener: Listener) -> int:
        """Return the port to which a listener of this node is bound; known before the start."""
        return self._listed[node].ports[listener]

    def links(self) -> tuple[LinkEnd, ...]:
        """Return links: nodes to controllers, brokers and clients to brokers; none to itself."""
        return links_between(tuple(self._listed.values()))

    def create_topics(self, topics: Sequence[TopicSpec]) -> None:
        """Create topics; return when every unfenced broker shows a leader for each partition.

        Brokers in an assignment are named by their number. Raises UsageError if Kafka finds a
        topic impossible, HarnessError if it exists already or is not there within 30 s.
        """
        refuse_unplaceable(topics, brokers=self._spec.brokers)
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

    def leader_now(self) -> NodeName | None:
        """The active controller as it says itself, or None if none does."""
        leader = quorum_leader(self._running(Role.CONTROLLER))
        return None if leader is None else self.node_of(leader)

    def flip_bit(self, node: NodeName, part: FlippedPart, *, seed: int) -> str:
        """Flip one bit, drawn from the seed, on the disk of a node that is down."""
        return self._nodes[node].change_data(partial(flip_bit, part=part, seed=seed))

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
            # A spare node that was never started has nothing to tell.
            {name: self.data_of(name) for name in self._nodes if self.pid_of(name) is not None},
            topics=topics,
            definitions=self._definitions(),
            raw=raw,
        )

    def _first_members(self) -> tuple[NodeName, ...]:
        nodes = tuple(self._listed.values())
        return tuple(node.name for node in first_members(self._spec, nodes))

    def _configure(self, node: ProcessNode) -> None:
        """Write what the node has to know of itself and of the others. A start reads it anew."""
        nodes = tuple(self._listed.values())
        hosts = hosts_file(self._listed[node.name], nodes=nodes, route=self._route)
        settings = self._properties(node, nodes=nodes)
        node.configure(settings, {PROPERTIES: properties_file(settings), HOSTS: hosts})

    def _await_role(self, role: str, members: Sequence[NodeName]) -> None:
        if role == Role.CONTROLLER:
            self._await_quorum()
        else:
            ids = {name: self.broker_id(name) for name in members}
            await_brokers(self._nodes, {name: self._address(name) for name in members}, ids=ids)

    def _leader(self) -> dict[NodeName, Address]:
        leader = self.leader_now()
        return {} if leader is None else {leader: self._address(leader)}

    def _address(self, node: NodeName) -> Address:
        """Return the address at which the harness finds a node: always the direct one."""
        own = self._listed[node]
        listener = Listener.CLIENT if own.role is Role.BROKER else Listener.CONTROLLER
        return (own.address, own.ports[listener])
