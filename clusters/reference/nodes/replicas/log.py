"""A partition's log in memory: whole batches in order, the leader epochs they came under.

Offsets begin at 0 and have no gaps. A position that is asked for, or cut at, is rounded to the
batch it lies in, since a batch is never split.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Final

from fencepost.clusters.node_port.batches import SEGMENT_BATCHES, Batches
from fencepost.clusters.node_port.effects import SYNC, Effects
from fencepost.clusters.node_port.segments import summary_of
from fencepost.clusters.node_port.storage import Batch, PartitionKey

NO_EPOCH: Final = -1
"""The leader epoch of no record: an empty log has no last one."""
_BATCHES_MAX: Final = SEGMENT_BATCHES
"""The most batches in one answer, however large it may be."""


class PartitionLog:
    """A replica's log and its high watermark."""

    __slots__ = (
        "_epochs",
        "batches",
        "end",
        "high_watermark",
        "key",
        "last_epoch",
        "unsynced",
    )

    def __init__(self, key: PartitionKey, batches: Iterable[Batch], high_watermark: int) -> None:
        self.key = key
        self.batches = Batches(batches)
        self.end = 0
        """The log end offset."""
        self.last_epoch = NO_EPOCH
        """The leader epoch of the last record."""
        self.unsynced = 0
        """Records since the last SYNC."""
        self._epochs: list[tuple[int, int]] = []
        self._read_back()
        self.high_watermark = min(high_watermark, self.end)

    def append(self, batch: Batch) -> None:
        """Take a batch whose base offset is the log's end."""
        self.batches.append(batch)
        if batch.leader_epoch > self.last_epoch:
            self.last_epoch = batch.leader_epoch
            self._epochs.append((batch.leader_epoch, batch.base_offset))
        self.end += batch.count

    def extend(self, batches: Sequence[Batch]) -> None:
        """Take batches without a gap, the first of which has the log's end as its base offset."""
        self.batches.extend(batches)
        self._begin_epochs(summary_of(batches, _first_of_each_epoch))
        self.end = batches[-1].end_offset

    def read(self, offset: int, up_to: int, records_max: int, bytes_max: int) -> tuple[Batch, ...]:
        """The batches from the one that has `offset` on, wholly below `up_to`.

        At least one if there is any, then as many as the bounds allow. Who is far behind gets whole
        segments, which logs share.
        """
        newest = self.batches.last
        if newest and newest[-1].base_offset == offset and up_to >= self.end:
            return (newest[-1],)
        first = self.batches.count_before(offset + 1) - 1
        last = len(self.batches) if up_to >= self.end else self._count_below(up_to)
        if last - first > _BATCHES_MAX:
            found = tuple(self.batches.rest_of_segment(first))
        else:
            found = tuple(self.batches[first:last])
        return found[: _allowed(found, records_max, bytes_max)]

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest leader epoch up to this one, and the offset at which it ends.

        (NO_EPOCH, -1) if the log has no such epoch: then nothing is known of it.
        """
        place = bisect_right(self._epochs, epoch, key=_epoch)
        if place == 0:
            return NO_EPOCH, -1
        end = self.end if place == len(self._epochs) else self._epochs[place][1]
        return self._epochs[place - 1][0], end

    def cut(self, offset: int) -> int:
        """Drop every batch that does not end at or below the offset; the new end offset."""
        kept = self._count_below(offset)
        if kept < len(self.batches):
            self.end = self.batches[kept].base_offset
            self.batches.truncate(kept)
            while self._epochs and self._epochs[-1][1] >= self.end:
                self._epochs.pop()
            self.last_epoch = self._epochs[-1][0] if self._epochs else NO_EPOCH
            self.high_watermark = min(self.high_watermark, self.end)
        return self.end

    def _read_back(self) -> None:
        """Find the end and the epochs of a log that was there before."""
        if not self.batches:
            return
        self.end = self.batches[-1].end_offset
        self._begin_epochs(self.batches.folded(_first_of_each_epoch))

    def _begin_epochs(self, firsts: Iterable[Batch]) -> None:
        """Note the leader epochs of these that are above all before."""
        for batch in firsts:
            if batch.leader_epoch > self.last_epoch:
                self.last_epoch = batch.leader_epoch
                self._epochs.append((batch.leader_epoch, batch.base_offset))

    def _count_below(self, offset: int) -> int:
        """Return how many batches end at or below the offset."""
        place = self.batches.count_before(offset)
        if place and self.batches[place - 1].end_offset > offset:
            return place - 1
        return place


def flush(log: PartitionLog, count: int, every: int, effects: Effects) -> None:
    """Count the appended records, and sync after `every` of them.

    That is log.flush.interval.messages. No client waits for durability.
    """
    log.unsynced += count
    if log.unsynced >= every:
        log.unsynced = 0
        effects.append((SYNC, (log.key,), ("replicas", log.key)))


def _first_of_each_epoch(batches: Sequence[Batch]) -> list[Batch]:
    """Return each batch whose leader epoch is above all before it."""
    if not batches or max(map(_leader_epoch, batches)) == batches[0].leader_epoch:
        return list(batches[:1])
    found: list[Batch] = []
    highest = NO_EPOCH
    for batch in batches:
        if batch.leader_epoch > highest:
            highest = batch.leader_epoch
            found.append(batch)
    return found


_leader_epoch: Final = attrgetter("leader_epoch")
_end_offset: Final = attrgetter("end_offset")


def _epoch(entry: tuple[int, int]) -> int:
    return entry[0]


def _allowed(batches: Sequence[Batch], records_max: int, bytes_max: int) -> int:
    """Return how many of the batches fit into an answer: one at least."""
    if not batches:
        return 0
    # They have no gaps, so that their ends tell how many records there are up to each.
    fit = bisect_right(batches, batches[0].base_offset + records_max, key=_end_offset)
    # In a process a payload is the client's encoded batch; in the simulator it has no size.
    if isinstance(batches[0].payload, bytes):
        sizes = accumulate([len(batch.payload) for batch in batches])
        fit = min(fit, bisect_right(list(sizes), bytes_max))
    return max(1, fit)
