"""A step of the metadata log that no rule allows, and the type of a rule."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from checkers.metadata.records import MetadataRecord
from checkers.metadata.state import MetadataState
from checkers.proof import Proof

__all__ = ["Breach", "Rule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A step that no rule allows."""

    key: str
    """The topic-partition or broker ("broker 2") it concerns; "" for neither."""
    clause: Proof
    """The mistake, to follow "at metadata offset 7 "; facts of the state before are `had_…`."""

    @staticmethod
    def of(key: str, rule: str, /, **facts: Any) -> "Breach":
        """Return the breach by its key and what `Proof.of` takes."""
        return Breach(key=key, clause=Proof.of(rule, **facts))


Rule = Callable[[MetadataRecord, MetadataState], Iterator[Breach]]
"""A rule: it takes a record and the state before it, and yields the breaches."""
