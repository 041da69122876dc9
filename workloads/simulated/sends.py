"""Where a simulated producer writes down what it sends, and how that ended.

`RecordedSends` are a run's; `CountedSends` are for runs of which nothing is kept but the counts.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np

from history.operation import Outcome
from history.segment import SendRecorder
from history.segment_format import PROCESS_SHIFT

__all__ = ["CountedSends", "End", "RecordedSends", "Sends"]


class End(NamedTuple):
    """How the sends of a batch ended, all alike."""

    values: tuple[int, ...]
    base_offset: int
    """-1: not known."""
    outcome: Outcome
    error: int
    time_ns: int


class Sends(Protocol):
    """What a producer needs of its record. Times do not go back."""

    def invoke(self, keys: Sequence[int], count: int, *, time_ns: int) -> int:
        """Record so many sends to these keys in turn; the value of the first, others follow it."""

    def complete(self, ends: Sequence[End]) -> None:
        """Record how sends ended."""

    def close(self) -> None:
        """No more is recorded."""


_CODES: Final = {outcome: outcome.code for outcome in Outcome}


class RecordedSends:
    """In the segments of a run."""

    def __init__(self, recorder: SendRecorder) -> None:
        self._recorder = recorder

    def invoke(self, keys: Sequence[int], count: int, *, time_ns: int) -> int:
        """Record the calls."""
        in_turn = np.resize(np.array(keys, np.int32), count)
        return int(self._recorder.invoke(in_turn, time_ns=time_ns)[0])

    def complete(self, ends: Sequence[End]) -> None:
        """Record the ends, all of them at once: numpy costs as much for one as for a thousand."""
        values: list[int] = []
        offsets: list[int] = []
        counts = []
        for end in ends:
            values += end.values
            count = len(end.values)
            base = end.base_offset
            offsets += range(base, base + count) if base >= 0 else [-1] * count
            counts.append(count)
        self._recorder.complete(
            np.array(values, np.int64),
            offsets=np.array(offsets, np.int64),
            outcomes=np.repeat(np.array([_CODES[end.outcome] for end in ends], np.uint8), counts),
            errors=np.repeat(np.array([end.error for end in ends], np.int16), counts),
            time_ns=np.repeat(np.array([end.time_ns for end in ends], np.int64), counts),
        )

    def close(self) -> None:
        """Let the segments be sealed."""
        self._recorder.close()


class CountedSends:
    """Nowhere; values are the same as those of a run that is recorded."""

    def __init__(self, process: int) -> None:
        self._next = process << PROCESS_SHIFT

    def invoke(self, keys: Sequence[int], count: int, *, time_ns: int) -> int:  # noqa: ARG002
        """Give values away."""
        first = self._next
        self._next += count
        return first

    def complete(self, ends: Sequence[End]) -> None:
        """Forget them."""

    def close(self) -> None:
        """There is nothing to close."""
