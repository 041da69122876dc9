"""The search for the one of several versions that was surely in force throughout a time.

The timestamp of a version is a moment between two bounds (`Facts.earliest_ns`, `Facts.latest_ns`).
Clocks of several controllers may differ: a version is in force after all earlier ones.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.facts import Facts
from fencepost.checkers.rows import OPEN_NS

UNSURE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """Versions by their places, each with bounds of the time from which on it was in force."""

    surely_ns: NDArray[np.int64]
    perhaps_ns: NDArray[np.int64]
    """One more than there are versions: after the last one none begins."""

    def all_through(
        self, from_ns: NDArray[np.int64], until_ns: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the place of the version in force from the one to the other, or UNSURE."""
        place = np.searchsorted(self.surely_ns, from_ns, side="right") - 1
        sure: NDArray[np.int64] = np.where(self.perhaps_ns[place + 1] > until_ns, place, UNSURE)
        return sure


def in_force(timestamps_ms: Iterable[int], facts: Facts) -> InForce:
    """Return when versions with these timestamps, in their order, were in force."""
    stamps = list(timestamps_ms)
    surely = [facts.latest_ns(stamp) for stamp in stamps]
    perhaps = [*(facts.earliest_ns(stamp) for stamp in stamps), OPEN_NS]
    return InForce(
        surely_ns=np.maximum.accumulate(np.array(surely, dtype=np.int64)),
        perhaps_ns=np.minimum.accumulate(np.array(perhaps, dtype=np.int64)[::-1])[::-1],
    )
