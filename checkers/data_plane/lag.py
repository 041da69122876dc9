"""D15 real-time-lag: How long after a record was known a consumer still had not got it.

For each ok poll of a key but the first of its session: how long, when it was called, its first
record or a later one had been known, by an acknowledgement or by an ok read of anybody; no poll of
the process that had ended by then had returned it. Quantiles over the polls of all keys, and of the
keys with the greatest lag.

A record is *known* from the first acknowledgement or ok read of it, or of any record after it in
the log: a reader of that one should have been given this one before. A consumer that goes on
polling is given the record after its last one next. Records that a crashed poll consumed have no
lag: the next ok poll begins after them.

It says nothing of records that a consumer was never given: those are lost-write's and
skipped-poll's. A figure never makes a run invalid; it is unknown if the records could not be read.

One task a file. Two sweeps over the rows of a key, piece by piece if they are many: one fills a
table by offset with the times from which records are known, the other looks polls up in it. So what
is in memory is that table (8 bytes an offset) and one piece. Lags are counted in buckets that are
1.1 % wide.

Meaning: How stale consumers are: behind by themselves, or kept waiting by the cluster.
Case: a poll whose lag is known
Source: Jepsen, workload `kafka`, `realtime-lag`
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.anomaly import ANOMALIES
from fencepost.checkers.check_group import CheckGroup, GroupAnswers, Question
from fencepost.checkers.entry import CatalogueEntry, Nearness, Strength
from fencepost.checkers.grounds.operations import BUCKETS_AN_OCTAVE
from fencepost.checkers.rows import codes
from fencepost.checkers.runner.table_pieces import outline, some_keys_in, stretch_rows, verify
from fencepost.checkers.runner.tables import SealedFile, record_files
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.history.operation import F, Outcome

_WHOLE_ROWS_MAX: Final = 1 << 20
_KEYS_SHOWN_MAX: Final = 10
_QUANTILES: Final = {"p50": 0.5, "p99": 0.99}
_NS_A_MS: Final = 1_000_000
_OF_KNOWLEDGE: Final = ("offset", "outcome", "return_ns")
_OF_POLLS: Final = ("offset", "operation", "process", "session", "call_ns")
_THAT_ARE_POLLS: Final = ("f", "outcome", "return_ns")
_COLUMNS: Final = (*_OF_POLLS, *_THAT_ARE_POLLS)
"""The columns of RECORDS that it reads."""

NO_LAG: Final = -1
"""The bucket of polls without a lag."""

_NEVER_NS: Final = int(np.iinfo(np.int64).max)
_SPAN_A_ROW_MAX: Final = 64
_SPAN_MIN: Final = 1 << 20
"""Offsets that are this far apart, and for so few rows, are not worth a table."""

_Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lags:
    """The lags of the polls of one key."""

    counts: Counter[int] = field(default_factory=Counter)
    """Polls by bucket: of bucket b, lags from 2^(b/64) ns on; `NO_LAG`."""
    max_ns: int = 0

    @property
    def poll_count(self) -> int:
        """The number of polls that were measured."""
        return self.counts.total()


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


def lags(pieces: Callable[[Sequence[str]], Iterable[pa.Table]]) -> Lags | None:
    """Return the lags of a key. None if its offsets lie too far apart to be measured.

    `pieces`: gives the rows of the key, these columns of RECORDS (or more), in the order of the
    sealed file (by operation, then by place in it); called twice.
    """
    known = _Known()
    for piece in pieces(_OF_KNOWLEDGE):
        if not known.learn(piece):
            return None
    known.spread()
    pollers, counts, max_ns = _Pollers(), Counter[int](), 0
    for piece in pieces(_COLUMNS):
        offset, call_ns = pollers.resumed(piece)
        lag_ns = np.maximum(call_ns - known.since_ns(offset), 0)
        counts.update(_buckets(lag_ns))
        max_ns = max(max_ns, int(lag_ns.max(initial=0)))
    return Lags(counts=counts, max_ns=max_ns)


def _keys(file: SealedFile) -> Iterator[tuple[str, Lags | None]]:
    by_key = groupby(outline(file), key=lambda stretch: stretch.key)
    stretches = {key: tuple(mine) for key, mine in by_key}
    large = {
        key: mine
        for key, mine in stretches.items()
        if sum(stretch.count for stretch in mine) > _WHOLE_ROWS_MAX
    }
    small = [one for key, mine in stretches.items() if key not in large for one in mine]
    for key, rows in some_keys_in(file, small, ("key", *_COLUMNS)):
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


REAL_TIME_LAG: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.REMAINS,
    strength=Strength.FIGURE,
    needs=("operations", "records"),
)


@dataclass(slots=True)
class _Known:
    """The times from when on each offset was known."""

    first: int = 0
    end: int = 0
    times_ns: _Numbers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    row_count: int = 0

    def learn(self, piece: pa.Table) -> bool:
        """Take in the piece's known records; return False if the offsets are too far apart."""
        ok = piece.select(["offset", "return_ns"]).filter(pa.array(_located(piece)))
        self.row_count += piece.num_rows
        if ok.num_rows:
            offset = ok["offset"].to_numpy()
            if not self._make_room(int(offset.min()), int(offset.max()) + 1):
                return False
            np.minimum.at(self.times_ns, offset - self.first, ok["return_ns"].to_numpy())
        return True

    def spread(self) -> None:
        """Spread the times downwards: to know a record is to know those before it."""
        self.times_ns = np.minimum.accumulate(self.times_ns[::-1])[::-1]

    def since_ns(self, offset: _Numbers) -> _Numbers:
        """Return from when on these offsets were known, which were all learnt."""
        return self.times_ns[offset - self.first]

    def _make_room(self, first: int, end: int) -> bool:
        if len(self.times_ns):
            first, end = min(first, self.first), max(end, self.end)
        if end - first > max(_SPAN_MIN, _SPAN_A_ROW_MAX * self.row_count):
            return False
        if not len(self.times_ns):
            self.first = self.end = first
        if first < self.first or end > self.first + len(self.times_ns):
            # Twice what there is, so that a log that grows by pieces is copied a few times only.
            room = max(end - first, 2 * len(self.times_ns))
            wider = np.full(room, _NEVER_NS, dtype=np.int64)
            place, length = self.first - first, self.end - self.first
            wider[place : place + length] = self.times_ns[:length]
            self.first, self.times_ns = first, wider
        self.end = end
        return True


