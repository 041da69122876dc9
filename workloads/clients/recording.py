"""The recorders as clients use them, so that a test or a benchmark can put in another one.

See `history.send_recorder` for the recorders of a run.
"""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fencepost.history.operation import F, Outcome


class RecordsSends(Protocol):
    """The recorder of sends, as `SendRecorder`."""

    def invoke(self, keys: NDArray[np.int32], *, time_ns: int) -> NDArray[np.int64]:
        """Record one send a key; return their values."""

    def complete(
        self,
        values: NDArray[np.int64],
        *,
        offsets: NDArray[np.int64],
        outcomes: NDArray[np.uint8],
        errors: NDArray[np.int16],
        time_ns: int,
    ) -> None:
        """Record how sends ended."""


class RecordsPolls(Protocol):
    """The recorder of polls, as `PollRecorder`."""

    def invoke(self, *, time_ns: int, f: F = F.POLL, key: int = -1) -> int:
        """Record the start of a poll, or of the final read of one key; return its sequence."""

    def append(
        self,
        sequence: int,
        *,
        keys: NDArray[np.int32],
        offsets: NDArray[np.int64],
        values: NDArray[np.int64],
        sessions: NDArray[np.int32],
    ) -> None:
        """Record what an open operation returned so far."""

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
        """Record the end of an operation, and what it returned besides."""


class RecordsEvents(Protocol):
    """The recorder of events, as `history.journal.EventJournal`."""

    def begin(self, columns: Mapping[str, object]) -> int:
        """Record an event before it happens; return its number."""

    def note(self, number: int, columns: Mapping[str, object]) -> None:
        """Record more of it."""

    def end(self, number: int, columns: Mapping[str, object]) -> None:
        """Record how it ended."""
