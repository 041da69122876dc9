"""The recorders of a simulated consumer's polls, and of what they returned.

`RecordedPolls` are a run's; `CountedPolls` are for runs of which nothing is kept but the counts.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from fencepost.history.operation import F, Outcome
from fencepost.history.poll_recorder import PollRecorder
from fencepost.history.segment_format import NO_KEY, ROW, SLOT, UNKNOWN_OFFSET
from fencepost.workloads.simulated.runs import runs

_ROWS: Final = 1 << 14
"""Records that are written together."""
_CALLS: Final = 1 << 10
"""Operations that are written together, however few records they returned."""
_SLOT_COLUMNS: Final = ("call_ns", "return_ns", "key", "error", "outcome", "f")


class Returned:
    """Records that operations returned, in their order: column by column of *runs*.

    A run is of one key and session, and its offsets follow each other.
    """

    __slots__ = ("count", "firsts", "keys", "sessions", "values")

    def __init__(self) -> None:
        self.keys: list[int] = []
        self.firsts: list[int] = []
        """The offset of the first record of each run."""
        self.sessions: list[int] = []
        self.values: list[Sequence[int]] = []
        """The values of each run's records."""
        self.count = 0
        """Records of all runs."""

    def add(self, key: int, first: int, values: Sequence[int], session: int) -> None:
        """Add a run."""
        self.keys.append(key)
        self.firsts.append(first)
        self.sessions.append(session)
        self.values.append(values)
        self.count += len(values)

    def extend(self, other: "Returned") -> None:
        """Add the runs of another one behind these."""
        self.keys += other.keys
        self.firsts += other.firsts
        self.sessions += other.sessions
        self.values += other.values
        self.count += other.count


class Polls(Protocol):
    """The record of a consumer. Times do not go back; one operation is open at most."""

    def invoke(self, *, time_ns: int, f: F = F.POLL, key: int = NO_KEY) -> int:
        """Record a call; return its number."""

    def complete(
        self, number: int, returned: Returned, *, time_ns: int, outcome: Outcome, error: int = 0
    ) -> None:
        """Record how it ended."""

    def close(self) -> None:
        """End the record."""


class RecordedPolls:
    """The record in the segments of a run, many operations at a time: see `sends.RecordedSends`."""

    def __init__(self, recorder: PollRecorder) -> None:
        self._recorder = recorder
        self._count = 0
        self._open: tuple[int, F, int] | None = None
        """(the time of its call, its `f`, its key); None: no operation is open."""
        self._slots: list[tuple[int, int, int, int, int, int]] = []
        """The columns of `_SLOT_COLUMNS` for operations that are not in the segments yet."""
        self._returned = Returned()
        """The records that these operations returned."""
        self._run_counts: list[int] = []
        """The number of runs in `_returned` for each operation."""

    def invoke(self, *, time_ns: int, f: F = F.POLL, key: int = NO_KEY) -> int:
        """Keep the call; return its number."""
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
        self._slots.append((call_ns, time_ns, key, error, outcome.code, f.code))
        self._run_counts.append(len(returned.keys))
        self._returned.extend(returned)
        if self._returned.count >= _ROWS or len(self._slots) >= _CALLS:
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
            rows = _rows(self._returned, self._run_counts)
            self._recorder.record(_slots(self._slots), rows)
        self._slots, self._run_counts, self._returned = [], [], Returned()


def _slots(stated: Sequence[tuple[int, ...]]) -> NDArray[np.void]:
    found = np.zeros(len(stated), SLOT)
    for name, column in zip(_SLOT_COLUMNS, np.array(stated, np.int64).T, strict=True):
        found[name] = column
    found["offset"] = UNKNOWN_OFFSET
    return found


def _rows(returned: Returned, run_counts: Sequence[int]) -> NDArray[np.void]:
    """Return the rows of operations by their run counts; `sequence` is the operation's place."""
    counts = np.fromiter(map(len, returned.values), np.int64, len(returned.values))
    places = np.repeat(np.arange(len(run_counts)), run_counts)
    found = np.zeros(returned.count, ROW)
    found["sequence"] = np.repeat(places, counts)
    found["key"] = np.repeat(np.array(returned.keys, np.int32), counts)
    found["offset"] = runs(np.array(returned.firsts, np.int64), counts)
    found["session"] = np.repeat(np.array(returned.sessions, np.int32), counts)
    values = chain.from_iterable(returned.values)
    found["value"] = np.fromiter(values, np.int64, returned.count)
    return found


class CountedPolls:
    """The record of runs of which only the counts are kept."""

    def __init__(self) -> None:
        self._count = 0

    def invoke(self, *, time_ns: int, f: F = F.POLL, key: int = NO_KEY) -> int:  # noqa: ARG002
        """Return the number of the call."""
        self._count += 1
        return self._count

    def complete(
        self, number: int, returned: Returned, *, time_ns: int, outcome: Outcome, error: int = 0
    ) -> None:
        """Forget it."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
