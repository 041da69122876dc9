"""The active controller's port to the quorum: `quorum.voter.Voter` as it is seen from here."""

from typing import Protocol

from clusters.node_port.effects import Effects
from clusters.reference.nodes.quorum.metadata_log import MetadataLog
from clusters.reference.nodes.records import MetadataRecord

__all__ = ["MetadataQuorum"]


class MetadataQuorum(Protocol):
    """A voter, which may lead."""

    @property
    def epoch(self) -> int:
        """The quorum's leader epoch that it is in."""

    @property
    def leader_id(self) -> int:
        """The id of the leader of the epoch; -1: not known."""

    @property
    def is_leader(self) -> bool:
        """True if it leads itself."""

    @property
    def epoch_start(self) -> int:
        """The beginning of its own epoch: the offset of its LeaderChangeMessage."""

    @property
    def log(self) -> MetadataLog:
        """The metadata log of the quorum."""

    def append(self, now: int, records: tuple[MetadataRecord, ...], effects: Effects) -> int:
        """Append one batch, as the leader; where it ends."""
