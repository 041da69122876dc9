"""The metadata client: threads that write metadata and threads that read it, until told to stop.

Each writer has topics of its own and asks one broker after the other, or the controller, where
brokers pass nothing on to it (`workloads.generators.asked`); each reader has one broker, so that
one that is paused delays no read of another, unless its client is a stock one. Every thread has its
own connections and is a process of the history.

A write is on disk before it is sent. One that has no answer in time is info, and so is one that was
under way when the client was killed. From time to time a writer looks which topics there are, and
deletes what such a write has left behind; these looks are not on the record.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Final, assert_never

import numpy as np

from fencepost.clusters.kafka.admin_requests import (
    Write,
    alter_config,
    ask_broker,
    create_partitions,
    create_topic,
    delete_topic,
)
from fencepost.clusters.kafka.connection import NoAnswerError, NodeConnection
from fencepost.clusters.kafka.describing import DescribeRecorder, Item, ask_overview
from fencepost.clusters.port import NodeName
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.counter import COUNTER_SETTING, counter_value
from fencepost.history.journal import EventJournal, ReadJournal
from fencepost.history.operation import Outcome
from fencepost.workloads.clients.kafka_python_reads import KafkaPythonReads
from fencepost.workloads.clients.librdkafka_reads import LibrdkafkaReads
from fencepost.workloads.clients.metadata_config import MetadataConfig, read_metadata_config
from fencepost.workloads.clients.shutdown import stop_on_sigterm
from fencepost.workloads.clients.threads import await_due, run_threads, steady_pace
from fencepost.workloads.generators.asked import Asked
from fencepost.workloads.generators.topic_lives import LOOK_S, MetadataF, TopicLives, TopicWrite
from fencepost.workloads.metadata_spec import ReadingClient

_END_SLACK_S: Final = 1.0


def main(argv: Sequence[str]) -> int:
    """Write and read as configured; return 0 when told to stop, 1 if a thread failed."""
    stopped = stop_on_sigterm()
    return 0 if run_client(read_metadata_config(Path(argv[1])), stopped) else 1


def run_client(config: MetadataConfig, stopped: Callable[[], bool]) -> bool:
    """Run until told to stop, or until a thread of it fails: then return False."""
    raw, spec = Path(config.raw), config.spec
    with (
        EventJournal(raw, "metadata_writes", writer=config.client) as of_topics,
        EventJournal(raw, "partition_writes", writer=config.client) as of_partitions,
        ReadJournal(raw, config.clock, writer=config.client) as reads,
    ):
        names: dict[int, Sequence[str]] = {}
        journals = _Journals(of_topics, of_partitions, threading.Lock())
        runs = [_Writer(config, number, journals, names).run for number in range(spec.writers)]
        runs += [
            _Reader(config, number, broker, reads, names).run
            for number, broker in enumerate(config.brokers)
        ]
        bound_s = max(spec.write_timeout_ms, spec.read_timeout_ms) / 1000
        return run_threads(runs, stopped=stopped, end_s_max=bound_s + _END_SLACK_S)


@dataclass(frozen=True, slots=True)
class _Journals:
    """The journals in which writers record."""

    of_topics: EventJournal
    of_partitions: EventJournal
    beginning: threading.Lock
    """Held while a write begins, so that numbers follow times."""

    def of(self, write: TopicWrite) -> EventJournal:
        """Return the journal of the write's table."""
        return self.of_partitions if write.f is MetadataF.GROW else self.of_topics


