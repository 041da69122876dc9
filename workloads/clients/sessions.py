"""Sessions: the unbroken ownership of its key to which a polled record belongs.

A consumer reads a key in order only while it owns it without a break: a new assign, or a rebalance
that took the key away and gave it back, may start anywhere. Each such ownership is a session, and
claims about the order of records are made within one session only.

librdkafka calls back about rebalances *during* a poll, and says of no record in the poll's result
whether it was fetched before or after. Three cases are certain all the same: a key that was owned
all along, or only lost (its records are of the old session), or only gained (of the new one). A key
that was held and gained again within one poll is uncertain (and common: a quick rebalance takes all
keys away and gives them back in a few milliseconds). There a session ends wherever the next offset
is not the one that follows, so that nothing is claimed about what lies between. That hides an
anomaly at worst; the other way round an innocent cluster would be blamed.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class ConsumerSessions:
    """The sessions of one consumer; keys are indices below `key_count`."""

    def __init__(self, key_count: int) -> None:
        self._current = np.full(key_count, -1, dtype=np.int32)
        self._owned: set[int] = set()
        # Owned at some moment since the poll began, and of these the uncertain ones.
        self._held: set[int] = set()
        self._unsure: set[int] = set()

    @property
    def owned(self) -> frozenset[int]:
        """The keys that the consumer owns now."""
        return frozenset(self._owned)

    def begin_poll(self) -> None:
        """Begin a poll: the records that it returns are fetched after all that happened so far."""
        self._held = set(self._owned)
        self._unsure.clear()

    def gain(self, keys: Iterable[int]) -> None:
        """Take note that the consumer was given these keys; it may own some already."""
        for key in keys:
            if key in self._held:
                self._unsure.add(key)
            self._held.add(key)
            self._owned.add(key)
            self._current[key] += 1

    def lose(self, keys: Iterable[int]) -> None:
        """Take note that these keys were taken from the consumer."""
        self._owned.difference_update(keys)

    def sever(self) -> None:
        """End the sessions after a failed poll: its records are unknown, so order starts anew."""
        self._current += 1

    def end_poll(self, keys: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """End the poll, good or bad; return the session of each record that it returned."""
        sessions: NDArray[np.int32] = np.maximum(self._current[keys], 0)
        for key in self._unsure:
            records = np.flatnonzero(keys == key)
            breaks = np.cumsum(np.diff(offsets[records], prepend=offsets[records[:1]] - 1) != 1)
            sessions[records] = self._current[key] + breaks
            # Records of the next poll are of the new ownership, and of a session of its own.
            self._current[key] = sessions[records].max(initial=self._current[key]) + 1
        return sessions
