"""The sums of all files of operations, put together: small, whatever the length of the run."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.grounds.repeated import signed
from fencepost.checkers.setting import FinalRead
from fencepost.history.operation import F, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A kind of operations, by how they ended and when they were called."""

    f: F
    outcome: Outcome
    empty: bool
    """Without records: a poll that returned nothing."""
    time: str
    """before, during, between or after the faults; the number of a fault, or a kind of faults,
    during which (`grounds.operations`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySummary:
    """The summary of a run's operations."""

    row_count: int
    gap: str
    """The place where the indices are not 0, 1, 2, …; empty if they are."""
    overlap: str
    """The process that had two polls open at a time; empty without one."""
    counts: Mapping[Called, int]
    errors: Mapping[tuple[F, str], int]
    latencies: Mapping[F, Mapping[int, int]]
    """Ok operations by bucket of their latency (`grounds.operations`)."""
    record_counts: Mapping[F, int]
    final_reads: tuple[FinalRead, ...]
    """The complete ones."""
    info_polls: Mapping[int, NDArray[np.int64]]
    """Operation indices of polls that crashed, ascending, by process."""
    keys: Mapping[F, frozenset[str]] = field(default_factory=dict)
    """The keys of sends and of final reads, whatever became of them."""
    recordless: int | None = None
    """The first send that has no record."""
    repeated: int | None = None
    """The sum of what records have to repeat (`grounds.repeated`); None: it was not made."""
    disorder: str = ""
    """The operation that ended before it began, or is not in the order of the calls; or empty."""


def history_summary(rows: pa.Table) -> HistorySummary:
    """Put together the rows of `grounds.operations.SUMMARY`, one a readable file."""
    files = [row for row in rows.to_pylist() if row["row_count"]]
    files.sort(key=lambda row: row["first_index"])
    return HistorySummary(
        row_count=sum(row["row_count"] for row in files),
        gap=_gap(files),
        overlap=_overlap(files),
        counts=_counts(files),
        errors=_sums(files, "errors", lambda item: (F(item["f"]), item["error"])),
        latencies=_latencies(files),
        record_counts=_sums(files, "record_counts", lambda item: F(item["f"])),
        final_reads=tuple(FinalRead(**item) for row in files for item in row["final_reads"]),
        info_polls=_info_polls(files),
        keys=_keys(files),
        recordless=next(
            (one["recordless"] for one in files if one["recordless"] is not None), None
        ),
        repeated=signed(sum(row["repeated"] for row in files)),
        disorder=_disorder(files),
    )


def _gap(files: Sequence[Mapping[str, Any]]) -> str:
    expected = 0
    for row in files:
        if row["first_index"] != expected:
            return f"{row['path']} starts at index {row['first_index']}, expected {expected}"
        if row["gap_at"] is not None:
            return f"index {row['gap_at']} in {row['path']} does not follow the one before it"
        expected += row["row_count"]
    return ""


def _keys(files: Sequence[Mapping[str, Any]]) -> Mapping[F, frozenset[str]]:
    told = [item for row in files for item in row["keys"]]
    return {
        f: frozenset(item["key"] for item in told if item["f"] == f) for f in (F.SEND, F.FINAL_READ)
    }


def _disorder(files: Sequence[Mapping[str, Any]]) -> str:
    last_ns = 0
    for row in files:
        wrong = row["first_index"] if row["first_call_ns"] < last_ns else row["disorder"]
        if wrong is not None:
            return (
                f"operation {wrong} ends before it began, or begins before the one in front of it"
            )
        last_ns = row["last_call_ns"]
    return ""


def _overlap(files: Sequence[Mapping[str, Any]]) -> str:
    returned: dict[int, int] = {}
    for row in files:
        for item in row["pollers"]:
            process, operation = item["process"], item["overlap"]
            if item["first_call_ns"] < returned.get(process, item["first_call_ns"]):
                operation = item["first_operation"]
            if operation is not None:
                return f"process {process} called poll {operation} before its last one returned"
            returned[process] = item["last_return_ns"]
    return ""


def _counts(files: Sequence[Mapping[str, Any]]) -> Mapping[Called, int]:
    counts: Counter[Called] = Counter()
    for row in files:
        for item in row["counts"]:
            called = Called(
                f=F(item["f"]),
                outcome=Outcome(item["outcome"]),
                empty=item["empty"],
                time=item["time"],
            )
            counts[called] += item["count"]
    return counts


def _sums(files: Sequence[Mapping[str, Any]], name: str, key: Any) -> Mapping[Any, int]:
    counts: Counter[Any] = Counter()
    for row in files:
        for item in row[name]:
            counts[key(item)] += item["count"]
    return counts


def _latencies(files: Sequence[Mapping[str, Any]]) -> Mapping[F, Mapping[int, int]]:
    latencies: dict[F, Counter[int]] = defaultdict(Counter)
    for row in files:
        for item in row["latencies"]:
            latencies[F(item["f"])][item["bucket"]] += item["count"]
    return latencies


def _info_polls(files: Sequence[Mapping[str, Any]]) -> Mapping[int, NDArray[np.int64]]:
    polls: dict[int, list[int]] = defaultdict(list)
    for row in files:
        for item in row["info_polls"]:
            polls[item["process"]].append(item["operation"])
    return {process: np.array(sorted(indices)) for process, indices in polls.items()}
