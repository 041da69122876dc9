"""One answer per check from list anomalies and cycles: counts, a reason, a table of proofs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from fencepost.checkers.anomaly import ANOMALIES, Anomaly, anomalies_of
from fencepost.checkers.cycles.levels import is_forbidden
from fencepost.checkers.cycles.transaction_anomaly import TransactionAnomalies, TransactionAnomaly
from fencepost.checkers.verdict import CheckResult, Validity, reasons_listed
from fencepost.history.models import Isolation

_EXAMPLES_MAX: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The findings of one check, under a given promise."""

    never: Sequence[TransactionAnomaly] = ()
    allowed: Sequence[TransactionAnomaly] = ()
    never_count: int = 0
    """The number of forbidden findings, those that are not spelled out included."""
    allowed_count: int = 0
    case_count: int = 0
    """The number of cases that the promise forbids."""


@dataclass(slots=True)
class CheckTally:
    """The findings of one check."""

    spelled: list[TransactionAnomaly] = field(default_factory=list)
    unspelled: dict[Isolation, int] = field(default_factory=dict)
    cases: int = 0
    forbidden_by: Isolation = Isolation.READ_UNCOMMITTED
    """The weakest level that can forbid any of it."""

    def add(
        self, spelled: Sequence[TransactionAnomaly], unspelled: Mapping[Isolation, int]
    ) -> None:
        """Count these, too."""
        self.spelled += spelled
        for level, count in unspelled.items():
            self.unspelled[level] = self.unspelled.get(level, 0) + count

    def add_kind(self, kind: TransactionAnomalies) -> None:
        """Count what one part of the history says, with its cases."""
        self.add(kind.spelled, kind.unspelled)
        self.cases += kind.cases
        self.forbidden_by = kind.forbidden_by

    def counted(self, promise: Isolation) -> Counted:
        """Return the findings that this promise forbids and those that it allows."""
        never = [one for one in self.spelled if is_forbidden(one.level, promise=promise)]
        allowed = [one for one in self.spelled if not is_forbidden(one.level, promise=promise)]
        more = sum(self.unspelled.values())
        more_never = sum(
            count for level, count in self.unspelled.items() if is_forbidden(level, promise=promise)
        )
        return Counted(
            never=never,
            allowed=allowed,
            never_count=len(never) + more_never,
            allowed_count=len(allowed) + more - more_never,
            case_count=self.cases if is_forbidden(self.forbidden_by, promise=promise) else 0,
        )


def answered(
    check: str,
    counted: Counted,
    *,
    doubts: Sequence[str],
    figures: Mapping[str, float],
    seconds: float,
) -> tuple[CheckResult, pa.Table]:
    """Return the answer and its anomalies (`checkers.anomaly.ANOMALIES`), forbidden ones first.

    doubts: why it cannot be valid, whatever was found or not.
    """
    rows = [
        Anomaly(check=check, key=one.key, allowed=allowed, proof=one.proof).row()
        for allowed, of_kind in ((False, counted.never), (True, counted.allowed))
        for one in of_kind
    ]
    rows.sort(key=lambda row: (row["allowed"], len(row["operations"]), row["operations"]))
    table = pa.Table.from_pylist(rows, schema=ANOMALIES)
    examples = tuple(anomalies_of(table.slice(0, _EXAMPLES_MAX)))
    never, unknown = counted.never_count, reasons_listed(doubts)
    result = CheckResult(
        check=check,
        validity=_validity(never=never, unknown=unknown),
        case_count=counted.case_count,
        anomaly_count=never + counted.allowed_count,
        allowed_count=counted.allowed_count,
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
