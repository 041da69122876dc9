"""Disks that lose power without being any: what the nodes had not synced is undone.

A node's data lie in its directory as ever; a library that its processes preload notes what they
sync (`clusters.hosts.power`). Nothing else that happens to disks can happen to these.
"""

import time
from collections.abc import Mapping, Sequence

from clusters.hosts.place import DATA
from clusters.hosts.power.follower import DirectoryFollower
from clusters.hosts.preloading import preloading
from clusters.port import DiskTrouble, NodeName, NodeState
from clusters.processes.node import ProcessNode
from history.failure import HarnessError

__all__ = ["FollowedDisks"]


class FollowedDisks:
    """`clusters.processes.disks.NodeDisks` wherever a process can preload a library."""

    def __init__(self, nodes: Mapping[NodeName, ProcessNode]) -> None:
        self._nodes = nodes
        self._followers = {
            name: DirectoryFollower(node.place, followed=DATA.partition("/")[0])
            for name, node in nodes.items()
        }

    def make(self) -> None:
        """Let every start be followed."""
        for name, node in self._nodes.items():
            node.env = preloading(node.env, self._followers[name].prepare())

    def sync(self, node: NodeName) -> None:
        """Take what is on the node's disk for durable; the node is down."""
        self._followers[node].settle()

    def let_go(self, node: NodeName) -> None:
        """Do nothing: no process waits for such a disk."""

    def cut_power(self, names: Sequence[NodeName], *, torn_seed: int | None) -> str:
        """Cut the power as `LosesPower` has it: all stand still, all end, unsynced writes go."""
        nodes = [self._nodes[name] for name in names]
        begin_s = time.monotonic()
        for node in nodes:
            if node.process.state() is NodeState.RUNNING:
                node.process.pause()
        took_ms = (time.monotonic() - begin_s) * 1000
        before = [self._nodes[name].holdings() for name in names]
        for node in nodes:
            node.kill()
        lost = []
        for name, held in zip(names, before, strict=True):
            seed = None if torn_seed is None else f"{torn_seed}/{name}"
            torn = self._followers[name].lose_power(seed=seed)
            words = f", {torn}" if torn else ""
            lost.append(f"{name}: {held.loss(self._nodes[name].holdings())}{words}")
        together = f"; {len(names)} nodes within {took_ms:.1f} ms" if len(names) > 1 else ""
        return f"{'; '.join(lost)} (by what they had synced, which was followed{together})"

    def bring_trouble(self, node: NodeName, trouble: DiskTrouble, *, stall_s: float) -> str:  # noqa: ARG002 -- the port's
        """Raise HarnessError: it is not possible."""
        raise HarnessError(f"{node} cannot have a disk that is {trouble}: that takes disks: image")

    def mend(self, name: NodeName) -> None:
        """Do nothing: there is nothing to mend."""
