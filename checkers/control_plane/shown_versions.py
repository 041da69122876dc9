"""The versions of a partition, matched with the states that describes show of it."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.metadata.partition_reads import PartitionReads, ShownState
from fencepost.checkers.metadata.partition_states import Cause, PartitionHistory


class ShownVersions:
    """The version that a describe may have shown.

    Where the log begins with a snapshot, a describe may have shown any version before it: of those
    the leader epoch was no later than the snapshot's, and a version in the log proves nothing.
    """

    def __init__(self, history: PartitionHistory) -> None:
        first = history.versions[0]
        self._since = first.leader_epoch + 1 if first.cause is Cause.SNAPSHOT else None
        self._places: dict[tuple[int | None, frozenset[int]], list[tuple[int, int]]] = {}
        for place, version in enumerate(history.versions):
            state = (version.leader, frozenset(version.isr))
            self._places.setdefault(state, []).append((place, version.leader_epoch))

    def is_in_the_log(self, shown: ShownState) -> bool:
        """Return whether the log has every version that it may have been."""
        epoch = shown.leader_epoch
        return self._since is None or (epoch is not None and epoch >= self._since)

    def first(self, shown: ShownState) -> int | None:
        """Return the place of the first version that it may have been; it tells an ISR."""
        of_isr = self._places.get((shown.leader, frozenset(shown.isr or ())), ())
        for place, leader_epoch in of_isr:
            if shown.leader_epoch in (None, leader_epoch):
                return place
        return None

    def first_reads(self, reads: PartitionReads) -> Iterator[tuple[int, int]]:
        """Yield versions that were shown, each with the read of a state of it that returned first.

        Both by place.
        """
        for shown, rows in _of_isrs(reads):
            version = self.first(shown)
            if version is not None and self.is_in_the_log(shown):
                yield version, int(rows[np.argmin(reads.return_ns[rows])])

    def of_no_version(self, reads: PartitionReads) -> Sequence[int]:
        """Return the places of reads that showed what no version in the log was, ascending."""
        return sorted(
            row
            for shown, rows in _of_isrs(reads)
            if shown.leader_epoch is not None
            and self.is_in_the_log(shown)
            and self.first(shown) is None
            for row in rows.tolist()
        )


def _of_isrs(reads: PartitionReads) -> Iterator[tuple[ShownState, NDArray[np.int64]]]:
    return ((shown, rows) for shown, rows in reads.by_state() if shown.isr is not None)
