"""Requests that wait: produces for the high watermark, fetches for records. Each has a deadline.

Produces wait in the queues of the leaders that they were appended by. A follower has one fetch at
a time, so each has one place where it waits; consumers have as many as they like.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from fencepost.clusters.node_port.alarm import NEVER_NS, Alarm
from fencepost.clusters.node_port.effects import CLOSE, SEND, Effects
from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.client import (
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from fencepost.clusters.reference.nodes.messages.data import (
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    ProduceResponse,
)

if TYPE_CHECKING:
    from fencepost.clusters.reference.nodes.replicas.leader import Leader
    from fencepost.clusters.reference.nodes.replicas.remote import Remote

_NONE: Final = int(Error.NONE)
_NOT_LEADER: Final = int(Error.NOT_LEADER_OR_FOLLOWER)
_TIMED_OUT: Final = int(Error.REQUEST_TIMED_OUT)

_COMMIT_ERRORS: Final = {
    _NONE: _NONE,
    _NOT_LEADER: int(Error.NOT_COORDINATOR),
    _TIMED_OUT: _TIMED_OUT,
}
"""The answer to a commit of offsets, by the error of its append."""


class PendingProduce:
    """A produce with acks=all, or a commit of offsets, that is appended and not acknowledged."""

    __slots__ = ("commit", "correlation", "deadline_ns", "missing", "results", "source")

    def __init__(
        self,
        source: int,
        correlation: int,
        deadline_ns: int,
        results: list[tuple[PartitionKey, int, int]],
        commit: OffsetCommitRequest | None = None,
    ) -> None:
        self.source = source
        self.correlation = correlation
        self.deadline_ns = deadline_ns
        self.results = results
        """(key, error, base offset) of each partition, in the request's order."""
        self.missing = 0
        """The number of partitions not acknowledged yet; below 1 once it is answered."""
        self.commit = commit

    def acknowledge(self, effects: Effects) -> None:
        """Count one more of its partitions as decided."""
        self.missing -= 1
        if self.missing:
            return
        if self.commit is None:
            response = ProduceResponse(self.correlation, tuple(self.results))
            effects.append((SEND, self.source, response))
        else:
            effects.append((SEND, self.source, self._committed(self.commit)))

    def fail(self, key: PartitionKey, effects: Effects) -> None:
        """Fail one of its partitions, which is not led here any more."""
        if self.missing > 0:
            self._give_up(key, _NOT_LEADER)
            self.acknowledge(effects)

    def expire(self, effects: Effects) -> None:
        """Answer it after its time-out; a partition that is acknowledged later changes nothing."""
        for key, _, _ in self.results:
            self._give_up(key, _TIMED_OUT)
        self.missing = 1
        self.acknowledge(effects)

    def close(self, effects: Effects) -> None:
        """End the wait without an answer: the broker answers no client any more."""
        self.missing = 0
        effects.append((CLOSE, self.source))

    def _give_up(self, key: PartitionKey, error: int) -> None:
        for place, result in enumerate(self.results):
            if result[0] == key and result[1] == _NONE:
                self.results[place] = (key, error, -1)

    def _committed(self, commit: OffsetCommitRequest) -> OffsetCommitResponse:
        error = _COMMIT_ERRORS.get(self.results[0][1], int(Error.COORDINATOR_NOT_AVAILABLE))
        return OffsetCommitResponse(
            self.correlation,
            tuple((topic, partition, error) for topic, partition, *_ in commit.offsets),
        )


class FollowerFetch:
    """The waiting fetch of one follower, under whatever leaders it names."""

    __slots__ = ("entries", "now", "request", "source")

    def __init__(self) -> None:
        self.source = 0
        self.now = 0
        """The time when it came."""
        self.request: FetchRequest | None = None
        """None: nothing waits."""
        self.entries: list[tuple[Leader, Remote, int]] = []
        """(leader, the follower there, fetch offset) by partition."""

    def wake(self, effects: Effects) -> None:
        """Answer with the news there are; it waits on if there are none."""
        request = self.request
        if request is not None:
            found = self._news(request)
            if found:
                self.request = None
                response = FetchResponse(request.correlation, _NONE, tuple(found))
                effects.append((SEND, self.source, response))

    def finish(self, effects: Effects, refused: Iterable[FetchedPartition] = ()) -> None:
        """Answer at once, also what was refused."""
        request = self.request
        if request is not None:
            found = (*refused, *self._news(request))
            self.request = None
            effects.append((SEND, self.source, FetchResponse(request.correlation, _NONE, found)))

    def end(self, leader: "Leader", effects: Effects) -> None:
        """Answer at once if this leader, which leads no more, is waited for."""
        kept = [entry for entry in self.entries if entry[0] is not leader]
        if len(kept) < len(self.entries):
            self.entries = kept
            self.finish(effects, (_not_led(leader),))

    def _news(self, request: FetchRequest) -> list[FetchedPartition]:
        found = []
        for leader, remote, offset in self.entries:
            log = leader.log
            mark = log.high_watermark
            if offset < log.end:
                batches = log.read(offset, log.end, request.max_records, request.max_bytes)
            elif remote.sent_mark != mark:
                batches = ()
            else:
                continue
            remote.sent_mark = mark
            found.append(FetchedPartition(leader.key, _NONE, leader.leader_epoch, mark, 0, batches))
        return found


