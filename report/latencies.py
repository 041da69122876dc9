"""Latencies over time, in memory that does not grow with the run.

Quantiles come from a histogram with `_BUCKETS_AN_OCTAVE` buckets a doubling, hence within 1.1 % of
the exact value; maxima are exact.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

_BUCKETS_AN_OCTAVE: Final = 32
_LATENCY_NS_MIN: Final = 1000.0
_OCTAVES: Final = 32
"""The octaves of latency: from 1 µs to 71 minutes."""
_BUCKETS: Final = _BUCKETS_AN_OCTAVE * _OCTAVES


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """The latencies of ok operations, in ms, by the bin of their call; NaN where none were."""

    p50_ms: NDArray[np.float64]
    p99_ms: NDArray[np.float64]
    max_ms: NDArray[np.float64]


class LatencyFold:
    """A sum of latencies to `Latencies`."""

    def __init__(self, bin_count: int) -> None:
        self._histogram = np.zeros((bin_count, _BUCKETS), dtype=np.int64)
        self._latency_ns_max = np.full(bin_count, -1, dtype=np.int64)

    def add(self, called: NDArray[np.int64], latency_ns: NDArray[np.int64]) -> None:
        """Count more operations: the bin of each call, and how long it took."""
        if not len(called):
            return
        # Where operations stand in the order of their calls, a block spans few bins, and counting
        # those alone keeps the work off the size of the whole histogram.
        first, last = int(called.min()), int(called.max())
        cells = (called - first) * _BUCKETS + _bucket_of(latency_ns)
        counts = np.bincount(cells, minlength=(last - first + 1) * _BUCKETS)
        self._histogram[first : last + 1] += counts.reshape(-1, _BUCKETS)
        np.maximum.at(self._latency_ns_max, called, latency_ns)

    def done(self) -> Latencies:
        """Return the quantiles and maxima so far."""
        return Latencies(
            p50_ms=self._quantile_ms(0.5),
            p99_ms=self._quantile_ms(0.99),
            max_ms=self._max_ms(),
        )

    def _quantile_ms(self, quantile: float) -> NDArray[np.float64]:
        """Return the least bucket that at least this fraction of a bin's operations keep within."""
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
