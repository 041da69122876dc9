"""A voter's state in the quorum, and the transitions between its states (KIP-595).

Every transition goes through `_turn`, which looks the transition up, writes the quorum state,
and ends a leadership. Votes are durable before any node hears of them, a candidate's own as well;
records are durable before they count, a follower's before it fetches again.
"""

from random import Random
from typing import Any

from fencepost.clusters.node_port.alarm import NEVER_NS, Alarm
from fencepost.clusters.node_port.effects import NOTE, SEND, Effects
from fencepost.clusters.node_port.notes import APPENDED_METADATA, QUORUM_LEADER, RESIGNED, VOTED
from fencepost.clusters.node_port.storage import QUORUM_STATE, Contents, MetadataBatch, QuorumState
from fencepost.clusters.reference.nodes.configuration import Configuration
from fencepost.clusters.reference.nodes.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    MetadataFetchRequest,
    VoteRequest,
    VoteResponse,
)
from fencepost.clusters.reference.nodes.quorum.durability import DurableEnd, QuorumStateWrites
from fencepost.clusters.reference.nodes.quorum.elections import (
    BACKOFF_NS,
    DOUBLINGS_MAX,
    Announcer,
    Candidacy,
)
from fencepost.clusters.reference.nodes.quorum.fetching import Fetcher
from fencepost.clusters.reference.nodes.quorum.leading import Leadership
from fencepost.clusters.reference.nodes.quorum.metadata_log import MetadataLog
from fencepost.clusters.reference.nodes.quorum.snapshots import SnapshotCodec
from fencepost.clusters.reference.nodes.quorum.transitions import (
    TRANSITIONS,
    VoterEvent,
    VoterState,
)
from fencepost.clusters.reference.nodes.records import LeaderChangeMessage
from fencepost.clusters.reference.nodes.rules import Rules