class _Writer:
    """One logical client that writes."""

    def __init__(
        self,
        config: MetadataConfig,
        number: int,
        journals: _Journals,
        names: dict[int, Sequence[str]],
    ) -> None:
        spec = config.spec
        self._config = config
        self._number = number
        self._process = config.process + number
        self._journals = journals
        self._names = names
        self._clock = config.clock
        self._lives = TopicLives(
            slots=len(range(number, spec.topics, spec.writers)),
            first_number=number,
            stride=spec.writers,
            lives=spec.lives,
            alters=spec.alters,
            partitions=spec.partitions,
            grows=spec.grows,
            replication_factors=spec.replication_factors(brokers=len(config.brokers)),
            draw=np.random.default_rng([config.seed, self._process]),
        )
        names[number] = self._lives.names

    def run(self, ending: threading.Event) -> None:
        """Write until told to end."""
        spec, clock = self._config.spec, self._clock
        share = self._number / spec.writers
        pace = steady_pace(spec.write_rate / spec.writers, clock, share=share)
        looks = steady_pace(1 / LOOK_S, clock, share=share)
        with ExitStack() as stack:
            brokers = {
                name: stack.enter_context(NodeConnection(address, client_id=self._config.client))
                for name, address in self._config.brokers.items()
            }
            # Writers start at different brokers.
            order = list(brokers)[self._number % len(brokers) :] + list(brokers)
            asked = Asked(cycle(order[: len(brokers)]).__next__)
            while await_due(pace, clock, ending):
                if asked.needs_look or looks.due(clock.now_ns()):
                    self._look(brokers[asked.next("look")], asked)
                    looks.take(1, clock.now_ns())
                self._write(brokers, asked)
                pace.take(1, clock.now_ns())

    def _look(self, connection: NodeConnection, asked: Asked[NodeName]) -> None:
        """Look which topics there are, and who the controller is."""
        timeout_s = self._config.spec.read_timeout_ms / 1000
        try:
            overview = ask_overview(connection, timeout_s=timeout_s)
        except NoAnswerError:
            asked.named(None)
            return
        nodes = {address: name for name, address in self._config.brokers.items()}
        asked.named(None if overview.controller is None else nodes.get(overview.controller))
        self._lives.shown(overview.topics)

    def _write(self, brokers: Mapping[NodeName, NodeConnection], asked: Asked[NodeName]) -> None:
        write = self._lives.next()
        broker = asked.next(write.f)
        timeout_s = self._config.spec.write_timeout_ms / 1000
        request, journal = _request(write, timeout_s=timeout_s), self._journals.of(write)
        with self._journals.beginning:
            number = journal.begin(
                {
                    "process": self._process,
                    "f": write.f,
                    "node": broker,
                    "topic": write.topic,
                    **write.as_fields(),
                    "call_ns": self._clock.now_ns(),
                }
            )
        answer = ask_broker(brokers[broker], request, timeout_s=timeout_s)
        ended: dict[str, object] = {
            "outcome": answer.outcome,
            "error": answer.error,
            "return_ns": self._clock.now_ns(),
        }
        made = {"topic_id": answer.topic_id} if answer.topic_id else {}
        journal.end(number, ended | made)
        asked.answered(write.f, broker, answer.error)
        self._lives.ended(write, Outcome(answer.outcome), answer.error)
        self._names[self._number] = self._lives.names


class _Reader:
    """One logical client that reads: from the same broker, or from the one that a client chose."""

    def __init__(
        self,
        config: MetadataConfig,
        number: int,
        broker: NodeName,
        journal: ReadJournal,
        names: dict[int, Sequence[str]],
    ) -> None:
        self._config = config
        self._number = number
        self._broker = broker
        self._names = names
        self._journal = journal
        process = config.process + config.spec.writers + number
        self._recorder = DescribeRecorder(journal, process=process)

    def run(self, ending: threading.Event) -> None:
        """Read until told to end: topics and settings by turns."""
        config, clock, count = self._config, self._config.clock, len(self._config.brokers)
        pace = steady_pace(config.spec.read_rate / count, clock, share=self._number / count)
        with self._reads() as reads:
            turns = cycle(reads)
            while await_due(pace, clock, ending):
                next(turns)([name for mine in list(self._names.values()) for name in mine])
                pace.take(1, clock.now_ns())

    @contextmanager
    def _reads(self) -> Iterator[Sequence[Callable[[Sequence[str]], object]]]:
        """Give the reads of topics and of settings, each of which is recorded."""
        config, broker = self._config, self._broker
        timeout_s = config.spec.read_timeout_ms / 1000
        match config.spec.reader:
            case ReadingClient.OWN:
                with NodeConnection(config.brokers[broker], client_id=config.client) as connection:
                    yield [
                        partial(read, broker, connection, timeout_s=timeout_s)
                        for read in (self._recorder.topics, self._recorder.configs)
                    ]
            case ReadingClient.LIBRDKAFKA | ReadingClient.KAFKA_PYTHON as reader:
                kind = LibrdkafkaReads if reader is ReadingClient.LIBRDKAFKA else KafkaPythonReads
                with closing(
                    kind(broker, brokers=config.brokers, client_id=config.client)
                ) as stock:
                    yield [
                        partial(self._record, partial(read, timeout_s=timeout_s))
                        for read in (stock.topics, stock.configs)
                    ]
            case _:
                assert_never(config.spec.reader)

    def _record(
        self, read: Callable[[Sequence[str]], tuple[NodeName, Sequence[Item]]], names: Sequence[str]
    ) -> None:
        number, call_ns = self._journal.begin()
        node, items = read(names)
        self._recorder.add(node, number, call_ns=call_ns, items=items)


def _request(write: TopicWrite, *, timeout_s: float) -> Write:
    if write.f is MetadataF.DELETE:
        return delete_topic(write.topic, timeout_s=timeout_s)
    if write.f is MetadataF.GROW:
        return create_partitions(write.topic, write.partition_count, timeout_s=timeout_s)
    assert write.config_value is not None, write
    setting = {COUNTER_SETTING: counter_value(write.config_value)}
    if write.f is MetadataF.ALTER:
        return alter_config(write.topic, setting)
    topic = TopicSpec(
        name=write.topic,
        partitions=write.partition_count,
        replication_factor=write.replication_factor,
        settings=setting,
    )
    return create_topic(topic, timeout_s=timeout_s)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
