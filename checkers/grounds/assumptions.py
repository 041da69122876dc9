"""The assumptions of all checks about the operations, checked on their sums.

A broken assumption is unknown. So is every check that rests on it (`catalogue`, `rests_on`): what
it found proves nothing. A file of records that cannot be read is different: its keys are not
judged, and what was found in the other files stands. The assumptions about the records of a key are
in `data_plane.key_assumptions`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fencepost.checkers.entry import CatalogueEntry, Kind
from fencepost.checkers.grounds.history_summary import HistorySummary
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.history.operation import F


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """The answers, and the assumptions that nothing may rest on."""

    results: tuple[CheckResult, ...]
    broken: frozenset[str]


def run_assumptions(
    summary: HistorySummary | None,
    *,
    why_no_summary: str,
    record_count: int,
    unreadable: Sequence[str],
) -> Assumed:
    """Judge the sums of the operations, None if some file of them cannot be read.

    `record_count`: rows of all files of records; `unreadable`: why some could not be read.
    """
    if summary is None:
        reasons = dict.fromkeys(("dense-indices", "one-poll-at-a-time", "whole-records"))
        results = tuple(_result(name, why_no_summary) for name in reasons)
        return Assumed(results=results, broken=frozenset(reasons))
    expected = sum(summary.record_counts.values())
    miscounted = (
        f"the operations count {expected} records, and the files of records hold {record_count}"
        if record_count != expected and not unreadable
        else ""
    )
    polls = sum(count for called, count in summary.counts.items() if called.f is F.POLL)
    cases = {
        "dense-indices": summary.row_count,
        "one-poll-at-a-time": polls,
        "whole-records": max(record_count, expected),
    }
    broken = {
        "dense-indices": summary.gap,
        "one-poll-at-a-time": summary.overlap,
        "whole-records": miscounted,
    }
    said = broken | {"whole-records": miscounted or "; ".join(unreadable)}
    return Assumed(
        results=tuple(_result(name, reason, cases=cases[name]) for name, reason in said.items()),
        broken=frozenset(name for name, reason in broken.items() if reason),
    )


def _result(name: str, reason: str, *, cases: int = 0) -> CheckResult:
    validity = Validity.UNKNOWN if reason else Validity.VALID
    return CheckResult(check=name, validity=validity, case_count=cases, reason=reason)


CHECKS: Final = (
    CatalogueEntry.of(
        """A1 dense-indices: Operation indices are dense.

        The indices of the operations are 0, 1, 2, …, each once, in the order of the files.

        Meaning: A hole means that operations were lost on the way from the client to the history.
        Case: an operation
        Source: history/schema.py, OPERATIONS
        """,
        kind=Kind.ASSUMPTION,
        needs=("operations", "records"),
    ),
    CatalogueEntry.of(
        """A2 one-poll-at-a-time: A process has one poll open at a time.

        A poll of a process is called no earlier than its last one returned.

        Meaning: Otherwise the polls of a process have no order that could be checked.
        Case: a poll
        Source: history/schema.py, OPERATIONS
        """,
        kind=Kind.ASSUMPTION,
        needs=("operations", "records"),
    ),
    CatalogueEntry.of(
        """A3 whole-records: Every record of every operation is in the history.

        For each kind of operation, the records in the bucket files are as many as the operations
        count, and every bucket file could be read.

        Meaning: Otherwise a value without a recorded read may have been read all the same.
        Case: a record
        Source: history/schema.py, RECORDS
        """,
        kind=Kind.ASSUMPTION,
        needs=("operations", "records"),
    ),
)
