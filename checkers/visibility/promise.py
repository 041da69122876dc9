"""The age that a read of metadata may have, and the reads that are held to that.

A run may promise a greatest age of every read, and one of reads that are called when nothing has
been broken for a while: a broker that is cut off may be as old as it likes, and catches up when it
is not. Without a promise all ages are figures.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from checkers.quiet import Quiet
from history.manifest import Promises

__all__ = ["Promise"]

_NS_A_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The promises of a run, and the times when nothing was broken in it."""

    promises: Promises
    calm: Quiet

    def held(self, call_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of the reads, called at these times, that are held to any age."""
        if self.promises.metadata_age_max_ms is not None:
            return np.ones(len(call_ns), dtype=np.bool_)
        if self.promises.metadata_settled_age_max_ms is not None:
            return self.settled(call_ns)
        return np.zeros(len(call_ns), dtype=np.bool_)

    def settled(self, call_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of the times after a fault-free span as long as the run states."""
        settle_ns = int(self.promises.metadata_settle_ms * _NS_A_MS)
        settled: NDArray[np.bool_] = self.calm.since_ns(call_ns) <= call_ns - settle_ns
        return settled

    def broken(self, call_ns: NDArray[np.int64], known_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of reads that are too old. `known_ns`: when what they lack was known."""
        ages_ns = call_ns - known_ns
        too_old = np.zeros(len(ages_ns), dtype=np.bool_)
        if (always_ms := self.promises.metadata_age_max_ms) is not None:
            too_old |= ages_ns > always_ms * _NS_A_MS
        if (settled_ms := self.promises.metadata_settled_age_max_ms) is not None:
            too_old |= self.settled(call_ns) & (ages_ns > settled_ms * _NS_A_MS)
        return too_old

    def words(self) -> str:
        """Return the greatest age, or ages."""
        always_ms = self.promises.metadata_age_max_ms
        settled_ms = self.promises.metadata_settled_age_max_ms
        told = [] if always_ms is None else [f"{always_ms:g} ms"]
        if settled_ms is not None:
            after_s = self.promises.metadata_settle_ms / 1000
            told.append(f"{settled_ms:g} ms with nothing broken for {after_s:g} s")
        return ", or ".join(told)
