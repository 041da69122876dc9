"""The summary of one file of operations in one small row, for assumptions, grounds and figures.

Operations are many, and what crosses their files is little: counts, a histogram, the first call
and last return of each process, the final reads, the polls that crashed. So each file is summed up
where it lies, and `checkers.grounds.history_summary` puts the sums together.

An operation belongs to the time at which it was *called*: before the first effect of a fault,
during some fault (from its effect to its heal), between faults, or after the last heal; and it is
counted separately for each fault and each kind of fault during which it was called. To its kind a
fault lasts a second at least: a restarted node may be back before any client has called. Latencies
go into buckets that are 1.1 % wide, so that quantiles of a run can be told from the sum of files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.grounds.repeated import repeated_of
from fencepost.checkers.rows import INFO, OK, OPEN_NS, codes
from fencepost.history.operation import F, Outcome

BUCKETS_AN_OCTAVE: Final = 64
_SHORTEST_NS: Final = 1_000_000_000
"""Clients go on for at least that long after the last heal, so that the last fault has it, too."""

COLUMNS: Final = (
    "index",
    "process",
    "f",
    "key",
    "call_ns",
    "return_ns",
    "outcome",
    "error",
    "record_count",
)


def _list_of(*fields: pa.Field) -> pa.DataType:
    return pa.list_(pa.field("element", pa.struct(fields)))


_F = pa.field("f", pa.string())
_COUNT = pa.field("count", pa.int64())
_PROCESS = pa.field("process", pa.int32())
_OPERATION = pa.field("operation", pa.int64())

SUMMARY: Final = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("row_count", pa.int64()),
        pa.field("first_index", pa.int64()),
        # The first index that does not follow the one before it in the file; null: none.
        pa.field("gap_at", pa.int64()),
        # `time`: before, during, between, after; or the number of the fault during which, or
        # `during_kind` of its kind.
        pa.field(
            "counts",
            _list_of(
                _F,
                pa.field("outcome", pa.string()),
                pa.field("empty", pa.bool_()),
                pa.field("time", pa.string()),
                _COUNT,
            ),
        ),
        pa.field("errors", _list_of(_F, pa.field("error", pa.string()), _COUNT)),
        # Of ok operations.
        pa.field("latencies", _list_of(_F, pa.field("bucket", pa.int32()), _COUNT)),
        pa.field("record_counts", _list_of(_F, _COUNT)),
        # Of polls; `overlap`: the first one that was called before the last one had returned.
        pa.field(
            "pollers",
            _list_of(
                _PROCESS,
                pa.field("first_operation", pa.int64()),
                pa.field("first_call_ns", pa.int64()),
                pa.field("last_return_ns", pa.int64()),
                pa.field("overlap", pa.int64()),
            ),
        ),
        pa.field(
            "final_reads",
            _list_of(
                _OPERATION,
                pa.field("key", pa.string()),
                pa.field("call_ns", pa.int64()),
                pa.field("return_ns", pa.int64()),
                pa.field("record_count", pa.int64()),
            ),
        ),
        pa.field("info_polls", _list_of(_PROCESS, _OPERATION)),
        # The keys of sends and final reads.
        pa.field("keys", _list_of(_F, pa.field("key", pa.string()))),
        # The first send that has no record.
        pa.field("recordless", pa.int64()),
        # The first operation that ended before it began, or began before the one in front of it.
        pa.field("disorder", pa.int64()),
        pa.field("first_call_ns", pa.int64()),
        pa.field("last_call_ns", pa.int64()),
        # `repeated_of`: the sum of what records repeat of these.
        pa.field("repeated", pa.int64()),
    ]
)

_FS: Final = tuple(F)
_OUTCOMES: Final = (Outcome.OK, Outcome.FAIL, Outcome.INFO)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultWindow:
    """The time when a fault was in effect; a fault that never healed ends at `OPEN_NS`."""

    fault: int
    """Its index."""
    kind: str
    effect_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operations:
    index: NDArray[np.int64]
    process: NDArray[np.int32]
    f: NDArray[np.int8]
    outcome: NDArray[np.int8]
    call_ns: NDArray[np.int64]
    return_ns: NDArray[np.int64]
    record_count: NDArray[np.int32]


def during_kind(kind: str) -> str:
    """Return the `time` of what was called during any fault of a kind."""
    return f"during {kind}"


def summary_of_operations(
    path: str, operations: pa.Table, *, windows: Sequence[FaultWindow]
) -> pa.Table:
    """Return one row of `SUMMARY` for a file's OPERATIONS (its `COLUMNS`, in file order)."""
    ops = _Operations(
        index=operations.column("index").to_numpy(),
        process=operations.column("process").to_numpy(),
        f=codes(operations.column("f"), tuple(_FS)),
        outcome=codes(operations.column("outcome"), tuple(_OUTCOMES)),
        call_ns=operations.column("call_ns").to_numpy(),
        return_ns=pc.fill_null(operations.column("return_ns"), OPEN_NS).to_numpy(),
        record_count=operations.column("record_count").to_numpy(),
    )
    gap = ops.index[1:][np.diff(ops.index) != 1]
    row = {
        "path": path,
        "row_count": len(ops.index),
        "first_index": int(ops.index[0]) if len(ops.index) else None,
        "gap_at": int(gap[0]) if len(gap) else None,
        "counts": list(_counts(ops, windows)),
        "errors": _errors(operations),
        "latencies": list(_latencies(ops)),
        "record_counts": list(_record_counts(ops)),
        "pollers": list(_pollers(ops)),
        "final_reads": list(_final_reads(ops, operations)),
        "info_polls": list(_info_polls(ops)),
        "keys": list(_keys(ops, operations)),
        "recordless": _first(ops, (ops.f == _FS.index(F.SEND)) & (ops.record_count == 0)),
        "disorder": _first(ops, _disordered(ops)),
        "first_call_ns": int(ops.call_ns[0]) if len(ops.index) else None,
        "last_call_ns": int(ops.call_ns[-1]) if len(ops.index) else None,
        "repeated": repeated_of(operations),
    }
    return pa.Table.from_pylist([row], schema=SUMMARY)


