"""The number of operations by kind and outcome, with their errors, and under which faults.

The last is the ground a verdict stands on: a cluster that acknowledged nothing while it was broken
has shown nothing. One pass, in memory that grows with the faults and the names of errors alone.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.history.operation import F, Outcome
from fencepost.report.faults import FaultSpan
from fencepost.report.functions import Functions
from fencepost.report.timeline import OperationBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCount:
    """The number of operations of one function and outcome that ended with one error."""

    error: str
    f: str
    outcome: Outcome
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """The operations that were called while one fault was in effect, and were answered."""

    writes: int
    reads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTally:
    """The counts of a whole run."""

    counts: Mapping[tuple[str, Outcome], int]
    polled_records: int
    errors: tuple[ErrorCount, ...]
    """The most frequent first."""
    grounds: Mapping[int, Grounds] = field(default_factory=dict)
    """The grounds by the index of the fault; only faults that took effect."""

    @property
    def operation_count(self) -> int:
        """All operations."""
        return sum(self.counts.values())

    def count(self, fs: Collection[str], outcome: Outcome) -> int:
        """Return the number of operations of these functions and this outcome."""
        return sum(self.counts[f, outcome] for f in fs)


class TallyFold:
    """A sum of blocks of operations to a `RunTally`."""

    def __init__(
        self, spans: Sequence[FaultSpan], functions: Functions, *, run_end_ns: int
    ) -> None:
        self._functions = functions
        self._counts: Counter[tuple[str, Outcome]] = Counter()
        self._errors: Counter[tuple[str, str, Outcome]] = Counter()
        self._polled_records = 0
        self._effective = {
            span.index: (span.effect_ns, max(span.effect_ns, span.until_ns(run_end_ns)))
            for span in spans
            if span.effect_ns is not None
        }
        # The count of calls up to a time suffices: the calls within [a, b] are those up to b less
        # those up to a - 1. Exact for any number of faults, however they overlap.
        edges = {edge for a, b in self._effective.values() for edge in (a - 1, b)}
        self._edges = np.array(sorted(edges), dtype=np.int64)
        self._between = {
            fs: np.zeros(len(edges) + 1, dtype=np.int64)
            for fs in (functions.writes, functions.reads)
        }

    def add(self, block: OperationBlock) -> None:
        """Count one more block."""
        for f in self._functions.names:
            for outcome in Outcome:
                chosen = block.select((f,), outcome)
                self._counts[f, outcome] += int(chosen.sum())
                if outcome is not Outcome.OK:
                    self._add_errors(block, chosen, f=f, outcome=outcome)
        self._polled_records += int(block.record_count[block.select((F.POLL,), Outcome.OK)].sum())
        for fs in self._between:
            place = np.searchsorted(self._edges, block.call_ns[block.select_answered(fs)])
            self._between[fs] += np.bincount(place, minlength=len(self._edges) + 1)

    def done(self) -> RunTally:
        """Return the counts so far."""
        errors = (
            ErrorCount(error=error, f=f, outcome=outcome, count=count)
            for (error, f, outcome), count in self._errors.items()
        )
        up_to = {fs: np.cumsum(between) for fs, between in self._between.items()}
        return RunTally(
            counts=dict(self._counts),
            polled_records=self._polled_records,
            errors=tuple(sorted(errors, key=lambda e: (-e.count, e.error, e.f, e.outcome))),
            grounds={
                index: Grounds(
                    writes=self._within(up_to[self._functions.writes], span),
                    reads=self._within(up_to[self._functions.reads], span),
                )
                for index, span in self._effective.items()
            },
        )

    def _add_errors(
        self, block: OperationBlock, chosen: NDArray[np.bool_], *, f: str, outcome: Outcome
    ) -> None:
        if not chosen.any():
            return
        for entry in pc.value_counts(block.error.filter(chosen)).to_pylist():
            # An operation still open at the end has no error to name, and neither has a refusal.
            self._errors[entry["values"] or "", f, outcome] += entry["counts"]

    def _within(self, up_to: NDArray[np.int64], span: tuple[int, int]) -> int:
        first, last = np.searchsorted(self._edges, (span[0] - 1, span[1]))
        return int(up_to[last] - up_to[first])
