"""The times at which a consumer assigns its keys anew, and the offsets: back over records it read.

A log that was cut and written again below a reader's position looks whole to a reader that only
goes forward. One that goes back sees that records that it was shown did not stay.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Rereads"]

_LOOK_BACK_MAX: Final = 10_000
"""Records of all keys together. Records that are read twice are recorded twice: this bounds the
price."""


class Rereads:
    """Decides for one consumer; times in ns of any one clock."""

    def __init__(
        self, *, mean_s: float, key_count: int, rng: np.random.Generator, now_ns: int
    ) -> None:
        self._mean_s = mean_s
        self._rng = rng
        # The next offset of each key; 0 before anything was read, which is the beginning.
        self._next: NDArray[np.int64] = np.zeros(key_count, dtype=np.int64)
        self._at_ns = now_ns + self._interval_ns()

    def read(self, keys: NDArray[np.int32], offsets: NDArray[np.int64]) -> None:
        """Take note that these records were read."""
        np.maximum.at(self._next, keys, offsets + 1)

    def is_due(self, now_ns: int) -> bool:
        """Return whether a new assignment is due."""
        return self._mean_s > 0 and now_ns >= self._at_ns

    def offsets(self, now_ns: int) -> list[int]:
        """Return the offset at which to start each key now; draw the next time."""
        self._at_ns = now_ns + self._interval_ns()
        back_max = _LOOK_BACK_MAX // len(self._next)
        back = self._rng.integers(0, back_max, size=len(self._next), endpoint=True)
        starts: list[int] = np.maximum(self._next - back, 0).tolist()
        return starts

    def _interval_ns(self) -> int:
        return int(self._rng.exponential(self._mean_s) * 1e9) + 1_000_000_000
