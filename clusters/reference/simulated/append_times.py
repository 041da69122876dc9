"""The times at which batches of the metadata log were appended, noted while the world goes on.

The witness needs them later, and takes more to import than a world does.
"""

from typing import Final

from clusters.node_port.storage import MetadataBatch

__all__ = ["AppendTimes"]

_MS: Final = 1_000_000


class AppendTimes:
    """The times at which the leader of the quorum appended each batch, by base offset and epoch."""

    def __init__(self, origin_utc_ns: int) -> None:
        self._origin_utc_ns = origin_utc_ns
        self._times: dict[tuple[int, int], int] = {}
        self._latest_ms = origin_utc_ns // _MS

    def add(self, now_ns: int, base_offset: int, epoch: int) -> None:
        """A batch was appended at this time of the world."""
        self._latest_ms = self.stamp_ms(now_ns)
        self._times[base_offset, epoch] = self._latest_ms

    def of(self, batch: MetadataBatch) -> int:
        """Return ms since 1970; of a batch whose time was never noted, the latest time known."""
        return self._times.get((batch.base_offset, batch.epoch), self._latest_ms)

    def stamp_ms(self, now_ns: int) -> int:
        """A time of the world as a wall clock shows it."""
        return (self._origin_utc_ns + now_ns) // _MS
