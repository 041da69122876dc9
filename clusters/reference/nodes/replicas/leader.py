"""A partition's leader: what it appends, how far it is committed, and which ISR it wants.

The committed ISR is the controller's word; a proposed one is not decided yet. Members of either are
the *maximal ISR* (KIP-497): the high watermark waits for all of them, since the proposal may be
in force already. It also waits for followers that are about to join, as Kafka's leaders do; else a
quick producer would keep them out for ever.

A follower may join by the metadata that its leader has applied (KIP-841, KIP-903). Kafka also
proposes one whose fetches carry no broker epoch though the level asks for one; here it waits until
they do, which they do once it has applied that level.
"""

from collections import deque
from typing import Final

from fencepost.clusters.node_port.effects import APPEND, NOTE, Effects
from fencepost.clusters.node_port.notes import HIGH_WATERMARK
from fencepost.clusters.node_port.storage import Batch, PartitionKey
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.image import PartitionImage
from fencepost.clusters.reference.nodes.levels import LEVEL_EPOCHS
from fencepost.clusters.reference.nodes.messages.data import FetchedPartition
from fencepost.clusters.reference.nodes.replicas.log import PartitionLog, flush
from fencepost.clusters.reference.nodes.replicas.producers import ACCEPTED, ProducerStates
from fencepost.clusters.reference.nodes.replicas.remote import Remote
from fencepost.clusters.reference.nodes.replicas.waiting import (
    ConsumerFetch,
    ParkedFetches,
    PendingProduce,
)
from fencepost.clusters.reference.nodes.situation import Situation

_NONE: Final = int(Error.NONE)
_NOT_ENOUGH_AFTER_APPEND: Final = int(Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND)


