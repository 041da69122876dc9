"""A server as a member of the ensemble: who leads, and which entries a majority has.

It promises what ZooKeeper's atomic broadcast does, by the shortest way: the rules of Raft, with the
zxid as term and index in one. A leader is elected for an epoch by a majority that it is not behind;
it begins with an entry of its own (BeginEpoch), and serves once a majority has its whole log up to
there. An entry is committed when a majority has it on disk, and one of the present epoch is.

Before a server stands for election it asks whether it would be elected, so that one that comes back
from a partition depose no leader. A leader that hears of no majority for the time of its patience
resigns, and so does a follower that hears nothing of its leader leave: both serve nobody then.

A lone server elects itself, and so begins an epoch with each start.

Source: the rules of elections and commitment are Raft's (Ongaro and Ousterhout, 2014, sections 5
and 9.6); the promises are those of Zab (Junqueira, Reed and Serafini, 2011).
"""

from enum import StrEnum
from random import Random
from typing import Any, Final

from clusters.node_port.alarm import NEVER_NS, Alarm
from clusters.node_port.effects import APPEND, SEND, SYNC, TRUNCATE, WRITE, Effects
from clusters.node_port.storage import Contents
from clusters.simulation.zookeeper.applying import Applying
from clusters.simulation.zookeeper.entries import COUNTER_BITS, LOG, BeginEpoch, Change, LogEntry
from clusters.simulation.zookeeper.following import LearnerHandler
from clusters.simulation.zookeeper.frames import Accept, Canvass, Propose, Vote
from clusters.simulation.zookeeper.timing import Timing

VOTE: Final = "vote"
"""The file with the epoch and the candidate that got this server's vote there, 0 for none."""
_MS: Final = 1_000_000


class PeerState(StrEnum):
    """The part of a server in the ensemble."""

    LOOKING = "looking"
    FOLLOWING = "following"
    LEADING = "leading"


