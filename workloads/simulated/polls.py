"""Where a simulated consumer writes down its polls, and what they returned.

`RecordedPolls` are a run's; `CountedPolls` are for runs of which nothing is kept but the counts.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from history.operation import F, Outcome
from history.segment import PollRecorder
from history.segment_format import NO_KEY, ROW, SLOT, UNKNOWN_OFFSET
from workloads.simulated.runs import runs

__all__ = ["CountedPolls", "Polls", "RecordedPolls", "Returned", "Run"]

_ROWS: Final = 1 << 14
"""Records that are written together."""
_CALLS: Final = 1 << 10
"""Operations that are, however little they returned."""
_SLOT_COLUMNS: Final = ("call_ns", "return_ns", "key", "error", "outcome", "f")


class Run(NamedTuple):
    """Records of one key that follow each other."""

    key: int
    offset: int
    """Of the first of them."""
    session: int
    values: tuple[int, ...]


class Returned:
    """Records that an operation returned, in their order."""

    __slots__ = ("count", "runs")

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.count = 0

    def add(self, run: Run) -> None:
        """These, too."""
        self.runs.append(run)
        self.count += len(run.values)


class Polls(Protocol):
    """What a consumer needs of its record. Times do not go back; one operation is open at most."""

    def invoke(self, *, time_ns: int, f: F = F.POLL, key: int = NO_KEY) -> int:
        """Record a call; its number."""

    def complete(
        self, number: int, returned: Returned, *, time_ns: int, outcome: Outcome, error: int = 0
    ) -> None:
        """Record how it ended."""

    def close(self) -> None:
        """No more is recorded."""


class RecordedPolls:
    """In the segments of a run, many operations at a time: see `sends.RecordedSends`."""

    def __init__(self, recorder: PollRecorder) -> None:
        self._recorder = recorder
        self._count = 0
        self._open: tuple[int, F, int] | None = None
        """(when it was called, what it does, its key)."""
        self._slots: list[tuple[int, int, int, int, int, int]] = []
        """Of operations that are not in the segments yet, the columns of `_SLOT_COLUMNS`."""
        self._runs: list[tuple[int, Run]] = []
        """What these returned, by their places in `_slots`."""
        self._row_count = 0

    def invoke(self, *, time_ns: int, f: F = F.POLL, key: int = NO_KEY) -> int:
        """Keep the call."""
        assert self._open is None, "an operation is open"
        self._open = (time_ns, f, key)
        self._count += 1
        return self._count - 1

    def complete(
        self, number: int, returned: Returned, *, time_ns: int, outcome: Outcome, error: int = 0
    ) -> None:
        """Keep the end, and all that was returned."""
        assert self._open is not None, "no operation is open"
        assert number == self._count - 1, f"operation {number} is not open"
        call_ns, f, key = self._open
        self._open = None
        place = len(self._slots)
        self._slots.append((call_ns, time_ns, key, error, outcome.code, f.code))
        self._runs += [(place, run) for run in returned.runs]
        self._row_count += returned.count
        if self._row_count >= _ROWS or place >= _CALLS:
            self._record()

    def close(self) -> None:
        """Record the rest, and let the segments be sealed."""
        self._record()
        if self._open is not None:
            time_ns, f, key = self._open
            self._recorder.invoke(time_ns=time_ns, f=f, key=key)
        self._recorder.close()

    def _record(self) -> None:
        if self._slots:
            self._recorder.record(_slots(self._slots), _rows(self._runs))
        self._slots, self._runs, self._row_count = [], [], 0


def _slots(stated: Sequence[tuple[int, ...]]) -> NDArray[np.void]:
    found = np.zeros(len(stated), SLOT)
    for name, column in zip(_SLOT_COLUMNS, np.array(stated, np.int64).T, strict=True):
        found[name] = column
    found["offset"] = UNKNOWN_OFFSET
    return found


def _rows(returned: Sequence[tuple[int, Run]]) -> NDArray[np.void]:
    """What operations returned, given by their places."""
    stated = [(len(run.values), place, run.key, run.offset, run.session) for place, run in returned]
    counts, places, keys, offsets, sessions = np.array(stated, np.int64).reshape(-1, 5).T
    found = np.zeros(counts.sum(), ROW)
    values = chain.from_iterable([run.values for _, run in returned])
    found["value"] = np.fromiter(values, np.int64, len(found))
    found["offset"] = runs(offsets, counts)
    for name, column in (("sequence", places), ("key", keys), ("session", sessions)):
        found[name] = np.repeat(column, counts)
    return found


class CountedPolls:
    """Nowhere."""

    def __init__(self) -> None:
        self._count = 0

    def invoke(self, *, time_ns: int, f: F = F.POLL, key: int = NO_KEY) -> int:  # noqa: ARG002
        """Number the call."""
        self._count += 1
        return self._count

    def complete(
        self, number: int, returned: Returned, *, time_ns: int, outcome: Outcome, error: int = 0
    ) -> None:
        """Forget it."""

    def close(self) -> None:
        """There is nothing to close."""
