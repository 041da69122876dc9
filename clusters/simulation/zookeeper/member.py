"""A server as a member of the ensemble: looking for a leader, following one, or leading.

A server without a leader looks for one now and then, and has one elected after a time of its own
draw. A leader that is in contact with no majority for the time of its patience resigns; a
follower that is not in contact with its leader leaves it. Both serve nobody then. Until they
notice, they serve what they have, and nothing is committed there.

A lone server elects itself, and so begins an epoch with each start.
"""

from random import Random
from typing import Final, Protocol

from fencepost.clusters.node_port.alarm import NEVER_NS, Alarm
from fencepost.clusters.node_port.effects import SEND, SYNC, Effects
from fencepost.clusters.simulation.zookeeper.entries import (
    COUNTER_BITS,
    LOG,
    BeginEpoch,
    Change,
    LogEntry,
)
from fencepost.clusters.simulation.zookeeper.frames import Commit
from fencepost.clusters.simulation.zookeeper.quorum import (
    EnsembleConsensus,
    Epoch,
    Mode,
    ServerStanding,
)
from fencepost.clusters.simulation.zookeeper.timing import Timing

_MS: Final = 1_000_000


class Applying(Protocol):
    """The server around a member, which is called while an event is handled."""

    def applied(self, now: int, entry: LogEntry, effects: Effects) -> None:
        """The next committed entry."""

    def reset(self) -> None:
        """Discard what was applied: the log begins differently now, and is applied anew."""

    def served(self, now: int) -> None:
        """From here on it serves clients."""

    def beaten(self, now: int, epoch: Epoch) -> None:
        """It is in contact with its leader, or with its majority."""

    def left(self, effects: Effects) -> None:
        """Stop serving: the server has lost its leader."""


