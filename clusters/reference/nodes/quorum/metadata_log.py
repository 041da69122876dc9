"""The log of metadata as a voter or an observer holds it in memory, and how its disk is kept alike.

A log begins at 0 or at the end of its latest snapshot, and consists of whole batches. What is in
memory runs ahead of the disk in one respect alone: below a new snapshot it is dropped at once, on
the disk once the snapshot is durable (`trim`). A log that was loaded is cut the same way.

The high watermark lives here, and moves by `commit` only: forwards. What it was before a restart
is forgotten but for the snapshot, which holds nothing that was not committed.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from fencepost.clusters.node_port.effects import (
    ADVANCE,
    APPEND,
    NOTE,
    SYNC,
    TRUNCATE,
    WRITE,
    Effects,
)
from fencepost.clusters.node_port.notes import COMMITTED_METADATA
from fencepost.clusters.node_port.storage import (
    METADATA,
    SNAPSHOT,
    Contents,
    MetadataBatch,
    Snapshot,
)

QUORUM: Final = "quorum"
"""The component of the tokens of the quorum's syncs: (QUORUM, what was made durable, …)."""
START: Final = "start"
"""(QUORUM, START): what the disk had when the node started.

A log is (QUORUM, METADATA, end offset, generation), a vote (QUORUM, QUORUM_STATE, number), and a
snapshot of one's own (QUORUM, SNAPSHOT, end offset).
"""
ARRIVED: Final = "arrived"
"""(QUORUM, ARRIVED, number): a leader's snapshot."""
_EMPTY: Final = Snapshot(end_offset=0, epoch=0, records=())


