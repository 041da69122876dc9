"""What a decision is made on, and what it is."""

from dataclasses import dataclass
from typing import Any

from clusters.reference.nodes.configuration import Configuration
from clusters.reference.nodes.image import MetadataImage
from clusters.reference.nodes.records import MetadataRecord
from clusters.reference.nodes.rules import Rules

__all__ = ["Decision", "View"]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that a decision may depend on, beside the request."""

    image: MetadataImage
    """What is committed; nothing is undecided."""
    rules: Rules
    configuration: Configuration
    epoch: int
    """The controller epoch."""
    offset: int
    """Where the first record of the decision will be."""
    expired: tuple[int, ...] = ()
    """Unfenced brokers whose lease is over: whoever is elected now, it is none of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Records that have to be committed, and the answer that may be given then."""

    response: Any
    records: tuple[MetadataRecord, ...] = ()
