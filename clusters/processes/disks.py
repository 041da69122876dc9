"""Disks of their own under the nodes of a cluster: made with it, cut from power, troubled, mended.

A node's disk is mounted at `<node>/disk`, where its data lie; its image is `<node>/disk.img`. Logs
and configuration stay outside, so that they survive whatever happens to it. Where there can be
none, what the nodes sync is followed.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from fencepost.clusters.hosts.disks.image import ImageDisk, missing, tear
from fencepost.clusters.hosts.disks.troubles import TroubledDisk
from fencepost.clusters.hosts.place import DATA, Host
from fencepost.clusters.hosts.power.follower import DirectoryFollower
from fencepost.clusters.hosts.preloading import preloading
from fencepost.clusters.port import DiskTrouble, NodeName, NodeState
from fencepost.clusters.processes.node import ProcessNode
from fencepost.history.failure import HarnessError, UsageError

_IMAGE: Final = "disk.img"
_MOUNT_POINT: Final = "disk"


class NodeDisks(Protocol):
    """The disks of the nodes of a cluster, whatever they are made of."""

    def make(self) -> None:
        """Make them all, empty, before the nodes' first data are put there."""

    def sync(self, node: NodeName) -> None:
        """Make durable what is on the node's disk. The node is down."""

    def let_go(self, node: NodeName) -> None:
        """Let who waits for the disk go on: a process that does cannot be ended."""

    def cut_power(self, names: Sequence[NodeName], *, torn_seed: int | None) -> str:
        """See `clusters.abilities.LosesPower`."""

    def bring_trouble(self, node: NodeName, trouble: DiskTrouble, *, stall_s: float) -> str:
        """See `clusters.abilities.TroublesDisks`."""

    def mend(self, name: NodeName) -> None:
        """See `clusters.abilities.TroublesDisks`."""


class ImageDisks:
    """`NodeDisks` on images. Raises UsageError if this machine or this host can have none."""

    def __init__(self, nodes: Mapping[NodeName, ProcessNode], *, host: Host) -> None:
        if why := missing():
            raise UsageError(f"a disk of its own for each node is not possible here: {why}")
        self._nodes = nodes
        self._disks: dict[NodeName, ImageDisk] = {}
        for name, node in nodes.items():
            home = node.place.directory
            if host.ledger is None or node.place.fetch(_MOUNT_POINT) != home / _MOUNT_POINT:
                raise UsageError("only nodes on this machine can have disks of their own")
            image = home / _IMAGE
            self._disks[name] = ImageDisk(
                image, mount_point=home / _MOUNT_POINT, ledger=host.ledger
            )
        self._troubled = {name: TroubledDisk(disk) for name, disk in self._disks.items()}

    def make(self) -> None:
        """Make and mount them all, empty."""
        for disk in self._disks.values():
            disk.make()

    def sync(self, node: NodeName) -> None:
        """Make durable what is on the node's disk."""
        self._disks[node].sync()

    def let_go(self, node: NodeName) -> None:
        """Let who waits for the disk go on: a process that does cannot be ended."""
        self._troubled[node].let_go()

    def cut_power(self, names: Sequence[NodeName], *, torn_seed: int | None) -> str:
        """Cut the power as `LosesPower` has it: all stand still, all lose power, then all end."""
        nodes = [self._nodes[name] for name in names]
        for node in nodes:
            self.let_go(node.name)
            if node.process.state() is NodeState.RUNNING:
                # Else it would see I/O errors before it is gone, which is another fault.
                node.process.pause()
        before = [self._nodes[name].holdings() for name in names]
        torn = [self._tear(name, torn_seed) for name in names]
        begin_s = time.monotonic()
        for name in names:
            self._disks[name].lose_power()
        took_ms = (time.monotonic() - begin_s) * 1000
        for node in nodes:
            node.kill()
        for name in names:
            self._disks[name].renew()
            self._troubled[name].came_back()
        lost = [
            f"{name}: {held.loss(self._nodes[name].holdings())}{words}"
            for name, held, words in zip(names, before, torn, strict=True)
        ]
        together = f" ({len(names)} nodes within {took_ms:.1f} ms)" if len(names) > 1 else ""
        return "; ".join(lost) + together

    def bring_trouble(self, node: NodeName, trouble: DiskTrouble, *, stall_s: float) -> str:
        """See `clusters.abilities.TroublesDisks`."""
        return self._troubled[node].bring(trouble, stall_s=stall_s)

    def mend(self, name: NodeName) -> None:
        """See `clusters.abilities.TroublesDisks`."""
        node, troubled = self._nodes[name], self._troubled[name]
        was_wanted = node.wanted
        if troubled.in_the_way:
            node.kill()
        troubled.mend()
        if was_wanted and node.process.state() is NodeState.DOWN:
            node.start()

    def _tear(self, node: NodeName, seed: int | None) -> str:
        if seed is None:
            return ""
        # Each node's own, whichever others lose power with it.
        at = f"{seed}/{node}"
        try:
            return f", {tear(self._disks[node].mount_point, seed=at)}"
        except OSError as error:
            raise HarnessError(f"{node}: its logs could not be torn: {error}") from error


class FollowedDisks:
    """`NodeDisks` wherever a process can preload a library: what was not synced is undone.

    A node's data lie in its directory as ever; the library notes what its processes sync
    (`clusters.hosts.power`). Nothing but a loss of power can happen to these disks.
    """

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
        raise HarnessError(f"{node} cannot have a disk that is {trouble}; set `disks: image`")

    def mend(self, name: NodeName) -> None:
        """Do nothing: there is nothing to mend."""
