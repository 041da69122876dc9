"""The recorder of a consumer or final-reader process. See `history.send_recorder`."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fencepost.history.operation import F, Outcome
from fencepost.history.segment_chain import SegmentChain
from fencepost.history.segment_format import (
    INVOKED,
    NO_KEY,
    OPEN_NS,
    PROCESS_SHIFT,
    RETURNED,
    ROW,
    SLOT,
    UNKNOWN_OFFSET,
    ClientCounter,
    SegmentKind,
    SegmentLayout,
)


class PollRecorder:
    """The recorder of the polls or final reads of one consumer process.

    Several may be open at a time (final reads of several keys). Raises HarnessError on a full disk.
    """

    def __init__(
        self,
        directory: Path,
        *,
        client: str,
        process: int,
        keys: Sequence[str],
        slot_count: int = 1 << 16,
        record_count: int = 1 << 20,
    ) -> None:
        self._chain = SegmentChain(
            directory,
            SegmentLayout(
                kind=SegmentKind.POLLS,
                client=client,
                process=process,
                keys=tuple(keys),
                slot_count=slot_count,
                row_capacity=record_count,
            ),
        )
        self._base = process << PROCESS_SHIFT
        self._sequence = 0
        self._time_ns = 0
        self._current = self._chain.next(0)
        self._open: dict[int, _OpenPoll] = {}

    def invoke(self, *, time_ns: int, f: F = F.POLL, key: int = NO_KEY) -> int:
        """Record the start of a poll or of the final read of one key; its sequence."""
        assert time_ns >= self._time_ns, f"invoked at {time_ns} ns after {self._time_ns} ns"
        self._time_ns = time_ns
        sequence = self._sequence
        if sequence - self._current.first_sequence == len(self._current.slots):
            self._current = self._chain.next(sequence)
        slot = self._current.slots[sequence - self._current.first_sequence]
        slot["value"] = self._base + sequence
        slot["call_ns"] = time_ns
        slot["return_ns"] = OPEN_NS
        slot["offset"] = UNKNOWN_OFFSET
        slot["key"] = key
        slot["f"] = f.code
        slot["state"] = INVOKED
        self._open[sequence] = _OpenPoll(slot)
        self._sequence += 1
        self._chain.count(ClientCounter.INVOKED, 1)
        return sequence

    def append(
        self,
        sequence: int,
        *,
        keys: NDArray[np.int32],
        offsets: NDArray[np.int64],
        values: NDArray[np.int64],
        sessions: NDArray[np.int32],
    ) -> None:
        """Record what an open operation returned so far, in the order in which it came.

        sessions: which unbroken ownership of its key by this process each record belongs to.
        """
        assert sequence in self._open, f"no open operation {sequence}"
        rows = np.empty(len(keys), ROW)
        rows["sequence"] = sequence
        rows["offset"] = offsets
        rows["value"] = values
        rows["key"] = keys
        rows["session"] = sessions
        self._write_rows(rows)
        self._open[sequence].record_count += len(keys)

    def complete(
        self,
        sequence: int,
        *,
        time_ns: int,
        keys: NDArray[np.int32],
        offsets: NDArray[np.int64],
        values: NDArray[np.int64],
        sessions: NDArray[np.int32],
        outcome: Outcome,
        error: int = 0,
    ) -> None:
        """Record the end of an operation, and the records it returned beyond those appended."""
        self.append(sequence, keys=keys, offsets=offsets, values=values, sessions=sessions)
        ended = self._open.pop(sequence)
        ended.slot["return_ns"] = time_ns
        ended.slot["error"] = error
        ended.slot["outcome"] = outcome.code
        ended.slot["state"] = RETURNED
        self._chain.count(ClientCounter[outcome.name], 1)
        if outcome is Outcome.OK and ended.record_count:
            self._chain.note(ClientCounter.LAST_OK_NS, time_ns)

    def record(self, slots: NDArray[np.void], rows: NDArray[np.void]) -> None:
        """Record operations that have all returned, with all that they returned; none is open.

        slots: SLOT in the order of their calls, of which `value` and `state` are filled in here.
        rows: ROW in the order in which they came, whose `sequence` is the place of their operation
        among these.
        """
        assert not self._open, "operations are open"
        assert (np.diff(slots["call_ns"], prepend=self._time_ns) >= 0).all(), "called before others"
        first = self._sequence
        slots["value"] = np.arange(self._base + first, self._base + first + len(slots))
        slots["state"] = RETURNED
        record_counts = np.bincount(rows["sequence"], minlength=len(slots))
        rows["sequence"] += first
        self._write_slots(slots)
        self._write_rows(rows)
        self._time_ns = int(slots["call_ns"].max(initial=self._time_ns))
        self._count(slots, record_counts)

    def close(self) -> None:
        """End the recording: operations still open stay open, and the segments may be sealed."""
        self._chain.close()

    def _write_slots(self, slots: NDArray[np.void]) -> None:
        while len(slots):
            at = self._sequence - self._current.first_sequence
            into = self._current.slots[at : at + len(slots)]
            for name in SLOT.names or ():  # in their order: the state comes last
                into[name] = slots[name][: len(into)]
            self._sequence += len(into)
            slots = slots[len(into) :]
            if len(slots):
                self._current = self._chain.next(self._sequence)

    def _write_rows(self, rows: NDArray[np.void]) -> None:
        self._chain.count(ClientCounter.POLLED_RECORDS, len(rows))
        while len(rows):
            taken = self._room(len(rows))
            written = self._current.row_count[0]
            self._current.rows[written : written + taken] = rows[:taken]
            self._current.row_count[0] = written + taken
            rows = rows[taken:]

    def _count(self, slots: NDArray[np.void], record_counts: NDArray[np.int64]) -> None:
        outcomes = np.bincount(slots["outcome"], minlength=len(Outcome)).tolist()
        for outcome in Outcome:
            self._chain.count(ClientCounter[outcome.name], outcomes[outcome.code])
        self._chain.count(ClientCounter.INVOKED, len(slots))
        some = (slots["outcome"] == Outcome.OK.code) & (record_counts > 0)
        if some.any():
            self._chain.note(ClientCounter.LAST_OK_NS, int(slots["return_ns"][some].max()))

    def _room(self, wanted: int) -> int:
        """Return how many of the `wanted` rows fit the current segment: at least one."""
        free = len(self._current.rows) - self._current.row_count[0]
        if free == 0:
            self._current = self._chain.next(self._sequence)
            free = len(self._current.rows)
        return min(wanted, free)


class _OpenPoll:
    """An operation that has not returned, wherever its slot lies."""

    __slots__ = ("record_count", "slot")

    def __init__(self, slot: np.void) -> None:
        self.slot = slot
        self.record_count = 0
