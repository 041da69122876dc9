"""The ensemble as nodes can tell it: who leads, and what of one log is committed.

This specifies ZooKeeper's promises, and no way to keep them: servers ask each other nothing. What
each has on its disk, and who runs and reaches whom, is looked at where it lies.

- *Contact*: two servers run, and neither flow between them is blocked.
- *Election*: of a majority of servers without a leader, the one whose disk has the highest zxid
  leads. Its log becomes that of a new epoch, and what else was logged is not.
- *Log*: what a leader logs is at once on its own disk and on those of the followers in contact. The
  others have it once they are in contact again.
- *Commitment*: what a majority in contact has is durable there, and committed.

Since an elected majority has a member of every other majority, what is committed stays, unless
disks were lost. What was logged and not committed stays or goes with the disk of the next leader.

Source: the promises of Zab (Junqueira, Reed and Serafini, 2011).
"""

from collections.abc import Mapping
from enum import StrEnum
from itertools import islice
from typing import Final

from fencepost.clusters.simulation.host import ProcessState, SimulatedHost
from fencepost.clusters.simulation.network import SimulatedNetwork
from fencepost.clusters.simulation.zookeeper.entries import LOG, LogEntry

EPOCH: Final = "currentEpoch"
"""The file with the last epoch that a server knows of."""


class Mode(StrEnum):
    """The part of a server in the ensemble."""

    STARTING = "starting"
    """It does not know yet what is on its disk."""
    LOOKING = "looking"
    FOLLOWING = "following"
    LEADING = "leading"


class ServerStanding:
    """The part of one incarnation of a server, as the others can see it."""

    __slots__ = ("epoch", "mode")

    def __init__(self) -> None:
        self.mode = Mode.STARTING
        self.epoch: Epoch | None = None
        """The epoch in which it leads or follows."""


class Epoch:
    """The time of one leader. `elected`: the incarnation that was elected."""

    __slots__ = ("base", "committed", "elected", "held", "leader", "log", "number", "touched")

    def __init__(
        self, number: int, leader: int, *, elected: ServerStanding, log: list[LogEntry]
    ) -> None:
        self.number = number
        self.leader = leader
        self.elected = elected
        self.log = log
        self.base = 0
        """The entries that are committed before anyone serves; 0: it has not begun to lead."""
        self.committed = 0
        self.held = {leader: len(log)}
        """The entries that the leader, and each server that ever followed it, has."""
        self.touched: dict[int, None] = {}
        """The sessions that followers heard of since the leader looked last."""

    @property
    def zxid(self) -> int:
        """The zxid of the last entry."""
        return self.log[-1].zxid if self.log else 0


class EnsembleConsensus:
    """The state that all servers of an ensemble share. `hosts`: the servers' hosts by number."""

    def __init__(self, hosts: Mapping[int, SimulatedHost], network: SimulatedNetwork) -> None:
        self._hosts = hosts
        self._network = network
        self._latest: Epoch | None = None
        self.standings: dict[int, ServerStanding] = {}

    @property
    def majority(self) -> int:
        """The number of servers that decide."""
        return len(self._hosts) // 2 + 1

    def in_contact(self, one: int, other: int) -> bool:
        """Return whether both run and reach each other, or are the same."""
        hosts, is_blocked = self._hosts, self._network.is_blocked
        if one == other:
            return True
        return (
            hosts[one].state is ProcessState.RUNNING
            and hosts[other].state is ProcessState.RUNNING
            and not is_blocked((one, other))
            and not is_blocked((other, one))
        )

    def is_in(self, epoch: Epoch, number: int) -> bool:
        """Return whether a server and its leader are in this epoch, and in contact."""
        leader, standings = epoch.leader, self.standings
        return (
            standings[number].epoch is epoch
            and standings[leader].epoch is epoch
            and self.in_contact(leader, number)
        )

    def epoch_for(self, number: int) -> Epoch | None:
        """Return the epoch that a server may lead or follow from now on; None if it has to wait."""
        found = self._latest
        if found is None or found.elected is not self.standings[found.leader]:
            return None
        has_ended = found.base > 0 and found.elected.epoch is not found
        return None if has_ended or not self.in_contact(found.leader, number) else found

    def elect(self, number: int) -> Epoch | None:
        """Elect a leader among the servers without one that this one reaches, itself included.

        None: they are no majority, or the best of them reaches none.
        """
        electors = self._electors(number)
        if len(electors) < self.majority:
            return None
        best = max(electors, key=lambda one: (self._zxid(one), one))
        if len(self._electors(best)) < self.majority:
            return None
        epoch = 1 + max(self._hosts[one].disk.files.get(EPOCH, 0) for one in electors)
        for one in electors:
            self._write_epoch(one, epoch)
        log = list(self._hosts[best].disk.batches(LOG))
        self._latest = Epoch(epoch, best, elected=self.standings[best], log=log)
        return self._latest

    def join(self, epoch: Epoch, number: int) -> int:
        """Give a server the log of an epoch; return how much of its own was the same."""
        disk = self._hosts[number].disk
        own = disk.batches(LOG)
        same = min(len(own), len(epoch.log))
        # The very entry, since where a majority lost its disks its zxids are given once more.
        while same and own[same - 1] is not epoch.log[same - 1]:
            same -= 1
        if same < len(own):
            disk.truncate(LOG, same)
        epoch.held[number] = same
        self.replicate(epoch, number)
        self._write_epoch(number, epoch.number)
        disk.synced(disk.mark((LOG,)))
        return same

    def replicate(self, epoch: Epoch, number: int) -> None:
        """Put on the disk of a server what it lacks of the log of its epoch."""
        held, log = epoch.held[number], epoch.log
        if held < len(log):
            disk = self._hosts[number].disk
            for entry in islice(log, held, None):
                disk.append(LOG, entry)
            epoch.held[number] = len(log)

    def commit(self, epoch: Epoch, count: int) -> bool:
        """Commit so much of the log if a majority in contact has it; return whether it has."""
        holders = [
            one for one, held in epoch.held.items() if held >= count and self.is_in(epoch, one)
        ]
        if len(holders) < self.majority:
            return False
        for one in holders:
            disk = self._hosts[one].disk
            disk.synced(disk.mark((LOG,)))
        epoch.committed = count
        return True

    def _electors(self, number: int) -> list[int]:
        return [
            one
            for one, standing in self.standings.items()
            if standing.mode is Mode.LOOKING and self.in_contact(number, one)
        ]

    def _zxid(self, number: int) -> int:
        log = self._hosts[number].disk.batches(LOG)
        return int(log[-1].zxid) if log else 0

    def _write_epoch(self, number: int, epoch: int) -> None:
        disk = self._hosts[number].disk
        disk.write(EPOCH, epoch)
        disk.synced(disk.mark((EPOCH,)))
