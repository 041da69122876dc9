"""From oddities and cycles to one answer a check: counts, a reason, and the table of proofs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from checkers.anomaly import ANOMALIES, anomalies_of
from checkers.cycles.levels import is_forbidden
from checkers.cycles.oddities import Oddity
from checkers.verdict import CheckResult, Validity
from history.models import Isolation

__all__ = ["Tally", "answered"]

_EXAMPLES_MAX: Final = 5
_REASONS_MAX: Final = 3


@dataclass(slots=True)
class Tally:
    """What was found of one check."""

    spelled: list[Oddity] = field(default_factory=list)
    unspelled: dict[Isolation, int] = field(default_factory=dict)

    def add(self, spelled: Sequence[Oddity], unspelled: Mapping[Isolation, int]) -> None:
        """Count these, too."""
        self.spelled += spelled
        for level, count in unspelled.items():
            self.unspelled[level] = self.unspelled.get(level, 0) + count


def answered(
    check: str,
    tally: Tally,
    *,
    promise: Isolation,
    doubts: Sequence[str],
    figures: Mapping[str, float],
    seconds: float,
) -> tuple[CheckResult, pa.Table]:
    """The answer, and its anomalies (`checkers.anomaly.ANOMALIES`), the forbidden ones first.

    doubts: why it cannot be valid, whatever was found or not.
    """
    rows = [_row(check, one, promise=promise) for one in tally.spelled]
    rows.sort(key=lambda row: (row["allowed"], len(row["operations"]), row["operations"]))
    table = pa.Table.from_pylist(rows, schema=ANOMALIES)
    allowed = sum(row["allowed"] for row in rows)
    never = len(rows) - allowed
    for level, count in tally.unspelled.items():
        if is_forbidden(level, promise=promise):
            never += count
        else:
            allowed += count
    examples = tuple(anomalies_of(table.slice(0, _EXAMPLES_MAX)))
    unknown = _listed(doubts)
    result = CheckResult(
        check=check,
        validity=_validity(never=never, unknown=unknown),
        anomaly_count=never + allowed,
        allowed_count=allowed,
        reason=f"{never} found: {examples[0].detail}" if never else unknown,
        figures=figures,
        seconds=seconds,
        examples=examples,
    )
    return result, table


def _validity(*, never: int, unknown: str) -> Validity:
    if never:
        return Validity.INVALID
    return Validity.UNKNOWN if unknown else Validity.VALID


def _row(check: str, one: Oddity, *, promise: Isolation) -> dict[str, Any]:
    return {
        "check": check,
        "key": one.key,
        "allowed": not is_forbidden(one.level, promise=promise),
        "operations": list(one.transactions),
        "offsets": [],
        "values": list(one.values),
        "frames": [],
        "detail": one.detail,
    }


def _listed(reasons: Sequence[str]) -> str:
    shown = "; ".join(reasons[:_REASONS_MAX])
    rest = len(reasons) - _REASONS_MAX
    return f"{shown}; and {rest} more" if rest > 0 else shown
