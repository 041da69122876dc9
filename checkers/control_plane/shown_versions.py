"""Describes of partitions matched with the versions that the metadata log has of them."""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from checkers.metadata.partition_states import Cause, PartitionHistory
from checkers.metadata.view import MetadataView

__all__ = ["ShownVersions", "reads_of_partitions"]

_NO_ERROR: Final = "NONE"

_Row = Mapping[str, Any]


def reads_of_partitions(
    describes: pa.Table, seen: MetadataView
) -> Mapping[tuple[str, int], list[_Row]]:
    """Return describes that showed a partition without an error, by (topic id, partition)."""
    found: dict[tuple[str, int], list[_Row]] = {}
    for row in describes.to_pylist():
        place = (row["topic_id"], row["partition"])
        if row["error"] == _NO_ERROR and row["isr"] is not None and place in seen.partitions:
            found.setdefault(place, []).append(row)
    return found


class ShownVersions:
    """The version that a describe may have shown.

    Where the log begins with a snapshot, a describe may have shown any version before it: of those
    the leader epoch was no later than the snapshot's, and a version in the log proves nothing.
    """

    def __init__(self, history: PartitionHistory) -> None:
        first = history.versions[0]
        self._since = first.leader_epoch + 1 if first.cause is Cause.SNAPSHOT else None
        self._places: dict[tuple[int, frozenset[int]], list[tuple[int, int]]] = {}
        for place, version in enumerate(history.versions):
            state = (version.leader, frozenset(version.isr))
            self._places.setdefault(state, []).append((place, version.leader_epoch))

    def is_in_the_log(self, row: _Row) -> bool:
        """Return whether the log has every version that it may have been."""
        epoch = row["leader_epoch"]
        return self._since is None or (epoch is not None and epoch >= self._since)

    def first(self, row: _Row) -> int | None:
        """Return the first version that it may have been."""
        for place, leader_epoch in self._places.get((row["leader"], frozenset(row["isr"])), ()):
            if row["leader_epoch"] in (None, leader_epoch):
                return place
        return None
