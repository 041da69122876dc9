"""The latencies of asks outside and during faults, as sums that can be put together.

A fault reaches, on each key that was asked for before it ended, from its effect to the first
acknowledgement after its heal; an ask that waited at any time of that is during the fault
(`checkers.service_level`). Whether one is, is known once it is read: asks come in the order of
their calls, so an acknowledgement that is not read yet comes after that ask was called, and cannot
have ended the reach before it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.grounds.operations import BUCKETS_AN_OCTAVE, FaultWindow
from fencepost.checkers.service.silences import Asks
from fencepost.checkers.service_level import LatencyLevel

SLOWEST_MAX: Final = 5
"""The slowest asks outside faults that are kept."""
FAULTS_MAX: Final = 500
"""The faults that have latencies of their own; hours of them are better read from the tables."""
_NS_A_MS: Final = 1e6
_BUCKETS: Final = 45 * BUCKETS_AN_OCTAVE
"""Up to ten hours."""


class LatencySum:
    """Latencies by bucket."""

    def __init__(self) -> None:
        self.histogram = np.zeros(_BUCKETS, dtype=np.int64)
        self.max_ns = 0

    def add(self, spent: "_Spent", chosen: NDArray[np.bool_]) -> None:
        """Count the chosen ones."""
        if chosen.any():
            self.histogram += np.bincount(spent.bucket[chosen], minlength=_BUCKETS)
            self.max_ns = max(self.max_ns, int(spent.ns[chosen].max()))

    def merge(self, other: "LatencySum") -> None:
        """Count those of another sum, too."""
        self.histogram += other.histogram
        self.max_ns = max(self.max_ns, other.max_ns)

    def latency(self) -> LatencyLevel | None:
        """Return the quantiles; None if there were none."""
        up_to = np.cumsum(self.histogram)
        if not up_to[-1]:
            return None
        return LatencyLevel(
            count=int(up_to[-1]),
            p50_ms=self._quantile_ms(0.5, up_to),
            p99_ms=self._quantile_ms(0.99, up_to),
            max_ms=self.max_ns / _NS_A_MS,
        )

    def _quantile_ms(self, share: float, up_to: NDArray[np.int64]) -> float:
        bucket = int(np.searchsorted(up_to, share * up_to[-1]))
        upper_ns: float = 2 ** ((bucket + 1) / BUCKETS_AN_OCTAVE)
        return min(upper_ns, float(self.max_ns)) / _NS_A_MS


class _Spent:
    """The latencies of asks, with the bucket of each."""

    def __init__(self, asks: Asks) -> None:
        self.ns = asks.end_ns - asks.call_ns
        octaves = np.log2(np.maximum(self.ns, 1))
        bucket = (octaves * BUCKETS_AN_OCTAVE).astype(np.int64)
        self.bucket = np.minimum(bucket, _BUCKETS - 1)


@dataclass(slots=True)
class LatencySums:
    """Latencies outside faults, during any, and by kind and index of the fault."""

    bound_ns: int | None = None
    """Those outside faults that took longer are counted, if there is such a bound."""
    outside: LatencySum = field(default_factory=LatencySum)
    during: LatencySum = field(default_factory=LatencySum)
    by_kind: dict[str, LatencySum] = field(default_factory=dict)
    by_fault: dict[int, LatencySum] = field(default_factory=dict)
    slow_count: int = 0
    slowest: list[tuple[int, int, str]] = field(default_factory=list)
    """The slowest outside faults: latency in ns, operation, key."""

    def add(
        self, key: str, asks: Asks, faults: Sequence[tuple[FaultWindow, NDArray[np.bool_]]]
    ) -> None:
        """Count asks of a key, with a mask of those during each fault that concerns any of them."""
        spent = _Spent(asks)
        of_kind: dict[str, NDArray[np.bool_]] = {}
        calm = asks.ok.copy()
        for window, mask in faults:
            calm &= ~mask
            chosen = mask & asks.ok
            of_kind[window.kind] = of_kind.get(window.kind, chosen) | chosen
            if window.fault in self.by_fault or len(self.by_fault) < FAULTS_MAX:
                self.by_fault.setdefault(window.fault, LatencySum()).add(spent, chosen)
        for kind, mask in of_kind.items():
            self.by_kind.setdefault(kind, LatencySum()).add(spent, mask)
        self.during.add(spent, asks.ok & ~calm)
        self.outside.add(spent, calm)
        if self.bound_ns is not None:
            self.slow_count += int((spent.ns[calm] > self.bound_ns).sum())
        outside = np.flatnonzero(calm)
        last = outside[np.argsort(spent.ns[outside])[-SLOWEST_MAX:]]
        self._keep(
            (ns, index, key)
            for ns, index in zip(spent.ns[last].tolist(), asks.index[last].tolist(), strict=True)
        )

    def merge(self, other: "LatencySums") -> None:
        """Count those of another sum, too."""
        self.outside.merge(other.outside)
        self.during.merge(other.during)
        for kind, of_kind in other.by_kind.items():
            self.by_kind.setdefault(kind, LatencySum()).merge(of_kind)
        for fault, of_fault in other.by_fault.items():
            self.by_fault.setdefault(fault, LatencySum()).merge(of_fault)
        self.slow_count += other.slow_count
        self._keep(other.slowest)

    def _keep(self, more: Iterable[tuple[int, int, str]]) -> None:
        self.slowest = nlargest(SLOWEST_MAX, [*self.slowest, *more])


@dataclass(slots=True)
class _Active:
    """A fault that reaches, or may."""

    window: FaultWindow
    until_ns: int = int(np.iinfo(np.int64).max)
    """The first acknowledgement after its heal, as far as it is read."""


class FaultReach:
    """The faults that reach the asks of one key, block by block.

    A fault that had ended before the key was asked for at all reaches none: a night has thousands
    of topics that are created, written to and deleted within seconds, and as many faults before.
    """

    def __init__(self, windows: "FaultWindows") -> None:
        self._windows = windows
        self._taken_count = 0
        """Of the windows, those that are active, or were, or never will be."""
        self._active: list[_Active] | None = None
        """None: nothing was asked yet."""

    def of(self, asks: Asks) -> Iterator[tuple[FaultWindow, NDArray[np.bool_]]]:
        """Yield each fault that may concern any of these asks, with a mask of those it concerns."""
        if not len(asks.index):
            return
        begun_ns = int(asks.call_ns[0]) if self._active is None else None
        until = self._windows.count_until(int(asks.end_ns.max()))
        new = self._windows.between(self._taken_count, until, open_at_ns=begun_ns)
        self._taken_count = max(self._taken_count, until)
        active = [*(self._active or ()), *map(_Active, new)]
        answers = np.sort(asks.end_ns[asks.answered], kind="stable") if active else asks.end_ns
        for one in active:
            place = int(np.searchsorted(answers, one.window.end_ns))
            if place < len(answers):
                one.until_ns = min(one.until_ns, int(answers[place]))
            concerned = (asks.call_ns <= one.until_ns) & (asks.end_ns >= one.window.effect_ns)
            if concerned.any():
                yield one.window, concerned
        called_ns = int(asks.call_ns[-1])
        self._active = [one for one in active if one.until_ns >= called_ns]


class FaultWindows:
    """The faults of a run, by the time of their effect."""

    def __init__(self, windows: Sequence[FaultWindow]) -> None:
        self._windows = sorted(windows, key=lambda one: one.effect_ns)
        self._effect_ns = np.array([one.effect_ns for one in self._windows], dtype=np.int64)
        self._end_ns = np.array([one.end_ns for one in self._windows], dtype=np.int64)

    def count_until(self, time_ns: int) -> int:
        """Return the number of those that took effect until then."""
        return int(np.searchsorted(self._effect_ns, time_ns, side="right"))

    def between(self, begin: int, end: int, *, open_at_ns: int | None) -> Iterator[FaultWindow]:
        """Yield those at these places; with a time, those alone that had not ended before it."""
        if open_at_ns is None:
            yield from self._windows[begin:end]
            return
        for place in np.flatnonzero(self._end_ns[begin:end] >= open_at_ns).tolist():
            yield self._windows[begin + place]
