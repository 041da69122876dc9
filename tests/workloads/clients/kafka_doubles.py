"""What stands in for librdkafka and for a recorder where a test needs neither broker nor file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Message
from numpy.typing import NDArray

from fencepost.history.operation import F, Outcome

_UNKNOWN = -1001
"""RD_KAFKA_OFFSET_INVALID, which a message shows as None."""


def message(value: int | None, *, key: int = 0, offset: int | None = 0, error: int = 0) -> Message:
    """A record of `t-<key>` with this value, or a report or event with an error."""
    return Message(
        topic="t",
        partition=key,
        offset=_UNKNOWN if offset is None else offset,
        value=None if value is None else value.to_bytes(8, "little", signed=True) + b"padding",
        error=KafkaError(error) if error else None,
    )


@dataclass
class SendNotes:
    """A recorder of sends that remembers, and refuses what the real one would refuse."""

    invoked: dict[int, int] = field(default_factory=dict)
    """Key by value, in the order of the invocations."""
    ended: dict[int, tuple[Outcome, int, int]] = field(default_factory=dict)
    """Outcome, offset and error by value."""

    def invoke(self, keys: NDArray[np.int32], *, time_ns: int) -> NDArray[np.int64]:
        del time_ns
        values = np.arange(len(self.invoked), len(self.invoked) + len(keys), dtype=np.int64)
        self.invoked.update(zip(values.tolist(), keys.tolist(), strict=True))
        return values

    def complete(
        self,
        values: NDArray[np.int64],
        *,
        offsets: NDArray[np.int64],
        outcomes: NDArray[np.uint8],
        errors: NDArray[np.int16],
        time_ns: int,
    ) -> None:
        del time_ns
        rows = zip(
            values.tolist(), outcomes.tolist(), offsets.tolist(), errors.tolist(), strict=True
        )
        for value, outcome, offset, error in rows:
            assert value in self.invoked
            assert value not in self.ended
            self.ended[value] = (list(Outcome)[outcome], offset, error)

    def values(self, outcome: Outcome) -> list[int]:
        """The values that ended so, in the order of their invocations."""
        return sorted(value for value, end in self.ended.items() if end[0] is outcome)


@dataclass
class PollNote:
    """One poll or final read, as recorded."""

    f: F
    key: int
    records: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Key, offset, value, session."""
    outcome: Outcome | None = None
    error: int = 0


@dataclass
class PollNotes:
    """A recorder of polls that remembers."""

    polls: list[PollNote] = field(default_factory=list)

    def invoke(self, *, time_ns: int, f: F = F.POLL, key: int = -1) -> int:
        del time_ns
        self.polls.append(PollNote(f=f, key=key))
        return len(self.polls) - 1

    def append(
        self,
        sequence: int,
        *,
        keys: NDArray[np.int32],
        offsets: NDArray[np.int64],
        values: NDArray[np.int64],
        sessions: NDArray[np.int32],
    ) -> None:
        columns = (column.tolist() for column in (keys, offsets, values, sessions))
        self.polls[sequence].records.extend(zip(*columns, strict=True))

    def complete(
        self,
        sequence: int,
        *,
        time_ns: int,
        keys: NDArray[np.int32],
        offsets: NDArray[np.int64],
        values: NDArray[np.int64],
        sessions: NDArray[np.int32],
        outcome: Outcome,
        error: int = 0,
    ) -> None:
        del time_ns
        assert self.polls[sequence].outcome is None
        self.append(sequence, keys=keys, offsets=offsets, values=values, sessions=sessions)
        self.polls[sequence].outcome = outcome
        self.polls[sequence].error = error


Deliver = Callable[[KafkaError | None, Message], None]


class QueueProducer:
    """A producer whose queue has room for so many records, and whose broker answers in order."""

    def __init__(self, config: dict[str, Any], *, room: int = 10**9) -> None:
        self.config = config
        self.room = room
        self.refusal = 0
        self.answer_error = 0
        self.fatal: KafkaError | None = None
        self.answering = True
        self.polls = 0
        self.log: dict[int, list[int]] = {}
        self._queue: list[tuple[int, bytes, Deliver]] = []

    def produce_batch(
        self,
        topic: str,
        messages: list[dict[str, Any]],
        partition: int,
        *,
        on_delivery: Deliver,
    ) -> int:
        assert topic == "t"
        free = 0 if self.refusal else max(0, self.room - len(self._queue))
        code = self.refusal or KafkaError._QUEUE_FULL
        for index, record in enumerate(messages):
            if index < free:
                self._queue.append((partition, record["value"], on_delivery))
            else:
                record["_error"] = KafkaError(code)
        return min(free, len(messages))

    def poll(self, timeout: float) -> int:
        del timeout
        self.polls += 1
        if not self.answering:
            return 0
        answered, self._queue = self._queue, []
        for partition, value, on_delivery in answered:
            log = self.log.setdefault(partition, [])
            report = Message(topic="t", partition=partition, offset=len(log), value=value)
            if self.answer_error:
                report.set_error(KafkaError(self.answer_error))
            else:
                log.append(int.from_bytes(value[:8], "little", signed=True))
            on_delivery(report.error(), report)
        fatal, self.fatal = self.fatal, None
        if fatal is not None:
            raise KafkaException(fatal)
        return len(answered)

    def purge(self) -> None:
        self._queue.clear()

    def close(self) -> None:
        assert not self._queue

    def fail_for_good(self) -> None:
        """A fatal error, as confluent-kafka reports it: the next poll raises, and no call back."""
        self.refusal = KafkaError._FATAL
        self.fatal = KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, fatal=True)


@dataclass
class ScriptedConsumer:
    """A consumer that returns, poll by poll, what it was told; nothing once that is used up."""

    config: dict[str, Any]
    script: list[Any]
    """A list of messages a poll, an exception to raise, or a function of this consumer first."""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    watermarks: Sequence[Any] = ()
    rebalance: dict[str, Any] = field(default_factory=dict)

    def consume(self, num_messages: int, timeout: float) -> list[Message]:
        del timeout
        self.calls.append(("consume", num_messages))
        following = self.script.pop(0) if self.script else []
        if callable(following):
            following = following(self)
        if isinstance(following, Exception):
            raise following
        return following

    def assign(self, partitions: Sequence[Any]) -> None:
        self.calls.append(("assign", [(place.partition, place.offset) for place in partitions]))

    def unassign(self) -> None:
        self.calls.append(("unassign", None))

    def subscribe(self, topics: list[str], **callbacks: Any) -> None:
        self.calls.append(("subscribe", topics))
        self.rebalance = callbacks

    def commit(self, *, asynchronous: bool) -> None:
        self.calls.append(("commit", asynchronous))

    def close(self) -> None:
        self.calls.append(("close", None))

    def get_watermark_offsets(self, place: Any, timeout: float, *, cached: bool) -> Any:
        del timeout
        assert not cached
        self.calls.append(("watermarks", place.partition))
        found = self.watermarks.pop(0)  # type: ignore[attr-defined]  # a list
        if isinstance(found, Exception):
            raise found
        return found