def _counts(ops: _Operations, windows: Sequence[FaultWindow]) -> Iterator[dict[str, Any]]:
    empty = ops.record_count == 0
    kind = ops.f * 6 + ops.outcome * 2 + empty
    union = _union(windows)
    for code in np.flatnonzero(np.bincount(kind)).tolist():
        called = np.sort(ops.call_ns[kind == code])
        shared = {
            "f": _FS[code // 6],
            "outcome": _OUTCOMES[code % 6 // 2],
            "empty": bool(code % 2),
        }
        for time, count in _by_time(called, windows, union):
            if count:
                yield shared | {"time": time, "count": count}


def _by_time(
    called: NDArray[np.int64], windows: Sequence[FaultWindow], union: Sequence[FaultWindow]
) -> Iterator[tuple[str, int]]:
    """Yield how many of these ascending times lie before, during, between and after the faults."""
    if not union:
        yield "before", len(called)
        return
    before = int(np.searchsorted(called, union[0].effect_ns))
    after = len(called) - int(np.searchsorted(called, union[-1].end_ns, side="right"))
    during = sum(_within(called, window) for window in union)
    yield "before", before
    yield "during", during
    yield "between", len(called) - before - during - after
    yield "after", after
    for window in windows:
        yield str(window.fault), _within(called, window)
    for kind in dict.fromkeys(window.kind for window in windows):
        of_kind = _union([_lasting(window) for window in windows if window.kind == kind])
        yield during_kind(kind), sum(_within(called, window) for window in of_kind)


def _lasting(window: FaultWindow) -> FaultWindow:
    return replace(window, end_ns=max(window.end_ns, window.effect_ns + _SHORTEST_NS))


def _within(called: NDArray[np.int64], window: FaultWindow) -> int:
    end = int(np.searchsorted(called, window.end_ns, side="right"))
    return end - int(np.searchsorted(called, window.effect_ns))


def _union(windows: Sequence[FaultWindow]) -> list[FaultWindow]:
    """Return the times at which any fault was in effect, as disjoint windows in order."""
    union: list[FaultWindow] = []
    for window in sorted(windows, key=lambda one: one.effect_ns):
        if union and window.effect_ns <= union[-1].end_ns:
            last = union.pop()
            end_ns = max(last.end_ns, window.end_ns)
            union.append(replace(last, end_ns=end_ns))
        else:
            union.append(window)
    return union


def _errors(operations: pa.Table) -> list[dict[str, Any]]:
    failed = operations.select(["f", "error"]).filter(pc.is_valid(operations.column("error")))
    plain = failed.cast(pa.schema([_F, pa.field("error", pa.string())]))
    counted = plain.group_by(["f", "error"]).aggregate([([], "count_all")])
    rows: list[dict[str, Any]] = counted.rename_columns(["f", "error", "count"]).to_pylist()
    return rows


def _latencies(ops: _Operations) -> Iterator[dict[str, Any]]:
    for code, f in enumerate(_FS):
        mine = (ops.f == code) & (ops.outcome == OK)
        spent = np.maximum(ops.return_ns[mine] - ops.call_ns[mine], 1)
        counts = np.bincount((np.log2(spent) * BUCKETS_AN_OCTAVE).astype(np.int64))
        for bucket in np.flatnonzero(counts).tolist():
            yield {"f": f, "bucket": bucket, "count": int(counts[bucket])}


def _record_counts(ops: _Operations) -> Iterator[dict[str, Any]]:
    for code, f in enumerate(_FS):
        yield {"f": f, "count": int(ops.record_count[ops.f == code].sum(dtype=np.int64))}


def _pollers(ops: _Operations) -> Iterator[dict[str, Any]]:
    polls = np.flatnonzero(ops.f == _FS.index(F.POLL))
    polls = polls[np.argsort(ops.process[polls], kind="stable")]
    for mine in np.split(polls, np.flatnonzero(np.diff(ops.process[polls])) + 1):
        if len(mine):
            overlap = mine[1:][ops.call_ns[mine[1:]] < ops.return_ns[mine[:-1]]]
            yield {
                "process": int(ops.process[mine[0]]),
                "first_operation": int(ops.index[mine[0]]),
                "first_call_ns": int(ops.call_ns[mine[0]]),
                "last_return_ns": int(ops.return_ns[mine].max()),
                "overlap": int(ops.index[overlap[0]]) if len(overlap) else None,
            }


def _final_reads(ops: _Operations, operations: pa.Table) -> Iterator[dict[str, Any]]:
    rows = np.flatnonzero((ops.f == _FS.index(F.FINAL_READ)) & (ops.outcome == OK))
    keys = operations.column("key").take(pa.array(rows)).to_pylist()
    for row, key in zip(rows.tolist(), keys, strict=True):
        yield {
            "operation": int(ops.index[row]),
            "key": key,
            "call_ns": int(ops.call_ns[row]),
            "return_ns": int(ops.return_ns[row]),
            "record_count": int(ops.record_count[row]),
        }


def _keys(ops: _Operations, operations: pa.Table) -> Iterator[dict[str, Any]]:
    for f in (F.SEND, F.FINAL_READ):
        mine = operations.column("key").filter(pa.array(ops.f == _FS.index(f)))
        yield from ({"f": f, "key": key} for key in pc.unique(mine).to_pylist() if key is not None)


def _first(ops: _Operations, wrong: NDArray[np.bool_]) -> int | None:
    return int(ops.index[np.argmax(wrong)]) if np.any(wrong) else None


def _disordered(ops: _Operations) -> NDArray[np.bool_]:
    backwards: NDArray[np.bool_] = ops.return_ns < ops.call_ns
    backwards |= ops.call_ns < 0
    backwards[1:] |= ops.call_ns[1:] < ops.call_ns[:-1]
    return backwards


def _info_polls(ops: _Operations) -> Iterator[dict[str, Any]]:
    rows = np.flatnonzero((ops.f == _FS.index(F.POLL)) & (ops.outcome == INFO))
    for row in rows.tolist():
        yield {"process": int(ops.process[row]), "operation": int(ops.index[row])}
