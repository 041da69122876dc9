"""The leader's side of the quorum: who has fetched how far, and what is committed by that.

A fetch acknowledges what is below its offset. The high watermark is the highest offset that a
majority of the voters has durably, once that includes a record of the leader's own epoch: an older
record may still be overwritten by a voter with a longer log (Raft, section 5.4.2).

A fetch without news is parked until there are records, a higher high watermark, or its bound.
"""

from dataclasses import dataclass
from typing import Final

from fencepost.clusters.node_port.alarm import NEVER_NS, Alarm
from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.node_port.storage import MetadataBatch
from fencepost.clusters.reference.nodes.configuration import Configuration, S
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.quorum import (
    MetadataFetchRequest,
    MetadataFetchResponse,
)
from fencepost.clusters.reference.nodes.quorum.metadata_log import MetadataLog
from fencepost.clusters.reference.nodes.rules import Rules

_NONE: Final = 0
_NOT_LEADER: Final = int(Error.NOT_LEADER_OR_FOLLOWER)
_OBSERVERS_MAX: Final = 1_000
"""Beyond it, the observer that was silent the longest is forgotten."""
_OBSERVER_SESSION_NS: Final = 300 * S
"""An observer that was silent for so long is gone, as Kafka has it."""


@dataclass(slots=True)
class ReplicaProgress:
    """A replica as its fetches show it."""

    end: int
    """The end of what it has; -1: it has not fetched yet."""
    told: int
    """The high watermark that it was answered last."""
    fetched_at: int
    caught_up_at: int
    """The time when it had all that the leader had; -1: never."""
    leader_end: int
    """The leader's end at its last fetch."""


