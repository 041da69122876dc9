"""The announcements of a leader to the other voters: that it leads, and that it resigns."""

from clusters.node_port.alarm import Alarm
from clusters.node_port.effects import SEND, Effects
from clusters.reference.nodes.configuration import Configuration
from clusters.reference.nodes.messages.quorum import BeginQuorumEpochRequest, EndQuorumEpochRequest
from clusters.reference.nodes.quorum.exchange import Round
from clusters.reference.nodes.quorum.leading import Leadership

__all__ = ["Announcer"]


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
        self.begins = Round(configuration, alarm, others)
        self.ends = Round(configuration, alarm, others)

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
