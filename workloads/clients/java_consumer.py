"""A consumer of Kafka's own Java client, with as much of librdkafka's face as a poller needs.

So `workloads.clients.consumer` polls, assigns anew and records with either. It only assigns: a
group's rebalances would have to be told through callbacks from the JVM.

A poll of the Java client throws what librdkafka hands out as an event, and with it goes nothing of
what was fetched: the position stays before it (KafkaConsumer's documentation).
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition
from py4j.protocol import Py4JJavaError

from fencepost.workloads.clients.config import ConsumerConfig
from fencepost.workloads.clients.consumer import GENERATIONS_MAX, consume
from fencepost.workloads.clients.java_gateway import JavaProgram, JavaVirtualMachine
from fencepost.workloads.clients.shutdown import stop_on_sigterm
from fencepost.workloads.clients.transactional_config import read_as

_RETRIABLE: Final = "org.apache.kafka.common.errors.RetriableException"


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaConsumerConfig:
    """The configuration of a Java consumer."""

    consumer: ConsumerConfig
    """The consumer's configuration, with settings in the words of the Java client."""
    java: JavaProgram


@dataclass(frozen=True, slots=True)
class _Record:
    """A record, as `columns.MessageLike`."""

    of_topic: str
    of_partition: int
    at: int
    payload: bytes | None

    def topic(self) -> str:
        return self.of_topic

    def partition(self) -> int:
        return self.of_partition

    def offset(self) -> int:
        return self.at

    def value(self) -> bytes | None:
        return self.payload

    def error(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class _Error:
    """The exception that a call threw, as `columns.KafkaErrorLike`."""

    number: int
    is_fatal: bool

    def code(self) -> int:
        return self.number

    def fatal(self) -> bool:
        return self.is_fatal


class JavaConsumer:
    """A KafkaConsumer. Each call raises confluent_kafka's KafkaException with an error in it."""

    def __init__(self, settings: Mapping[str, str], *, machine: JavaVirtualMachine) -> None:
        self._java = machine.classes.java
        self._kafka = machine.classes.org.apache.kafka
        made = self._kafka.clients.consumer.KafkaConsumer
        self._consumer = self._call(lambda: made(machine.map_of(settings)))

    def assign(self, places: Sequence[TopicPartition]) -> None:
        """Own these from now on, each from its offset."""
        own = [self._kafka.common.TopicPartition(one.topic, one.partition) for one in places]
        self._call(lambda: self._consumer.assign(self._list(own)))
        beginnings = [
            one for one, place in zip(own, places, strict=True) if place.offset == OFFSET_BEGINNING
        ]
        if beginnings:  # an empty list would mean every key
            self._call(lambda: self._consumer.seekToBeginning(self._list(beginnings)))
        for one, place in zip(own, places, strict=True):
            if place.offset != OFFSET_BEGINNING:
                self._call(partial(self._consumer.seek, one, place.offset))

    def consume(self, _count_max: int, timeout_s: float) -> list[_Record]:
        """Return the records of a poll; the setting `max.poll.records` bounds their number."""
        timeout = self._java.time.Duration.ofMillis(int(timeout_s * 1000))
        records = self._call(lambda: self._consumer.poll(timeout))
        return [
            _Record(record.topic(), record.partition(), record.offset(), _bytes(record.value()))
            for record in records.iterator()
        ]

    def close(self) -> None:
        """Disconnect."""
        self._call(lambda: self._consumer.close(self._java.time.Duration.ofMillis(0)))

    def _list(self, items: Sequence[Any]) -> Any:
        made = self._java.util.ArrayList()
        for item in items:
            made.add(item)
        return made

    def _call(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Py4JJavaError as error:
            thrown = error.java_exception
            code = self._kafka.common.protocol.Errors.forException(thrown).code()
            may_pass = self._java.lang.Class.forName(_RETRIABLE).isInstance(thrown)
            raise KafkaException(_Error(code, is_fatal=not may_pass)) from error


def main(argv: Sequence[str]) -> int:
    """Consume as configured; return 0 when told to stop, 1 when every instance failed."""
    config = read_as(JavaConsumerConfig, Path(argv[1]))
    stopped = stop_on_sigterm()
    with closing(JavaVirtualMachine(config.java)) as machine:
        if consume(config.consumer, stopped, connect=partial(JavaConsumer, machine=machine)):
            return 0
    print(f"gave up after {GENERATIONS_MAX} fatal errors", file=sys.stderr)  # noqa: T201  # its log
    return 1


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
