"""The broker epoch and the partitions that a follower's Fetches name on one connection (KIP-903).

A follower names both thousands of times a second, and they hardly ever change. So of its Fetches
the tape has those that tell something new: another broker epoch, or a partition that no Fetch under
this epoch has named on this connection. A reader of the tape knows from them since when a leader
can know which epoch of which follower.

Only what was passed on untouched counts as told. A frame that a rule holds, drops or answers may
never arrive; it is on the tape for its rule's sake, and what comes after it is news again.
"""

from collections.abc import Hashable, Iterable

__all__ = ["Fetches"]


class Fetches:
    """The Fetches of one connection that were passed on."""

    __slots__ = ("_partitions", "_replica")

    def __init__(self) -> None:
        self._replica: Hashable = None
        """The replica and its epoch, as the frames write it; None before the first."""
        self._partitions: set[Hashable] = set()
        """The partitions that were named under this epoch."""

    def tells(self, replica: Hashable, partitions: Iterable[Hashable]) -> bool:
        """Return whether a Fetch by this replica of these partitions tells something new."""
        return replica != self._replica or not self._partitions.issuperset(partitions)

    def told(self, replica: Hashable, partitions: Iterable[Hashable]) -> None:
        """Take note of such a Fetch that was passed on."""
        if replica != self._replica:
            self._replica = replica
            self._partitions.clear()
        self._partitions.update(partitions)
