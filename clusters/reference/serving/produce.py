"""Produces: appended by leaders, answered at once or with the high watermark."""

from typing import Final

from clusters.reference.effects import SEND, Effects
from clusters.reference.errors import Error
from clusters.reference.messages.data import ProduceRequest, ProduceResponse
from clusters.reference.replicas.leader import Leader
from clusters.reference.replicas.replicas import Replicas
from clusters.reference.replicas.waiting import PendingProduce, PendingProduces
from clusters.reference.situation import Situation
from clusters.reference.storage import Batch, PartitionKey

__all__ = ["Producing"]

_NONE: Final = int(Error.NONE)
_NOT_LEADER: Final = int(Error.NOT_LEADER_OR_FOLLOWER)
_UNKNOWN: Final = int(Error.UNKNOWN_TOPIC_OR_PARTITION)
_NOT_ENOUGH: Final = -int(Error.NOT_ENOUGH_REPLICAS)
_ALL: Final = -1


class Producing:
    """A broker's produces."""

    __slots__ = ("_acks_all_waits", "_leaders", "_pending", "_situation")

    def __init__(self, situation: Situation, replicas: Replicas, pending: PendingProduces) -> None:
        self._situation = situation
        self._leaders = replicas.leaders
        self._pending = pending
        # Rule acks_all_waits.
        self._acks_all_waits = situation.rules.acks_all_waits

    def produce(self, now: int, source: int, request: ProduceRequest, effects: Effects) -> None:
        """Append each batch to its partition, and answer by the acks that are asked for."""
        acks = request.acks
        results: list[tuple[PartitionKey, int, int]] = []
        touched: list[Leader] = []
        pending: PendingProduce | None = None
        for key, batch in request.partitions:
            leader = self._leaders.get(key)
            if leader is None:
                results.append((key, self.unled(key), -1))
                continue
            if acks == _ALL and not leader.is_enough(len(leader.isr)):
                base = _NOT_ENOUGH
            else:
                base = leader.append(batch, effects)
            if base < 0:
                results.append((key, -base, -1))
                continue
            touched.append(leader)
            end = base + batch.count
            if acks == _ALL and self._acks_all_waits and end > leader.log.high_watermark:
                if pending is None:
                    pending = PendingProduce(
                        source, request.correlation, now + request.timeout_ns, results
                    )
                    self._pending.add(pending)
                pending.missing += 1
                leader.pending.append((end, pending, len(results)))
            results.append((key, _NONE, base))
        if pending is None and acks:
            effects.append((SEND, source, ProduceResponse(request.correlation, tuple(results))))
        for leader in touched:
            leader.appended(now, effects)

    def commit(
        self, now: int, leader: Leader, batch: Batch, pending: PendingProduce, effects: Effects
    ) -> None:
        """Append what this broker itself has to say, with acks=all."""
        base = _NOT_ENOUGH
        if leader.is_enough(len(leader.isr)):
            base = leader.append(batch, effects)
        pending.results.append((leader.key, max(-base, _NONE), base))
        self._pending.add(pending)
        pending.missing = 1
        if base < 0:
            self._pending.acknowledge(pending, effects)
            return
        leader.pending.append((base + batch.count, pending, 0))
        leader.appended(now, effects)

    def unled(self, key: PartitionKey) -> int:
        """Why nobody answers here for a partition."""
        return _NOT_LEADER if key in self._situation.image.partitions else _UNKNOWN
