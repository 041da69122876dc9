"""The recorder of a producer process: what it writes down before and after each operation.

An invocation is in the page cache before `invoke` returns, and thus before it is sent; a completion
is there before `complete` returns. Killed at any moment, a client leaves every operation that it
began, and everything it was told of their ends (why: `history.segment_format`). Batches may share a
time when that only widens the operation: take an invocation's time before the batch is built, a
completion's after the poll that brought it.

Times must not go back within one recorder (one thread of one process, one monotonic clock): the
seal merges clients by them. A call that breaks this rule, or completes an operation that is not
open, fails an assertion.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fencepost.history.operation import Outcome
from fencepost.history.segment_chain import SegmentChain
from fencepost.history.segment_format import (
    INVOKED,
    PROCESS_SHIFT,
    RETURNED,
    ClientCounter,
    MappedSegment,
    SegmentKind,
    SegmentLayout,
)


class SendRecorder:
    """The recorder of one producer process's sends, in batches.

    Raises HarnessError on a full disk.
    """

    def __init__(
        self,
        directory: Path,
        *,
        client: str,
        process: int,
        keys: Sequence[str],
        slot_count: int = 1 << 18,
    ) -> None:
        self._chain = SegmentChain(
            directory,
            SegmentLayout(
                kind=SegmentKind.SENDS,
                client=client,
                process=process,
                keys=tuple(keys),
                slot_count=slot_count,
            ),
        )
        self._base = process << PROCESS_SHIFT
        self._sequence = 0
        self._time_ns = 0
        self._current = _Sends(self._chain.next(0))
        # Full segments with sends still open, oldest first.
        self._older: list[_Sends] = []

    @property
    def next_value(self) -> int:
        """The value of the next send."""
        return self._base + self._sequence

    def invoke(self, keys: NDArray[np.int32], *, time_ns: int) -> NDArray[np.int64]:
        """Record one send a key (an index into the recorder's keys); the values to send, in order.

        Each value is `process << 40 | sequence`, unique in the run. Returns once all are on disk.
        """
        return self.invoke_each(keys, times_ns=np.full(len(keys), time_ns))

    def invoke_each(
        self, keys: NDArray[np.int32], *, times_ns: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Do as `invoke`, for sends called one after the other: each has its own time."""
        self._go_on(times_ns)
        first = self.next_value
        values: NDArray[np.int64] = np.arange(first, first + len(keys), dtype=np.int64)
        done = 0
        while done < len(keys):
            room = self._room()
            taken = room.invoke(keys[done:], values[done:], times_ns[done:])
            done += taken
            self._sequence += taken
        self._chain.count(ClientCounter.INVOKED, len(keys))
        return values

    def complete(
        self,
        values: NDArray[np.int64],
        *,
        offsets: NDArray[np.int64],
        outcomes: NDArray[np.uint8],
        errors: NDArray[np.int16],
        time_ns: int | NDArray[np.int64],
    ) -> None:
        """Record how sends ended: one row a value, each value once, in any order.

        offsets: -1 where unknown. outcomes: `Outcome.code`. errors: codes of the error registry,
        0 for none. time_ns: when, for all of them or for each.
        """
        sequences = values - self._base
        lowest = int(sequences.min(initial=self._sequence))
        completion = (offsets, outcomes, errors, time_ns)
        if lowest >= self._current.first:
            self._current.complete(sequences, *completion)
        else:
            self._complete_in_any(sequences, *completion)
        self._count(outcomes, np.broadcast_to(time_ns, outcomes.shape))

    def close(self) -> None:
        """End the recording: sends still open stay open, and the segments may be sealed."""
        self._chain.close()

    def _go_on(self, times_ns: NDArray[np.int64]) -> None:
        before_ns = self._time_ns
        if len(times_ns):
            self._time_ns = int(times_ns[-1])
            assert times_ns[0] >= before_ns, f"invoked at {times_ns[0]} ns after {before_ns} ns"
            assert (times_ns[1:] >= times_ns[:-1]).all(), "invoked before the one before"

    def _room(self) -> "_Sends":
        if self._current.free == 0:
            following = _Sends(self._chain.next(self._sequence))
            self._older = [older for older in [*self._older, self._current] if older.open_count]
            self._current = following
        return self._current

    def _complete_in_any(
        self,
        sequences: NDArray[np.int64],
        offsets: NDArray[np.int64],
        outcomes: NDArray[np.uint8],
        errors: NDArray[np.int16],
        time_ns: int | NDArray[np.int64],
    ) -> None:
        times_ns = np.broadcast_to(time_ns, sequences.shape)
        found = 0
        for sends in (*self._older, self._current):
            here = np.flatnonzero((sequences >= sends.first) & (sequences < sends.end))
            found += len(here)
            sends.complete(
                sequences[here], offsets[here], outcomes[here], errors[here], times_ns[here]
            )
        assert found == len(sequences), f"of {len(sequences)} values {found} are open"
        self._older = [older for older in self._older if older.open_count]

    def _count(self, outcomes: NDArray[np.uint8], times_ns: NDArray[np.int64]) -> None:
        ok, fail, info = np.bincount(outcomes, minlength=len(Outcome)).tolist()
        self._chain.count(ClientCounter.OK, ok)
        self._chain.count(ClientCounter.FAIL, fail)
        self._chain.count(ClientCounter.INFO, info)
        if ok:
            last_ok_ns = times_ns[outcomes == Outcome.OK.code].max()
            self._chain.note(ClientCounter.LAST_OK_NS, int(last_ok_ns))


class _Sends:
    """One segment of sends.

    Its columns are views that are made once: making them costs as much as writing them.
    """

    def __init__(self, segment: MappedSegment) -> None:
        self.first = segment.first_sequence
        self.end = self.first + len(segment.slots)
        self.used = 0
        self.open_count = 0
        slots = segment.slots
        self._values = slots["value"]
        self._call_ns = slots["call_ns"]
        self._return_ns = slots["return_ns"]
        self._offsets = slots["offset"]
        self._keys = slots["key"]
        self._errors = slots["error"]
        self._outcomes = slots["outcome"]
        self._states = slots["state"]

    @property
    def free(self) -> int:
        """The number of slots left."""
        return self.end - self.first - self.used

    def invoke(
        self, keys: NDArray[np.int32], values: NDArray[np.int64], times_ns: NDArray[np.int64]
    ) -> int:
        """Record as many as there is room for; how many."""
        taken = min(len(keys), self.free)
        into = slice(self.used, self.used + taken)
        self._values[into] = values[:taken]
        self._call_ns[into] = times_ns[:taken]
        self._keys[into] = keys[:taken]
        self._states[into] = INVOKED
        self.used += taken
        self.open_count += taken
        return taken

    def complete(
        self,
        sequences: NDArray[np.int64],
        offsets: NDArray[np.int64],
        outcomes: NDArray[np.uint8],
        errors: NDArray[np.int16],
        time_ns: int | NDArray[np.int64],
    ) -> None:
        """Record the ends of sends of this segment."""
        into = sequences - self.first
        assert (self._states[into] == INVOKED).all(), "completed a send that is not open"
        self._return_ns[into] = time_ns
        self._offsets[into] = offsets
        self._errors[into] = errors
        self._outcomes[into] = outcomes
        self._states[into] = RETURNED
        self.open_count -= len(into)
