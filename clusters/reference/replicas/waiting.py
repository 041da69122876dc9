"""Requests that wait: produces for the high watermark, fetches for records. Each has a deadline."""

from typing import TYPE_CHECKING, Final

from clusters.reference.effects import CLOSE, SEND, Effects
from clusters.reference.errors import Error
from clusters.reference.messages.client import OffsetCommitRequest, OffsetCommitResponse
from clusters.reference.messages.data import (
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    ProduceResponse,
)
from clusters.reference.storage import PartitionKey

if TYPE_CHECKING:
    from clusters.reference.replicas.leader import Leader
    from clusters.reference.replicas.remote import Remote

__all__ = ["ParkedFetch", "ParkedFetches", "PendingProduce", "PendingProduces"]

_NEVER: Final = 1 << 62
_NONE: Final = int(Error.NONE)
_NOT_LEADER: Final = int(Error.NOT_LEADER_OR_FOLLOWER)
_TIMED_OUT: Final = int(Error.REQUEST_TIMED_OUT)

_COMMIT_ERRORS: Final = {
    _NONE: _NONE,
    _NOT_LEADER: int(Error.NOT_COORDINATOR),
    _TIMED_OUT: _TIMED_OUT,
}
"""What a commit of offsets answers for an error of its append."""


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
        """How many partitions are not acknowledged yet."""
        self.commit = commit

    def response(self) -> ProduceResponse | OffsetCommitResponse:
        """The answer as things stand."""
        if self.commit is None:
            return ProduceResponse(self.correlation, tuple(self.results))
        error = self.results[0][1]
        answer = _COMMIT_ERRORS.get(error, int(Error.COORDINATOR_NOT_AVAILABLE))
        return OffsetCommitResponse(
            self.correlation,
            tuple((topic, partition, answer) for topic, partition, *_ in self.commit.offsets),
        )


class PendingProduces:
    """All of a broker's. A partition's leader holds its own, by the offset they wait for."""

    __slots__ = ("_deadline_ns", "_pending")

    def __init__(self) -> None:
        self._pending: dict[PendingProduce, None] = {}
        self._deadline_ns = _NEVER

    def add(self, pending: PendingProduce) -> None:
        """It waits from now on."""
        self._pending[pending] = None
        self._deadline_ns = min(self._deadline_ns, pending.deadline_ns)

    def acknowledge(self, pending: PendingProduce, effects: Effects) -> None:
        """One more of its partitions is decided."""
        pending.missing -= 1
        if pending.missing == 0:
            del self._pending[pending]
            effects.append((SEND, pending.source, pending.response()))

    def fail(self, pending: PendingProduce, key: PartitionKey, effects: Effects) -> None:
        """One of its partitions is not led here any more."""
        _give_up(pending, _NOT_LEADER, key)
        self.acknowledge(pending, effects)

    def tick(self, now: int, effects: Effects) -> None:
        """Answer those that waited for too long."""
        if now < self._deadline_ns:
            return
        for pending in [one for one in self._pending if one.deadline_ns <= now]:
            del self._pending[pending]
            for key, error, _ in pending.results:
                if error == _NONE:
                    _give_up(pending, _TIMED_OUT, key)
            # A partition that is acknowledged later finds nothing left to count.
            pending.missing = 0
            effects.append((SEND, pending.source, pending.response()))
        self._deadline_ns = min((one.deadline_ns for one in self._pending), default=_NEVER)

    def close(self, effects: Effects) -> None:
        """The broker answers nobody any more."""
        for pending in self._pending:
            pending.missing = 0
            effects.append((CLOSE, pending.source))
        self._pending.clear()


def _give_up(pending: PendingProduce, error: int, key: PartitionKey) -> None:
    results = pending.results
    for place, result in enumerate(results):
        if result[0] == key and result[1] == _NONE:
            results[place] = (key, error, -1)


class ParkedFetch:
    """A fetch with nothing to answer yet."""

    __slots__ = (
        "bytes_max",
        "correlation",
        "deadline_ns",
        "entries",
        "is_consumer",
        "records_max",
        "source",
    )

    def __init__(
        self,
        now: int,
        source: int,
        request: FetchRequest,
        entries: "list[tuple[Leader, Remote | None, int]]",
    ) -> None:
        self.source = source
        self.correlation = request.correlation
        self.deadline_ns = now + request.max_wait_ns
        self.entries: list[tuple[Leader, Remote | None, int]] | None = entries
        """(leader, the follower there, fetch offset) by partition; None once it is answered."""
        self.is_consumer = request.replica_id < 0
        self.records_max = request.max_records
        self.bytes_max = request.max_bytes


class ParkedFetches:
    """All of a broker's. Leaders hold their consumers', and each follower its own."""

    __slots__ = ("_deadline_ns", "_parked")

    def __init__(self) -> None:
        self._parked: dict[ParkedFetch, None] = {}
        self._deadline_ns = _NEVER

    def add(self, parked: ParkedFetch) -> None:
        """It waits from now on."""
        self._parked[parked] = None
        if parked.deadline_ns < self._deadline_ns:  # noqa: PLR1730 - hot
            self._deadline_ns = parked.deadline_ns

    def answer(self, parked: ParkedFetch, effects: Effects) -> None:
        """Answer with what there is now."""
        entries = parked.entries
        if entries is None:
            return
        parked.entries = None
        del self._parked[parked]
        found = []
        for leader, remote, offset in entries:
            log = leader.log
            if leader.ended:
                found.append(_not_led(leader))
            elif remote is None:
                leader.consumers.pop(parked, None)
                found.append(leader.fetched(offset, parked.records_max, parked.bytes_max))
            elif offset < log.end:
                remote.sent_mark = mark = log.high_watermark
                batches = log.read(offset, log.end, parked.records_max, parked.bytes_max)
                found.append(
                    FetchedPartition(leader.key, _NONE, leader.leader_epoch, mark, 0, batches)
                )
            elif remote.sent_mark != log.high_watermark:
                remote.sent_mark = mark = log.high_watermark
                found.append(FetchedPartition(leader.key, _NONE, leader.leader_epoch, mark, 0, ()))
        effects.append(
            (SEND, parked.source, FetchResponse(parked.correlation, _NONE, tuple(found)))
        )

    def tick(self, now: int, effects: Effects) -> None:
        """Answer those that waited as long as they wanted to."""
        if now < self._deadline_ns:
            return
        for parked in [one for one in self._parked if one.deadline_ns <= now]:
            self.answer(parked, effects)
        self._deadline_ns = min((one.deadline_ns for one in self._parked), default=_NEVER)

    def close_consumers(self, effects: Effects) -> None:
        """The broker answers no client any more."""
        for parked in [one for one in self._parked if one.is_consumer]:
            del self._parked[parked]
            for leader, _, _ in parked.entries or ():
                leader.consumers.pop(parked, None)
            parked.entries = None
            effects.append((CLOSE, parked.source))


def _not_led(leader: "Leader") -> FetchedPartition:
    return FetchedPartition(leader.key, _NOT_LEADER, leader.leader_epoch, -1, -1, ())
