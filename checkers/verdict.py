"""Valid, invalid or unknown, and how answers merge: invalid first, then unknown.

A check that crashed, ran out of its budget, was skipped, lacked grounds or whose assumptions do not
hold is *unknown*. Unknown never passes a gate and never hides an invalid.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["EXIT_CODES", "CheckResult", "Validity", "Verdict", "worst"]


class Validity(StrEnum):
    """The answer of a check and of a run."""

    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"


EXIT_CODES: Mapping[Validity, int] = {
    Validity.VALID: 0,
    Validity.INVALID: 1,
    Validity.UNKNOWN: 2,
}


def worst(validities: Iterable[Validity]) -> Validity:
    """Invalid if any is, else unknown if any is, else valid. Of nothing at all: unknown."""
    found = set(validities)
    if Validity.INVALID in found:
        return Validity.INVALID
    return Validity.VALID if found == {Validity.VALID} else Validity.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What one check answered."""

    check: str
    """Its name in the catalogue, e.g. "lost-write"."""
    validity: Validity
    anomaly_count: int = 0
    """Rows in `anomalies/<check>.parquet`, legal ones included."""
    reason: str = ""
    """One sentence: why invalid or unknown. Empty when valid."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """What was measured on the way; units are suffixes."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict on a run: the worst of its checks."""

    validity: Validity
    checks: tuple[CheckResult, ...]

    @staticmethod
    def of(checks: Iterable[CheckResult]) -> "Verdict":
        """The worst of these, which stand in the order of the catalogue."""
        kept = tuple(checks)
        return Verdict(validity=worst(check.validity for check in kept), checks=kept)

    @property
    def exit_code(self) -> int:
        """0 valid, 1 invalid, 2 unknown."""
        return EXIT_CODES[self.validity]
