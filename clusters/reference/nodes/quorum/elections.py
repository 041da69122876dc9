"""Elections of the quorum: a candidate asks for votes, a leader announces its term and its end."""

from typing import Final

from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.reference.nodes.configuration import MS, Configuration
from fencepost.clusters.reference.nodes.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
    VoteResponse,
)
from fencepost.clusters.reference.nodes.quorum.exchange import PeerRetries
from fencepost.clusters.reference.nodes.quorum.leading import Leadership
from fencepost.clusters.reference.nodes.quorum.metadata_log import MetadataLog

BACKOFF_NS: Final = 100 * MS
"""The unit of waits between elections, Kafka's RETRY_BACKOFF_BASE_MS."""
DOUBLINGS_MAX: Final = 10


class Candidacy:
    """The votes of the epoch that this voter stands in, and how often it has stood in a row."""

    __slots__ = ("_configuration", "_granted", "_refused", "_size", "_tries", "backs_off", "votes")

    def __init__(self, configuration: Configuration, others: tuple[int, ...], alarm: Alarm) -> None:
        self._configuration = configuration
        self._size = len(others) + 1
        self._granted: set[int] = set()
        self._refused: set[int] = set()
        self._tries = 0
        self.backs_off = False
        """True if this election is given up, and the next one waits."""
        self.votes = PeerRetries(configuration, alarm, others)

    def stand(self) -> None:
        """A new epoch."""
        self._tries = min(self._tries + 1, DOUBLINGS_MAX)
        self._granted.clear()
        self._refused.clear()
        self.backs_off = False
        self.votes.begin()

    def reset(self) -> None:
        """Note that a leader exists: the next election is the first of its row."""
        self._tries = 0

    def ask(self, now: int, epoch: int, log: MetadataLog, effects: Effects) -> None:
        """Ask for the votes that are missing."""
        node_id = self._configuration.node_id
        for peer, correlation in self.votes.due(now):
            request = VoteRequest(correlation, epoch, node_id, log.last_epoch, log.end)
            effects.append((SEND, peer, request))

    def vote_for_itself(self) -> bool:
        """Count the own vote, which is durable; whether it was not counted before."""
        node_id = self._configuration.node_id
        is_first = node_id not in self._granted
        self._granted.add(node_id)
        return is_first

    def take(self, response: VoteResponse) -> None:
        """Count an answer, if it was awaited."""
        if self.votes.is_answered(response.voter_id, response.correlation):
            (self._granted if response.granted else self._refused).add(response.voter_id)

    @property
    def is_won(self) -> bool:
        """Return whether a majority voted for it."""
        return 2 * len(self._granted) > self._size

    @property
    def is_lost(self) -> bool:
        """Return whether no majority can vote for it any more."""
        return 2 * len(self._refused) >= self._size

    def back_off(self, drawn: float) -> int:
        """Give up this election; the ns to wait, drawn from a range that doubles with each try."""
        self.backs_off = True
        bound = self._configuration.election_backoff_max_ns
        return min(int(drawn * (BACKOFF_NS << self._tries)), bound)


class Announcer:
    """BeginQuorumEpoch to who does not fetch, EndQuorumEpoch to all, until they have answered.

    A voter that fetched and fell silent is told again: it may have lost its disk (as KIP-853 has
    it; KIP-595 tells every voter once).
    """

    __slots__ = ("_again_ns", "_node_id", "_successors", "begins", "ends")

    def __init__(self, configuration: Configuration, others: tuple[int, ...], alarm: Alarm) -> None:
        self._node_id = configuration.node_id
        self._again_ns = configuration.quorum_fetch_timeout_ns // 2
        self._successors: tuple[int, ...] = ()
        self.begins = PeerRetries(configuration, alarm, others)
        self.ends = PeerRetries(configuration, alarm, others)

    def begin(self, now: int, leadership: Leadership, effects: Effects) -> None:
        """Tell the voters that have not fetched lately who leads."""
        for peer, progress in leadership.voters.items():
            if progress.end >= 0:
                self.begins.put_off(peer, progress.fetched_at + self._again_ns)
        for peer, correlation in self.begins.due(now):
            request = BeginQuorumEpochRequest(correlation, leadership.epoch, self._node_id)
            effects.append((SEND, peer, request))

    def begun(self, now: int, voter_id: int, correlation: int) -> None:
        """A voter has heard it; it is told again if it does not fetch."""
        self.begins.is_answered(voter_id, correlation, again_at=now + self._again_ns)

    def resign(self, leadership: Leadership) -> None:
        """End this leadership: the voter with most of its log should stand first."""
        self._successors = leadership.successors()
        self.ends.begin()

    def end(self, now: int, epoch: int, effects: Effects) -> None:
        """Tell the voters that have not answered who should stand."""
        for peer, correlation in self.ends.due(now):
            request = EndQuorumEpochRequest(correlation, epoch, self._node_id, self._successors)
            effects.append((SEND, peer, request))

    def ended(self, voter_id: int, correlation: int) -> None:
        """A voter has heard it."""
        self.ends.is_answered(voter_id, correlation)
