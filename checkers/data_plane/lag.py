"""The lag of consumers as a group of the checker: one task a file, figures for the verdict.

A key with many rows is swept piece by piece (`checkers.data_plane.lags`), others as a whole. A
figure never makes a run invalid; it is unknown if the records could not be read.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from time import perf_counter
from typing import Any, Final

import pyarrow as pa

from checkers.anomaly import ANOMALIES
from checkers.check_group import CheckGroup, GroupAnswers, Question
from checkers.data_plane.lags import COLUMNS, NO_LAG, Lags, lags
from checkers.entry import Entry, Kind, Strength
from checkers.grounds.operations import BUCKETS_AN_OCTAVE
from checkers.runner.table_pieces import outline, some_keys_in, stretch_rows, verify
from checkers.runner.tables import (
    JobError,
    SealedFile,
    collected,
    file_frame,
    record_files,
    scanned,
)
from checkers.verdict import CheckResult, Validity
from history.failure import HarnessError

__all__ = ["CHECKS", "LAGS", "figures_of", "lags_in"]

_WHOLE_ROWS_MAX: Final = 1 << 20
_KEYS_SHOWN_MAX: Final = 10
_QUANTILES: Final = {"p50": 0.5, "p99": 0.99}
_NS_A_MS: Final = 1_000_000

LAGS: Final = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        # In the one row of a file itself: why it could not be read, or null. Then `key` is null.
        pa.field("unreadable", pa.string()),
        pa.field("seconds", pa.float64()),
        pa.field("key", pa.string()),
        # Null: its offsets lie too far apart.
        pa.field("max_ns", pa.int64()),
        pa.field("buckets", pa.list_(pa.field("element", pa.int32()))),
        pa.field("counts", pa.list_(pa.field("element", pa.int64()))),
    ]
)


def lags_in(file: SealedFile) -> Iterator[pa.Table]:
    """LAGS of one file of `records`: a row a key, and one for the file."""
    started, unreadable = perf_counter(), None
    try:
        verify(file)
        for key, found in _keys(file):
            yield _table({"path": file.path, "key": key, **_columns(found)})
    except HarnessError as error:
        unreadable = str(error)
    seconds = perf_counter() - started
    yield _table({"path": file.path, "unreadable": unreadable, "seconds": seconds})


def figures_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The figures of these rows of LAGS: of all keys, then of those with the greatest lag."""
    keys = [row for row in rows if row["key"] is not None]
    measured = [row for row in keys if row["max_ns"] is not None]
    total: Counter[int] = Counter()
    for row in measured:
        total.update(_counts(row))
    greatest = max((row["max_ns"] for row in measured), default=0)
    figures: dict[str, float] = {
        "polls_count": total.total(),
        "keys_count": len(keys),
        "keys_unmeasured_count": len(keys) - len(measured),
        **_lag_figures("lag", total, greatest),
    }
    worst = sorted(measured, key=lambda row: (-row["max_ns"], row["key"]))
    for row in worst[:_KEYS_SHOWN_MAX]:
        figures |= _lag_figures(f"{row['key']}_lag", _counts(row), row["max_ns"])
    return figures


def _keys(file: SealedFile) -> Iterator[tuple[str, Lags | None]]:
    by_key = groupby(outline(file), key=lambda stretch: stretch.key)
    stretches = {key: tuple(mine) for key, mine in by_key}
    large = {
        key: mine
        for key, mine in stretches.items()
        if sum(stretch.count for stretch in mine) > _WHOLE_ROWS_MAX
    }
    small = [one for key, mine in stretches.items() if key not in large for one in mine]
    for key, rows in some_keys_in(file, small, ("key", *COLUMNS)):
        yield key, lags(_Whole(rows))
    for key, mine in large.items():
        yield key, lags(partial(stretch_rows, file, mine))


@dataclass(frozen=True, slots=True)
class _Whole:
    """A key's rows in one piece."""

    rows: pa.Table

    def __call__(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        yield self.rows.select(list(columns))


def _columns(found: Lags | None) -> dict[str, Any]:
    if found is None:
        return {"max_ns": None, "buckets": [], "counts": []}
    return {
        "max_ns": found.max_ns,
        "buckets": list(found.counts.keys()),
        "counts": list(found.counts.values()),
    }


def _table(row: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([row], schema=LAGS)


def _counts(row: Mapping[str, Any]) -> Counter[int]:
    return Counter(dict(zip(row["buckets"], row["counts"], strict=True)))


def _lag_figures(name: str, counts: Counter[int], max_ns: int) -> dict[str, float]:
    if not counts.total():
        return {}
    figures = {
        f"{name}_{quantile}_ms": min(_quantile_ns(counts, share), max_ns) / _NS_A_MS
        for quantile, share in _QUANTILES.items()
    }
    return figures | {f"{name}_max_ms": max_ns / _NS_A_MS}


def _quantile_ns(counts: Counter[int], share: float) -> float:
    """The upper bound of the bucket that the quantile falls into."""
    reached = 0
    for bucket in sorted(counts):
        reached += counts[bucket]
        if reached >= share * counts.total():
            break
    upper: float = 0.0 if bucket == NO_LAG else 2 ** ((bucket + 1) / BUCKETS_AN_OCTAVE)
    return upper


def _answer(question: Question) -> GroupAnswers:
    files = file_frame(question.spark, record_files(question.run, question.manifest))
    try:
        rows = collected(
            scanned(files, lags_in, schema=LAGS), schema=LAGS, budget_s=question.budget_s
        ).to_pylist()
        unreadable = "; ".join(sorted(row["unreadable"] for row in rows if row["unreadable"]))
    except JobError as error:
        rows, unreadable = [], f"its pass over the records died: {error}"
    figures = figures_of(rows)
    result = CheckResult(
        check=REAL_TIME_LAG.name,
        validity=Validity.UNKNOWN if unreadable else Validity.VALID,
        case_count=int(figures["polls_count"]),
        reason=unreadable,
        figures=figures,
        seconds=sum(row["seconds"] or 0.0 for row in rows),
    )
    return GroupAnswers(results=(result,), anomalies=ANOMALIES.empty_table())


REAL_TIME_LAG: Final = Entry(
    id="D15",
    name="real-time-lag",
    title="How long after a record was known a consumer still had not got it",
    kind=Kind.ANOMALY,
    rule="For each ok poll of a key but the first of its session: how long, when it was called, "
    "its first record or a later one had been known, by an acknowledgement or by an ok read of "
    "anybody; no poll of the process that had ended by then had returned it. Quantiles over the "
    "polls of all keys, and of the keys with the greatest lag.",
    meaning="How stale consumers are: behind by themselves, or kept waiting by the cluster.",
    case="a poll whose lag is known",
    source="Jepsen, workload `kafka`, `realtime-lag`",
    strength=Strength.FIGURE,
    needs=("operations", "records"),
)

CHECKS: Final = (CheckGroup(name="lag", entries=(REAL_TIME_LAG,), answer=_answer),)
