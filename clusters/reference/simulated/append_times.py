"""The times at which batches of the metadata log were appended, noted while the world goes on.

The witness needs them later, and takes more to import than a world does. A long run has millions:
they are kept in 16 bytes each.
"""

from array import array
from bisect import bisect_left
from typing import Final

from fencepost.clusters.node_port.storage import MetadataBatch

_MS: Final = 1_000_000


class AppendTimes:
    """The times at which the leader of the quorum appended each batch, by base offset and epoch."""

    def __init__(self, origin_utc_ns: int) -> None:
        self._origin_utc_ns = origin_utc_ns
        self._epochs: dict[int, tuple[array[int], array[int]]] = {}
        """Of each epoch the base offsets of its batches, and their times."""
        self._latest_ms = origin_utc_ns // _MS

    def add(self, now_ns: int, base_offset: int, epoch: int) -> None:
        """A batch was appended at this time of the world."""
        self._latest_ms = self.stamp_ms(now_ns)
        known = self._epochs.get(epoch)
        if known is None:
            known = self._epochs[epoch] = (array("q"), array("q"))
        offsets, times_ms = known
        if offsets and offsets[-1] >= base_offset:
            # The quorum lost its disks, and begins the epoch again.
            place = bisect_left(offsets, base_offset)
            del offsets[place:], times_ms[place:]
        offsets.append(base_offset)
        times_ms.append(self._latest_ms)

    def of(self, batch: MetadataBatch) -> int:
        """Return ms since 1970; of a batch whose time was never noted, the latest time known."""
        known = self._epochs.get(batch.epoch)
        if known is None:
            return self._latest_ms
        offsets, times_ms = known
        place = bisect_left(offsets, batch.base_offset)
        is_known = place < len(offsets) and offsets[place] == batch.base_offset
        return times_ms[place] if is_known else self._latest_ms

    def stamp_ms(self, now_ns: int) -> int:
        """A time of the world as a wall clock shows it."""
        return (self._origin_utc_ns + now_ns) // _MS
