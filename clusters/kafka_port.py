"""The features that Kafka-like clusters add to every cluster's, of whatever release and make.

Controllers that decide, brokers that clients talk to, topics with partitions and replicas. Kafka's
own clusters, the reference cluster as processes, and it in virtual time are `BrokerCluster`s.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar, Final, Protocol, runtime_checkable

from fencepost.clusters.port import (
    KEY,
    OWN_ROLES,
    ClusterSpec,
    NodeName,
    NodeRole,
    NodeRoles,
    Observable,
    SystemView,
    role_name,
)
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.failure import Mistakes, UsageError

_METADATA_VERSION: Final = re.compile(r"\d{1,3}(\.\d{1,3}(-IV\d{1,3})?)?")
_BROKERS_MAX: Final = 9
"""One digit, one machine."""
QUORUM_SIZES: Final = (1, 3, 5)
"""The numbers of controllers. An even number withstands no more failures than the one below."""


class Role(StrEnum):
    """The role of a node; also the first part of its name."""

    CONTROLLER = "controller"
    BROKER = "broker"
    ZOOKEEPER = "zookeeper"
    """A server of the ensemble that keeps the metadata of a cluster without controllers."""


BROKERS: Final = NodeRole(name=Role.BROKER, serves_clients=True, port_count=2)
CONTROLLERS: Final = NodeRole(name=Role.CONTROLLER, decides=True, port_count=1)


def role_of(node: NodeName) -> Role:
    """The role that a node's name states."""
    return Role(role_name(node))


class Quorum(StrEnum):
    """The way in which controllers know each other as voters."""

    STATIC = "static"
    """Voters by node id, from the configuration: a node with the id votes, whatever it lost."""
    DYNAMIC = "dynamic"
    """Voters by node id and directory id, from the metadata log (KIP-853, kraft.version 1)."""


