"""A cluster whose nodes are processes, each in a place of its own: what all such clusters can do.

Each node lives in `directory/<node>/`: its configuration, `disk/data/`, `snapshots/`, and
`server.log`, to which every start appends. A subclass says what the nodes run, how they are
configured and what they say to each other.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, assert_never

from fencepost.clusters.abilities import LinkEnd, NodeStart, NodeUsage
from fencepost.clusters.hosts.place import DATA, Host, Site
from fencepost.clusters.hosts.ports import ReservedPorts
from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.clusters.port import (
    CLIENTS,
    ClusterSpec,
    Disks,
    DiskTrouble,
    NodeName,
    NodeRoles,
    NodeState,
)
from fencepost.clusters.processes.disks import FollowedDisks, ImageDisks, NodeDisks
from fencepost.clusters.processes.hardships import Hardships, HeldBack
from fencepost.clusters.processes.networks import IsAnswered, NodeNetworks
from fencepost.clusters.processes.node import ProcessNode
from fencepost.history.failure import HarnessError

_STOP_TIMEOUT_S: Final = 10.0


class ProcessCluster(HeldBack, ABC):
    """`clusters.port.Cluster` with all the abilities that processes on a host give it.

    Calls for different nodes may come from different threads; calls for one node may not.
    `nodes`: by role, in the order in which roles are started. `ports`: closed when the cluster is
    stopped.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        *,
        site: Site,
        nodes: Mapping[NodeName, ProcessNode],
        ports: ReservedPorts,
        is_answered: IsAnswered,
    ) -> None:
        self._means = spec
        self._clock = site.clock
        self._route = site.route
        self._ports = ports
        self._nodes = dict(nodes)
        self.is_answered: Final = is_answered
        """Probes the way to a node."""
        places = {name: node.place for name, node in nodes.items()}
        self._networks = NodeNetworks(places, route=site.route, is_answered=is_answered)
        self._disks = _disks_of(spec, self._nodes, host=site.host)
        ledger, now_ns = site.host.ledger, site.clock.now_ns
        self._hardships = Hardships(self._nodes, ledger=ledger, now_ns=now_ns)

    @property
    @abstractmethod
    def versions(self) -> Mapping[str, str]:
        """Return the versions under test."""

    @abstractmethod
    def links(self) -> tuple[LinkEnd, ...]:
        """Return every link that nodes and clients dial; none to itself."""

    @abstractmethod
    def _first_members(self) -> tuple[NodeName, ...]:
        """The nodes that are started with the cluster; the others are spare."""

    @abstractmethod
    def _configure(self, node: ProcessNode) -> None:
        """Write what the node has to know of itself and of the others. A start reads it anew."""

    @abstractmethod
    def _await_role(self, role: str, members: Sequence[NodeName]) -> None:
        """Return when these, which were just started, can be used: by the next role, by clients."""

    @abstractmethod
    def _address(self, node: NodeName) -> tuple[str, int]:
        """Return the address at which the harness finds a node: always the direct one."""

    def _address_as(self, node: NodeName, role: str) -> tuple[str, int]:  # noqa: ARG002 -- for subclasses
        """Return the address at which the harness finds a node in one of its roles."""
        return self._address(node)

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """Return all nodes by role, in the order of starting, and by number."""
        return tuple(self._nodes)

    @property
    def node_roles(self) -> NodeRoles:
        """The roles of the nodes."""
        return self._means.node_roles

    def start(self) -> None:
        """Format all nodes, start all but spare ones, role by role; return when it can be used.

        Raises HarnessError with the node, its last words and its log if one dies, or with what is
        missing if they are not there after two minutes.
        """
        if self._disks is not None:
            self._disks.make()
        self._hardships.prepare(self._means)
        for node in self._nodes.values():
            self._configure(node)
            node.format()
            self._sync_disk(node.name)
        first = self._first_members()
        for role in self._roles():
            members = self.node_roles.among(first, role)
            for name in members:
                if self.pid_of(name) is None:  # else it was started for its other role
                    self._nodes[name].start()
            self._await_role(role, members)

    def stop(self) -> None:
        """Stop every node, the roles started last first: they take their leave from the others."""
        try:
            for role in reversed(self._roles()):
                self._stop_all(role)
        finally:
            self._ports.close()

    def pid_of(self, node: NodeName) -> int | None:
        """The pid of the node's latest start; None if it was never started."""
        return self._nodes[node].process.pid

    def starts(self) -> tuple[NodeStart, ...]:
        """Return the starts of the nodes that the harness has not ended, in their order."""
        wanted = [node for node in self._nodes.values() if node.wanted]
        return tuple(_start_of(node, self.links()) for node in wanted)

    def data_of(self, node: NodeName) -> Path:
        """Return a directory of this machine with the present content of the node's data."""
        return self._nodes[node].place.fetch(DATA)

    def state(self, node: NodeName) -> NodeState:
        """Return the state of the node's process now, as the host reports it."""
        return self._nodes[node].process.state()

    def usage(self, node: NodeName) -> NodeUsage | None:
        """Return what the node's process uses now; None if the node has no process."""
        return self._nodes[node].process.usage()

    def logs(self, node: NodeName) -> tuple[Path, ...]:
        """The node's log files, there whatever happened to it."""
        return self._nodes[node].logs()

    def obituary(self, node: NodeName) -> str:
        """Return how the process of a node that is down ended, its last errors, and its log."""
        return self._nodes[node].obituary()

    def start_node(self, node: NodeName) -> None:
        """Start a node that is down, on the disk that it has; joining the cluster takes longer."""
        self._nodes[node].start()
        self._networks.renew(node)

    def stop_node(self, node: NodeName, *, timeout_s: float = 30.0) -> bool:
        """Send SIGTERM and wait; kill it after `timeout_s`. True if it ended on SIGTERM."""
        self._let_disk_go(node)
        return self._nodes[node].stop(timeout_s=timeout_s)

    def kill_node(self, node: NodeName) -> None:
        """Send SIGKILL, also to a paused node; return when the process is gone."""
        self._let_disk_go(node)
        self._nodes[node].kill()

    def pause_node(self, node: NodeName) -> None:
        """Send SIGSTOP; return when every thread is stopped."""
        self._nodes[node].process.pause()

    def resume_node(self, node: NodeName) -> None:
        """Send SIGCONT; return when it runs."""
        self._nodes[node].process.resume()

    def wipe_node(self, node: NodeName, *, keep_directory_id: bool = False) -> None:
        """Delete all data of a node that is down, and format it anew with its old node id.

        `keep_directory_id`: as if only the data were lost. A new directory id (KIP-858, since 3.7)
        alone changes the registration, which some bugs do not survive.
        """
        self._nodes[node].wipe(keep_directory_id=keep_directory_id)
        self._sync_disk(node)

    def snapshot_node(self, node: NodeName, name: str) -> None:
        """Copy the node's data under `name`, replacing an older copy.

        A running node is paused for the time of the copy, so that it is of one point in time.
        """
        self._nodes[node].snapshot(name)

    def rollback_node(self, node: NodeName, name: str) -> None:
        """Replace the data of a node that is down by the copy `name`."""
        self._nodes[node].rollback(name)
        self._sync_disk(node)

    def cut_power(self, nodes: Sequence[NodeName], *, torn_seed: int | None = None) -> str:
        """End the nodes at once, all together, and lose what their disks had not synced."""
        return self._own_disks().cut_power(nodes, torn_seed=torn_seed)

    def trouble_disk(self, node: NodeName, trouble: DiskTrouble, *, stall_s: float) -> str:
        """Let this happen to the node's disk; what shows that it has, in words."""
        return self._own_disks().bring_trouble(node, trouble, stall_s=stall_s)

    def mend_disk(self, node: NodeName) -> None:
        """End the trouble of the node's disk, and start the node if it died of it."""
        self._own_disks().mend(node)

    def why_no_packets(self) -> str | None:
        """Return why nothing can be done to packets where the nodes run; None if it can."""
        return self._networks.refusal()

    def drop_packets(self, name: str, flows: Collection[tuple[NodeName, NodeName]]) -> None:
        """Drop what is sent from the first to the second of each, until `pass_packets`."""
        self._networks.drop_packets(name, flows)

    def pass_packets(self, name: str) -> int:
        """Stop dropping packets for that name; return the number dropped."""
        return self._networks.pass_packets(name)

    def reaches(self, source: NodeName, target: NodeName, *, timeout_s: float) -> bool:
        """Check whether a request on the way that the source takes gets its answer."""
        link = next(one for one in self.links() if (one.source, one.target) == (source, target))
        return self._networks.reaches(link, timeout_s=timeout_s)

    def limit_bandwidth(self, node: NodeName, *, bits_per_s: int) -> float:
        """Bound what the node sends; the rate that was measured then, in bits a second."""
        return self._networks.limit_bandwidth(node, bits_per_s=bits_per_s)

    def free_bandwidth(self, node: NodeName) -> None:
        """Bound it no more."""
        self._networks.free_bandwidth(node)

    def answers(self, node: NodeName, *, timeout_s: float) -> bool:
        """Check whether a request from this machine, on no link, gets its answer."""
        return self.is_answered(node, self._address(node), timeout_s=timeout_s)

    def _roles(self) -> tuple[str, ...]:
        return self.node_roles.names(self._nodes)

    def _stop_all(self, role: str) -> None:
        """Ask all at once; kill those that do not go in time, or cannot hear."""
        for name in self._names(role):
            self._let_disk_go(name)
            if self.state(name) is NodeState.PAUSED:
                self.kill_node(name)
            else:
                self._nodes[name].process.terminate()
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        for name in self._names(role):
            self.stop_node(name, timeout_s=max(0.0, deadline - time.monotonic()))

    def _own_disks(self) -> NodeDisks:
        if self._disks is None:
            raise HarnessError("the nodes share a disk; set `disks: image` or `disks: followed`")
        return self._disks

    def _sync_disk(self, node: NodeName) -> None:
        """A power cut is to tell of what a node does, not of how we set it up."""
        if self._disks is not None:
            self._disks.sync(node)

    def _let_disk_go(self, node: NodeName) -> None:
        if self._disks is not None:
            self._disks.let_go(node)

    def _names(self, role: str) -> tuple[NodeName, ...]:
        return self.node_roles.among(self._nodes, role)

    def _running(self, role: str) -> dict[NodeName, tuple[str, int]]:
        return {
            name: self._address_as(name, role)
            for name in self._names(role)
            if self.state(name) is NodeState.RUNNING
        }


def _start_of(node: ProcessNode, links: Sequence[LinkEnd]) -> NodeStart:
    ends = [link for link in links if link.target == node.name]
    return NodeStart(
        node=node.name,
        directory=node.place.directory,
        command=tuple(node.software.command(node.place.directory)),
        files=tuple(node.files),
        ports=tuple(dict.fromkeys(link.port for link in ends)),
        found_at={
            link.protocol: f"{link.address}:{link.port}"
            for link in ends
            if link.source == CLIENTS or link.protocol is LinkProtocol.ZOOKEEPER_CLIENT
        },
    )


def _disks_of(
    spec: ClusterSpec, nodes: Mapping[NodeName, ProcessNode], *, host: Host
) -> NodeDisks | None:
    match spec.disks:
        case Disks.IMAGE:
            return ImageDisks(nodes, host=host)
        case Disks.FOLLOWED:
            return FollowedDisks(nodes)
        case Disks.SHARED:
            return None
        case _:
            assert_never(spec.disks)