class QuorumStateMachine:
    """The state machine of one voter, from its start on."""

    __slots__ = (
        "_alarm",
        "_configuration",
        "_deadline",
        "_durable",
        "_random",
        "_rules",
        "_voted_for",
        "announcer",
        "candidacy",
        "epoch",
        "fetcher",
        "leader_id",
        "leadership",
        "log",
        "node_id",
        "others",
        "promises",
        "state",
    )

    def __init__(
        self, configuration: Configuration, rules: Rules, alarm: Alarm, *, snapshots: SnapshotCodec
    ) -> None:
        self._alarm = alarm
        self._configuration = configuration
        self._rules = rules
        self._random = _stream(configuration, incarnation_id=0)
        self.node_id = configuration.node_id
        self.others = tuple(one for one in configuration.voters if one != self.node_id)
        self.state = VoterState.UNATTACHED
        self.epoch = 0
        self.leader_id = -1
        self._voted_for = -1
        self._deadline = 0
        """The time when this state has lasted too long; a leader's has none."""
        self.leadership: Leadership | None = None
        """The leader's own state; None in every other state."""
        self.log = MetadataLog()
        self._durable = DurableEnd(self.log, rules)
        self.promises = QuorumStateWrites(rules)
        self.fetcher = Fetcher(configuration, rules, log=self.log, alarm=alarm, codec=snapshots)
        self.candidacy = Candidacy(configuration, self.others, alarm)
        self.announcer = Announcer(configuration, self.others, alarm)

    def load(self, contents: Contents) -> None:
        """Take what the disk has; `open` once that is durable."""
        self._random = _stream(self._configuration, incarnation_id=contents.incarnation_id)
        self.log.load(contents)
        self.epoch = self.log.last_epoch
        kept = contents.files.get(QUORUM_STATE)
        if kept is not None and kept.epoch >= self.epoch:
            self.epoch, self._voted_for, self.leader_id = kept.epoch, kept.voted_for, kept.leader_id

    def open(self, now: int, effects: Effects) -> None:
        """Take part: follow the leader known, stand alone, or wait for whoever stands."""
        self.log.trim(self.log.start, effects)
        self._durable.offset = self.log.end
        leader_id, self.leader_id = self.leader_id, -1
        self._wait_until(self._drawn(now))
        if not self.others:
            self._stand(now, effects)
        elif leader_id in self.others:
            self.follow(now, self.epoch, leader_id, effects)
        elif self._voted_for >= 0:
            self.state = VoterState.VOTED

    def refuses_vote(self, request: VoteRequest) -> bool:
        """Return whether this voter may not vote for a candidate in its epoch."""
        if self.leader_id >= 0 or self.state is VoterState.RESIGNED:
            return True
        # Rule one_vote.
        if self._voted_for not in {-1, request.candidate_id} and self._rules.one_vote:
            return True
        is_behind = (request.last_epoch, request.end_offset) < (self.log.last_epoch, self.log.end)
        # Rule vote_for_longest.
        return is_behind and self._rules.vote_for_longest

    def grant(self, now: int, source: int, request: VoteRequest, effects: Effects) -> None:
        """Vote; the candidate hears of it once the vote is durable."""
        self._voted_for = request.candidate_id
        if (
            self.state is not VoterState.CANDIDATE
        ):  # Without one_vote, it may be a candidate itself.
            self.state = TRANSITIONS[self.state, VoterEvent.GRANTED]
            self._wait_until(self._drawn(now))
        answer = VoteResponse(request.correlation, self.node_id, self.epoch, -1, granted=True)
        then: Effects = [(NOTE, VOTED, self.epoch, self._voted_for), (SEND, source, answer)]
        self.promises.make(self._kept(), then, effects)

    def heed(self, now: int, epoch: int, leader_id: int, effects: Effects) -> bool:
        """Follow another epoch, or the leader of this one once it is named; whether it did."""
        is_known = leader_id in self.others
        if epoch != self.epoch and not is_known:
            self.detach(now, epoch, effects)
            return True
        is_named = is_known and self.leader_id < 0 and self.state is not VoterState.RESIGNED
        if epoch != self.epoch or is_named:
            self.follow(now, epoch, leader_id, effects)
            return True
        return False

    def follow(self, now: int, epoch: int, leader_id: int, effects: Effects) -> None:
        """Fetch from this leader of this epoch."""
        self._turn(VoterEvent.HEARD_LEADER, epoch, leader_id, effects)
        self.candidacy.reset()
        self.heard(now)
        self.poll(now, effects)

    def detach(self, now: int, epoch: int, effects: Effects) -> None:
        """Be in this epoch, whose leader is not known.

        Who waits for an election goes on waiting: else one who cannot win keeps all others from it.
        """
        if self.state is VoterState.LEADER:
            self._wait_until(self._drawn(now))
        self._turn(VoterEvent.HEARD_EPOCH, epoch, -1, effects)

    def heard(self, now: int) -> None:
        """The leader is there."""
        self._wait_until(now + self._configuration.quorum_fetch_timeout_ns)

    def poll(self, now: int, effects: Effects) -> None:
        """Fetch as a follower, once all that was appended is durable: a fetch acknowledges it."""
        if self.state is VoterState.FOLLOWER and self._may_fetch:
            self.fetcher.poll(now, self.leader_id, self.epoch, effects)

    def settle(self, now: int, effects: Effects) -> None:
        """Make the log durable up to its end; what is so already counts."""
        if self._durable.settle(effects):
            self._settled(now, effects)

    def synced(self, now: int, end: int, generation: int, effects: Effects) -> None:
        """A sync of the log is done."""
        if self._durable.synced(end, generation):
            self._settled(now, effects)
        self._durable.settle(effects)

    def append(self, now: int, records: tuple[Any, ...], effects: Effects) -> int:
        """Append one batch as the leader; its end offset."""
        assert self.leadership is not None, self.state
        batch = MetadataBatch(self.log.end, self.epoch, records)
        self.log.append(batch, effects)
        effects.append((NOTE, APPENDED_METADATA, batch.base_offset, self.epoch, records))
        self.leadership.wake(effects)
        self.settle(now, effects)
        return batch.end_offset

    def take_vote(self, now: int, response: VoteResponse, effects: Effects) -> None:
        """Count a voter's answer in the epoch that this candidate stands in."""
        if self.state is not VoterState.CANDIDATE:
            return
        self.candidacy.take(response)
        if self.candidacy.is_won:
            self._lead(now, effects)
        elif self.candidacy.is_lost and not self.candidacy.backs_off:
            self._back_off(now)

    def campaign(self, now: int, effects: Effects) -> None:
        """Count the own vote once it is durable, as a candidate, and ask for the others'."""
        if self.state is not VoterState.CANDIDATE or not self.promises.are_kept:
            return
        if self.candidacy.vote_for_itself():
            effects.append((NOTE, VOTED, self.epoch, self.node_id))
        self.candidacy.ask(now, self.epoch, self.log, effects)
        if self.candidacy.is_won:
            self._lead(now, effects)

    def resign(self, now: int, effects: Effects) -> None:
        """Lead no more in this epoch, and say who should stand first."""
        if self.leadership is None:
            return
        self.announcer.resign(self.leadership)
        self._turn(VoterEvent.RESIGNED, self.epoch, -1, effects)
        self._wait_until(self._drawn(now))
        self.announcer.end(now, self.epoch, effects)

    def succeed(self, now: int, request: EndQuorumEpochRequest, effects: Effects) -> None:
        """The leader of this epoch resigned: stand at once, or after those before in its list."""
        if self.state is VoterState.FOLLOWER:
            self._turn(VoterEvent.LEADER_RESIGNED, self.epoch, -1, effects)
        if self.state is not VoterState.UNATTACHED or self.node_id not in request.successors:
            return
        place = request.successors.index(self.node_id)
        if place == 0:
            self._stand(now, effects)
        else:
            self._wait_until(now + (BACKOFF_NS << min(place - 1, DOUBLINGS_MAX)))

    def tick(self, now: int, effects: Effects) -> None:
        """Look at the deadlines of the state."""
        if self.leadership is not None:
            self._tick_leader(now, self.leadership, effects)
        elif now >= self._deadline:
            if self.state is VoterState.CANDIDATE and not self.candidacy.backs_off:
                self._back_off(now)
            else:
                self._stand(now, effects)
        elif self.state is VoterState.FOLLOWER:
            self.poll(now, effects)
        elif self.state is VoterState.CANDIDATE:
            self.campaign(now, effects)
        elif self.state is VoterState.RESIGNED:
            self.announcer.end(now, self.epoch, effects)
        self._alarm.by(self._next_due())

    def came_back(self, now: int, request: Any) -> None:
        """A request of this voter did not reach its peer, or its answer does not come."""
        kind, correlation = request.kind, request.correlation
        if kind in {MetadataFetchRequest.kind, FetchSnapshotRequest.kind}:
            self.fetcher.came_back(now, correlation)
        elif kind == VoteRequest.kind:
            self.candidacy.votes.lost(correlation, now)
        elif kind == BeginQuorumEpochRequest.kind:
            self.announcer.begins.lost(correlation, now)
        elif kind == EndQuorumEpochRequest.kind:
            self.announcer.ends.lost(correlation, now)

    def _turn(self, event: VoterEvent, epoch: int, leader_id: int, effects: Effects) -> None:
        left, led = self.epoch, self.leadership
        self.state = TRANSITIONS[self.state, event]
        if epoch != self.epoch:
            self._voted_for = -1
        self.epoch, self.leader_id = epoch, leader_id
        self.leadership = None
        self.fetcher.forget()
        if event is VoterEvent.TIMED_OUT:
            self._voted_for = self.node_id
            self.promises.make(self._kept(), [], effects)
        else:
            self.promises.mention(self._kept(), effects)
        if led is not None:
            effects.append((NOTE, RESIGNED, left))
            led.dismiss(epoch, leader_id, effects)

    def _kept(self) -> QuorumState:
        return QuorumState(epoch=self.epoch, voted_for=self._voted_for, leader_id=self.leader_id)

    def _stand(self, now: int, effects: Effects) -> None:
        self._turn(VoterEvent.TIMED_OUT, self.epoch + 1, -1, effects)
        self._wait_until(self._drawn(now))
        self.candidacy.stand()
        self.campaign(now, effects)

    def _back_off(self, now: int) -> None:
        self._wait_until(now + self.candidacy.back_off(self._random.random()))

    def _lead(self, now: int, effects: Effects) -> None:
        self._turn(VoterEvent.ELECTED, self.epoch, self.node_id, effects)
        self.candidacy.reset()
        self.leadership = Leadership(
            now,
            self.epoch,
            configuration=self._configuration,
            rules=self._rules,
            log=self.log,
            alarm=self._alarm,
        )
        effects.append((NOTE, QUORUM_LEADER, self.epoch))
        self.append(now, (LeaderChangeMessage(self.node_id, self._configuration.voters),), effects)
        self.announcer.begins.begin()
        self.announcer.begin(now, self.leadership, effects)

    def look(self, now: int, effects: Effects) -> None:
        """Resign as a leader without a majority."""
        if self.leadership is not None and not self.leadership.has_majority(now):
            self.resign(now, effects)

    def _settled(self, now: int, effects: Effects) -> None:
        if self.leadership is not None:
            self.leadership.own_end = self._durable.offset
            self.leadership.count(effects)
        else:
            self.poll(now, effects)

    def _tick_leader(self, now: int, leadership: Leadership, effects: Effects) -> None:
        leadership.expire(now, effects)
        self.look(now, effects)
        if self.leadership is not None:
            self.announcer.begin(now, leadership, effects)

    def _next_due(self) -> int:
        """Return when this state has something to do next."""
        if self.leadership is not None:
            return min(self.leadership.next_due(), self.announcer.begins.next_due())
        asking = NEVER_NS  # also while it waits for a sync
        if self.state is VoterState.FOLLOWER:
            if self._may_fetch:
                asking = self.fetcher.exchange.due_at
        elif self.state is VoterState.CANDIDATE:
            if self.promises.are_kept:
                asking = self.candidacy.votes.next_due()
        elif self.state is VoterState.RESIGNED:
            asking = self.announcer.ends.next_due()
        return min(self._deadline, asking)

    @property
    def _may_fetch(self) -> bool:
        """Return whether a follower's fetch acknowledges nothing that is not durable."""
        return self._durable.offset >= self.log.end and not self.fetcher.is_receiving

    def _wait_until(self, at_ns: int) -> None:
        self._deadline = at_ns
        self._alarm.by(at_ns)

    def _drawn(self, now: int) -> int:
        return now + int(self._configuration.election_timeout_ns * (1 + self._random.random()))


def _stream(configuration: Configuration, *, incarnation_id: int) -> Random:
    return Random(f"{configuration.seed}/{configuration.node_id}/{incarnation_id}")  # noqa: S311
