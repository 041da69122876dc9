"""The abilities that some clusters have and others lack, each a small Protocol of its own.

Asked for with `isinstance`, so that a play that needs an ability which a cluster lacks is refused
before anything starts. The abilities of every cluster are in `clusters.port.Cluster`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.clusters.port import OWN_ROLES, Cluster, DiskTrouble, NodeName, NodeRoles
from fencepost.history.clock import ClockSkew


@runtime_checkable
class CombinesRoles(Protocol):
    """The ability to have nodes of two roles."""

    @property
    def node_roles(self) -> NodeRoles:
        """The roles of its nodes."""


def roles_in(cluster: Cluster) -> NodeRoles:
    """Return the roles of a cluster's nodes."""
    return cluster.node_roles if isinstance(cluster, CombinesRoles) else OWN_ROLES


@runtime_checkable
class Starts(Protocol):
    """The ability to start a node that is down, on the disk that it has."""

    def start_node(self, node: NodeName) -> None:
        """Spawn the node and return once its process lives; joining the cluster takes longer."""


@runtime_checkable
class Stops(Protocol):
    """The ability to stop a node gracefully."""

    def stop_node(self, node: NodeName, *, timeout_s: float = 30.0) -> bool:
        """Send SIGTERM and wait; kill -9 after `timeout_s`. True if it ended on SIGTERM."""


@runtime_checkable
class Kills(Protocol):
    """The ability to kill a node as kill -9 does."""

    def kill_node(self, node: NodeName) -> None:
        """Send SIGKILL, also to a paused node; return when the process is gone."""


@runtime_checkable
class Pauses(Protocol):
    """The ability to stop the process of a node for a while: SIGSTOP and SIGCONT."""

    def pause_node(self, node: NodeName) -> None:
        """Send SIGSTOP; return when the host sees it stopped."""

    def resume_node(self, node: NodeName) -> None:
        """Send SIGCONT; return when the host sees it running."""


@runtime_checkable
class Wipes(Protocol):
    """The ability to empty a node's disk."""

    def wipe_node(self, node: NodeName, *, keep_directory_id: bool = False) -> None:
        """Delete all data of a node that is down, and format it anew with its old id.

        `keep_directory_id`: the empty disk passes for the one it was.
        """


@runtime_checkable
class FormatsByTool(Protocol):
    """The ability to have an empty disk formatted by the tool of what is under test."""

    def wipe_node_by_tool(self, node: NodeName) -> None:
        """Delete all data of a node that is down, and have its own tool format it, as a new one.

        What the tool leaves unsynced stays so.
        """


@runtime_checkable
class LosesPower(Protocol):
    """The ability to lose what nodes wrote and never synced, as a power cut does."""

    def cut_power(self, nodes: Sequence[NodeName], *, torn_seed: int | None = None) -> str:
        """End the nodes at once, all together, and lose bytes that they had not made durable.

        Returns what each lost, in words. What a disk had not written yet is gone from some point
        on, which may be the end; what was synced is all there. `torn_seed`: parts of some logs,
        drawn from it, reach the disk before. A node that is down loses what it left unsynced.
        """


@runtime_checkable
class TroublesDisks(Protocol):
    """The ability to bring trouble to the disk under a node, and to mend it."""

    def trouble_disk(self, node: NodeName, trouble: DiskTrouble, *, stall_s: float) -> str:
        """Let this happen to the node's disk; what shows that it has, in words.

        `stall_s`: of a slow disk, how long each stall takes. A node may die of it.
        """

    def mend_disk(self, node: NodeName) -> None:
        """End the trouble of the node's disk.

        A node that died of it is started. One that runs on a disk which has to be mounted anew is
        killed before, and started.
        """


