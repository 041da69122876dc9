"""The metadata that a broker shows: what every unfenced broker has applied too.

Above the lowest acknowledged offset records wait in a queue, and are replayed into a second image
once it passes them. Hiding alone does not make reads repeatable, since brokers hear of that offset
at different times: a read waits besides until all is shown that this broker had applied when the
read came. Any other broker can have shown no more, since a lowest acknowledged offset is one that
this broker had acknowledged before, that is, applied. What says nothing (NoOpRecord, by which an
idle controller shows that it lives) is not waited for: a broker that died and is not fenced yet
acknowledges none of it, and would hold up every read of an idle cluster.

Source: the draft that adds LowestAcknowledgedOffset to BrokerHeartbeat, "Read-after-write
visibility".
"""

from collections import deque
from typing import Any, Final, Protocol

from fencepost.clusters.node_port.effects import CLOSE, NOTE, Effects
from fencepost.clusters.node_port.notes import VISIBLE
from fencepost.clusters.reference.nodes.image import MetadataImage
from fencepost.clusters.reference.nodes.levels import LEVEL_VISIBILITY
from fencepost.clusters.reference.nodes.records import MetadataRecord, NoOpRecord
from fencepost.clusters.reference.nodes.situation import Situation

WaitingRead = tuple[int, int, int, Any]
"""(offset that has to be shown, deadline, source, request)."""
_READS_MAX: Final = 10_000
"""The most reads that wait; the connection of one more is closed."""


class ShownMetadata(Protocol):
    """The metadata that a broker shows to its clients, and the reads that wait for it."""

    @property
    def image(self) -> MetadataImage:
        """The metadata that is shown."""

    @property
    def controller_id(self) -> int:
        """The broker that clients are told to ask for what the controller decides; -1: none."""

    def offered_level(self) -> int:
        """The metadata.version whose APIs clients may use."""

    def waits(self, now: int, source: int, request: Any, effects: Effects) -> bool:
        """Return whether a read has to wait; `ready` hands it out then."""

    def ready(self) -> list[tuple[int, Any]]:
        """The reads that can be answered by now, as (source, request)."""

    def tick(self, now: int, effects: Effects) -> None:
        """Give up reads that waited for too long."""

    def close(self, effects: Effects) -> None:
        """Answer no client any more."""


class Visibility:
    """The image that clients see once all brokers have applied it, and the reads that wait."""

    __slots__ = ("_lowest", "_queue", "_reads", "_said", "_situation", "image")

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self.image = MetadataImage()
        """The metadata that is shown."""
        self._lowest = -1
        self._queue: deque[tuple[int, int, MetadataRecord] | MetadataImage] = deque()
        """(offset, epoch, record) in order; an image where a snapshot came instead of records."""
        self._said = 0
        """The end of what was applied, but for records at the end of it that say nothing."""
        self._reads: deque[WaitingRead] = deque()
        """The waiting reads in the order of their offsets, since what was said only grows."""

    @property
    def is_behind(self) -> bool:
        """Return whether anything is hidden."""
        return bool(self._queue)

    @property
    def controller_id(self) -> int:
        """This broker: it passes on what the controller has to decide, as any other does."""
        return self._situation.node_id

    def offered_level(self) -> int:
        """The metadata.version whose APIs clients may use."""
        # Rule renegotiates_late.
        if self._situation.rules.renegotiates_late:
            return self.image.level
        return self._situation.level

    def applied(
        self,
        snapshot: MetadataImage | None,
        records: list[tuple[int, int, MetadataRecord]],
        effects: Effects,
    ) -> None:
        """Note that this snapshot, if any, and these records were applied."""
        if snapshot is not None:
            self._queue.append(snapshot)
            self._said = snapshot.offset
        self._queue.extend(records)
        for offset, _, record in reversed(records):
            if not isinstance(record, NoOpRecord):
                self._said = offset + 1
                break
        self._show(effects)

    def told_lowest(self, offset: int, effects: Effects) -> bool:
        """The controller named the lowest acknowledged offset; an older answer may come later.

        Whether more may be shown by it.
        """
        if offset <= self._lowest:
            return False
        self._lowest = offset
        self._show(effects)
        return True

    def waits(self, now: int, source: int, request: Any, effects: Effects) -> bool:
        """Return whether a read has to wait; `ready` hands it out then."""
        # Rule read_waits.
        if self.image.offset >= self._said or not self._situation.rules.read_waits:
            return False
        if len(self._reads) >= _READS_MAX:
            effects.append((CLOSE, source))
            return True
        deadline_ns = now + self._situation.configuration.request_timeout_ns
        self._reads.append((self._said, deadline_ns, source, request))
        self._situation.alarm.by(deadline_ns)
        return True

    def ready(self) -> list[tuple[int, Any]]:
        """The reads that can be answered by now, as (source, request)."""
        found = []
        while self._reads and self._reads[0][0] <= self.image.offset:
            _, _, source, request = self._reads.popleft()
            found.append((source, request))
        return found

    def tick(self, now: int, effects: Effects) -> None:
        """Give up reads that waited for too long."""
        while self._reads and self._reads[0][1] <= now:
            effects.append((CLOSE, self._reads.popleft()[2]))
        if self._reads:
            self._situation.alarm.by(self._reads[0][1])

    def close(self, effects: Effects) -> None:
        """Answer no client any more."""
        while self._reads:
            effects.append((CLOSE, self._reads.popleft()[2]))

    def _show(self, effects: Effects) -> None:
        limit = self._limit()
        before = self.image.offset
        while self._queue:
            item = self._queue[0]
            end = item.offset if isinstance(item, MetadataImage) else item[0] + 1
            if end > limit:
                break
            self._queue.popleft()
            if isinstance(item, MetadataImage):
                self.image = item
            else:
                self.image.apply(*item)
        if self.image.offset != before:
            effects.append((NOTE, VISIBLE, self.image.offset))

    def _limit(self) -> int:
        situation = self._situation
        # Rule hidden_above_lowest.
        if situation.level >= LEVEL_VISIBILITY and situation.rules.hidden_above_lowest:
            return self._lowest
        return situation.image.offset
