"""A simulated writer of metadata: creates, alters, grows and deletes topics, one at a time.

They are its own. It asks one broker after the other. A write without an answer in time is info, and
its topic is left alone; so is one whose connection broke, since a broker may have passed it on
before.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from clusters.node_port.effects import SEND, START, TICK, UNREACHABLE, Effects
from clusters.reference.codec.identifiers import text_of
from clusters.reference.nodes.errors import Error
from clusters.reference.nodes.messages.control import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    NewPartitions,
    NewTopic,
)
from clusters.simulation.world import WAKE
from history.operation import Outcome
from workloads.clients.recording import RecordsEvents
from workloads.generators.topic_lives import MetadataF, TopicLives, TopicWrite

__all__ = ["COUNTER_BASE", "COUNTER_SETTING", "SimulatedWriter", "told"]

COUNTER_SETTING: Final = "retention.ms"
"""A setting that can carry a number."""
COUNTER_BASE: Final = 1_000_000_000_000
"""The smallest counter: smaller values of the setting are the cluster's, not ours."""

_TOPIC: Final = 2
_CERTAIN_NO: Final = frozenset(
    {
        Error.INVALID_CONFIG,
        Error.INVALID_PARTITIONS,
        Error.INVALID_REPLICA_ASSIGNMENT,
        Error.INVALID_REPLICATION_FACTOR,
        Error.INVALID_TOPIC_EXCEPTION,
        Error.UNSUPPORTED_VERSION,
    }
)
"""Errors that refuse a write, whatever happened before."""
_ANSWERS: Final = frozenset(
    {
        CreateTopicsResponse.kind,
        CreatePartitionsResponse.kind,
        DeleteTopicsResponse.kind,
        AlterConfigsResponse.kind,
    }
)


class SimulatedWriter:
    """One logical client, with one write open at a time."""

    def __init__(
        self,
        process: int,
        lives: TopicLives,
        *,
        brokers: Sequence[int],
        node_of: Callable[[int], str],
        of_topics: RecordsEvents,
        of_partitions: RecordsEvents,
        interval_ns: int,
        timeout_ns: int,
    ) -> None:
        self.lives = lives
        self._process = process
        self._brokers = brokers
        self._node_of = node_of
        self._of_topics = of_topics
        self._of_partitions = of_partitions
        self._interval_ns = interval_ns
        self._timeout_ns = timeout_ns
        self._turn = process
        self._due_ns: int | None = None
        self._correlation = 0
        self._open: tuple[TopicWrite, int, int] | None = None
        """A write, its number, and when it was called."""
        self._stopping = False
        self.counts = dict.fromkeys(Outcome, 0)

    @property
    def idle(self) -> bool:
        """Return whether it is told to stop, and has nothing open."""
        return self._stopping and self._open is None

    def stop(self) -> None:
        """Write no more."""
        self._stopping = True

    def give_up(self) -> None:
        """Leave the open write open: that is info."""

    def handle(self, now: int, _source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take an event of the world."""
        if kind in (TICK, START):
            self._tick(now, effects)
        elif self._open is None or message.correlation != self._correlation:
            return  # given up
        elif kind in _ANSWERS:
            self._answered(now, message)
        elif kind == UNREACHABLE:
            self._end(now, Outcome.INFO, "NETWORK_EXCEPTION", None)

    def _tick(self, now: int, effects: Effects) -> None:
        if self._due_ns is None:
            self._due_ns = now + self._process * self._interval_ns // 7 % self._interval_ns
        if self._open is not None and now >= self._open[2] + self._timeout_ns:
            self._end(now, Outcome.INFO, "REQUEST_TIMED_OUT", None)
        if self._open is None and not self._stopping and now >= self._due_ns:
            self._write(now, effects)
            self._due_ns = max(self._due_ns + self._interval_ns, now)
        effects.append((WAKE, max(self._due_ns, now + self._interval_ns // 4)))

    def _write(self, now: int, effects: Effects) -> None:
        write = self.lives.next()
        broker = self._brokers[self._turn % len(self._brokers)]
        self._turn += 1
        self._correlation += 1
        number = self._journal_of(write).begin(
            {
                "process": self._process,
                "f": write.f,
                "node": self._node_of(broker),
                "topic": write.topic,
                **write.as_fields(),
                "call_ns": now,
            }
        )
        self._open = (write, number, now)
        effects.append((SEND, broker, self._request(write)))

    def _journal_of(self, write: TopicWrite) -> RecordsEvents:
        return self._of_partitions if write.f is MetadataF.GROW else self._of_topics

    def _request(self, write: TopicWrite) -> Any:
        if write.f is MetadataF.DELETE:
            return DeleteTopicsRequest(self._correlation, ((write.topic, -1),), self._timeout_ns)
        if write.f is MetadataF.GROW:
            grown = NewPartitions(write.topic, write.partition_count)
            return CreatePartitionsRequest(self._correlation, (grown,), self._timeout_ns)
        assert write.config_value is not None, write
        value = str(COUNTER_BASE + write.config_value)
        if write.f is MetadataF.ALTER:
            change = (_TOPIC, write.topic, COUNTER_SETTING, value)
            return AlterConfigsRequest(self._correlation, (change,))
        topic = NewTopic(
            write.topic,
            write.partition_count,
            write.replication_factor,
            None,
            ((COUNTER_SETTING, value),),
        )
        return CreateTopicsRequest(self._correlation, (topic,), self._timeout_ns)

    def _answered(self, now: int, message: Any) -> None:
        error, topic_id = told(message)
        if not error:
            self._end(now, Outcome.OK, None, topic_id)
        elif error in _CERTAIN_NO and not _may_be_done(message, error):
            self._end(now, Outcome.FAIL, Error(error).name, None)
        else:
            self._end(now, Outcome.INFO, Error(error).name, None)

    def _end(self, now: int, outcome: Outcome, error: str | None, topic_id: str | None) -> None:
        assert self._open is not None
        write, number, _ = self._open
        self._open = None
        ended: dict[str, object] = {"outcome": outcome, "error": error, "return_ns": now}
        self._journal_of(write).end(number, ended | ({"topic_id": topic_id} if topic_id else {}))
        self.lives.ended(write, outcome)
        self.counts[outcome] += 1


def told(message: Any) -> tuple[int, str | None]:
    """Return the error of an answer about one topic, and the id of one that was created."""
    if message.kind == AlterConfigsResponse.kind:
        return message.resources[0][2], None
    if message.kind == CreatePartitionsResponse.kind:
        return message.topics[0][1], None
    _, topic_id, error, *_ = message.topics[0]
    created = message.kind == CreateTopicsResponse.kind and not error
    return error, text_of(topic_id) if created else None


def _may_be_done(message: Any, error: int) -> bool:
    """Return whether the error is what a repeated attempt to add partitions finds."""
    return message.kind == CreatePartitionsResponse.kind and error == Error.INVALID_PARTITIONS