class MetadataLog:
    """Batches from `start` up to but without `end`, and where the epochs in it begin."""

    __slots__ = (
        "_bases",
        "_batches",
        "_dropped",
        "_epochs",
        "_firsts",
        "_trimmed",
        "end",
        "generation",
        "high_watermark",
        "last_epoch",
        "latest_snapshot",
        "start",
    )

    def __init__(self) -> None:
        self.latest_snapshot: Snapshot | None = None
        self.high_watermark = 0
        """The committed end offset, as far as this node knows."""
        self.generation = 0
        """Counts truncations: the end of an older generation says nothing about this log."""
        self._batches: list[MetadataBatch] = []
        self._bases: list[int] = []
        self._epochs: list[int] = []
        self._firsts: list[int] = []
        """The beginning of each of the epochs."""
        self._trimmed = 0
        """The beginning of the log on the disk."""
        self._dropped = False
        """The disk still has batches of another branch, which its snapshot replaces."""
        self._restart(_EMPTY)

    def load(self, contents: Contents) -> None:
        """Take what a disk has. Call `trim` once its snapshot is known to be durable."""
        self._trimmed = contents.log_starts.get(METADATA, 0)
        found = contents.files.get(SNAPSHOT)
        batches = contents.logs.get(METADATA, [])
        assert self._trimmed <= (0 if found is None else found.end_offset), self._trimmed
        if found is not None:
            self.latest_snapshot = found
            self.high_watermark = found.end_offset
            self._restart(found)
        for batch in _following(batches, self.end, self.last_epoch):
            self._add(batch)
        self._dropped = bool(batches) and self.end < batches[-1].end_offset

    def batches(self, start: int, end: int) -> list[MetadataBatch]:
        """The batches wholly below `end`, from the one that has `start` on."""
        if start >= self.end:
            return []  # as of most fetches: they wait for news
        first = max(0, bisect_right(self._bases, start) - 1)
        last = bisect_left(self._bases, end)
        if last and self._batches[last - 1].end_offset > end:
            last -= 1
        if first < last and self._batches[first].end_offset <= start:
            first += 1
        return self._batches[first:last]

    def end_of(self, epoch: int) -> tuple[int, int]:
        """The highest epoch of the log up to `epoch`, and its end offset; the start if none is."""
        place = bisect_right(self._epochs, epoch)
        if not place:
            return self._epochs[0], self.start
        end = self._firsts[place] if place < len(self._firsts) else self.end
        return self._epochs[place - 1], end

    @property
    def start_epoch(self) -> int:
        """The epoch of the record before `start`; 0: no such record."""
        return self._epochs[0]

    def append(self, batch: MetadataBatch, effects: Effects) -> None:
        """Add the next batch."""
        assert batch.base_offset == self.end, (batch.base_offset, self.end)
        self._add(batch)
        effects.append((APPEND, METADATA, batch))

    def truncate(self, offset: int, effects: Effects) -> None:
        """Drop the batches that end above `offset`; what the snapshot holds stays."""
        place = max(0, bisect_right(self._bases, offset) - 1)
        if place < len(self._batches) and self._batches[place].end_offset <= offset:
            place += 1
        if place == len(self._batches):
            return
        self.end = self._bases[place]
        del self._batches[place:], self._bases[place:]
        while len(self._firsts) > 1 and self._firsts[-1] >= self.end:
            del self._firsts[-1], self._epochs[-1]
        self.last_epoch = self._epochs[-1]
        self.generation += 1
        effects.append((TRUNCATE, METADATA, self.end))

    def commit(self, end: int, effects: Effects) -> bool:
        """Move the high watermark up to `end`, unless it is there already."""
        if end <= self.high_watermark:
            return False
        self.high_watermark = end
        effects.append((NOTE, COMMITTED_METADATA, end))
        return True

    def cut(self, snapshot: Snapshot, effects: Effects) -> None:
        """Begin at a snapshot of this log's own records, and store it; `trim` once it is durable.

        Its end offset has to be a batch's, above the start; nothing happens otherwise.
        """
        place = bisect_left(self._bases, snapshot.end_offset)
        before = self._batches[place - 1].end_offset if place else self.start
        if before != snapshot.end_offset or before == self.start:
            return
        kept = self._batches[place:]
        effects.append((WRITE, SNAPSHOT, snapshot))
        effects.append((SYNC, (SNAPSHOT,), (QUORUM, SNAPSHOT, snapshot.end_offset)))
        self.latest_snapshot = snapshot
        self._restart(snapshot)
        for batch in kept:
            self._add(batch)

    def replace(self, snapshot: Snapshot, effects: Effects) -> None:
        """Begin anew at a leader's snapshot, which is durable already."""
        self._dropped = self.end > self.start
        self.generation += 1
        self.latest_snapshot = snapshot
        self._restart(snapshot)
        self.trim(snapshot.end_offset, effects)

    def trim(self, end: int, effects: Effects) -> None:
        """Drop on the disk what is below `end`, the end of a durable snapshot."""
        if self._dropped:
            effects.append((TRUNCATE, METADATA, self._trimmed))
            self._dropped = False
        if end > self._trimmed:
            self._trimmed = end
            effects.append((ADVANCE, METADATA, end))

    def _restart(self, snapshot: Snapshot) -> None:
        self.start = self.end = snapshot.end_offset
        self.last_epoch = snapshot.epoch
        self._batches = []
        self._bases = []
        # The record before the log stands for an epoch of its own, which has none of its offsets.
        self._epochs = [snapshot.epoch]
        self._firsts = [snapshot.end_offset]

    def _add(self, batch: MetadataBatch) -> None:
        if batch.epoch != self.last_epoch:
            self._epochs.append(batch.epoch)
            self._firsts.append(batch.base_offset)
            self.last_epoch = batch.epoch
        self._batches.append(batch)
        self._bases.append(batch.base_offset)
        self.end = batch.end_offset


def _following(
    batches: Sequence[MetadataBatch], offset: int, epoch: int
) -> Sequence[MetadataBatch]:
    """Return what a disk has above its snapshot, if that is of the same branch."""
    place = bisect_left(batches, offset, key=lambda batch: batch.base_offset)
    before = batches[place - 1] if place else None
    if before is not None and (before.end_offset != offset or before.epoch != epoch):
        return []
    if place < len(batches) and batches[place].base_offset != offset:
        return []
    return batches[place:]
