"""A simulated writer of metadata: creates, alters, grows and deletes topics, one at a time.

They are its own. It asks one broker after the other, or the controller where brokers pass nothing
on (`workloads.generators.asked`). A write without an answer in time is info; so is one whose
connection broke, since a broker may have passed it on before. From time to time it looks which
topics there are, and deletes what such a write has left behind.
"""

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any, Final

from fencepost.clusters.node_port.effects import SEND, START, TICK, UNREACHABLE, Effects
from fencepost.clusters.reference.codec.identifiers import text_of
from fencepost.clusters.reference.nodes.configuration import S
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.client import MetadataRequest, MetadataResponse
from fencepost.clusters.reference.nodes.messages.control import (
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
from fencepost.clusters.reference.simulated.error_names import error_name
from fencepost.clusters.simulation.world import WAKE
from fencepost.history.counter import COUNTER_SETTING, counter_value
from fencepost.history.errors import ErrorSystem, outcome_of
from fencepost.history.operation import Outcome
from fencepost.workloads.clients.recording import RecordsEvents
from fencepost.workloads.generators.asked import Asked
from fencepost.workloads.generators.topic_lives import LOOK_S, MetadataF, TopicLives, TopicWrite
from fencepost.workloads.simulated.routes import hosts_of

_TOPIC: Final = 2
_LOOK_NS: Final = int(LOOK_S * S)
_LOOK_TIMEOUT_NS: Final = 2 * S
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
        first = process % len(brokers)
        self._asked = Asked(cycle((*brokers[first:], *brokers[:first])).__next__)
        self._node_of = node_of
        self._of_topics = of_topics
        self._of_partitions = of_partitions
        self._interval_ns = interval_ns
        self._timeout_ns = timeout_ns
        self._due_ns: int | None = None
        self._look_due_ns = 0
        self._looks_since_ns: int | None = None
        self._correlation = 0
        self._open: tuple[TopicWrite, int, int, int] | None = None
        """A write, its number, when it was called, and of which broker."""
        self._stopping = False
        self.counts = dict.fromkeys(Outcome, 0)

    @property
    def idle(self) -> bool:
        """Return whether it is told to stop, and has no write open."""
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
        elif message.correlation != self._correlation:
            return  # given up
        elif self._looks_since_ns is not None:
            self._looked(message if kind == MetadataResponse.kind else None)
        elif self._open is None:
            return
        elif kind in _ANSWERS:
            self._answered(now, message)
        elif kind == UNREACHABLE:
            self._end(now, Outcome.INFO, "NETWORK_EXCEPTION", None)

    def _tick(self, now: int, effects: Effects) -> None:
        if self._due_ns is None:
            self._due_ns = now + self._process * self._interval_ns // 7 % self._interval_ns
            self._look_due_ns = now + self._process * _LOOK_NS // 7 % _LOOK_NS
        if self._open is not None and now >= self._open[2] + self._timeout_ns:
            self._end(now, Outcome.INFO, "REQUEST_TIMED_OUT", None)
        if self._looks_since_ns is not None and now >= self._looks_since_ns + _LOOK_TIMEOUT_NS:
            self._looked(None)
        has_nothing_open = self._open is None and self._looks_since_ns is None
        if has_nothing_open and not self._stopping and now >= self._due_ns:
            if self._asked.needs_look or now >= self._look_due_ns:
                self._look(now, effects)
            else:
                self._write(now, effects)
                self._due_ns = max(self._due_ns + self._interval_ns, now)
        effects.append((WAKE, max(self._due_ns, now + self._interval_ns // 4)))

    def _look(self, now: int, effects: Effects) -> None:
        """Look which topics there are, and who the controller is."""
        self._look_due_ns = now + _LOOK_NS
        self._looks_since_ns = now
        self._correlation += 1
        effects.append((SEND, self._asked.next("look"), MetadataRequest(self._correlation, None)))

    def _looked(self, response: MetadataResponse | None) -> None:
        self._looks_since_ns = None
        self._correlation += 1  # an answer that comes later is given up
        if response is None:
            self._asked.named(None)
            return
        self._asked.named(hosts_of(response).get(response.controller_id))
        self.lives.shown(topic[0] for topic in response.topics)

    def _write(self, now: int, effects: Effects) -> None:
        write = self.lives.next()
        broker = self._asked.next(write.f)
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
        self._open = (write, number, now, broker)
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
        value = counter_value(write.config_value)
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
        outcome = outcome_of(error, attempts_max=1, system=ErrorSystem.METADATA)
        if _may_be_done(message, error):
            outcome = Outcome.INFO
        self._end(now, outcome, error_name(error) if error else None, topic_id)

    def _end(self, now: int, outcome: Outcome, error: str | None, topic_id: str | None) -> None:
        assert self._open is not None
        write, number, _, broker = self._open
        self._open = None
        ended: dict[str, object] = {"outcome": outcome, "error": error, "return_ns": now}
        self._journal_of(write).end(number, ended | ({"topic_id": topic_id} if topic_id else {}))
        self._asked.answered(write.f, broker, error)
        self.lives.ended(write, outcome, error)
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
