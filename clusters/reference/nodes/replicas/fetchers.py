"""Followers: one fetcher for each broker that leads, all of its partitions in one request.

A follower's log follows its leader's: its fetch names the leader epoch of its last record, the
leader answers where their logs part, and the follower cuts its own there and asks again (KIP-595's
way, which brokers have since Kafka 2.7).
"""

from bisect import bisect_left
from operator import attrgetter
from typing import Final

from fencepost.clusters.node_port.effects import APPEND, EXTEND, NOTE, SEND, TRUNCATE, Effects
from fencepost.clusters.node_port.notes import TRUNCATED
from fencepost.clusters.node_port.storage import Batch, PartitionKey
from fencepost.clusters.reference.nodes.levels import LEVEL_EPOCHS
from fencepost.clusters.reference.nodes.messages.data import (
    FetchedPartition,
    FetchRequest,
    FetchResponse,
)
from fencepost.clusters.reference.nodes.replicas.log import NO_EPOCH, PartitionLog, flush
from fencepost.clusters.reference.nodes.replicas.producers import ProducerStates
from fencepost.clusters.reference.nodes.situation import Situation

_VERSION: Final = 14
_VERSION_WITH_EPOCH: Final = 15


class ReplicaFetcher:
    """The partitions that are fetched from one leader."""

    __slots__ = ("correlation", "delayed", "entries", "leader_id", "not_before_ns", "sent_ns")

    def __init__(self, leader_id: int) -> None:
        self.leader_id = leader_id
        self.entries: dict[PartitionKey, tuple[PartitionKey, int, int, int]] = {}
        """The next request's, by partition."""
        self.delayed: dict[PartitionKey, int] = {}
        """Partitions that the leader refused, and when to ask for them again."""
        self.correlation = 0
        """The correlation of the request under way; 0: no request is."""
        self.sent_ns = 0
        self.not_before_ns = 0


class Follower:
    """A partition that is followed here, under one leader epoch."""

    __slots__ = ("fetcher", "key", "leader_epoch", "log", "producers")

    def __init__(
        self,
        log: PartitionLog,
        producers: ProducerStates,
        fetcher: ReplicaFetcher,
        leader_epoch: int,
    ) -> None:
        self.key = log.key
        self.log = log
        self.producers = producers
        self.fetcher = fetcher
        self.leader_epoch = leader_epoch


