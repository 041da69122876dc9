"""The hardships of a cluster's nodes: clocks that are wrong, bounds that press.

A hardship is the node's, not its process's: whoever starts the node again starts it under it.
"""

from collections.abc import Callable, Mapping
from typing import Final

from fencepost.clusters.abilities import Skew
from fencepost.clusters.hosts.cgroups.node_group import NodeGroup, make_group
from fencepost.clusters.hosts.clocks.attach import jvm_clock, socket_left_by
from fencepost.clusters.hosts.clocks.node_clock import NodeClock
from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.place import LOG
from fencepost.clusters.hosts.preloading import preloading
from fencepost.clusters.hosts.undo import RemoveSocket
from fencepost.clusters.port import ClusterSpec, NodeName, NodeState
from fencepost.clusters.processes.node import ProcessNode
from fencepost.history.clock import ClockSkew
from fencepost.history.failure import HarnessError


class Hardships:
    """The hardships of a cluster's nodes. Different threads may call it for different nodes."""

    def __init__(
        self,
        nodes: Mapping[NodeName, ProcessNode],
        *,
        ledger: Ledger | None,
        now_ns: Callable[[], int],
    ) -> None:
        self._nodes: Final = nodes
        self._ledger: Final = ledger
        self._now_ns: Final = now_ns
        self._clocks: dict[NodeName, NodeClock] = {}
        self._asked: set[int] = set()

    def prepare(self, spec: ClusterSpec) -> None:
        """Let the next starts be as hardships need them. HarnessError if they cannot be."""
        if spec.own_clocks:
            self._prepare_clocks()
        if spec.own_groups:
            self._prepare_groups()

    def skew(self, name: NodeName, skew: Skew) -> str:
        """Put the node's clock wrong; what it then says itself."""
        pid = self._pid(name)
        if pid is None:
            raise HarnessError(f"{name} does not run, so its clock cannot be read")
        self._note_asking(pid)
        return self._clock(name).put_wrong(skew, lambda: jvm_clock(pid))

    def unskew(self, name: NodeName) -> str:
        """Put the node's clock right; what it then says itself, if it runs."""
        pid = self._pid(name)
        if pid is None:
            return self._clock(name).put_right(None)
        self._note_asking(pid)
        return self._clock(name).put_right(lambda: jvm_clock(pid))

    def clock_skews(self) -> tuple[ClockSkew, ...]:
        """Return all skews of clocks so far."""
        return tuple(skew for clock in self._clocks.values() for skew in clock.skews())

    def group(self, name: NodeName) -> NodeGroup:
        """The node's control groups."""
        group = self._nodes[name].group
        if group is None:
            raise HarnessError(f"{name} has no control group; set `own_groups: true`")
        return group

    def _prepare_clocks(self) -> None:
        for name, node in self._nodes.items():
            _require_shared_files(node, "its clock")
            clock = NodeClock(name, directory=node.place.directory, now_ns=self._now_ns)
            node.env = preloading(node.env, clock.prepare())
            self._clocks[name] = clock

    def _prepare_groups(self) -> None:
        if self._ledger is None:
            raise HarnessError(
                "there is no ledger, so a change of this machine could not be undone"
            )
        for name, node in self._nodes.items():
            _require_shared_files(node, "what it uses")
            node.group = make_group(name, ledger=self._ledger)

    def _note_asking(self, pid: int) -> None:
        """Remember the attach socket of a JVM: it must be deleted if the JVM is killed."""
        if pid in self._asked or self._ledger is None:
            return
        self._asked.add(pid)
        if (path := socket_left_by(pid)) is not None:
            self._ledger.note(RemoveSocket(path=str(path), pid=pid))

    def _clock(self, name: NodeName) -> NodeClock:
        if name not in self._clocks:
            raise HarnessError(f"{name} uses the machine's clock; set `own_clocks: true`")
        return self._clocks[name]

    def _pid(self, name: NodeName) -> int | None:
        process = self._nodes[name].process
        return process.pid if process.state() is NodeState.RUNNING else None


class HeldBack:
    """The hardships that a cluster can put on its nodes, whatever they run.

    `clusters.abilities.Throttles` and `Squeezes`.
    """

    _hardships: Hardships

    def throttle_node(self, node: NodeName, share: float) -> str:
        """Limit the node to this share of one core; return how it was seen to be held back."""
        return self._hardships.group(node).throttle(share)

    def unthrottle_node(self, node: NodeName) -> str:
        """Lift the limit on its processor time; return for how long it was held back."""
        return self._hardships.group(node).unthrottle()

    def squeeze_node(self, node: NodeName, room_bytes: int) -> str:
        """Leave it what it cannot give back, and this; return how it was seen to press."""
        return self._hardships.group(node).squeeze(room_bytes)

    def unsqueeze_node(self, node: NodeName) -> str:
        """Lift the limit on its memory; return how often it pressed."""
        return self._hardships.group(node).unsqueeze()


class WrongClocks:
    """The hardship that clusters of JVMs can put on their clocks: `clusters.abilities.Skews`."""

    _hardships: Hardships

    def skew_node(self, node: NodeName, skew: Skew) -> str:
        """Put its wall clock wrong, whatever it was before; returns what its JVM then says."""
        return self._hardships.skew(node, skew)

    def unskew_node(self, node: NodeName) -> str:
        """Put its wall clock right; returns what its JVM then says."""
        return self._hardships.unskew(node)

    def clock_skews(self) -> tuple[ClockSkew, ...]:
        """Return which wall clocks were wrong, when, and by how much at most."""
        return self._hardships.clock_skews()


def _require_shared_files(node: ProcessNode, what: str) -> None:
    """Require shared files: clocks and groups are files, and only this machine's are in reach."""
    if node.place.fetch(LOG) != node.place.directory / LOG:
        raise HarnessError(f"{node.name} runs on another machine, where {what} cannot be reached")
