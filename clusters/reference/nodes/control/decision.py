"""The basis of a decision, and the decision itself."""

from dataclasses import dataclass
from typing import Any

from clusters.reference.nodes.configuration import Configuration
from clusters.reference.nodes.image import MetadataImage
from clusters.reference.nodes.records import MetadataRecord
from clusters.reference.nodes.rules import Rules

__all__ = ["Decision", "DecisionView"]


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
    expired: tuple[int, ...] = ()
    """Unfenced brokers whose lease is over: none of them is elected now."""
    in_use: tuple[int, ...] = ()
    """Ids that another process than the registered one asks for, which is alive for certain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Records that have to be committed, and the answer that may be given then."""

    response: Any
    records: tuple[MetadataRecord, ...] = ()