class FlippedPart(StrEnum):
    """The part of a node's disk on which a bit is flipped."""

    SEGMENT = "segment"
    """The records of a replica's active segment."""
    INDEX = "index"
    """The offset index of a replica's active segment."""
    METADATA = "metadata"
    """The records of the metadata log's active segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersSpec(ClusterSpec):
    """The brokers of a cluster to build, whatever keeps its metadata."""

    brokers: int = 3
    release: str = field(default="4.3.1", metadata={KEY: "kafka"})
    """A release of Apache Kafka ("4.3.1"), or `path:DIR` of a build of the user's own."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of every node, by Kafka's property names. They win over the harness's defaults."""
    broker_settings: Mapping[str, str] = field(default_factory=dict)
    java_options: tuple[str, ...] = ()
    """Extra options of each node's JVM."""

    may_be_old: ClassVar[bool] = False
    """True if there are releases of it that do not understand all that clients ask."""

    @property
    def has_control_plane(self) -> bool:
        """True if brokers hear the controller on a listener of its own (KIP-291)."""
        return False

    @property
    def member_ids(self) -> tuple[int, ...]:
        """Kafka's ids of all brokers."""
        return tuple(range(1, self.counts[Role.BROKER] + 1))

    def note_brokers(self, mistakes: Mistakes) -> None:
        """Note a count of brokers that cannot be."""
        if not 1 <= self.brokers <= _BROKERS_MAX:
            mistakes.note(
                ("brokers",), f"expected 1 to {_BROKERS_MAX} brokers, found {self.brokers}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSpec(BrokersSpec):
    """A cluster to build: how many nodes, of what, with which settings."""

    controllers: int = 1
    quorum: Quorum = Quorum.STATIC
    """Dynamic: from 3.9 on."""
    spare_controllers: int = 0
    """The spare controllers, no members until they are added. Of a dynamic quorum."""
    spare_brokers: int = 0
    combined: bool = False
    """The first brokers are the controllers, each in one process and on one disk."""
    metadata_version: str | None = None
    """E.g. "3.4" or "3.5-IV1"; None: the release's own default."""
    controller_settings: Mapping[str, str] = field(default_factory=dict)

    roles: ClassVar[tuple[NodeRole, ...]] = (CONTROLLERS, BROKERS)

    @property
    def protocol_level(self) -> str | None:
        """The metadata.version."""
        return self.metadata_version

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of nodes named for each role, spare ones included."""
        return {
            Role.CONTROLLER: 0 if self.combined else self.controllers + self.spare_controllers,
            Role.BROKER: self.brokers + self.spare_brokers,
        }

    @property
    def node_roles(self) -> NodeRoles:
        """The roles of the nodes."""
        if not self.combined:
            return OWN_ROLES
        voters = (NodeName(f"{Role.BROKER}-{number + 1}") for number in range(self.controllers))
        return NodeRoles(second=dict.fromkeys(voters, Role.CONTROLLER))

    @property
    def spares(self) -> frozenset[NodeName]:
        """The nodes of either role with the highest numbers."""
        first = replace(self, spare_controllers=0, spare_brokers=0)
        return frozenset(self.nodes) - frozenset(first.nodes)

    @property
    def fixed(self) -> frozenset[NodeName]:
        """The voters of a static quorum, and any that are brokers, too."""
        if self.quorum is not Quorum.STATIC and not self.combined:
            return frozenset()
        return frozenset(self.node_roles.among(self.nodes, Role.CONTROLLER))

    def check(self) -> None:
        """Raise SpecError, with the paths of the keys, for a cluster that cannot be."""
        mistakes = Mistakes()
        note_controllers(self.controllers, mistakes)
        self.note_brokers(mistakes)
        if self.metadata_version and not _METADATA_VERSION.fullmatch(self.metadata_version):
            found = "expected 3.9 or 3.9-IV0 (1, 2 or 3 of the reference cluster), found"
            mistakes.note(("metadata_version",), f"{found} {self.metadata_version!r:.80}")
        spare_max = max(0, _BROKERS_MAX - self.brokers)
        for key, most in (("spare_controllers", 4), ("spare_brokers", spare_max)):
            if not 0 <= getattr(self, key) <= most:
                mistakes.note((key,), f"expected 0 to {most}, found {getattr(self, key)}")
        if self.spare_controllers and self.combined:
            mistakes.note(("spare_controllers",), "the voters of a combined cluster are fixed")
        elif self.spare_controllers and self.quorum is Quorum.STATIC:
            found = "the voters of a static quorum are fixed; set `quorum: dynamic`"
            mistakes.note(("spare_controllers",), found)
        if self.combined and self.controllers > self.brokers:
            found = f"expected at most {self.brokers}, one per broker, found {self.controllers}"
            mistakes.note(("controllers",), f"in a combined cluster {found}")
        mistakes.refuse()


def note_controllers(count: int, mistakes: Mistakes) -> None:
    """Note a count of controllers that cannot be."""
    if count not in QUORUM_SIZES:
        mistakes.note(("controllers",), f"expected 1, 3 or 5 controllers, found {count}")


def refuse_unplaceable(topics: Sequence[TopicSpec], *, brokers: int) -> None:
    """Raise UsageError for a topic that asks for more replicas than there are brokers."""
    for topic in topics:
        if topic.assignment is None and topic.replication_factor > brokers:
            raise UsageError(
                f"topic {topic.name} asks for {topic.replication_factor} replicas of each "
                f"partition, but there are {brokers} brokers"
            )


def of_kafka(spec: ClusterSpec) -> KafkaSpec:
    """The spec, which is one of a cluster with controllers of Kafka's own."""
    assert isinstance(spec, KafkaSpec), spec
    return spec


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """A partition as one broker's metadata shows it. Ids are Kafka's broker ids."""

    leader: int | None
    isr: tuple[int, ...]
    replicas: tuple[int, ...]


@runtime_checkable
class BrokersView(SystemView, Protocol):
    """The state of a cluster of brokers, as conditions and targets ask for it."""

    @property
    def brokers(self) -> frozenset[int]:
        """The brokers that are registered and not fenced."""

    @property
    def serving(self) -> frozenset[int]:
        """Brokers that answered this look themselves, and list themselves."""

    @property
    def partitions(self) -> Mapping[str, PartitionView]:
        """The partitions by key, `topic-partition`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The content of a metadata read. A fenced broker is not in `brokers`."""

    time_ns: int
    brokers: frozenset[int]
    serving: frozenset[int]
    """Brokers that answered this look themselves, and list themselves. Right after a restart the
    others still list a broker, by the registration of its dead predecessor: this tells them apart.
    """
    partitions: Mapping[str, PartitionView]
    """The partitions by key, `topic-partition`."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Topic names by their ids, where the cluster has such."""

    @property
    def taking_part(self) -> frozenset[int]:
        """The brokers that are unfenced by their own word, too."""
        return self.brokers & self.serving

    @property
    def lagging(self) -> frozenset[int]:
        """The brokers that have a replica outside of its ISR."""
        return frozenset(
            replica
            for partition in self.partitions.values()
            for replica in partition.replicas
            if replica not in partition.isr
        )

    @property
    def left_out(self) -> Sequence[str]:
        """Replicas out of their ISR, though their brokers take part and a leader exists."""
        return [
            f"{key} on {replica}"
            for key, partition in self.partitions.items()
            if partition.leader is not None
            for replica in sorted({*partition.replicas} & self.taking_part - {*partition.isr})
        ]

    @property
    def incomplete(self) -> Sequence[str]:
        """Partitions without a leader, or without their full ISR."""
        return [
            f"{key} has leader {one.leader} and isr {list(one.isr)} of {list(one.replicas)}"
            for key, one in self.partitions.items()
            if one.leader is None or set(one.isr) != set(one.replicas)
        ]

    @property
    def names_of_ids(self) -> Mapping[str, str]:
        """Topic names by their ids."""
        return self.topic_ids

    def is_whole(self, members: frozenset[int]) -> bool:
        """Return whether all members are unfenced and all partitions have a leader and full ISR."""
        return self.taking_part >= members and all(
            one.leader is not None and set(one.isr) == set(one.replicas)
            for one in self.partitions.values()
        )


@runtime_checkable
class BrokerCluster(Observable, Protocol):
    """A cluster of brokers under controllers. `start` returns once a topic can be created."""

    @property
    def spec(self) -> BrokersSpec:
        """The specification that it was built from."""

    @property
    def bootstrap_servers(self) -> str:
        """The address of every broker, for clients: `host:port,…`."""

    def broker_id(self, node: NodeName) -> int:
        """Kafka's id of this node (broker or controller)."""

    def node_of(self, broker_id: int) -> NodeName:
        """The node with this id of Kafka's."""

    def create_topics(self, topics: Sequence[TopicSpec]) -> None:
        """Create topics and wait until every unfenced broker knows them."""

    def view(self) -> BrokersView:
        """The metadata, as an unfenced broker shows it or as it is kept, within a second or two.

        Raises HarnessError if no node answers.
        """


@runtime_checkable
class Administers(Protocol):
    """The ability to do what an operator asks. Each returns evidence in words, or HarnessError."""

    def create_topic(self, topic: TopicSpec, *, via: NodeName | None, within_s: float) -> str:
        """Ask `via` (None: the active controller) for the topic; returns once it was granted."""

    def delete_topic(self, name: str, *, via: NodeName | None, within_s: float) -> str:
        """Ask `via` (None: the active controller) to delete it; returns once it was granted."""

    def move_leader(self, key: str, leader: int, *, within_s: float) -> str:
        """Make this broker the preferred replica and have it elected; returns once it leads."""

    def reassign(
        self, key: str, replicas: tuple[int, ...], *, within_s: float, awaited: bool = True
    ) -> str:
        """Give the key these replicas; returns once that is over, or granted if not `awaited`."""


@runtime_checkable
class Registers(Protocol):
    """The ability to say which registration of a broker is the latest, without the wire."""

    def latest_registration(self, broker: NodeName) -> int:
        """A number that grows with each registration that was seen; -1: none was."""


@runtime_checkable
class BitFlips(Protocol):
    """The ability to flip a bit of what a node has on its disk."""

    def flip_bit(self, node: NodeName, part: FlippedPart, *, seed: int) -> str:
        """Flip one bit, drawn from the seed, on the disk of a node that is down.

        Returns the file, the place, and the byte before and after, in words.
        """


@runtime_checkable
class LogEnds(Protocol):
    """The ability to look at the ends of its replicas' logs, whatever state their nodes are in."""

    def log_end(self, node: NodeName, key: str) -> int | None:
        """The log end offset on the broker's disk; None if it has no replica of the key."""
