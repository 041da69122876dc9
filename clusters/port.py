"""The port that a nemesis, a workload and the harness use on a cluster, whatever it is made of.

`Cluster` is what every cluster can do. Everything else (kill, pause, wipe, …) is an ability, and
stands in `abilities.py`.

A node is named by its role and its number: `controller-1`, `broker-2`. Numbers start at 1 in each
role. A node may have a second role, which its spec states (`NodeRoles`). Which roles there are is
the system's (`clusters.systems`); nothing of what a system's nodes say to each other stands here:
what Kafka and its like have is in `kafka_port.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Final, NewType, Protocol, runtime_checkable

NodeName = NewType("NodeName", str)


KEY: Final = "key"
"""In the metadata of a spec's field: the key by which scenarios know it, if not by its name."""
CLIENTS: Final = NodeName("clients")
"""All parties outside of the cluster; no node has this name."""


def role_name(node: NodeName) -> str:
    """The name of the role that a node's own name states; it may have a second one."""
    return node.rpartition("-")[0]


def node_number(node: NodeName) -> int:
    """The number of a node among those of its role, from 1 on."""
    return int(node.rpartition("-")[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRole:
    """A role of some of a system's nodes. In plays its nodes are `one broker`, `all brokers`."""

    name: str
    """The first part of their names."""
    serves_clients: bool = False
    decides: bool = False
    """A cluster that is cut in two goes on where most of these are."""
    port_count: int = 0
    """The number of ports on which a node listens in this role, if it is a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRoles:
    """The roles of a cluster's nodes: that of each one's name, and second ones."""

    second: Mapping[NodeName, str] = field(default_factory=dict)
    """The second roles, by the nodes that have one. Its nodes are started first for that role."""

    def of(self, node: NodeName) -> tuple[str, ...]:
        """Return the roles of a node, in the order of starting."""
        own = role_name(node)
        return (self.second[node], own) if node in self.second else (own,)

    def has(self, node: NodeName, role: str) -> bool:
        """Return whether the node has this role."""
        return role in self.of(node)

    def among(self, nodes: Iterable[NodeName], role: str) -> tuple[NodeName, ...]:
        """Return those of the nodes that have this role."""
        return tuple(node for node in nodes if self.has(node, role))

    def names(self, nodes: Iterable[NodeName]) -> tuple[str, ...]:
        """Return the roles of these nodes, each once, in the order of starting."""
        return tuple(dict.fromkeys(role for node in nodes for role in self.of(node)))


OWN_ROLES: Final = NodeRoles()
"""No node has a second role."""


class NodeState(StrEnum):
    """The host's report of a node's process: the evidence for kill, pause and start."""

    RUNNING = "running"
    PAUSED = "paused"
    """Stopped by SIGSTOP, every thread of it (`T` in /proc)."""
    DOWN = "down"
    """No process."""


class Disks(StrEnum):
    """The kind of storage on which the nodes of a cluster of processes keep their data."""

    SHARED = "shared"
    """Directories of the machine's own file system."""
    IMAGE = "image"
    """A file system of its own for each, which can lose power, fill up and fail. Needs root."""
    FOLLOWED = "followed"
    """Directories as shared ones, of which a preloaded library notes what was synced. They can lose
    power, and nothing else."""


class DiskTrouble(StrEnum):
    """The faults that a node's disk may have, short of losing its content."""

    FULL = "full"
    """No block is free."""
    READ_ONLY = "read-only"
    """The file system met an error: writes are refused, and what was not synced is lost."""
    FAILED = "failed"
    """Everything is refused with an I/O error, and what was not synced is lost."""
    STALLED = "stalled"
    """Writers wait; no process gets an error."""
    SLOW = "slow"
    """It is stalled for a while, again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """The settings that any system's nodes can have besides their software. Systems add keys."""

    release: str = ""
    """The release that its nodes run."""
    disks: Disks = Disks.SHARED
    """The disks of processes. A fault that needs images brings them with it."""
    own_clocks: bool = False
    """Each node is started such that its wall clock can be put wrong."""
    own_groups: bool = False
    """Each node is in control groups of its own, so that it can be held back."""

    roles: ClassVar[tuple[NodeRole, ...]] = ()
    """The roles in the order in which they are started; they are stopped in the reverse order."""

    @property
    def protocol_level(self) -> str | None:
        """The level of its protocol that a scenario asks for, where one can; None: the default."""
        return None

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of nodes of each role, spare ones included."""
        raise NotImplementedError

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """Return all nodes, spare ones too: by role, and from 1 on in each."""
        counts = self.counts
        return tuple(
            NodeName(f"{role.name}-{number}")
            for role in self.roles
            for number in range(1, counts[role.name] + 1)
        )

    @property
    def node_roles(self) -> NodeRoles:
        """The roles of the nodes."""
        return OWN_ROLES

    def port_count(self) -> int:
        """Return the number of ports that all nodes take together, as processes."""
        counts = {role.name: role.port_count for role in self.roles}
        return sum(counts[role] for node in self.nodes for role in self.node_roles.of(node))

    @property
    def view_ids(self) -> Mapping[NodeName, int]:
        """The ids of nodes in views of the system: by default of those that serve clients."""
        serving = {role.name for role in self.roles if role.serves_clients}
        return {node: node_number(node) for node in self.nodes if role_name(node) in serving}

    @property
    def member_ids(self) -> tuple[int, ...]:
        """The ids that plays may name as members of what the cluster replicates."""
        return ()

    @property
    def spares(self) -> frozenset[NodeName]:
        """The nodes that are no members until they are added."""
        return frozenset()

    @property
    def fixed(self) -> frozenset[NodeName]:
        """The nodes that can be neither added nor removed."""
        return frozenset(self.nodes)

    def check(self) -> None:
        """Raise SpecError, with the path of the key, for a cluster that cannot be."""


@runtime_checkable
class Cluster(Protocol):
    """A running (or not yet running) cluster: start it, look at it, stop it.

    It never leaves a process behind, whatever happens to the harness.
    """

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """Return all nodes by role, in the order of starting, and by number."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Return the versions really under test: release, digests of what its nodes run, levels."""

    def start(self) -> None:
        """Start every node, and wait until clients can use the cluster.

        Raises HarnessError, naming the node and its log, if one does not come up within its bound.
        """

    def stop(self) -> None:
        """Stop every node, for certain: gracefully if it can, then with kill -9. Idempotent."""

    def state(self, node: NodeName) -> NodeState:
        """Return the state of the node's process now, as the host reports it."""

    def logs(self, node: NodeName) -> tuple[Path, ...]:
        """The node's log files, there whatever happened to it."""


class SystemView(Protocol):
    """The state that a system showed of itself. Members are named by their ids."""

    @property
    def taking_part(self) -> frozenset[int]:
        """The members that clients can use, as the others and they themselves show."""

    @property
    def lagging(self) -> frozenset[int]:
        """The members that lack something of what they replicate."""

    @property
    def left_out(self) -> Sequence[str]:
        """Copies that take no part, though nothing keeps them from it."""

    @property
    def incomplete(self) -> Sequence[str]:
        """The defects of what it replicates, in words."""

    @property
    def names_of_ids(self) -> Mapping[str, str]:
        """Names by the ids that frames on the wire carry instead."""

    def is_whole(self, members: frozenset[int]) -> bool:
        """Return whether it lacks nothing, with these members."""


@runtime_checkable
class Observable(Cluster, Protocol):
    """A cluster that shows what it is, to the harness that looks at it all the time."""

    @property
    def view_ids(self) -> Mapping[NodeName, int]:
        """The ids, in views, of the nodes that these show: all that serve clients, at least."""

    def view(self) -> SystemView:
        """Return what it shows of itself, within a second or two.

        Raises HarnessError if no node answers.
        """

    def leader_now(self) -> NodeName | None:
        """The node that leads the others, by its own word; None if none could say."""
