"""The basis of a decision, the decision itself, and the quorum that commits it."""

from dataclasses import dataclass
from typing import Any, Protocol

from fencepost.clusters.node_port.effects import Effects
from fencepost.clusters.reference.nodes.configuration import Configuration
from fencepost.clusters.reference.nodes.image import MetadataImage
from fencepost.clusters.reference.nodes.quorum.metadata_log import MetadataLog
from fencepost.clusters.reference.nodes.records import MetadataRecord
from fencepost.clusters.reference.nodes.rules import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionView:
    """All that a decision may depend on, besides the request."""

    image: MetadataImage
    """The committed metadata; nothing is undecided."""
    rules: Rules
    configuration: Configuration
    epoch: int
    """The controller epoch."""
    offset: int
    """The offset at which the first record of the decision will be."""
    leased: tuple[int, ...] = ()
    """The brokers whose lease lasts, fenced or not."""
    expired: tuple[int, ...] = ()
    """Unfenced brokers whose lease is over: none of them is elected now."""
    in_use: tuple[int, ...] = ()
    """Ids that another process than the registered one asks for, which is alive for certain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Records that have to be committed, and the answer that may be given then."""

    response: Any
    records: tuple[MetadataRecord, ...] = ()


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
