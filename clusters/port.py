"""What a nemesis, a workload and the harness may ask of a cluster, whatever it is made of.

`Cluster` is what every cluster can do. Everything else (kill, pause, wipe, …) is an ability, and
stands in `abilities.py`.

A node is named by its role and its number: `controller-1`, `broker-2`. Numbers start at 1 in either
role; `Cluster.broker_id` maps to the id that Kafka's protocol uses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NewType, Protocol, runtime_checkable

__all__ = [
    "Cluster",
    "ClusterSpec",
    "ClusterView",
    "DiskTrouble",
    "Disks",
    "FlippedPart",
    "NodeName",
    "NodeState",
    "PartitionView",
    "Quorum",
    "Role",
    "TopicSpec",
    "role_of",
]

NodeName = NewType("NodeName", str)


class Role(StrEnum):
    """What a node is; also the first part of its name."""

    CONTROLLER = "controller"
    BROKER = "broker"


def role_of(node: NodeName) -> Role:
    """The role that a node's name states."""
    return Role(node.rpartition("-")[0])


class NodeState(StrEnum):
    """What the host says of a node's process: the evidence for kill, pause and start."""

    RUNNING = "running"
    PAUSED = "paused"
    """Stopped by SIGSTOP, every thread of it (`T` in /proc)."""
    DOWN = "down"
    """No process."""


class Quorum(StrEnum):
    """How controllers know each other as voters."""

    STATIC = "static"
    """By node id, from the configuration: whoever has the id votes, whatever it lost."""
    DYNAMIC = "dynamic"
    """By node id and directory id, from the metadata log (KIP-853, kraft.version 1)."""


class Disks(StrEnum):
    """What the nodes of a cluster of processes keep their data on."""

    SHARED = "shared"
    """Directories of the machine's own file system."""
    IMAGE = "image"
    """A file system of its own for each, which can lose power, fill up and fail. Needs root."""
    FOLLOWED = "followed"
    """Directories as shared ones, of which a preloaded library notes what was synced. They can lose
    power, and nothing else."""


class DiskTrouble(StrEnum):
    """What may be wrong with a node's disk, short of losing what it holds."""

    FULL = "full"
    """No block is free."""
    READ_ONLY = "read-only"
    """The file system met an error: writes are refused, and what was not synced is lost."""
    FAILED = "failed"
    """Everything is refused with an I/O error, and what was not synced is lost."""
    STALLED = "stalled"
    """Writers wait; nobody gets an error."""
    SLOW = "slow"
    """It is stalled for a while, again and again."""


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
class ClusterSpec:
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
    disks: Disks = Disks.SHARED
    """Of processes. A fault that needs images brings them with it."""
    own_clocks: bool = False
    """Each node is started such that its wall clock can be put wrong."""
    own_groups: bool = False
    """Each node is in control groups of its own, so that it can be held back."""


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
class Cluster(Protocol):
    """A running (or not yet running) cluster: start it, look at it, stop it.

    It never leaves a process behind, whatever happens to the harness.
    """

    @property
    def spec(self) -> ClusterSpec:
        """What it was built from."""

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """Controllers first, then brokers, each in the order of their numbers."""

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect: `host:port,…`, every broker."""

    @property
    def versions(self) -> Mapping[str, str]:
        """What is really under test: release, digest of its jars, Java, metadata version."""

    def start(self) -> None:
        """Format and start every node, and wait until a topic can be created on all brokers.

        Raises HarnessError, naming the node and its log, if one does not come up within its bound.
        """

    def stop(self) -> None:
        """Stop every node, for certain: gracefully if it can, then with kill -9. Idempotent."""

    def broker_id(self, node: NodeName) -> int:
        """Kafka's id of this node (broker or controller)."""

    def node_of(self, broker_id: int) -> NodeName:
        """The node with this id of Kafka's."""

    def state(self, node: NodeName) -> NodeState:
        """What the host says of the node's process, now."""

    def create_topics(self, topics: Sequence[TopicSpec]) -> None:
        """Create topics and wait until every unfenced broker knows them."""

    def view(self) -> ClusterView:
        """The metadata as an unfenced broker shows it, within a second or two.

        Raises HarnessError if no broker answers.
        """

    def controller_leader(self) -> NodeName | None:
        """The active controller as the quorum describes itself, or None if nobody could say."""

    def logs(self, node: NodeName) -> tuple[Path, ...]:
        """The node's log files, there whatever happened to it."""