class Leadership:
    """One epoch of one leader."""

    __slots__ = (
        "_alarm",
        "_configuration",
        "_log",
        "_parked",
        "_rules",
        "_sure_until_ns",
        "epoch",
        "epoch_start",
        "observers",
        "own_end",
        "voters",
    )

    def __init__(
        self,
        now: int,
        epoch: int,
        *,
        configuration: Configuration,
        rules: Rules,
        log: MetadataLog,
        alarm: Alarm,
    ) -> None:
        self._alarm = alarm
        self._configuration = configuration
        self._rules = rules
        self._log = log
        self._parked: dict[int, tuple[int, int, MetadataFetchRequest]] = {}
        """(bound, source, request) by replica."""
        self.epoch = epoch
        self.epoch_start = log.end
        self.own_end = 0
        """The durable end of the log here."""
        others = (one for one in configuration.voters if one != configuration.node_id)
        self.voters = {one: ReplicaProgress(-1, -1, now, -1, log.end) for one in others}
        """The other ones."""
        self._sure_until_ns = 0
        """The time until which a majority has fetched lately, as far as is known."""
        self.observers: dict[int, ReplicaProgress] = {}

    def fetch(self, now: int, source: int, request: MetadataFetchRequest, effects: Effects) -> None:
        """Count what a fetch acknowledges, and answer it or park it."""
        self._answer_parked(request.replica_id, effects)
        response = self._elsewhere(request)
        if response is not None:
            self.heard_of(now, request.replica_id)
            effects.append((SEND, source, response))
            return
        progress = self._advanced(now, request)
        self.count(effects)
        bound = now + request.max_wait_ns
        self._parked[request.replica_id] = (bound, source, request)
        self._alarm.by(bound)
        if request.fetch_offset < self._log.end or progress.told < self._log.high_watermark:
            self._answer_parked(request.replica_id, effects)

    def heard_of(self, now: int, replica_id: int) -> None:
        """A replica asks for what acknowledges nothing; a voter counts as there all the same."""
        progress = self.voters.get(replica_id)
        if progress is not None:
            progress.fetched_at = now

    def count(self, effects: Effects) -> None:
        """Move the high watermark if a majority has more; who waits for that is told."""
        if self._log.commit(self._committable(), effects):
            self.wake(effects)

    def wake(self, effects: Effects) -> None:
        """Answer all parked fetches: there is news."""
        for replica_id in list(self._parked):
            self._answer_parked(replica_id, effects)

    def expire(self, now: int, effects: Effects) -> None:
        """Answer the fetches that have waited as long as they may."""
        due = [one for one, (bound, _, _) in self._parked.items() if now >= bound]
        for replica_id in due:
            self._answer_parked(replica_id, effects)

    def dismiss(self, epoch: int, leader_id: int, effects: Effects) -> None:
        """Answer those that wait: this node leads no more. Tell who does, in which epoch."""
        for _, source, request in self._parked.values():
            response = MetadataFetchResponse(request.correlation, _NOT_LEADER, epoch, leader_id)
            effects.append((SEND, source, response))
        self._parked.clear()

    def has_majority(self, now: int) -> bool:
        """Return whether enough voters have fetched lately for this leader to commit."""
        if now >= self._sure_until_ns:
            self._sure_until_ns = self._majority_until()
            self._alarm.by(self._sure_until_ns)
        return now < self._sure_until_ns

    def next_due(self) -> int:
        """Return when a fetch has waited for long enough, or the majority may be lost."""
        bounds = (bound for bound, _, _ in self._parked.values())
        return min((self._sure_until_ns, *bounds))

    def successors(self) -> tuple[int, ...]:
        """The other voters, whoever has most of the log first."""
        return tuple(sorted(self.voters, key=lambda one: (-self.voters[one].end, one)))

    def seen(self, now: int) -> dict[int, ReplicaProgress]:
        """The observers that are there."""
        lately = now - _OBSERVER_SESSION_NS
        return {key: one for key, one in self.observers.items() if one.fetched_at > lately}

    def _majority_until(self) -> int:
        """Return until when a majority has fetched lately, if no voter fetches again."""
        needed = (len(self.voters) + 1) // 2  # besides this one
        if not needed:
            return NEVER_NS
        last = sorted((one.fetched_at for one in self.voters.values()), reverse=True)
        return last[needed - 1] + self._configuration.quorum_fetch_timeout_ns

    def _committable(self) -> int:
        ends = [self.own_end, *(one.end for one in self.voters.values())]
        ends.sort(reverse=True)
        # Rule commit_by_majority.
        end = ends[len(ends) // 2] if self._rules.commit_by_majority else ends[0]
        # Rule commit_in_own_epoch.
        if end <= self.epoch_start and self._rules.commit_in_own_epoch:
            return 0
        return min(end, self._log.end)

    def _elsewhere(self, request: MetadataFetchRequest) -> MetadataFetchResponse | None:
        """The answer to a fetch that this log cannot go on from, and which acknowledges nothing."""
        log = self._log
        offset, epoch = request.fetch_offset, request.last_fetched_epoch
        found = log.latest_snapshot
        is_below = offset < log.start or (offset == log.start and epoch != log.start_epoch)
        if is_below and found is not None:
            answer = self._answer(request)
            answer.snapshot_end_offset, answer.snapshot_epoch = found.end_offset, found.epoch
            return answer
        shared_epoch, shared_end = log.end_of(epoch)
        # Rule metadata_divergence_found.
        if not self._rules.metadata_divergence_found:
            shared_epoch, shared_end = epoch, log.end
        if shared_epoch == epoch and offset <= shared_end:
            return None
        answer = self._answer(request)
        answer.diverging_epoch, answer.diverging_end_offset = shared_epoch, shared_end
        return answer

    def _answer(
        self, request: MetadataFetchRequest, batches: tuple[MetadataBatch, ...] = ()
    ) -> MetadataFetchResponse:
        return MetadataFetchResponse(
            request.correlation,
            _NONE,
            self.epoch,
            self._configuration.node_id,
            self._log.high_watermark,
            batches,
        )

    def _advanced(self, now: int, request: MetadataFetchRequest) -> ReplicaProgress:
        progress = self.voters.get(request.replica_id) or self._observed(now, request.replica_id)
        if request.fetch_offset >= self._log.end:
            progress.caught_up_at = now
        elif request.fetch_offset >= progress.leader_end:
            progress.caught_up_at = max(progress.caught_up_at, progress.fetched_at)
        progress.end = request.fetch_offset
        progress.fetched_at = now
        progress.leader_end = self._log.end
        return progress

    def _observed(self, now: int, replica_id: int) -> ReplicaProgress:
        found = self.observers.pop(replica_id, None) or ReplicaProgress(
            -1, -1, now, -1, self._log.end
        )
        self.observers[replica_id] = found
        if len(self.observers) > _OBSERVERS_MAX:
            del self.observers[next(iter(self.observers))]
        return found

    def _answer_parked(self, replica_id: int, effects: Effects) -> None:
        parked = self._parked.pop(replica_id, None)
        if parked is None:
            return
        _, source, request = parked
        progress = self.voters.get(replica_id) or self.observers.get(replica_id)
        if progress is not None:
            progress.told = self._log.high_watermark
        response = self._answer(request, self._batches(request.fetch_offset))
        effects.append((SEND, source, response))

    def _batches(self, offset: int) -> tuple[MetadataBatch, ...]:
        """Return what one answer has room for, one batch at least; the next fetch gets the rest."""
        found = self._log.batches(offset, self._log.end)
        bound = offset + self._configuration.fetch_records_max
        if self._log.end <= bound:
            return tuple(found)
        return tuple(found[:1] + [one for one in found[1:] if one.end_offset <= bound])