class Peer:
    """A member. `others`: the numbers of the other servers."""

    def __init__(
        self,
        number: int,
        others: tuple[int, ...],
        *,
        timing: Timing,
        alarm: Alarm,
        server: Applying,
    ) -> None:
        self.number = number
        self.others = others
        self.state = PeerState.LOOKING
        self.leader = 0
        self.is_serving = False
        self.epoch = 0
        self.log: list[LogEntry] = []
        self.committed = 0
        """The number of entries that are committed and applied."""
        self.followers: dict[int, LearnerHandler] = {}
        """A leader's."""
        self._server = server
        self._timing = timing
        self._alarm = alarm
        self._majority = (len(others) + 1) // 2 + 1
        self._random = Random(0)  # noqa: S311  # seeded anew at the start
        self._voted_for = 0
        self._synced = 0
        """The number of entries that are durable here."""
        self._is_syncing = False
        self._truncated_count = 0
        self._due_ns = 0
        """The time when it stands for election, gives a sign of life, or is out of patience."""
        self._granted: set[int] | None = None
        """The votes that a candidate has; None: it does not stand yet, but asks whether to."""
        self._promised: set[int] = set()
        """The votes that it would get."""
        self._asks_votes = False
        """Once its vote for itself is durable."""
        self._grants_to = 0
        """The candidate to be told once the vote is durable."""
        self._base = 0
        """The entries that must be committed before a leader serves."""
        self._fits = 0
        """A follower's: the number of its entries that the leader has, too."""

    @property
    def zxid(self) -> int:
        """The zxid of the last entry in its log."""
        return self.log[-1].zxid if self.log else 0

    def start(self, now: int, contents: Contents, effects: Effects) -> None:
        """Begin with what is on the disk; it may not be durable yet."""
        self.log = list(contents.logs.get(LOG, ()))
        self.epoch, self._voted_for = contents.files.get(VOTE, (0, 0))
        self._random = Random(contents.incarnation_id)  # noqa: S311  # to be repeated
        self._look(now)
        if not self.others:
            self._due_ns = now
        self._sync(effects)

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
        assert self.state is PeerState.LEADING, self.state
        base, zxid, time_ms = len(self.log), self.zxid + 1, now // _MS
        entry = LogEntry(base, zxid, time_ms, session, change, server, connection, xid)
        self._append(entry, effects)
        self._broadcast(now, effects)

    def tick(self, now: int, effects: Effects) -> None:
        """Do what is due."""
        if now >= self._due_ns:
            if self.state is PeerState.LEADING:
                self._give_sign(now, effects)
            elif self.state is PeerState.FOLLOWING:
                self._leave(now, effects)
            else:
                self._canvass(now, effects)
        self._alarm.by(self._due_ns)

    def synced(self, now: int, token: Any, effects: Effects) -> None:
        """Take what was written before the sync for durable."""
        count, truncated_count, vote = token
        self._is_syncing = False
        if truncated_count == self._truncated_count:
            self._synced = max(self._synced, count)
        if self._synced < len(self.log) or vote != (self.epoch, self._voted_for):
            self._sync(effects)
        if self.state is PeerState.LEADING:
            self._commit_more(now, effects)
        elif self.state is PeerState.FOLLOWING:
            self._accept(effects)
        elif vote == (self.epoch, self._voted_for):
            self._vote(now, effects)

    # Elections.

    def canvassed(self, now: int, canvass: Canvass, effects: Effects) -> None:
        """Another server asks for a vote, or whether it would get it."""
        is_fit = canvass.zxid >= self.zxid
        if canvass.trial:
            if self.state is PeerState.LOOKING and is_fit and canvass.epoch > self.epoch:
                vote = Vote(-1, self.number, canvass.epoch, trial=True)
                effects.append((SEND, canvass.server, vote))
            return
        if canvass.epoch > self.epoch:
            self._join(now, canvass.epoch, effects)
        if (
            canvass.epoch == self.epoch
            and self.state is PeerState.LOOKING
            and is_fit
            and self._voted_for in (0, canvass.server)
        ):
            self._look(now)
            self._write_vote(canvass.server, effects)
            self._grants_to = canvass.server
            self._sync(effects)

    def voted(self, now: int, vote: Vote, effects: Effects) -> None:
        """Another server grants its vote, or would."""
        if self.state is not PeerState.LOOKING:
            return
        if vote.trial:
            if vote.epoch == self.epoch + 1 and self._granted is None:
                self._promised.add(vote.server)
                if len(self._promised) >= self._majority:
                    self._stand(effects)
        elif vote.epoch == self.epoch and self._granted is not None:
            self._granted.add(vote.server)
            if len(self._granted) >= self._majority:
                self._lead(now, effects)

    def _look(self, now: int) -> None:
        self.state, self.leader, self.is_serving = PeerState.LOOKING, 0, False
        self._granted, self._asks_votes, self._grants_to = None, False, 0
        self._promised = set()
        self._due_ns = now + int((0.5 + self._random.random()) * self._timing.tick_ns)
        self._alarm.by(self._due_ns)

    def _leave(self, now: int, effects: Effects) -> None:
        self._look(now)
        self._server.left(effects)

    def _join(self, now: int, epoch: int, effects: Effects) -> None:
        """Another server has a later epoch: whatever this one did in its own is over."""
        if self.state is not PeerState.LOOKING:
            self._leave(now, effects)
        self._granted = None
        self.epoch = epoch
        self._write_vote(0, effects)

    def _canvass(self, now: int, effects: Effects) -> None:
        self._look(now)
        self._promised = {self.number}
        self._ask_votes(self.epoch + 1, effects, trial=True)
        if len(self._promised) >= self._majority:
            self._stand(effects)

    def _stand(self, effects: Effects) -> None:
        self.epoch += 1
        self._write_vote(self.number, effects)
        self._granted, self._asks_votes = {self.number}, True
        self._sync(effects)

    def _ask_votes(self, epoch: int, effects: Effects, *, trial: bool) -> None:
        canvass = Canvass(-1, self.number, epoch, self.zxid, trial)
        effects.extend((SEND, other, canvass) for other in self.others)

    def _vote(self, now: int, effects: Effects) -> None:
        """Its vote is durable: others may know of it."""
        if self._asks_votes:
            self._asks_votes = False
            self._ask_votes(self.epoch, effects, trial=False)
            if self._granted is not None and len(self._granted) >= self._majority:
                self._lead(now, effects)
        elif self._grants_to:
            vote = Vote(-1, self.number, self.epoch, trial=False)
            effects.append((SEND, self._grants_to, vote))
            self._grants_to = 0

    def _write_vote(self, candidate: int, effects: Effects) -> None:
        self._voted_for = candidate
        effects.append((WRITE, VOTE, (self.epoch, candidate)))

    # The leader.

    def _lead(self, now: int, effects: Effects) -> None:
        self.state, self.leader = PeerState.LEADING, self.number
        self.followers = {other: LearnerHandler(now, len(self.log)) for other in self.others}
        zxid = self.epoch << COUNTER_BITS
        self._append(LogEntry(len(self.log), zxid, now // _MS, 0, BeginEpoch()), effects)
        self._base = len(self.log)
        self._give_sign(now, effects)

    def _give_sign(self, now: int, effects: Effects) -> None:
        """Tell all followers where it is, and again what they have not confirmed."""
        gone_count = sum(self._is_gone(now, one) for one in self.followers.values())
        if len(self.others) + 1 - gone_count < self._majority:
            self._leave(now, effects)
            return
        for follower in self.followers.values():
            follower.repeat()
        self._due_ns = now + self._timing.heartbeat_ns if self.others else NEVER_NS
        self._alarm.by(self._due_ns)
        self._broadcast(now, effects)

    def _broadcast(self, now: int, effects: Effects) -> None:
        for other in self.others:
            self.tell(now, other, effects)

    def tell(self, now: int, other: int, effects: Effects) -> None:
        """Send a follower what comes next, and where this leader is."""
        follower = self.followers[other]
        propose = follower.proposal(
            self.log,
            server=self.number,
            epoch=self.epoch,
            committed=self.committed,
            is_gone=self._is_gone(now, follower),
        )
        effects.append((SEND, other, propose))

    def _is_gone(self, now: int, follower: LearnerHandler) -> bool:
        return now - follower.heard_ns >= self._timing.patience_ns

    def accepted(self, now: int, accept: Accept, effects: Effects) -> bool:
        """A follower says what it has. False: this server is not its leader."""
        if accept.epoch > self.epoch:
            self._join(now, accept.epoch, effects)
        if self.state is not PeerState.LEADING or accept.epoch < self.epoch:
            return False
        follower = self.followers[accept.server]
        follower.heard_ns = now
        if follower.accepted(accept, len(self.log)):
            self._commit_more(now, effects)
        elif not accept.matched:
            self.tell(now, accept.server, effects)
        return True

    def _commit_more(self, now: int, effects: Effects) -> None:
        matched = (one.matched for one in self.followers.values())
        held = sorted((self._synced, *matched), reverse=True)
        position = held[self._majority - 1]
        if position > self.committed and self.log[position - 1].epoch == self.epoch:
            self._commit(now, position, effects)
            self._broadcast(now, effects)
        if not self.is_serving and self.committed >= self._base:
            self._serve(now)

    # The follower.

    def proposed(self, now: int, propose: Propose, effects: Effects) -> None:
        """A leader tells what its log is."""
        if propose.epoch < self.epoch:
            refusal = Accept(-1, self.number, self.epoch, 0, matched=False, touched=())
            effects.append((SEND, propose.server, refusal))
            return
        if propose.epoch > self.epoch:
            self._join(now, propose.epoch, effects)
        if self.state is PeerState.LOOKING:
            self.state, self.leader, self._fits = PeerState.FOLLOWING, propose.server, 0
        self._due_ns = now + self._timing.patience_ns
        self._alarm.by(self._due_ns)
        if not self._is_matched(propose):
            position = self.committed
            refusal = Accept(-1, self.number, self.epoch, position, matched=False, touched=())
            effects.append((SEND, propose.server, refusal))
            return
        is_news = self._take_in(propose, effects)
        self._commit(now, min(propose.committed, self._fits), effects)
        if not self.is_serving and self._is_current():
            self._serve(now)
        self._server.confirmed(now, propose, effects)
        if is_news:
            self._sync(effects)
        else:
            self._accept(effects)

    def _is_matched(self, propose: Propose) -> bool:
        start = propose.start
        if start == 0:
            return True
        return start <= len(self.log) and self.log[start - 1].zxid == propose.previous_zxid

    def _take_in(self, propose: Propose, effects: Effects) -> bool:
        """Make its log the leader's, as far as that was told. Whether anything was new."""
        is_news = False
        for position, entry in enumerate(propose.entries, propose.start):
            if position < len(self.log) and self.log[position].zxid != entry.zxid:
                self._truncate(position, effects)
            if position == len(self.log):
                self.log.append(entry)
                effects.append((APPEND, LOG, entry))
                is_news = True
        self._fits = max(self._fits, propose.start + len(propose.entries))
        return is_news

    def _truncate(self, position: int, effects: Effects) -> None:
        assert position >= self.committed, (position, self.committed)
        effects.append((TRUNCATE, LOG, position))
        del self.log[position:]
        self._synced = min(self._synced, position)
        self._truncated_count += 1

    def _accept(self, effects: Effects) -> None:
        position = min(self._fits, self._synced)
        touched = self._server.touched()
        accept = Accept(-1, self.number, self.epoch, position, matched=True, touched=touched)
        effects.append((SEND, self.leader, accept))

    def _is_current(self) -> bool:
        """Return whether it has applied all that was committed before the present epoch."""
        return self.committed > 0 and self.log[self.committed - 1].epoch == self.epoch

    # Both.

    def _commit(self, now: int, position: int, effects: Effects) -> None:
        for entry in self.log[self.committed : position]:
            self.committed += 1
            self._server.applied(now, entry, effects)

    def _serve(self, now: int) -> None:
        self.is_serving = True
        self._server.served(now)

    def _append(self, entry: LogEntry, effects: Effects) -> None:
        self.log.append(entry)
        effects.append((APPEND, LOG, entry))
        self._sync(effects)

    def _sync(self, effects: Effects) -> None:
        """Have all that was written made durable, one sync after the other."""
        if not self._is_syncing:
            self._is_syncing = True
            token = (len(self.log), self._truncated_count, (self.epoch, self._voted_for))
            effects.append((SYNC, (LOG, VOTE), token))
