"""Images follow a metadata log: committed batches are applied, and dropped ones made up for."""

from fencepost.clusters.reference.nodes.image import MetadataImage
from fencepost.clusters.reference.nodes.quorum.metadata_log import MetadataLog
from fencepost.clusters.reference.nodes.records import MetadataRecord


class Replayer:
    """An image, and how far it is replayed: `image.offset`."""

    __slots__ = ("image", "rebuilt")

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.rebuilt = False
        """True if the last `advance` began with a new image, from a snapshot."""

    def advance(self, log: MetadataLog, up_to: int) -> list[tuple[int, int, MetadataRecord]]:
        """Apply the batches below `up_to`; what was applied, as (offset, epoch, record).

        Where the log begins above the image, a new image is made of its snapshot: `rebuilt` says
        so, and what the snapshot holds is not among what was applied. A snapshot above `up_to`
        waits.
        """
        self.rebuilt = False
        if up_to <= self.image.offset:
            return []
        if self.image.offset < log.start:
            if log.start > up_to:
                return []
            self._rebuild(log)
        return self._replay(log, up_to)

    def _rebuild(self, log: MetadataLog) -> None:
        snapshot = log.latest_snapshot
        assert snapshot is not None, log.start
        self.rebuilt = True
        self.image = MetadataImage.of_snapshot(
            snapshot.records, end_offset=snapshot.end_offset, epoch=snapshot.epoch
        )

    def _replay(self, log: MetadataLog, up_to: int) -> list[tuple[int, int, MetadataRecord]]:
        image = self.image
        applied: list[tuple[int, int, MetadataRecord]] = []
        for batch in log.batches(image.offset, up_to):
            for offset, record in enumerate(batch.records, batch.base_offset):
                # Only without some rule of the quorum, a batch begins below what was applied.
                if offset == image.offset:
                    image.apply(offset, batch.epoch, record)
                    applied.append((offset, batch.epoch, record))
        return applied
