"""The elections of a candidate: whom it asks, who voted for it, when it tries again."""

from typing import Final

from clusters.node_port.alarm import Alarm
from clusters.node_port.effects import SEND, Effects
from clusters.reference.nodes.configuration import MS, Configuration
from clusters.reference.nodes.messages.quorum import VoteRequest, VoteResponse
from clusters.reference.nodes.quorum.exchange import Round
from clusters.reference.nodes.quorum.metadata_log import MetadataLog

__all__ = ["BACKOFF_NS", "DOUBLINGS_MAX", "Candidacy"]

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
        self.votes = Round(configuration, alarm, others)

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
