"""The leader's memory of idempotent producers: their last five batches (KIP-98).

A log is replayed into it when its replica becomes leader, so a follower has no work with it.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

from fencepost.clusters.node_port.storage import Batch
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.replicas.log import PartitionLog

ACCEPTED: Final = -1
_BATCHES_MAX: Final = 5
"""The number of requests that an idempotent producer may have under way."""
_SEQUENCES: Final = 1 << 31
"""A sequence is an int32; after the last one comes 0."""

_OUT_OF_ORDER: Final = -int(Error.OUT_OF_ORDER_SEQUENCE_NUMBER)
_OLD_EPOCH: Final = -int(Error.INVALID_PRODUCER_EPOCH)


class _Producer:
    """The state of one producer id: its epoch, its next sequence, and its last batches."""

    __slots__ = ("batches", "epoch", "next_sequence")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.next_sequence = 0
        self.batches: deque[tuple[int, int, int]] = deque(maxlen=_BATCHES_MAX)
        """(base sequence, count, base offset)."""


class ProducerStates:
    """All producers of a partition."""

    __slots__ = ("_producers", "_replayed")

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}
        self._replayed = 0

    def judge(self, batch: Batch) -> int:
        """Return ACCEPTED; the base offset of an earlier copy; or an error's code, negative.

        Of a producer that is not known any sequence is taken, as Kafka does: its earlier records
        may have been deleted.
        """
        producer = self._producers.get(batch.producer_id)
        if producer is None:
            return ACCEPTED
        if batch.producer_epoch != producer.epoch:
            if batch.producer_epoch < producer.epoch:
                return _OLD_EPOCH
            return _OUT_OF_ORDER if batch.base_sequence else ACCEPTED
        if batch.base_sequence == producer.next_sequence:
            return ACCEPTED
        for base_sequence, count, base_offset in producer.batches:
            if base_sequence == batch.base_sequence and count == batch.count:
                return base_offset
        return _OUT_OF_ORDER

    def remember(self, batch: Batch) -> None:
        """Take an appended batch of an idempotent producer."""
        producer = self._producers.get(batch.producer_id)
        if producer is None or producer.epoch != batch.producer_epoch:
            producer = self._producers[batch.producer_id] = _Producer(batch.producer_epoch)
        producer.next_sequence = (batch.base_sequence + batch.count) % _SEQUENCES
        producer.batches.append((batch.base_sequence, batch.count, batch.base_offset))

    def catch_up(self, log: PartitionLog) -> None:
        """Replay what followed since `suspend`."""
        batches = log.batches
        for batch in batches[self._replayed :] if self._replayed else batches.folded(_last_of_each):
            if batch.producer_id >= 0:
                self.remember(batch)
        self._replayed = len(batches)

    def suspend(self, log: PartitionLog) -> None:
        """The replica stops leading; all that its log has is in here."""
        self._replayed = len(log.batches)

    def cut(self, log: PartitionLog) -> None:
        """The log was cut: what is in here may be gone, so it is replayed as a whole."""
        if len(log.batches) < self._replayed:
            self._producers.clear()
            self._replayed = 0


def _last_of_each(batches: Sequence[Batch]) -> list[Batch]:
    """Return of each producer the last batches of its last epoch, each producer's in order.

    Where there are fewer than can be remembered, the last one of the epoch before them stands in
    front: it tells whoever joins the answers of two segments that what is older belongs to another.
    """
    found: dict[int, list[Batch]] = {}
    whole: set[int] = set()
    """Producers of which another epoch was met."""
    for batch in reversed(batches):
        producer_id = batch.producer_id
        mine = found.get(producer_id)
        if mine is None:
            found[producer_id] = [batch]
        elif len(mine) < _BATCHES_MAX and producer_id not in whole:
            mine.append(batch)
            if batch.producer_epoch != mine[0].producer_epoch:
                whole.add(producer_id)
    return [batch for mine in found.values() for batch in reversed(mine)]