@dataclass(slots=True)
class _Pollers:
    """The last position of each process between two pieces."""

    operation: int = -1
    """The last one of which a record was seen."""
    sessions: dict[int, int] = field(default_factory=dict)
    """The session of the last ok poll of each process."""

    def resumed(self, piece: pa.Table) -> tuple[_Numbers, _Numbers]:
        """Return (offset of the first record, call) of each ok poll that goes on with a session."""
        are_polls = codes(piece["f"], tuple(F)) == tuple(F).index(F.POLL)
        polls = piece.select(list(_OF_POLLS)).filter(pa.array(are_polls & _located(piece)))
        operation = polls["operation"].to_numpy()
        first = np.flatnonzero(np.diff(operation, prepend=self.operation))
        self.operation = int(operation[-1]) if len(operation) else self.operation
        process = polls["process"].to_numpy()[first]
        session = polls["session"].to_numpy()[first]
        on = self._goes_on(process, session)
        return polls["offset"].to_numpy()[first[on]], polls["call_ns"].to_numpy()[first[on]]

    def _goes_on(self, process: NDArray[np.int32], session: NDArray[np.int32]) -> NDArray[np.bool_]:
        on = np.zeros(len(process), dtype=np.bool_)
        for one in np.unique(process).tolist():
            mine = np.flatnonzero(process == one)
            before = np.concatenate([[self.sessions.get(one, -1)], session[mine][:-1]])
            on[mine] = session[mine] == before
            self.sessions[one] = int(session[mine[-1]])
        return on


def _located(piece: pa.Table) -> NDArray[np.bool_]:
    """Return a mask of the rows that belong to ok operations and know their offsets."""
    located: NDArray[np.bool_] = codes(piece["outcome"], tuple(Outcome)) == tuple(Outcome).index(
        Outcome.OK
    )
    for name in ("offset", "return_ns"):
        if piece[name].null_count:
            located &= pc.is_valid(piece[name]).to_numpy()
    return located


def _buckets(lag_ns: _Numbers) -> dict[int, int]:
    late = lag_ns[lag_ns > 0]
    bucket = np.floor(np.log2(late) * BUCKETS_AN_OCTAVE).astype(np.int64)
    names, counts = np.unique(bucket, return_counts=True)
    found: dict[int, int] = dict(zip(names.tolist(), counts.tolist(), strict=True))
    return {NO_LAG: len(lag_ns) - len(late), **found}


CHECKS: Final = (CheckGroup(name="lag", entries=(REAL_TIME_LAG,), answer=_answer),)
