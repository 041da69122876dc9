"""The metadata client: threads that write metadata and threads that read it, until told to stop.

Each writer has topics of its own and asks one broker after the other; each reader has one broker,
so that one that is paused delays no read of another. Every thread has its own connections and is a
process of the history.

A write is on disk before it is sent. One that has no answer in time is info, and so is one that was
under way when the client was killed.
"""

import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Final

import numpy as np

from clusters.kafka.admin_requests import (
    Write,
    alter_config,
    ask_write,
    create_topic,
    delete_topic,
)
from clusters.kafka.connection import Connection
from clusters.kafka.describing import DescribeRecorder, counter_setting
from clusters.port import NodeName, TopicSpec
from history.clock import Clock
from history.journal import EventJournal, ReadJournal
from history.operation import Outcome
from workloads.clients.metadata_config import MetadataConfig, read_metadata_config
from workloads.clients.shutdown import stop_on_sigterm
from workloads.generators.pace import Pace
from workloads.generators.topic_lives import MetadataF, TopicLives, TopicWrite

__all__ = ["main", "run_client"]

_TICK_NS: Final = 1_000_000
_LOOK_S: Final = 0.1
_END_SLACK_S: Final = 1.0


def main(argv: Sequence[str]) -> int:
    """Write and read as the configuration says; 0 when told to stop, 1 if a thread failed."""
    stopped = stop_on_sigterm()
    return 0 if run_client(read_metadata_config(Path(argv[1])), stopped) else 1


def run_client(config: MetadataConfig, stopped: Callable[[], bool]) -> bool:
    """Until told to stop, or until a thread of it fails: then False."""
    ending, failed = threading.Event(), threading.Event()
    with (
        EventJournal(Path(config.raw), "metadata_writes", writer=config.client) as writes,
        ReadJournal(Path(config.raw), config.clock, writer=config.client) as reads,
    ):
        names: dict[int, Sequence[str]] = {}
        beginning = threading.Lock()
        threads = [
            _thread(_Writer(config, number, writes, names, beginning).run, ending, failed)
            for number in range(config.spec.writers)
        ]
        threads += [
            _thread(_Reader(config, number, broker, reads, names).run, ending, failed)
            for number, broker in enumerate(config.brokers)
        ]
        while not stopped() and not failed.is_set():
            failed.wait(_LOOK_S)
        ending.set()
        bound_s = max(config.spec.write_timeout_ms, config.spec.read_timeout_ms) / 1000
        for thread in threads:
            thread.join(timeout=bound_s + _END_SLACK_S)
    return not failed.is_set()


def _thread(
    run: Callable[[threading.Event], None], ending: threading.Event, failed: threading.Event
) -> threading.Thread:
    def guarded() -> None:
        try:
            run(ending)
        except BaseException:  # noqa: BLE001  # whatever it is ends the client, and is in its log
            traceback.print_exc()
            failed.set()

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    return thread


class _Writer:
    """One logical client that writes."""

    def __init__(
        self,
        config: MetadataConfig,
        number: int,
        journal: EventJournal,
        names: dict[int, Sequence[str]],
        beginning: threading.Lock,
    ) -> None:
        spec = config.spec
        self._config = config
        self._number = number
        self._process = config.process + number
        self._journal = journal
        self._names = names
        self._beginning = beginning
        self._clock = config.clock
        self._lives = TopicLives(
            slots=len(range(number, spec.topics, spec.writers)),
            first_number=number,
            stride=spec.writers,
            lives=spec.lives,
            alters=spec.alters,
            replication_factor_max=min(spec.replication_factor_max, len(config.brokers)),
            draw=np.random.default_rng([config.seed, self._process]),
        )
        names[number] = self._lives.names

    def run(self, ending: threading.Event) -> None:
        """Write until told to end."""
        spec = self._config.spec
        pace = _pace(spec.write_rate / spec.writers, self._clock, share=self._number / spec.writers)
        with ExitStack() as stack:
            brokers = {
                name: stack.enter_context(Connection(address, client_id=self._config.client))
                for name, address in self._config.brokers.items()
            }
            # Writers start at different brokers.
            order = list(brokers)[self._number % len(brokers) :] + list(brokers)
            turns = cycle(order[: len(brokers)])
            while _wait(pace, self._clock, ending):
                broker = next(turns)
                self._write(broker, brokers[broker])
                pace.take(1, self._clock.now_ns())

    def _write(self, broker: NodeName, connection: Connection) -> None:
        write = self._lives.next()
        timeout_s = self._config.spec.write_timeout_ms / 1000
        request = _request(write, partitions=self._config.spec.partitions, timeout_s=timeout_s)
        with self._beginning:  # numbers follow times
            number = self._journal.begin(
                {
                    "process": self._process,
                    "f": write.f,
                    "node": broker,
                    "topic": write.topic,
                    "config_value": write.config_value,
                    "call_ns": self._clock.now_ns(),
                }
            )
        answer = ask_write(connection, request, timeout_s=timeout_s)
        self._journal.end(
            number,
            {
                "outcome": answer.outcome,
                "error": answer.error,
                "topic_id": answer.topic_id,
                "return_ns": self._clock.now_ns(),
            },
        )
        self._lives.ended(write, Outcome(answer.outcome))
        self._names[self._number] = self._lives.names


class _Reader:
    """One logical client that reads, always from the same broker."""

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
        process = config.process + config.spec.writers + number
        self._recorder = DescribeRecorder(journal, process=process)

    def run(self, ending: threading.Event) -> None:
        """Read until told to end: topics and settings by turns."""
        config, clock, count = self._config, self._config.clock, len(self._config.brokers)
        pace = _pace(config.spec.read_rate / count, clock, share=self._number / count)
        timeout_s = config.spec.read_timeout_ms / 1000
        turns = cycle([self._recorder.topics, self._recorder.configs])
        with Connection(config.brokers[self._broker], client_id=config.client) as connection:
            while _wait(pace, clock, ending):
                names = [name for mine in list(self._names.values()) for name in mine]
                next(turns)(self._broker, connection, names, timeout_s=timeout_s)
                pace.take(1, clock.now_ns())


def _request(write: TopicWrite, *, partitions: int, timeout_s: float) -> Write:
    if write.f is MetadataF.DELETE:
        return delete_topic(write.topic, timeout_s=timeout_s)
    assert write.config_value is not None, write
    setting = counter_setting(write.config_value)
    if write.f is MetadataF.ALTER:
        return alter_config(write.topic, setting)
    topic = TopicSpec(
        name=write.topic,
        partitions=partitions,
        replication_factor=write.replication_factor,
        settings=setting,
    )
    return create_topic(topic, timeout_s=timeout_s)


def _pace(rate: float, clock: Clock, *, share: float) -> Pace:
    """A schedule without a backlog; `share` of a step later than the first one's."""
    start_ns = clock.now_ns() + int(share * 1e9 / rate)
    return Pace(rate=rate, backlog_max=1, tick_ns=_TICK_NS, start_ns=start_ns)


def _wait(pace: Pace, clock: Clock, ending: threading.Event) -> bool:
    """Wait for what is due next; False if told to end."""
    while not pace.due(clock.now_ns()):
        if ending.wait(min(_LOOK_S, pace.wait_ns(clock.now_ns()) / 1e9)):
            return False
    return not ending.is_set()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