class Leader:
    """A broker that leads one partition under one leader epoch."""

    __slots__ = (
        "_fetches",
        "_flush_records",
        "_sequence_checked",
        "_situation",
        "consumers",
        "ended",
        "epoch_start",
        "isr",
        "key",
        "leader_epoch",
        "log",
        "members",
        "min_isr",
        "outsiders",
        "partition_epoch",
        "pending",
        "producers",
        "proposed",
        "remotes",
        "replicas",
    )

    def __init__(
        self,
        log: PartitionLog,
        producers: ProducerStates,
        situation: Situation,
        fetches: ParkedFetches,
    ) -> None:
        self.key: PartitionKey = log.key
        self.log = log
        self.producers = producers
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.epoch_start = log.end
        """The log end offset when the leader epoch began."""
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        """Committed."""
        self.proposed: tuple[int, ...] | None = None
        """The ISR that the controller was asked for and has not decided on."""
        self.min_isr = 1
        self.remotes: dict[int, Remote] = {}
        """The other replicas."""
        self.members: tuple[Remote, ...] = ()
        """The replicas for which the high watermark always waits."""
        self.outsiders: tuple[Remote, ...] = ()
        """The replicas for which it waits while they are about to join."""
        self.pending: deque[tuple[int, PendingProduce, int]] = deque()
        """(offset to reach, produce, its place there), in the order of their arrival."""
        self.consumers: dict[ConsumerFetch, None] = {}
        self.ended = False
        self._situation = situation
        self._fetches = fetches
        self._flush_records = situation.configuration.flush_records
        # Rule sequence_checked.
        self._sequence_checked = situation.rules.sequence_checked

    def begin(self, now: int, partition: PartitionImage) -> None:
        """Lead as the metadata says. The members of the ISR count as caught up at first."""
        self.leader_epoch = partition.leader_epoch
        self.producers.catch_up(self.log)
        self.commit(partition)
        for broker_id in partition.isr:
            if broker_id in self.remotes:
                self.remotes[broker_id].caught_up_ns = now

    def commit(self, partition: PartitionImage) -> None:
        """Take what the metadata says of this leader epoch; a proposal is overtaken by it."""
        self.replicas = partition.replicas
        others = [one for one in partition.replicas if one != self._situation.node_id]
        self.remotes = {
            one: self.remotes.get(one) or Remote(one, self._fetches.of_follower(one))
            for one in others
        }
        self.committed(partition.isr, partition.partition_epoch)

    def committed(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        """The controller decided on this ISR."""
        self.isr = isr
        self.partition_epoch = partition_epoch
        self.propose(None)

    def propose(self, isr: tuple[int, ...] | None) -> None:
        """Take this ISR for proposed; None: none is, and the committed one holds."""
        self.proposed = isr
        for remote in self.remotes.values():
            remote.is_member = remote.broker_id in self.isr or (
                isr is not None and remote.broker_id in isr
            )
        # Rule high_watermark_of_maximal_isr.
        if self._situation.rules.high_watermark_of_maximal_isr:
            self.members = tuple(one for one in self.remotes.values() if one.is_member)
            self.outsiders = tuple(one for one in self.remotes.values() if not one.is_member)
        else:
            self.members = tuple(r for r in self.remotes.values() if r.broker_id in self.isr)
            self.outsiders = ()

    def append(self, batch: Batch, effects: Effects) -> int:
        """Append a producer's batch: its base offset, or an error's code, negative.

        A retry of a batch that is there already answers the base offset which that one got.
        """
        if batch.producer_id >= 0 and self._sequence_checked:
            verdict = self.producers.judge(batch)
            if verdict != ACCEPTED:
                return verdict
        log = self.log
        stored = Batch(
            log.end,
            self.leader_epoch,
            batch.count,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.payload,
        )
        log.append(stored)
        effects.append((APPEND, self.key, stored))
        if batch.producer_id >= 0:
            self.producers.remember(stored)
        if self._flush_records:
            flush(log, batch.count, self._flush_records, effects)
        return stored.base_offset

    def appended(self, now: int, effects: Effects) -> None:
        """Answer the requests that wait for records: some were appended."""
        for remote in self.remotes.values():
            parked = remote.parked
            if parked.request is not None:
                parked.wake(effects)
        if not self.members:
            self.advance(now, effects)
        if self.consumers:
            self._answer_consumers(effects)

    def advance(self, now: int, effects: Effects) -> None:
        """Move the high watermark to what all have for whom it waits."""
        log = self.log
        mark = log.end
        for member in self.members:
            if member.offset < mark:  # noqa: PLR1730 - hot
                mark = member.offset
        if mark <= log.high_watermark:
            return
        for remote in self.outsiders:
            if remote.offset < mark and _is_joining(now, remote, self._situation):
                mark = remote.offset
        if mark <= log.high_watermark:
            return
        log.high_watermark = mark
        effects.append((NOTE, HIGH_WATERMARK, self.key, self.leader_epoch, mark))
        if self.pending:
            self._acknowledge(mark, effects)
        if self.consumers:
            self._answer_consumers(effects)

    def is_enough(self, count: int) -> bool:
        """Return whether `count` replicas satisfy acks=all."""
        # Rule min_isr_kept.
        return count >= self.min_isr or not self._situation.rules.min_isr_kept

    def readable_end(self) -> int:
        """Return the offset up to which consumers read."""
        # Rule consumer_below_high_watermark.
        if self._situation.rules.consumer_below_high_watermark:
            return self.log.high_watermark
        return self.log.end

    def fetched(self, offset: int, records_max: int, bytes_max: int) -> FetchedPartition:
        """Return what a consumer gets from this offset on."""
        log, end = self.log, self.readable_end()
        batches = log.read(offset, end, records_max, bytes_max) if offset < end else ()
        return FetchedPartition(self.key, _NONE, self.leader_epoch, end, 0, batches)

    def wanted_isr(self, remote: Remote) -> tuple[int, ...] | None:
        """The ISR with a follower that just fetched, if it may join; None otherwise."""
        if self.proposed is not None or remote.is_member:
            return None
        rules = self._situation.rules
        # Rule growth_needs_high_watermark.
        if remote.offset < self.log.high_watermark and rules.growth_needs_high_watermark:
            return None
        # Rule growth_needs_epoch_start.
        if remote.offset < self.epoch_start and rules.growth_needs_epoch_start:
            return None
        return (*self.isr, remote.broker_id) if _is_eligible(remote, self._situation) else None

    def kept_isr(self, now: int) -> tuple[int, ...] | None:
        """Return the ISR without laggards; None if no member lags, or a proposal is under way."""
        if self.proposed is not None or len(self.isr) == 1:
            return None
        oldest = now - self._situation.configuration.replica_lag_max_ns
        kept = tuple(one for one in self.isr if not self._lags(one, oldest))
        return None if kept == self.isr else kept

    def epochs_of(self, isr: tuple[int, ...]) -> tuple[int, ...]:
        """The broker epoch of each member, as a proposal names it; -1: it is not checked."""
        situation = self._situation
        remotes = ((one, self.remotes.get(one)) for one in isr)
        own = {situation.node_id: situation.broker_epoch}
        return tuple(
            own.get(one, -1) if remote is None else _proposed_epoch(remote, situation)
            for one, remote in remotes
        )

    def fetched_epoch(self, follower: int) -> int:
        """Return the broker epoch in the last fetch of a follower; -1: in none."""
        remote = self.remotes.get(follower)
        return -1 if remote is None else remote.broker_epoch

    def end(self, effects: Effects) -> None:
        """Lead no more: who waits hears that another leader has to be asked."""
        self.ended = True
        self.producers.suspend(self.log)
        for _, pending, _ in self.pending:
            pending.fail(self.key, effects)
        self.pending.clear()
        for remote in self.remotes.values():
            remote.parked.end(self, effects)
        for consumer in tuple(self.consumers):
            consumer.answer(effects)

    def _acknowledge(self, mark: int, effects: Effects) -> None:
        pending = self.pending
        enough = self.is_enough(1 + len(self.members))
        while pending and pending[0][0] <= mark:
            _, produce, place = pending.popleft()
            if not enough and produce.missing > 0:
                produce.results[place] = (self.key, _NOT_ENOUGH_AFTER_APPEND, -1)
            produce.acknowledge(effects)

    def _answer_consumers(self, effects: Effects) -> None:
        for consumer in tuple(self.consumers):
            if consumer.has_news():
                consumer.answer(effects)

    def _lags(self, broker_id: int, oldest: int) -> bool:
        remote = self.remotes.get(broker_id)
        return remote is not None and remote.offset != self.log.end and remote.caught_up_ns < oldest


def _is_eligible(remote: Remote, situation: Situation) -> bool:
    """Return whether it is alive, and registered under the epoch that it would join with."""
    known = situation.image.brokers.get(remote.broker_id)
    if known is None or known.fenced or known.in_controlled_shutdown:
        return False
    # In the ZooKeeper generation only the controller knows it (-1), and compares it.
    return (
        situation.level < LEVEL_EPOCHS
        or known.broker_epoch < 0
        or _proposed_epoch(remote, situation) == known.broker_epoch
    )


def _is_joining(now: int, remote: Remote, situation: Situation) -> bool:
    """Return whether it is about to join: it may, and had everything a moment ago."""
    lag_ns = now - remote.caught_up_ns
    return lag_ns <= situation.configuration.replica_lag_max_ns and _is_eligible(remote, situation)


def _proposed_epoch(remote: Remote, situation: Situation) -> int:
    """The broker epoch that a follower is proposed with; -1: it is not checked."""
    if situation.level < LEVEL_EPOCHS:
        return -1
    # Rule epoch_from_fetch.
    if situation.rules.epoch_from_fetch:
        return remote.broker_epoch
    known = situation.image.brokers.get(remote.broker_id)
    return -1 if known is None else known.broker_epoch