class Fetchers:
    """All fetchers of a broker."""

    __slots__ = (
        "_answer_epoch_checked",
        "_correlation",
        "_fetchers",
        "_flush_records",
        "_outstanding",
        "_records_max",
        "_situation",
        "_truncate_by_epoch",
        "_wait_ns",
        "followers",
    )

    def __init__(self, situation: Situation) -> None:
        self.followers: dict[PartitionKey, Follower] = {}
        self._situation = situation
        self._fetchers: dict[int, ReplicaFetcher] = {}
        self._outstanding: dict[int, ReplicaFetcher] = {}
        self._correlation = 0
        self._flush_records = situation.configuration.flush_records
        self._wait_ns = situation.configuration.replica_fetch_wait_ns
        self._records_max = situation.configuration.fetch_records_max
        # Rule truncate_by_epoch.
        self._truncate_by_epoch = situation.rules.truncate_by_epoch
        # Rule answer_epoch_checked.
        self._answer_epoch_checked = situation.rules.answer_epoch_checked

    def follow(
        self,
        log: PartitionLog,
        producers: ProducerStates,
        *,
        leader_id: int,
        leader_epoch: int,
        effects: Effects,
    ) -> None:
        """Follow this leader from now on; `send` asks it."""
        self.unfollow(log.key)
        fetcher = self._fetchers.get(leader_id)
        if fetcher is None:
            fetcher = self._fetchers[leader_id] = ReplicaFetcher(leader_id)
        follower = self.followers[log.key] = Follower(log, producers, fetcher, leader_epoch)
        if not self._truncate_by_epoch:
            self._cut(follower, log.high_watermark, effects)
        fetcher.entries[log.key] = self._entry(follower)

    def unfollow(self, key: PartitionKey) -> None:
        """Stop following any leader in this partition."""
        follower = self.followers.pop(key, None)
        if follower is not None:
            follower.fetcher.entries.pop(key, None)
            follower.fetcher.delayed.pop(key, None)

    def send(self, now: int, effects: Effects) -> None:
        """Ask the leaders that are not being asked."""
        for fetcher in self._fetchers.values():
            if not fetcher.correlation:
                self._fetch(now, fetcher, effects)

    def fetched(self, now: int, response: FetchResponse, effects: Effects) -> None:
        """Append what a leader answered, and ask for more."""
        fetcher = self._outstanding.pop(response.correlation, None)
        if fetcher is None:
            return
        fetcher.correlation = 0
        if response.error:
            self._pause(now, fetcher)
            return
        for part in response.partitions:
            follower = self.followers.get(part.key)
            if follower is None:
                continue
            is_late = part.leader_epoch != follower.leader_epoch or follower.fetcher is not fetcher
            if is_late and self._answer_epoch_checked:
                continue
            if part.error or part.diverging_end_offset >= 0:
                self._refused(now, follower, part, effects)
            else:
                self._append(follower, part, effects)
        self._fetch(now, fetcher, effects)

    def unreachable(self, now: int, request: FetchRequest) -> None:
        """The leader's host does not answer: wait a moment."""
        fetcher = self._outstanding.pop(request.correlation, None)
        if fetcher is not None:
            fetcher.correlation = 0
            self._pause(now, fetcher)

    def tick(self, now: int, effects: Effects) -> None:
        """Give up requests without an answer; ask again where a delay is over."""
        alarm, timeout_ns = self._situation.alarm, self._situation.configuration.request_timeout_ns
        for fetcher in self._fetchers.values():
            if fetcher.delayed:
                self._resume(now, fetcher)
            if fetcher.correlation:
                if fetcher.sent_ns + timeout_ns >= now:
                    alarm.by(fetcher.sent_ns + timeout_ns)
                    continue
                del self._outstanding[fetcher.correlation]
                fetcher.correlation = 0
            self._fetch(now, fetcher, effects)

    def _append(self, follower: Follower, part: FetchedPartition, effects: Effects) -> None:
        log = follower.log
        key = part.key
        before = log.end
        batches = part.batches
        if len(batches) == 1:
            batch = batches[0]
            if batch.base_offset == before:
                log.append(batch)
                effects.append((APPEND, key, batch))
        elif batches:
            news = _following(batches, before)
            if news:
                log.extend(news)
                effects.append((EXTEND, key, news))
        if log.end != before:
            if self._flush_records:
                flush(log, log.end - before, self._flush_records, effects)
            if key in follower.fetcher.entries:
                follower.fetcher.entries[key] = self._entry(follower)
        mark = part.high_watermark
        if mark > log.high_watermark:
            log.high_watermark = mark if mark < log.end else log.end  # noqa: FURB136 - hot

    def _entry(self, follower: Follower) -> tuple[PartitionKey, int, int, int]:
        log = follower.log
        last_epoch = log.last_epoch if self._truncate_by_epoch else NO_EPOCH
        return (log.key, log.end, follower.leader_epoch, last_epoch)

    def _fetch(self, now: int, fetcher: ReplicaFetcher, effects: Effects) -> None:
        if not fetcher.entries:
            return
        situation = self._situation
        if now < fetcher.not_before_ns:
            situation.alarm.by(fetcher.not_before_ns)
            return
        situation.alarm.by(now + situation.configuration.request_timeout_ns)
        self._correlation = fetcher.correlation = correlation = self._correlation + 1
        self._outstanding[correlation] = fetcher
        fetcher.sent_ns = now
        names_epoch = situation.fetch_level >= LEVEL_EPOCHS
        request = FetchRequest(
            correlation,
            situation.node_id,
            situation.broker_epoch if names_epoch else -1,
            _VERSION_WITH_EPOCH if names_epoch else _VERSION,
            tuple(fetcher.entries.values()),
            self._wait_ns,
            1,
            self._records_max,
        )
        effects.append((SEND, fetcher.leader_id, request))

    def _refused(
        self, now: int, follower: Follower, part: FetchedPartition, effects: Effects
    ) -> None:
        """The logs part, or the leader does not answer for this partition."""
        fetcher, key = follower.fetcher, follower.key
        if part.diverging_end_offset >= 0:
            self._cut(follower, _shared_end(follower.log, part), effects)
        if key in fetcher.entries:
            fetcher.entries[key] = self._entry(follower)
        if part.error:
            until_ns = now + self._situation.configuration.replica_fetch_backoff_ns
            fetcher.entries.pop(key, None)
            fetcher.delayed[key] = until_ns
            self._situation.alarm.by(until_ns)

    def _resume(self, now: int, fetcher: ReplicaFetcher) -> None:
        for key in [key for key, until in fetcher.delayed.items() if until <= now]:
            del fetcher.delayed[key]
            fetcher.entries[key] = self._entry(self.followers[key])
        for until_ns in fetcher.delayed.values():
            self._situation.alarm.by(until_ns)

    def _pause(self, now: int, fetcher: ReplicaFetcher) -> None:
        fetcher.not_before_ns = now + self._situation.configuration.replica_fetch_backoff_ns
        self._situation.alarm.by(fetcher.not_before_ns)

    def _cut(self, follower: Follower, offset: int, effects: Effects) -> None:
        log = follower.log
        before = log.end
        end = log.cut(offset)
        if end < before:
            follower.producers.cut(log)
            effects.append((TRUNCATE, log.key, end))
            effects.append((NOTE, TRUNCATED, log.key, end, before))


def _following(batches: tuple[Batch, ...], end: int) -> tuple[Batch, ...]:
    """Return those from the end of a log on; none if there would be a gap."""
    first = bisect_left(batches, end, key=_base_offset)
    if first == len(batches) or batches[first].base_offset != end:
        return ()
    return batches[first:]


_base_offset: Final = attrgetter("base_offset")


def _shared_end(log: PartitionLog, part: FetchedPartition) -> int:
    """Return up to where the log may be the leader's.

    The leader named its largest epoch up to the one that was asked for, and where it ends. If the
    follower lacks that epoch, what it has before it is compared by the next fetch.
    """
    if part.diverging_epoch == NO_EPOCH:
        return min(part.diverging_end_offset, log.end)
    epoch, end = log.end_of_epoch(part.diverging_epoch)
    if epoch == NO_EPOCH:
        return 0
    return min(end, part.diverging_end_offset) if epoch == part.diverging_epoch else end