class Member:
    """The part of the server `number` in its ensemble; new with each incarnation."""

    def __init__(
        self,
        number: int,
        quorum: EnsembleConsensus,
        *,
        timing: Timing,
        alarm: Alarm,
        server: Applying,
    ) -> None:
        self.number = number
        self.is_serving = False
        self.applied = 0
        """The number of entries that are applied."""
        self._standing = quorum.standings[number] = ServerStanding()
        self._quorum = quorum
        self._timing = timing
        self._alarm = alarm
        self._server = server
        self._random = Random(0)  # noqa: S311  # seeded anew at the start
        self._stands_ns = 0
        """The time after which it has a leader elected."""
        self._due_ns = 0
        """The time of its next look at the others."""
        self._heard: dict[int, int] = {}
        """The time at which each server was in contact last: a leader's followers, or a leader."""
        self._synced = 0
        """The number of entries that are durable at a leader."""
        self._is_syncing = False

    @property
    def mode(self) -> Mode:
        """Its part in the ensemble."""
        return self._standing.mode

    @property
    def epoch(self) -> Epoch:
        """The epoch in which it leads or follows."""
        assert self._standing.epoch is not None, self.mode
        return self._standing.epoch

    def start(self, now: int, incarnation_id: int) -> None:
        """Begin, with what is on the disk."""
        self._random = Random(incarnation_id)  # noqa: S311  # to be repeated
        self._look(now)
        if self._quorum.majority == 1:
            self._stands_ns = self._due_ns = now

    def tick(self, now: int, effects: Effects) -> None:
        """Do what is due."""
        if now >= self._due_ns:
            if self.mode is Mode.LOOKING:
                self._search(now, effects)
            elif self.mode is Mode.LEADING:
                self._beat(now, effects)
            else:
                self._listen(now, effects)
        self._alarm.by(self._due_ns)

    def propose(
        self,
        now: int,
        session: int,
        change: Change,
        effects: Effects,
        *,
        server: int = 0,
        connection: int = 0,
        xid: int = 0,
    ) -> None:
        """A leader's: put an entry at the end of the log."""
        log, zxid, time_ms = self.epoch.log, self.epoch.zxid + 1, now // _MS
        if isinstance(change, BeginEpoch):
            zxid = self.epoch.number << COUNTER_BITS
        log.append(LogEntry(len(log), zxid, time_ms, session, change, server, connection, xid))
        self._replicate()
        self._sync(effects)

    def synced(self, now: int, token: tuple[int, int], effects: Effects) -> None:
        """Take what was logged before the sync for durable."""
        epoch, count = token
        self._is_syncing = False
        if self.mode is Mode.LEADING:
            if self.epoch.number == epoch:
                self._synced = count
            if self._synced < len(self.epoch.log):
                self._sync(effects)
            self._commit(now, effects)

    def told(self, now: int, commit: Commit, effects: Effects) -> None:
        """A leader says what is committed."""
        if self.mode is Mode.FOLLOWING and self.epoch.number == commit.epoch:
            self._quorum.replicate(self.epoch, self.number)
            self._apply(now, commit.count, effects)

    # Without a leader.

    def _look(self, now: int) -> None:
        self._standing.mode, self._standing.epoch = Mode.LOOKING, None
        self.is_serving = False
        self._stands_ns = now + int((0.5 + self._random.random()) * self._timing.tick_ns)
        self._due_ns = min(self._stands_ns, now + self._timing.look_ns)
        self._alarm.by(self._due_ns)

    def _search(self, now: int, effects: Effects) -> None:
        quorum = self._quorum
        epoch = quorum.epoch_for(self.number)
        if epoch is None and now >= self._stands_ns:
            self._look(now)
            epoch = quorum.elect(self.number)
        self._due_ns = now + self._timing.look_ns
        if epoch is None:
            self._due_ns = min(self._due_ns, max(self._stands_ns, now + 1))
        elif epoch.leader == self.number:
            self._lead(now, epoch, effects)
        elif epoch.base:
            self._follow(now, epoch, effects)

    def _leave(self, now: int, effects: Effects) -> None:
        self._look(now)
        self._server.left(effects)

    # The leader.

    def _lead(self, now: int, epoch: Epoch, effects: Effects) -> None:
        self._standing.mode, self._standing.epoch = Mode.LEADING, epoch
        self._synced, self._heard = 0, {}
        self.propose(now, 0, BeginEpoch(), effects)
        epoch.base = len(epoch.log)
        self._due_ns = NEVER_NS if self._quorum.majority == 1 else now + self._timing.heartbeat_ns
        self._heard = dict.fromkeys(self._quorum.standings, now)

    def _beat(self, now: int, effects: Effects) -> None:
        """Look who follows, and go on with what they lacked."""
        epoch, patience_ns = self.epoch, self._timing.patience_ns
        for one in self._heard:
            if self._quorum.is_in(epoch, one) and one != self.number:
                self._heard[one] = now
        self._heard[self.number] = now
        if sum(now - at < patience_ns for at in self._heard.values()) < self._quorum.majority:
            self._leave(now, effects)
            return
        self._due_ns = now + self._timing.heartbeat_ns
        self._replicate()
        self._commit(now, effects)
        self._server.beaten(now, epoch)

    def _replicate(self) -> None:
        epoch = self.epoch
        for one in epoch.held:
            if self._quorum.is_in(epoch, one):
                self._quorum.replicate(epoch, one)

    def _sync(self, effects: Effects) -> None:
        """Have all that was logged made durable, one sync after the other."""
        if not self._is_syncing:
            self._is_syncing = True
            effects.append((SYNC, (LOG,), (self.epoch.number, len(self.epoch.log))))

    def _commit(self, now: int, effects: Effects) -> None:
        epoch, count = self.epoch, self._synced
        if count <= epoch.committed or not self._quorum.commit(epoch, count):
            return
        commit = Commit(-1, epoch.number, count)
        for one in epoch.held:
            if one != self.number and self._quorum.standings[one].epoch is epoch:
                effects.append((SEND, one, commit))
        self._apply(now, count, effects)

    # The follower.

    def _follow(self, now: int, epoch: Epoch, effects: Effects) -> None:
        if self._quorum.join(epoch, self.number) < self.applied:
            self.applied = 0
            self._server.reset()
        self._standing.mode, self._standing.epoch = Mode.FOLLOWING, epoch
        self._heard = {epoch.leader: now}
        self._due_ns = now + self._timing.heartbeat_ns
        self._apply(now, epoch.committed, effects)

    def _listen(self, now: int, effects: Effects) -> None:
        """Look whether its leader is still there."""
        epoch = self.epoch
        if now - self._heard[epoch.leader] >= self._timing.patience_ns:
            self._leave(now, effects)
            return
        self._due_ns = now + self._timing.heartbeat_ns
        if self._quorum.is_in(epoch, self.number):
            self._heard[epoch.leader] = now
            self._server.beaten(now, epoch)

    # Both.

    def _apply(self, now: int, count: int, effects: Effects) -> None:
        epoch = self.epoch
        while self.applied < count:
            self.applied += 1
            self._server.applied(now, epoch.log[self.applied - 1], effects)
        if not self.is_serving and epoch.base and self.applied >= epoch.base:
            self.is_serving = True
            self._server.served(now)
