"""Operations over time: one pass over the table, in memory that does not grow with the run.

The run is cut into at most `BIN_COUNT_MAX` bins of equal, round width. Operations are counted in
the bin in which they *ended* (the moment a rate means something), latencies in the bin in which
they were *called* (so that a stall shows where it began, at its full height). Only ok operations
have a latency: one whose fate is not known shows in the rate of info.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.history.failure import HarnessError
from fencepost.history.operation import F, Outcome
from fencepost.report.functions import Functions
from fencepost.report.latencies import Latencies, LatencyFold

BIN_COUNT_MAX: Final = 2000
"""The bound on bins: more points than pixels tell an eye nothing and weigh on the page."""

_NS: Final = 1_000_000_000
# Round widths, so that a bin can be named: half a second and longer, as many sends as a p99 needs.
_WIDTHS_S: Final = (0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)

_OUTCOMES: Final = tuple(Outcome)


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
    """A stretch of a table of operations as plain arrays of one length; the same for every fold."""

    functions: Functions
    f: NDArray[np.int8]
    """The places in `functions.names`."""
    outcome: NDArray[np.int8]
    """The places in `Outcome`."""
    call_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    """The time of its return; of its call, if its end was never seen."""
    record_count: NDArray[np.int64]
    """Records sent or returned; 1 of an operation on an object."""
    error: pa.Array
    """The names in the error registry, or null."""

    def select(self, fs: Collection[str], outcome: Outcome) -> NDArray[np.bool_]:
        """Return a mask of the operations of these functions and this outcome."""
        wanted = np.array([f in fs for f in self.functions.names])
        chosen: NDArray[np.bool_] = wanted[self.f] & (self.outcome == _OUTCOMES.index(outcome))
        return chosen

    def select_refused(self, fs: Collection[str]) -> NDArray[np.bool_]:
        """Return a mask of the operations of these functions that were refused."""
        failed = self.select(fs, Outcome.FAIL)
        without_error = self.error.is_null().to_numpy(zero_copy_only=False)
        return failed & without_error if self.functions.have_refusals else np.zeros_like(failed)

    def select_answered(self, fs: Collection[str]) -> NDArray[np.bool_]:
        """Return a mask of the operations of these functions that were answered, or refused.

        A poll without records shows nothing, so it is left out.
        """
        answered = self.select(fs, Outcome.OK) & (self.record_count > 0)
        return answered | self.select_refused(fs)


def block_of(batch: pa.RecordBatch, functions: Functions) -> OperationBlock:
    """Return a batch of a table of operations as plain arrays.

    Columns, at least: `functions.columns`. The words may be dictionary-encoded. Raises HarnessError
    for a word that is neither one of the functions nor an `Outcome`.
    """
    call_ns = batch.column("call_ns").to_numpy(zero_copy_only=False)
    returned = batch.column("return_ns")
    return OperationBlock(
        functions=functions,
        f=_places(batch.column("f"), functions.names),
        outcome=_places(batch.column("outcome"), _OUTCOMES),
        call_ns=call_ns,
        end_ns=np.where(
            returned.is_valid().to_numpy(zero_copy_only=False),
            returned.fill_null(0).to_numpy(zero_copy_only=False),
            call_ns,
        ),
        record_count=(
            batch.column("record_count").to_numpy(zero_copy_only=False).astype(np.int64)
            if "record_count" in functions.columns
            else np.ones(len(call_ns), dtype=np.int64)
        ),
        error=batch.column("error"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The data that the plots show of the operations. Every array has one element a bin."""

    bins: Bins
    functions: Functions
    ended: Mapping[tuple[str, Outcome], NDArray[np.int64]]
    """The number of operations that ended in each bin, by function and outcome."""
    polled_records: NDArray[np.int64]
    """The number of records that the ok polls ending in each bin returned."""
    refused_writes: NDArray[np.int64]
    """The number of writes that were refused, which are among those that failed."""
    latencies: Mapping[frozenset[str], Latencies]
    """The latencies of the ok operations of each set of functions that is timed."""

    def rate(self, fs: Collection[str], outcome: Outcome) -> NDArray[np.float64]:
        """Return the operations of these functions a second."""
        ended = np.sum([self.ended[f, outcome] for f in self.functions.names if f in fs], axis=0)
        return np.asarray(ended / self.bins.width_s)


class TimelineFold:
    """A sum of blocks of operations to a `Timeline`."""

    def __init__(self, bins: Bins, functions: Functions) -> None:
        self._bins = bins
        self._functions = functions
        cells = len(functions.names) * len(_OUTCOMES) * bins.count
        self._ended = np.zeros(cells, dtype=np.int64)
        self._polled_records = np.zeros(bins.count, dtype=np.int64)
        self._refused_writes = np.zeros(bins.count, dtype=np.int64)
        self._latencies = {fs: LatencyFold(bins.count) for fs in functions.timed}

    def add(self, block: OperationBlock) -> None:
        """Count one more block."""
        if not len(block.f):
            return
        ended = self._bins.of(block.end_ns)
        kind = block.f.astype(np.int64) * len(_OUTCOMES) + block.outcome
        self._ended += np.bincount(kind * self._bins.count + ended, minlength=self._ended.size)
        polled = block.select((F.POLL,), Outcome.OK)
        np.add.at(self._polled_records, ended[polled], block.record_count[polled])
        refused = ended[block.select_refused(self._functions.writes)]
        self._refused_writes += np.bincount(refused, minlength=self._bins.count)
        for fs, fold in self._latencies.items():
            timed = block.select(fs, Outcome.OK)
            call_ns, end_ns = block.call_ns[timed], block.end_ns[timed]
            fold.add(self._bins.of(call_ns), np.maximum(end_ns - call_ns, 0))

    def done(self) -> Timeline:
        """Return the counts so far."""
        names = self._functions.names
        by_kind = self._ended.reshape(len(names), len(_OUTCOMES), self._bins.count)
        return Timeline(
            bins=self._bins,
            functions=self._functions,
            ended={
                (f, outcome): by_kind[i, j]
                for i, f in enumerate(names)
                for j, outcome in enumerate(_OUTCOMES)
            },
            polled_records=self._polled_records,
            refused_writes=self._refused_writes,
            latencies={fs: fold.done() for fs, fold in self._latencies.items()},
        )


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
