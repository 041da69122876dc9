"""A synthetic history while it is made: sends, the log they led to, and what was read of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ENTRY",
    "FAIL",
    "INFO",
    "NEVER_NS",
    "OK",
    "READ",
    "READING",
    "SEND",
    "Draft",
    "HistoryRecipe",
    "row_of",
]

OK, FAIL, INFO = range(3)
NEVER_NS: Final = -1
"""The return of an operation whose end was never seen."""

SEND: Final = np.dtype(
    [
        ("key", np.int32),
        ("process", np.int32),
        ("value", np.int64),
        ("call_ns", np.int64),
        ("return_ns", np.int64),
        ("offset", np.int64),  # as acknowledged; -1 unknown
        ("outcome", np.int8),
    ]
)
"""One send."""

ENTRY: Final = np.dtype(
    [("key", np.int32), ("offset", np.int64), ("value", np.int64), ("time_ns", np.int64)]
)
"""One record of the true log, by key and offset; from `time_ns` on it can be read."""

READING: Final = np.dtype(
    [
        ("process", np.int32),
        ("order", np.int64),  # among the readings of its process
        ("key", np.int32),  # of a final read; -1 of a poll
        ("call_ns", np.int64),
        ("return_ns", np.int64),
        ("outcome", np.int8),
    ]
)
"""One poll or final read."""

READ: Final = np.dtype(
    [("reading", np.int64), ("key", np.int32), ("offset", np.int64), ("value", np.int64)]
)
"""One record read, in the order of its reading (its row among the readings)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRecipe:
    """The properties of the history to make."""

    sends: int = 10_000
    """The sends of all keys and producers together."""
    keys: int = 4
    producers: int = 2
    consumers: int = 2
    """The number of consumers; each reads every key from its first offset on."""
    batch: int = 50
    """Records of a key that a poll returns."""
    crash_rate: float = 0.01
    """The share of sends that crash; half of them are in the log. If positive, every consumer but
    the first crashes in its last poll.
    """
    fail_rate: float = 0.01
    """The share of sends that fail."""
    gap_rate: float = 0.01
    """The share of offsets that hold no record."""
    faults: int = 2
    idempotent: bool = True
    lies: tuple[str, ...] = ()
    """Anomalies to plant, by the names of the catalogue (`generators.lies.LIES`)."""
    seed: int = 0

    @property
    def key_names(self) -> tuple[str, ...]:
        """The keys, by number."""
        return tuple(f"t-{number}" for number in range(self.keys))


@dataclass(slots=True, kw_only=True)
class Draft:
    """The parts of a history, to be changed by lies before it becomes tables."""

    recipe: HistoryRecipe
    rng: np.random.Generator
    sends: NDArray[np.void]
    log: NDArray[np.void]
    readings: NDArray[np.void] = field(default_factory=lambda: np.empty(0, READING))
    reads: NDArray[np.void] = field(default_factory=lambda: np.empty(0, READ))

    def next_value(self, process: int) -> int:
        """Return a value that this producer has not sent yet."""
        mine = self.sends["value"][self.sends["process"] == process]
        return int(mine.max(initial=(process << 40) - 1)) + 1

    def add_send(self, **columns: int) -> None:
        """Add a send after all others."""
        self.sends = np.concatenate([self.sends, row_of(SEND, columns)])

    def add_entry(self, **columns: int) -> None:
        """Add a record to the log, at its place by key and offset."""
        log = np.concatenate([self.log, row_of(ENTRY, columns)])
        self.log = log[np.lexsort((log["offset"], log["key"]))]


def row_of(dtype: np.dtype[np.void], columns: Mapping[str, int]) -> NDArray[np.void]:
    """Return an array of one row."""
    row = np.zeros(1, dtype)
    for name in dtype.names or ():
        row[name] = columns[name]
    return row