class ConsumerFetch:
    """A consumer's fetch with nothing to answer yet."""

    __slots__ = ("deadline_ns", "entries", "request", "source")

    def __init__(
        self, now: int, source: int, request: FetchRequest, entries: "list[tuple[Leader, int]]"
    ) -> None:
        self.source = source
        self.request = request
        self.deadline_ns = now + request.max_wait_ns
        self.entries = entries
        """(leader, fetch offset) by partition."""

    def has_news(self) -> bool:
        """Return whether there are records for it."""
        return any(offset < leader.readable_end() for leader, offset in self.entries)

    def answer(self, effects: Effects) -> None:
        """Answer with what there is."""
        request, found = self.request, []
        for leader, offset in self.entries:
            leader.consumers.pop(self, None)
            if leader.ended:
                found.append(_not_led(leader))
            else:
                found.append(leader.fetched(offset, request.max_records, request.max_bytes))
        response = FetchResponse(request.correlation, _NONE, tuple(found))
        effects.append((SEND, self.source, response))

    def close(self, effects: Effects) -> None:
        """The broker answers no client any more."""
        for leader, _ in self.entries:
            leader.consumers.pop(self, None)
        effects.append((CLOSE, self.source))


class ParkedFetches:
    """The waiting fetches of a broker."""

    __slots__ = ("_alarm", "_consumers_due_ns", "_followers", "_leaders")

    def __init__(self, leaders: "dict[PartitionKey, Leader]", alarm: Alarm) -> None:
        self._alarm = alarm
        self._leaders = leaders
        self._followers: dict[int, FollowerFetch] = {}
        self._consumers_due_ns = NEVER_NS

    def of_follower(self, broker_id: int) -> FollowerFetch:
        """Return where this broker's fetch waits, for as long as this process runs."""
        found = self._followers.get(broker_id)
        if found is None:
            found = self._followers[broker_id] = FollowerFetch()
        return found

    def add(self, parked: ConsumerFetch) -> None:
        """A consumer waits from now on."""
        for leader, _ in parked.entries:
            leader.consumers[parked] = None
        self._consumers_due_ns = min(self._consumers_due_ns, parked.deadline_ns)
        self._alarm.by(parked.deadline_ns)

    def tick(self, now: int, effects: Effects) -> None:
        """Answer those that waited as long as they wanted to."""
        for parked in self._followers.values():
            request = parked.request
            if request is not None:
                due_ns = parked.now + request.max_wait_ns
                if now >= due_ns:
                    parked.finish(effects)
                else:
                    self._alarm.by(due_ns)
        if now >= self._consumers_due_ns:
            self._answer_consumers(now, effects)
        self._alarm.by(self._consumers_due_ns)

    def _answer_consumers(self, now: int, effects: Effects) -> None:
        for consumer in self._consumers():
            if consumer.deadline_ns <= now:
                consumer.answer(effects)
        due = (consumer.deadline_ns for consumer in self._consumers())
        self._consumers_due_ns = min(due, default=NEVER_NS)

    def close_consumers(self, effects: Effects) -> None:
        """The broker answers no client any more."""
        for consumer in self._consumers():
            consumer.close(effects)

    def _consumers(self) -> Iterable[ConsumerFetch]:
        """Return each consumer once, in order of their partitions and of their arrival."""
        return list(
            dict.fromkeys(one for leader in self._leaders.values() for one in leader.consumers)
        )


def _not_led(leader: "Leader") -> FetchedPartition:
    return FetchedPartition(leader.key, _NOT_LEADER, leader.leader_epoch, -1, -1, ())
