"""A cluster of Kafka's kind as processes: its brokers, and what an operator asks of them.

Brokers are `broker-n`, controllers of Kafka's own `controller-n`; their directories have
`server.properties` and `hosts`. What the nodes run, and who keeps the metadata, is a subclass's.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from fencepost.clusters.abilities import LinkEnd
from fencepost.clusters.hosts.place import DATA, LOOPBACK, Site
from fencepost.clusters.hosts.ports import ReservedPorts
from fencepost.clusters.kafka.admin import KafkaAdmin
from fencepost.clusters.kafka.api_versions import NEWEST, ApiVersions
from fencepost.clusters.kafka.configuration import (
    HOSTS,
    PROPERTIES,
    KafkaNode,
    Listener,
    hosts_file,
    links_between,
    nodes_of,
    refuse_reserved,
)
from fencepost.clusters.kafka.multi_node_requests import is_answered
from fencepost.clusters.kafka.observation import ask_metadata, view_of
from fencepost.clusters.kafka.readiness import await_brokers
from fencepost.clusters.kafka.topics import create_topics
from fencepost.clusters.kafka_port import (
    BrokersSpec,
    BrokersView,
    ClusterView,
    FlippedPart,
    Role,
    refuse_unplaceable,
)
from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.clusters.processes.cluster import ProcessCluster
from fencepost.clusters.processes.networks import IsAnswered
from fencepost.clusters.processes.node import ProcessNode, Software
from fencepost.clusters.processes.node_tables import write_log_findings, write_settings
from fencepost.clusters.processes.properties import properties_file
from fencepost.clusters.protocol.talking import Address
from fencepost.clusters.setting_changes import SettingChange, SettingChanges
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.clusters.witness.bits import flip_bit
from fencepost.clusters.witness.live import log_end_offset
from fencepost.history.failure import HarnessError, UsageError


class BrokerProcesses(ProcessCluster):
    """`clusters.kafka_port.BrokerCluster` with all its abilities, but for what its nodes run.

    `software`: what each of Kafka's own runs. `before`: the nodes of another system that are
    started first, made with ports that are left. From the site's first port on, those of Kafka's
    nodes come first.
    """

    def __init__(
        self,
        spec: BrokersSpec,
        *,
        site: Site,
        software: Callable[[tuple[KafkaNode, ...]], Mapping[NodeName, Software]],
        is_answered: IsAnswered = is_answered,
        api_versions: ApiVersions = NEWEST,
        before: Callable[[Iterator[int]], Mapping[NodeName, ProcessNode]] = lambda _ports: {},
    ) -> None:
        self._spec = spec
        self._spoken = api_versions
        self._setting_changes = SettingChanges()
        # A proxy that listens for a link uses the very port of the target.
        ports = ReservedPorts(LOOPBACK)
        given = iter(ports.take(spec.port_count(), base=site.port_base))
        nodes = nodes_of(spec, ports=given)
        # Absolute, since each process starts inside its own directory.
        home = site.directory.absolute()
        places = {
            node.name: site.host.place(node.name, directory=home / node.name) for node in nodes
        }
        nodes = tuple(replace(node, address=places[node.name].address) for node in nodes)
        self._listed = {node.name: node for node in nodes}
        runs = software(nodes)
        super().__init__(
            spec,
            site=site,
            nodes={
                **before(given),
                **{
                    name: ProcessNode(name, place=place, software=runs[name], staging=home)
                    for name, place in places.items()
                },
            },
            ports=ports,
            is_answered=is_answered,
        )
        self._admin = KafkaAdmin(
            leader=self._leader,
            brokers=lambda: self._running(Role.BROKER),
            nodes=lambda: {name: self._address(name) for name in self._nodes},
            api_versions=api_versions,
        )

    @abstractmethod
    def _properties(self, node: ProcessNode, *, nodes: tuple[KafkaNode, ...]) -> dict[str, str]:
        """The node's server.properties."""

    @abstractmethod
    def view(self) -> BrokersView:
        """The metadata, within 2 s. Raises HarnessError if no node answers."""

    @abstractmethod
    def leader_now(self) -> NodeName | None:
        """Return the active controller; None if no node is."""

    @property
    def spec(self) -> BrokersSpec:
        """The specification that it was built from."""
        return self._spec

    @property
    def bootstrap_servers(self) -> str:
        """The address of every broker as clients find it: `host:port,…`."""
        return ",".join(
            f"{self._route(CLIENTS, name) or node.address}:{node.ports[Listener.CLIENT]}"
            for name, node in self._listed.items()
            if node.serves
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
        return next(name for name in self._listed if self.broker_id(name) == broker_id)

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
        create_topics(
            topics,
            leader=self._leader,
            brokers=lambda: self._running(Role.BROKER),
            api_versions=self._spoken,
        )

    def view_by(self, broker: NodeName) -> ClusterView | None:
        """The metadata as this broker shows it, current or not; None if it does not answer."""
        answers = ask_metadata({broker: self._address(broker)}, api_versions=self._spoken)
        if not answers:
            return None
        by_id = {self.broker_id(broker): answers[broker]}
        return view_of(answers[broker], answers=by_id, time_ns=self._clock.now_ns())

    def flip_bit(self, node: NodeName, part: FlippedPart, *, seed: int) -> str:
        """Flip one bit, drawn from the seed, on the disk of a node that is down."""
        return self._nodes[node].change_data(partial(flip_bit, part=part, seed=seed))

    def create_topic(self, topic: TopicSpec, *, via: NodeName | None, within_s: float) -> str:
        """Ask `via` (None: the active controller) for the topic; returns once it was granted."""
        return self._admin.create_topic(topic, via=via, within_s=within_s)

    def delete_topic(self, name: str, *, via: NodeName | None, within_s: float) -> str:
        """Ask `via` (None: the active controller) to delete it; returns once it was granted."""
        return self._admin.delete_topic(name, via=via, within_s=within_s)

    def move_leader(self, key: str, leader: int, *, within_s: float) -> str:
        """Make this broker the preferred replica and have it elected; returns once it leads."""
        return self._admin.move_leader(key, leader, within_s=within_s)

    def reassign(
        self, key: str, replicas: tuple[int, ...], *, within_s: float, awaited: bool = True
    ) -> str:
        """Give the key these replicas; returns once that is over, or granted if not `awaited`."""
        return self._admin.reassign(key, replicas, within_s=within_s, awaited=awaited)

    def log_end(self, node: NodeName, key: str) -> int | None:
        """The log end offset on the broker's disk; None if it has no replica of the key."""
        return log_end_offset(self._nodes[node].place.fetch(f"{DATA}/{key}").parent, key)

    def change_settings(self, node: NodeName, settings: Mapping[str, str]) -> str:
        """Have a node run with these properties from its next start on; evidence in words."""
        if node not in self._listed:
            raise HarnessError(f"{node} has no properties of Kafka's")
        self._refuse_settings(settings)
        evidence = self._setting_changes.note(self._clock.now_ns(), node, settings)
        self._configure(self._nodes[node])
        return evidence

    def setting_changes(self) -> Sequence[SettingChange]:
        """Return the changes so far, in order."""
        return self._setting_changes.made

    def _refuse_settings(self, settings: Mapping[str, str]) -> None:
        """Raise HarnessError for properties that no step may change."""
        try:
            refuse_reserved(settings)
        except UsageError as error:
            raise HarnessError(str(error)) from None

    def _write_node_tables(self, raw: Path) -> None:
        """Record in `raw` what each node was told, and the worst words of its log."""
        told: dict[str, Mapping[str, str]] = {
            name: node.settings for name, node in self._nodes.items()
        }
        write_settings(raw, told, self._setting_changes.made)
        logs: dict[str, Iterable[Path]] = {name: self.logs(name) for name in self._nodes}
        skewed = {skew.node for skew in self._hardships.clock_skews()}
        write_log_findings(raw, logs, clock=self._clock, skewed=skewed)

    def _first_members(self) -> tuple[NodeName, ...]:
        return tuple(name for name in self._nodes if name not in self._spec.spares)

    def _configure(self, node: ProcessNode) -> None:
        """Write what the node has to know of itself and of the others. A start reads it anew."""
        nodes = tuple(self._listed.values())
        hosts = hosts_file(self._listed[node.name], nodes=nodes, route=self._route)
        settings = self._properties(node, nodes=nodes)
        now = properties_file(self._setting_changes.over(settings, node.name))
        files = {PROPERTIES: now, HOSTS: hosts + self._also_found(node.name)}
        node.configure(settings, files)

    def _also_found(self, node: NodeName) -> str:  # noqa: ARG002 -- for subclasses
        """The lines of a node's hosts file for what is not of Kafka's kind."""
        return ""

    def _await_role(self, role: str, members: Sequence[NodeName]) -> None:
        """Return when brokers can be used."""
        assert role == Role.BROKER, role
        ids = {name: self.broker_id(name) for name in members}
        addresses = {name: self._address(name) for name in members}
        await_brokers(self._nodes, addresses, ids=ids, api_versions=self._spoken)

    def _leader(self) -> dict[NodeName, Address]:
        leader = self.leader_now()
        if leader is None:
            return {}
        role = Role.CONTROLLER if self._listed[leader].votes else Role.BROKER
        return {leader: self._address_as(leader, role)}

    def _address(self, node: NodeName) -> Address:
        """Return the address at which the harness finds a node: always the direct one."""
        own = self._listed[node]
        return (own.address, own.ports[Listener.CLIENT if own.serves else Listener.CONTROLLER])

    def _address_as(self, node: NodeName, role: str) -> Address:
        """Return the address at which the harness finds a node in this role."""
        if role != Role.CONTROLLER:
            return self._address(node)
        own = self._listed[node]
        return (own.address, own.ports[Listener.CONTROLLER])