@runtime_checkable
class Snapshots(Protocol):
    """The ability to copy a node's disk and put the copy back: an old backup, a lost tail."""

    def snapshot_node(self, node: NodeName, name: str) -> None:
        """Copy the node's data (running or down) under `name`, replacing an older copy."""

    def rollback_node(self, node: NodeName, name: str) -> None:
        """Replace the data of a node that is down by the copy `name`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skew:
    """The error of a wall clock: a jump, a wrong pace, or a swing back and forth. Default: none."""

    jump_s: float = 0.0
    """The lead of the clock in seconds; negative: it is behind."""
    rate: float = 1.0
    """Seconds that it counts in each second."""
    strobe_s: float = 0.0
    """The lead (or lag) in every second span of `every_s`; the clock is right in the others."""
    every_s: float = 0.1

    def bounds_s(self, passed_s: float) -> tuple[float, float]:
        """Return the least and the most that it is ahead, in the first `passed_s` seconds."""
        steady = self.jump_s
        wrong = (steady, steady + self.strobe_s, steady + (self.rate - 1) * passed_s)
        return min(wrong), max(wrong)


@runtime_checkable
class Skews(Protocol):
    """The ability to put a node's wall clock wrong, as its process sees it.

    The clock is the node's, not the process's: a node that starts finds it as wrong as it was left.
    """

    def skew_node(self, node: NodeName, skew: Skew) -> str:
        """Put it wrong by this, whatever it was before; returns what the node itself then says."""

    def unskew_node(self, node: NodeName) -> str:
        """Put it right; returns what the node itself then says."""

    def clock_skews(self) -> tuple[ClockSkew, ...]:
        """Return which clocks were wrong, when, and by how much at most."""


@runtime_checkable
class Throttles(Protocol):
    """The ability to give a node little time on the processors, also across its restarts."""

    def throttle_node(self, node: NodeName, share: float) -> str:
        """Limit the node to this share of one core; return how it was seen to be held back."""

    def unthrottle_node(self, node: NodeName) -> str:
        """Lift the limit on its processor time; return for how long it was held back."""


@runtime_checkable
class Squeezes(Protocol):
    """The ability to give a node little memory, also across its restarts."""

    def squeeze_node(self, node: NodeName, room_bytes: int) -> str:
        """Leave it what it cannot give back, and this; return how it was seen to press.

        Its heap and stacks stay; the files that it has mapped and cached share the room.
        """

    def unsqueeze_node(self, node: NodeName) -> str:
        """Lift the limit on its memory; return how often it pressed."""


Route = Callable[[NodeName, NodeName], str | None]
"""(source, target) → the IPv4 address at which the source finds the target; None: its own.

The source is a node or `CLIENTS`. Asked before the nodes start; constant from then on.
"""


def direct(_source: NodeName, _target: NodeName) -> None:
    """The route without anything in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEnd:
    """A way by which one node (or the clients) dials another."""

    source: NodeName
    """A node, or "clients"."""
    target: NodeName
    port: int
    """The port on which the target listens."""
    address: str = "127.0.0.1"
    """The address on which it listens."""
    protocol: LinkProtocol = LinkProtocol.KAFKA
    role: str = ""
    """The role in which the target listens there; empty: the one that it is named for."""
    redials_s: float = 0.0
    """The time for which its source dials again if the target refuses; a proxy, which has accepted
    the source's connection already, does it in its place."""


@runtime_checkable
class Links(Protocol):
    """The ability to lead each link between nodes over an address of its own, for a proxy."""

    def links(self) -> tuple[LinkEnd, ...]:
        """Return every link that nodes and clients dial; known before the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStart:
    """All that it takes to start a node of this machine once more, as it was."""

    node: NodeName
    directory: Path
    """Its directory, absolute: its process is started there."""
    command: tuple[str, ...]
    files: tuple[str, ...]
    """The files of its configuration, by their names in the directory."""
    ports: tuple[int, ...]
    """All ports on which it listens for others."""
    found_at: Mapping[LinkProtocol, str]
    """Where users of these protocols find it: `host:port`."""


@runtime_checkable
class TellsStarts(Protocol):
    """The ability to say how its nodes are started, for whoever starts them once more."""

    def starts(self) -> tuple[NodeStart, ...]:
        """Return the starts of the nodes that are meant to run now, in their order."""


@runtime_checkable
class DisturbsPackets(Protocol):
    """The ability to do things to the packets of its nodes, if each has a network of its own."""

    def why_no_packets(self) -> str | None:
        """Return why it cannot be done where the nodes run, with the way out; None if it can."""

    def drop_packets(self, name: str, flows: Collection[tuple[NodeName, NodeName]]) -> None:
        """Drop what is sent from the first to the second of each, until `pass_packets`."""

    def pass_packets(self, name: str) -> int:
        """Stop dropping packets for that name; return the number dropped."""

    def reaches(self, source: NodeName, target: NodeName, *, timeout_s: float) -> bool:
        """Check whether a request on the way that the source takes gets its answer.

        The source is a node or "clients"; one without a network at the moment reaches no target.
        """

    def answers(self, node: NodeName, *, timeout_s: float) -> bool:
        """Check whether a request from this machine, on no link, gets its answer."""

    def limit_bandwidth(self, node: NodeName, *, bits_per_s: int) -> float:
        """Bound what the node sends; returns the rate that was measured then, in bits a second."""

    def free_bandwidth(self, node: NodeName) -> None:
        """Bound it no more."""


@runtime_checkable
class Explains(Protocol):
    """The ability to say why a node died."""

    def obituary(self, node: NodeName) -> str:
        """Return how the process of a node that is down ended, and its last words, in one line."""


@runtime_checkable
class KeepsFiles(Protocol):
    """The ability to show the files of a node's data."""

    def data_of(self, node: NodeName) -> Path:
        """Return a directory of this machine with the present content of the node's data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUsage:
    """The resources that a node's process uses at this moment."""

    rss_bytes: int
    cpu_s: float
    """CPU time since its start, user and system, all threads."""


@runtime_checkable
class Measures(Protocol):
    """The ability to say what a node's process uses."""

    def usage(self, node: NodeName) -> NodeUsage | None:
        """The usage now, or None if it has no process."""
