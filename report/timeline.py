"""Operations over time: one pass over the table, in memory that does not grow with the run.

The run is cut into at most `BIN_COUNT_MAX` bins of equal, round width. Operations are counted in
the bin in which they *ended* (the moment a rate means something), latencies in the bin in which
their send was *called* (so that a stall shows where it began, at its full height).

Quantiles come from a histogram with `_BUCKETS_AN_OCTAVE` buckets a doubling, hence within 1.1 % of
the exact value; maxima are exact. Only acknowledged sends have a latency: a send whose fate is not
known shows in the rate of info.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from history.failure import HarnessError
from history.schema import F, Outcome

__all__ = [
    "BIN_COUNT_MAX",
    "Bins",
    "Latencies",
    "OperationBlock",
    "Timeline",
    "TimelineFold",
    "bins_for",
    "block_of",
]

BIN_COUNT_MAX: Final = 2000
"""The bound on bins: more points than pixels tell an eye nothing and weigh on the page."""

_NS: Final = 1_000_000_000
# Round widths, so that a bin can be named: half a second and longer, as many sends as a p99 needs.
_WIDTHS_S: Final = (0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)

_FS: Final = tuple(F)
_OUTCOMES: Final = tuple(Outcome)

_BUCKETS_AN_OCTAVE: Final = 32
_LATENCY_NS_MIN: Final = 1000.0
_OCTAVES: Final = 32
"""The octaves of latency: from 1 µs to 71 minutes."""
_BUCKETS: Final = _BUCKETS_AN_OCTAVE * _OCTAVES


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins:
    """The `count` bins of `width_ns` from the start of the run on."""

    width_ns: int
    count: int

    @property
    def width_s(self) -> float:
        """The width in seconds."""
        return self.width_ns / _NS

    @property
    def starts_s(self) -> NDArray[np.float64]:
        """The beginning of each bin, in seconds of the run."""
        return np.arange(self.count, dtype=np.float64) * self.width_s

    def of(self, times_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bin of each time.

        A time outside of the run counts in the first or last bin.
        """
        return np.clip(times_ns // self.width_ns, 0, self.count - 1)


def bins_for(end_ns: int) -> Bins:
    """Return the finest round bins of which at most `BIN_COUNT_MAX` cover a run of this length."""
    for width_s in _WIDTHS_S:
        width_ns = round(width_s * _NS)
        if end_ns <= width_ns * BIN_COUNT_MAX:
            return Bins(width_ns=width_ns, count=max(1, -(-end_ns // width_ns)))
    hours = -(-end_ns // (BIN_COUNT_MAX * 3600 * _NS))
    return Bins(width_ns=hours * 3600 * _NS, count=-(-end_ns // (hours * 3600 * _NS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationBlock:
    """A stretch of `operations` as plain arrays of one length; the same for every fold."""

    f: NDArray[np.int8]
    """The places in `F`."""
    outcome: NDArray[np.int8]
    """The places in `Outcome`."""
    call_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    """The time of its return; of its call, if its end was never seen."""
    record_count: NDArray[np.int64]
    error: pa.Array
    """The names in the error registry, or null."""

    def select(self, f: F, outcome: Outcome) -> NDArray[np.bool_]:
        """Return a mask of the operations of this kind and outcome."""
        chosen: NDArray[np.bool_] = (self.f == _FS.index(f)) & (
            self.outcome == _OUTCOMES.index(outcome)
        )
        return chosen


def block_of(batch: pa.RecordBatch) -> OperationBlock:
    """Return a batch of `operations` as plain arrays.

    Columns, at least: f, outcome, call_ns, return_ns, record_count, error. The words may be
    dictionary-encoded. Raises HarnessError for a word that is neither an `F` nor an `Outcome`.
    """
    call_ns = batch.column("call_ns").to_numpy(zero_copy_only=False)
    returned = batch.column("return_ns")
    return OperationBlock(
        f=_places(batch.column("f"), _FS),
        outcome=_places(batch.column("outcome"), _OUTCOMES),
        call_ns=call_ns,
        end_ns=np.where(
            returned.is_valid().to_numpy(zero_copy_only=False),
            returned.fill_null(0).to_numpy(zero_copy_only=False),
            call_ns,
        ),
        record_count=batch.column("record_count").to_numpy(zero_copy_only=False).astype(np.int64),
        error=batch.column("error"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """The latencies of acknowledged sends, in ms, by the bin of their call; NaN where none were."""

    p50_ms: NDArray[np.float64]
    p99_ms: NDArray[np.float64]
    max_ms: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The data that the plots show of the operations. Every array has one element a bin."""

    bins: Bins
    ended: Mapping[tuple[F, Outcome], NDArray[np.int64]]
    """The number of operations that ended in each bin, by kind and outcome."""
    polled_records: NDArray[np.int64]
    """The number of records that the ok polls ending in each bin returned."""
    latencies: Latencies

    def rate(self, f: F, outcome: Outcome) -> NDArray[np.float64]:
        """Return the operations a second."""
        return self.ended[f, outcome] / self.bins.width_s


class TimelineFold:
    """A sum of blocks of operations to a `Timeline`."""

    def __init__(self, bins: Bins) -> None:
        self._bins = bins
        self._ended = np.zeros(len(_FS) * len(_OUTCOMES) * bins.count, dtype=np.int64)
        self._polled_records = np.zeros(bins.count, dtype=np.int64)
        self._histogram = np.zeros((bins.count, _BUCKETS), dtype=np.int64)
        self._latency_ns_max = np.full(bins.count, -1, dtype=np.int64)

    def add(self, block: OperationBlock) -> None:
        """Count one more block."""
        if not len(block.f):
            return
        ended = self._bins.of(block.end_ns)
        kind = block.f.astype(np.int64) * len(_OUTCOMES) + block.outcome
        self._ended += np.bincount(kind * self._bins.count + ended, minlength=self._ended.size)
        polled = block.select(F.POLL, Outcome.OK)
        np.add.at(self._polled_records, ended[polled], block.record_count[polled])
        sent = block.select(F.SEND, Outcome.OK)
        if sent.any():
            self._add_latencies(block.call_ns[sent], block.end_ns[sent])

    def done(self) -> Timeline:
        """Return the counts so far."""
        by_kind = self._ended.reshape(len(_FS), len(_OUTCOMES), self._bins.count)
        return Timeline(
            bins=self._bins,
            ended={
                (f, outcome): by_kind[i, j]
                for i, f in enumerate(_FS)
                for j, outcome in enumerate(_OUTCOMES)
            },
            polled_records=self._polled_records,
            latencies=Latencies(
                p50_ms=self._quantile_ms(0.5),
                p99_ms=self._quantile_ms(0.99),
                max_ms=self._max_ms(),
            ),
        )

    def _add_latencies(self, call_ns: NDArray[np.int64], end_ns: NDArray[np.int64]) -> None:
        called = self._bins.of(call_ns)
        latency_ns = np.maximum(end_ns - call_ns, 0)
        # A block spans few bins (operations stand in the order of their calls), and counting
        # those alone keeps the work off the size of the whole histogram.
        first, last = int(called.min()), int(called.max())
        cells = (called - first) * _BUCKETS + _bucket_of(latency_ns)
        counts = np.bincount(cells, minlength=(last - first + 1) * _BUCKETS)
        self._histogram[first : last + 1] += counts.reshape(-1, _BUCKETS)
        np.maximum.at(self._latency_ns_max, called, latency_ns)

    def _quantile_ms(self, quantile: float) -> NDArray[np.float64]:
        """Return the smallest bucket that at least this fraction of a bin's sends do not exceed."""
        up_to = np.cumsum(self._histogram, axis=1)
        rank = np.maximum(1, np.ceil(quantile * up_to[:, -1]))
        bucket = np.argmax(up_to >= rank[:, np.newaxis], axis=1)
        middle_ms = _LATENCY_NS_MIN * 2 ** ((bucket + 0.5) / _BUCKETS_AN_OCTAVE) / 1e6
        return np.where(up_to[:, -1] > 0, np.minimum(middle_ms, self._max_ms()), np.nan)

    def _max_ms(self) -> NDArray[np.float64]:
        return np.where(self._latency_ns_max < 0, np.nan, self._latency_ns_max / 1e6)


def _bucket_of(latency_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    octaves = np.log2(np.maximum(latency_ns, _LATENCY_NS_MIN) / _LATENCY_NS_MIN)
    return np.minimum((octaves * _BUCKETS_AN_OCTAVE).astype(np.int64), _BUCKETS - 1)


def _places(words: pa.Array, known: Iterable[str]) -> NDArray[np.int8]:
    """Return the place of each word in a closed set, by way of the few distinct ones."""
    encoded = words if pa.types.is_dictionary(words.type) else words.dictionary_encode()
    place = {word: index for index, word in enumerate(known)}
    unknown = sorted(set(encoded.dictionary.to_pylist()) - set(place))
    if unknown:
        raise HarnessError(f"operations have {unknown}; known are {list(place)}")
    places = np.array([place[word] for word in encoded.dictionary.to_pylist()], dtype=np.int8)
    chosen: NDArray[np.int8] = places[encoded.indices.to_numpy(zero_copy_only=False)]
    return chosen
