"""What Kafka's clusters have beside what every cluster has, of whatever release and make.

Controllers that decide, brokers that clients talk to, topics with partitions and replicas. Kafka's
own clusters, the reference cluster as processes, and it in virtual time are `BrokerCluster`s.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from clusters.port import Cluster, ClusterSpec, NodeName, role_name

__all__ = [
    "Administers",
    "BitFlips",
    "BrokerCluster",
    "ClusterView",
    "FlippedPart",
    "KafkaSpec",
    "LogEnds",
    "PartitionView",
    "Quorum",
    "Role",
    "TopicSpec",
    "role_of",
]


class Role(StrEnum):
    """What a node is; also the first part of its name."""

    CONTROLLER = "controller"
    BROKER = "broker"


def role_of(node: NodeName) -> Role:
    """The role that a node's name states."""
    return Role(role_name(node))


class Quorum(StrEnum):
    """How controllers know each other as voters."""

    STATIC = "static"
    """By node id, from the configuration: whoever has the id votes, whatever it lost."""
    DYNAMIC = "dynamic"
    """By node id and directory id, from the metadata log (KIP-853, kraft.version 1)."""


class FlippedPart(StrEnum):
    """Where on a node's disk a bit is flipped."""

    SEGMENT = "segment"
    """The records of a replica's active segment."""
    INDEX = "index"
    """The offset index of a replica's active segment."""
    METADATA = "metadata"
    """The records of the metadata log's active segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """A topic to create: `assignment` (by partition, broker numbers, leader first) or counts."""

    name: str
    partitions: int = 1
    replication_factor: int = 3
    assignment: tuple[tuple[int, ...], ...] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        """The topic's keys, `name-partition`, in order."""
        count = self.partitions if self.assignment is None else len(self.assignment)
        return tuple(f"{self.name}-{partition}" for partition in range(count))


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSpec(ClusterSpec):
    """A cluster to build: how many nodes, of what, with which settings."""

    controllers: int = 1
    brokers: int = 3
    release: str = "4.3.1"
    """A release of Apache Kafka ("4.3.1"), or `path:DIR` of a build of the user's own."""
    quorum: Quorum = Quorum.STATIC
    """Dynamic: from 3.9 on."""
    spare_controllers: int = 0
    """Beside them: nodes that are no members until they are added. Of a dynamic quorum."""
    spare_brokers: int = 0
    metadata_version: str | None = None
    """E.g. "3.4" or "3.5-IV1"; None: the release's own default."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of every node, by Kafka's property names. They win over the harness's defaults."""
    controller_settings: Mapping[str, str] = field(default_factory=dict)
    broker_settings: Mapping[str, str] = field(default_factory=dict)
    java_options: tuple[str, ...] = ()
    """Extra options of each node's JVM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """A partition as one broker's metadata shows it. Ids are Kafka's broker ids."""

    leader: int | None
    isr: tuple[int, ...]
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """What a metadata read showed. A fenced broker is not in `brokers`."""

    time_ns: int
    brokers: frozenset[int]
    serving: frozenset[int]
    """Brokers that answered this look themselves, and list themselves. Right after a restart the
    others still list a broker, by the registration of its dead predecessor: this tells them apart.
    """
    partitions: Mapping[str, PartitionView]
    """By key, `topic-partition`."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Topic names by their ids, where the cluster has such."""


@runtime_checkable
class BrokerCluster(Cluster, Protocol):
    """A cluster of brokers under controllers. `start` returns once a topic can be created."""

    @property
    def spec(self) -> KafkaSpec:
        """What it was built from."""

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect: `host:port,…`, every broker."""

    def broker_id(self, node: NodeName) -> int:
        """Kafka's id of this node (broker or controller)."""

    def node_of(self, broker_id: int) -> NodeName:
        """The node with this id of Kafka's."""

    def create_topics(self, topics: Sequence[TopicSpec]) -> None:
        """Create topics and wait until every unfenced broker knows them."""

    def view(self) -> ClusterView:
        """The metadata as an unfenced broker shows it, within a second or two.

        Raises HarnessError if no broker answers.
        """

    def controller_leader(self) -> NodeName | None:
        """The active controller as the quorum describes itself, or None if nobody could say."""


@runtime_checkable
class Administers(Protocol):
    """Can be asked what an operator asks. Each returns evidence in words, or HarnessError."""

    def create_topic(self, topic: TopicSpec, *, via: NodeName | None, within_s: float) -> str:
        """Ask `via` (None: the active controller) for the topic; returns once it was granted."""

    def move_leader(self, key: str, leader: int, *, within_s: float) -> str:
        """Make this broker the preferred replica and have it elected; returns once it leads."""

    def reassign(self, key: str, replicas: tuple[int, ...], *, within_s: float) -> str:
        """Give the key these replicas; returns once the reassignment is over."""


@runtime_checkable
class BitFlips(Protocol):
    """Can flip a bit of what a node has on its disk."""

    def flip_bit(self, node: NodeName, part: FlippedPart, *, seed: int) -> str:
        """Flip one bit, drawn from the seed, on the disk of a node that is down.

        Returns the file, the place, and the byte before and after, in words.
        """


@runtime_checkable
class LogEnds(Protocol):
    """Can look at the ends of its replicas' logs, whatever state their nodes are in."""

    def log_end(self, node: NodeName, key: str) -> int | None:
        """The log end offset on the broker's disk; None if it has no replica of the key."""
