"""Produces: appended by leaders, answered at once or with the high watermark."""

from typing import Final

from fencepost.clusters.node_port.alarm import NEVER_NS
from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.node_port.storage import Batch, PartitionKey
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.data import ProduceRequest, ProduceResponse
from fencepost.clusters.reference.nodes.replicas.leader import Leader
from fencepost.clusters.reference.nodes.replicas.replicas import Replicas
from fencepost.clusters.reference.nodes.replicas.waiting import PendingProduce
from fencepost.clusters.reference.nodes.situation import Situation

_NONE: Final = int(Error.NONE)
_NOT_LEADER: Final = int(Error.NOT_LEADER_OR_FOLLOWER)
_UNKNOWN: Final = int(Error.UNKNOWN_TOPIC_OR_PARTITION)
_NOT_ENOUGH: Final = -int(Error.NOT_ENOUGH_REPLICAS)
_ALL: Final = -1


class Producing:
    """A broker's produces."""

    __slots__ = ("_acks_all_waits", "_due_ns", "_leaders", "_situation")

    def __init__(self, situation: Situation, replicas: Replicas) -> None:
        self._situation = situation
        self._leaders = replicas.leaders
        self._due_ns = NEVER_NS
        """The time before which there is no deadline."""
        # Rule acks_all_waits.
        self._acks_all_waits = situation.rules.acks_all_waits

    def produce(self, now: int, source: int, request: ProduceRequest, effects: Effects) -> None:
        """Append each batch to its partition, and answer by the acks that are asked for."""
        acks = request.acks
        waits = acks == _ALL and self._acks_all_waits
        results: list[tuple[PartitionKey, int, int]] = []
        touched: list[Leader] = []
        pending: PendingProduce | None = None
        for key, batch in request.partitions:
            leader = self._leaders.get(key)
            if leader is None:
                results.append((key, self._unled(key), -1))
                continue
            base = self._append(leader, acks, batch, effects)
            if base < 0:
                results.append((key, -base, -1))
                continue
            touched.append(leader)
            end = base + batch.count
            if waits and end > leader.log.high_watermark:
                if pending is None:
                    deadline_ns = now + request.timeout_ns
                    pending = PendingProduce(source, request.correlation, deadline_ns, results)
                    if deadline_ns < self._due_ns:
                        self._due_ns = deadline_ns
                        self._situation.alarm.by(deadline_ns)
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
        base = self._append(leader, _ALL, batch, effects)
        pending.missing = 1
        if base < 0:
            pending.results.append((leader.key, -base, -1))
            pending.acknowledge(effects)
            return
        pending.results.append((leader.key, _NONE, base))
        self._due_ns = min(self._due_ns, pending.deadline_ns)
        self._situation.alarm.by(pending.deadline_ns)
        leader.pending.append((base + batch.count, pending, 0))
        leader.appended(now, effects)

    def tick(self, now: int, effects: Effects) -> None:
        """Answer those that waited for too long."""
        if now >= self._due_ns:
            for pending in self._waiting():
                if pending.deadline_ns <= now:
                    pending.expire(effects)
            self._due_ns = min((one.deadline_ns for one in self._waiting()), default=NEVER_NS)
        self._situation.alarm.by(self._due_ns)

    def close(self, effects: Effects) -> None:
        """Answer no client any more."""
        for pending in self._waiting():
            pending.close(effects)

    def _append(self, leader: Leader, acks: int, batch: Batch, effects: Effects) -> int:
        """The base offset, or an error's code, negative."""
        if acks == _ALL and not leader.is_enough(len(leader.isr)):
            return _NOT_ENOUGH
        return leader.append(batch, effects)

    def _unled(self, key: PartitionKey) -> int:
        """Return the error for a partition that has no leader here."""
        return _NOT_LEADER if key in self._situation.image.partitions else _UNKNOWN

    def _waiting(self) -> list[PendingProduce]:
        """Return each once, in the order of their partitions and of their arrival there."""
        return list(
            dict.fromkeys(
                pending
                for leader in self._leaders.values()
                for _, pending, _ in leader.pending
                if pending.missing > 0
            )
        )
