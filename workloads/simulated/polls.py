"""Where a simulated consumer writes down its polls, and what they returned.

`RecordedPolls` are a run's; `CountedPolls` are for runs of which nothing is kept but the counts.
"""

from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from history.operation import F, Outcome
from history.segment import PollRecorder
from history.segment_format import NO_KEY

__all__ = ["CountedPolls", "Polls", "RecordedPolls", "Returned"]

_NO_KEYS: Final = np.zeros(0, np.int32)
_NO_NUMBERS: Final = np.zeros(0, np.int64)


@dataclass(slots=True)
class Returned:
    """Records that an operation returned, column by column, in their order."""

    keys: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    sessions: list[int] = field(default_factory=list)

    def add(self, key: int, offset: int, values: tuple[int, ...], session: int) -> None:
        """Records of one key, from this offset on."""
        count = len(values)
        self.keys += [key] * count
        self.offsets += range(offset, offset + count)
        self.values += values
        self.sessions += [session] * count


class Polls(Protocol):
    """What a consumer needs of its record. Times do not go back."""

    def invoke(self, *, time_ns: int, f: F = F.POLL, key: int = NO_KEY) -> int:
        """Record a call; its number."""

    def complete(
        self, number: int, returned: Returned, *, time_ns: int, outcome: Outcome, error: int = 0
    ) -> None:
        """Record how it ended."""

    def close(self) -> None:
        """No more is recorded."""


class RecordedPolls:
    """In the segments of a run."""

    def __init__(self, recorder: PollRecorder) -> None:
        self._recorder = recorder

    def invoke(self, *, time_ns: int, f: F = F.POLL, key: int = NO_KEY) -> int:
        """Record the call."""
        return self._recorder.invoke(time_ns=time_ns, f=f, key=key)

    def complete(
        self, number: int, returned: Returned, *, time_ns: int, outcome: Outcome, error: int = 0
    ) -> None:
        """Record the end, and all that was returned."""
        some = bool(returned.keys)  # most polls of a slow key bring nothing
        self._recorder.complete(
            number,
            time_ns=time_ns,
            keys=np.array(returned.keys, np.int32) if some else _NO_KEYS,
            offsets=np.array(returned.offsets, np.int64) if some else _NO_NUMBERS,
            values=np.array(returned.values, np.int64) if some else _NO_NUMBERS,
            sessions=np.array(returned.sessions, np.int32) if some else _NO_KEYS,
            outcome=outcome,
            error=error,
        )

    def close(self) -> None:
        """Let the segments be sealed."""
        self._recorder.close()


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
