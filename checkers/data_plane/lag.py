"""The lag of consumers as a group of the checker: one task a file, figures for the verdict.

A key with many rows is swept piece by piece (`checkers.data_plane.lags`), others as a whole. A
figure never makes a run invalid; it is unknown if the records could not be read.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Final

import pyarrow as pa

from checkers.anomaly import ANOMALIES
from checkers.check_group import CheckGroup, GroupAnswers, Question
from checkers.data_plane.lags import COLUMNS, NO_LAG, Lags, lags
from checkers.entry import Entry, Kind, Strength
from checkers.grounds.operations import BUCKETS_AN_OCTAVE
from checkers.runner.table_pieces import outline, some_keys_in, stretch_rows, verify
from checkers.runner.tables import SealedFile, record_files
from checkers.verdict import CheckResult, Validity

__all__ = ["CHECKS", "figures_of", "lags_in"]

_WHOLE_ROWS_MAX: Final = 1 << 20
_KEYS_SHOWN_MAX: Final = 10
_QUANTILES: Final = {"p50": 0.5, "p99": 0.99}
_NS_A_MS: Final = 1_000_000


def lags_in(file: SealedFile) -> dict[str, Lags | None]:
    """Return the lags of each key of a file of `records`; None where its offsets lie too far apart.

    Raises HarnessError, naming the file, if it cannot be read.
    """
    verify(file)
    return dict(_keys(file))


def figures_of(keys: Mapping[str, Lags | None]) -> dict[str, float]:
    """Return the figures of these keys: of all, then of those with the greatest lag."""
    measured = {key: found for key, found in keys.items() if found is not None}
    total: Counter[int] = Counter()
    for found in measured.values():
        total.update(found.counts)
    greatest = max((found.max_ns for found in measured.values()), default=0)
    figures: dict[str, float] = {
        "polls_count": total.total(),
        "keys_count": len(keys),
        "keys_unmeasured_count": len(keys) - len(measured),
        **_lag_figures("lag", total, greatest),
    }
    worst = sorted(measured.items(), key=lambda item: (-item[1].max_ns, item[0]))
    for key, found in worst[:_KEYS_SHOWN_MAX]:
        figures |= _lag_figures(f"{key}_lag", Counter(found.counts), found.max_ns)
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


def _lag_figures(name: str, counts: Counter[int], max_ns: int) -> dict[str, float]:
    if not counts.total():
        return {}
    figures = {
        f"{name}_{quantile}_ms": min(_quantile_ns(counts, share), max_ns) / _NS_A_MS
        for quantile, share in _QUANTILES.items()
    }
    return figures | {f"{name}_max_ms": max_ns / _NS_A_MS}


def _quantile_ns(counts: Counter[int], share: float) -> float:
    """Return the upper bound of the bucket that the quantile falls into."""
    reached = 0
    for bucket in sorted(counts):
        reached += counts[bucket]
        if reached >= share * counts.total():
            break
    upper: float = 0.0 if bucket == NO_LAG else 2 ** ((bucket + 1) / BUCKETS_AN_OCTAVE)
    return upper


def _answer(question: Question) -> GroupAnswers:
    answers = question.each_file(record_files(question.run, question.manifest), lags_in)
    unreadable = "; ".join(sorted(answer.failure for answer in answers if answer.failure))
    figures = figures_of(
        {key: found for answer in answers for key, found in (answer.content or {}).items()}
    )
    result = CheckResult(
        check=REAL_TIME_LAG.name,
        validity=Validity.UNKNOWN if unreadable else Validity.VALID,
        case_count=int(figures["polls_count"]),
        reason=unreadable,
        figures=figures,
        seconds=sum(answer.seconds for answer in answers),
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
