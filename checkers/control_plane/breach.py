"""A step of the metadata log that no rule allows, and the type of a rule."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from checkers.metadata.records import MetadataRecord
from checkers.metadata.state import MetadataState

__all__ = ["Breach", "Rule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A step that no rule allows."""

    key: str
    """The topic-partition or broker ("broker 2") it concerns; "" for neither."""
    words: str
    """The description of the breach, to follow "at metadata offset 7 "."""
    values: tuple[int, ...] = ()


Rule = Callable[[MetadataRecord, MetadataState], Iterator[Breach]]
"""A rule: it takes a record and the state before it, and yields the breaches."""
