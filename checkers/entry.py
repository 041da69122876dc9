"""One check as the catalogue describes it; and the kinds and strengths there are."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from history.manifest import Promises

__all__ = ["SUBJECTS", "CatalogueEntry", "Kind", "Strength"]


class Kind(StrEnum):
    """The kind of subject that an answer of the check is about."""

    ASSUMPTION = "assumption"
    """The history is what the checks take it for. Never invalid; if broken, unknown."""
    GROUND = "ground"
    """The run gives enough evidence for a verdict. Never invalid; if lacking, unknown."""
    ANOMALY = "anomaly"
    """The system kept its promises."""


class Strength(StrEnum):
    """The meaning of an anomaly's presence for the verdict."""

    NEVER = "never"
    """It makes the run invalid."""
    ALLOWED_IF = "allowed-if"
    """It makes the run invalid, unless the promises of the run allow it."""
    FIGURE = "figure"
    """It is measured, and never a verdict."""


SUBJECTS: Final = {
    "A": "assumptions",
    "G": "grounds",
    "S": "service",
    "D": "data plane",
    "C": "control plane",
    "V": "visibility",
    "L": "life cycle",
    "Z": "znodes",
    "M": "open history",
}
"""The parts of the catalogue by the first letter of their ids, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """One check; by default of an anomaly that nothing allows."""

    id: str
    name: str
    title: str
    kind: Kind = Kind.ANOMALY
    rule: str
    """The exact comparison that the check makes."""
    meaning: str
    """The meaning of an anomaly to the operator of such a cluster."""
    case: str
    """The name of one case, in the singular; the verdict counts cases."""
    source: str
    strength: Strength = Strength.NEVER
    allowed_if: str = ""
    """The condition under which it is legal; empty unless the strength is `allowed-if`."""
    promise: str = ""
    """The promise of `history.manifest.Promises` without which all that it finds is legal; empty if
    no promise of the whole run decides."""
    rests_on: tuple[str, ...] = ()
    """Assumptions without which its answer is unknown."""
    rests_on_zookeeper: tuple[str, ...] = ()
    """The same, where ZooKeeper has the metadata."""
    tells_outages: bool = False
    """Its proofs tell which broker an anomaly put out, and when (`checkers.outages`)."""
    needs: tuple[str, ...] = ()
    """Tables without which it is not asked (`history.manifest.Manifest.tables`)."""
    bound: str = ""
    """The bound that it holds a run to, without which it is not asked
    (`history.manifest.Manifest.required_bounds`); empty: it has none."""

    @property
    def subject(self) -> str:
        """The part of the catalogue that it belongs to, by the letter of its id."""
        return SUBJECTS[self.id[0]]

    def can_fail(self, promises: Promises) -> bool:
        """Return whether any finding would make a run with these promises invalid (or unknown)."""
        if self.strength is Strength.FIGURE:
            return False
        return not self.promise or getattr(promises, self.promise) not in {None, False}
