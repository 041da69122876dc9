"""G10 operation-kinds: Every kind of operation that clients were to do succeeded.

Of each kind of operation that the workloads set out to do (of topics, settings, partitions, moves,
transactions) one at least is ok, if the run gave it the chance: nothing was broken for as long as
the workload needs for one, or it was called ten times while nothing was broken, or, where faults
are drawn, thirty times in all. Nothing is broken from 5 s after the last fault has ended. Calls
that found nothing to call off do not count. The figures count each kind by answer.

Checks judge what was acknowledged. A kind of operation of which none ever was (on some system, in
some release, by some mistake in a client) is judged by nothing, and looks like a cluster without a
fault. So each kind that the workloads set out to do (`Manifest.asked_operations`) is *owed* one
success by a run that gave it the chance. How long that takes the workload says; it may say that no
time is enough, as of a move that can be over before it is called off. A play may break what decides
for the whole of it.

Nothing is broken from 5 s after the last fault has ended: by then nodes have their sessions and
offices again. An answer that there is nothing to call off is neither a success nor a refusal, and
no such call counts.

Sends, polls and final reads, and what is done to znodes, have grounds of their own (`evidence`,
`znode-evidence`).

Meaning: A kind of operation that never succeeds is judged by no check.
Case: a kind of operation that the run owes a success
Source: Jepsen, checker `stats`
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fencepost.checkers.entry import CatalogueEntry, Kind
from fencepost.checkers.quiet import quiet
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.runner.tables import cluster_file, opened
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest
from fencepost.history.operation import Outcome
from fencepost.history.run_directory import RunDirectory

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    kind=Kind.GROUND,
    needs=("operations", "records"),
)
_NAME: Final = ENTRY.name
_F_OF: Final[Mapping[str, tuple[str, str]]] = {
    "metadata_writes": ("f", "call_ns"),
    "partition_writes": ("f", "call_ns"),
    "transactions": ("intent", "end_call_ns"),
    "group_offsets": ("f", "call_ns"),
}
"""The tables of such operations, with the columns that say what was done and when it was called."""
_SETTLED_NS: Final = 5_000_000_000
_SETTLED_CALLS_MIN: Final = 10
_CALLS_MIN: Final = 30
_NOTHING_THERE: Final = "NO_REASSIGNMENT_IN_PROGRESS"
_COUNT: Final = "_count"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationKind:
    """One kind of operation in one run, by how it was answered."""

    kind: str
    ok_count: int = 0
    fail_count: int = 0
    info_count: int = 0

    @property
    def called_count(self) -> int:
        """The number of calls."""
        return self.ok_count + self.fail_count + self.info_count


@dataclass(slots=True)
class _Calls:
    """The calls of one kind, added up."""

    outcomes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    settled_count: int = 0
    """Those that were called when nothing was broken, and for which there was something to do."""
    telling_count: int = 0
    """Those for which there was something to do."""


@dataclass(slots=True)
class _Work:
    """The calls of a run by kind, and the time in which its clients made them."""

    calls: dict[str, _Calls] = field(default_factory=dict)
    first_ns: int = OPEN_NS
    last_ns: int = 0

    def add(self, rows: Sequence[Mapping[str, Any]], settled: Sequence[bool]) -> None:
        """Count more calls."""
        for row, is_settled in zip(rows, settled, strict=True):
            mine = self.calls.setdefault(row["kind"], _Calls())
            mine.outcomes[row["outcome"]] += 1
            if row["error"]:
                mine.errors[row["error"]] += 1
            is_telling = row["error"] != _NOTHING_THERE
            mine.telling_count += is_telling
            mine.settled_count += is_telling and is_settled
            if row["call_ns"] is not None:
                self.first_ns = min(self.first_ns, row["call_ns"])
                self.last_ns = max(self.last_ns, row["call_ns"])


def operation_kinds(run: RunDirectory, manifest: Manifest, faults: pa.Table) -> CheckResult:
    """Check that each kind that the run owes a success has one; the figures count all kinds."""
    asked = manifest.asked_operations
    try:
        work = _work(run, manifest, faults)
    except HarnessError as error:
        return CheckResult(check=_NAME, validity=Validity.UNKNOWN, reason=str(error))
    kinds = [_kind(name, work) for name in asked]
    settled_s = sum(_settled_spans(faults, work)) / 1e9
    owed = [
        one
        for one in kinds
        if manifest.end_ns is not None
        and _is_owed(asked[one.kind], work.calls.get(one.kind), settled_s, manifest)
    ]
    missing = [one for one in owed if not one.ok_count]
    return CheckResult(
        check=_NAME,
        validity=Validity.UNKNOWN if missing else Validity.VALID,
        case_count=len(owed),
        reason="; ".join(_told(one, work, settled_s) for one in missing),
        figures=dict(pair for one in kinds for pair in _figures(one)),
    )


def operation_kinds_in(verdict: Verdict) -> tuple[OperationKind, ...]:
    """Return the kinds that a verdict tells; none for runs that did not record them."""
    told = next((one.figures for one in verdict.checks if one.check == _NAME), {})
    ok = f"_{Outcome.OK}{_COUNT}"
    return tuple(
        OperationKind(
            kind=kind,
            ok_count=int(count),
            fail_count=int(told[f"{kind}_{Outcome.FAIL}{_COUNT}"]),
            info_count=int(told[f"{kind}_{Outcome.INFO}{_COUNT}"]),
        )
        for name, count in told.items()
        if name.endswith(ok) and (kind := name.removesuffix(ok))
    )


def _work(run: RunDirectory, manifest: Manifest, faults: pa.Table) -> _Work:
    work, broken = _Work(), quiet(faults)
    for table, (f, called) in _F_OF.items():
        if table not in manifest.recorded:
            continue
        with opened(cluster_file(run, manifest, table), table) as parquet:
            columns = [f, called, "outcome", "error"]
            for batch in parquet.iter_batches(columns=columns):
                rows = [
                    {
                        "kind": row[f],
                        "call_ns": row[called],
                        "outcome": row["outcome"],
                        "error": row["error"],
                    }
                    for row in batch.to_pylist()
                ]
                calls_ns = [row["call_ns"] for row in rows]
                times = np.array([-1 if one is None else one for one in calls_ns], dtype=np.int64)
                since_ns = broken.since_ns(times)
                settled = (since_ns != OPEN_NS) & (times - since_ns >= _SETTLED_NS)
                work.add(rows, settled.tolist())
    return work


def _settled_spans(faults: pa.Table, work: _Work) -> Iterator[int]:
    """Yield how long nothing was broken, each time, while the clients were at work."""
    rows = sorted(faults.to_pylist(), key=lambda row: int(row["begin_ns"]))
    begins = [row["begin_ns"] for row in rows]
    ends = accumulate((OPEN_NS if row["end_ns"] is None else row["end_ns"] for row in rows), max)
    for since_ns, until_ns in zip([0, *ends], [*begins, OPEN_NS], strict=True):
        first_ns = max(since_ns, work.first_ns)
        yield max(0, min(until_ns, work.last_ns) - first_ns - _SETTLED_NS)


def _kind(name: str, work: _Work) -> OperationKind:
    outcomes = work.calls[name].outcomes if name in work.calls else Counter[str]()
    return OperationKind(
        kind=name,
        ok_count=outcomes[Outcome.OK],
        fail_count=outcomes[Outcome.FAIL],
        info_count=outcomes[Outcome.INFO],
    )


def _is_owed(
    due_s: float | None, calls: _Calls | None, settled_s: float, manifest: Manifest
) -> bool:
    if due_s is not None and settled_s >= due_s:
        return True
    if calls is None:
        return False
    is_play = bool(manifest.asked_faults) and not manifest.drawn
    return calls.settled_count >= _SETTLED_CALLS_MIN or (
        calls.telling_count >= _CALLS_MIN and not is_play
    )


def _told(one: OperationKind, work: _Work, settled_s: float) -> str:
    if not one.called_count:
        return (
            f"no {one.kind} was ever called, though nothing was broken for {settled_s:.0f} s of "
            "the clients' time"
        )
    errors: Iterable[tuple[str, int]] = work.calls[one.kind].errors.most_common(3)
    said = ", ".join(f"{error} {count}" for error, count in errors)
    return f"none of {one.called_count} {one.kind} succeeded ({said or 'no answer'})"


def _figures(one: OperationKind) -> Iterator[tuple[str, float]]:
    yield f"{one.kind}_{Outcome.OK}{_COUNT}", one.ok_count
    yield f"{one.kind}_{Outcome.FAIL}{_COUNT}", one.fail_count
    yield f"{one.kind}_{Outcome.INFO}{_COUNT}", one.info_count


CHECKS: Final = (ENTRY,)
