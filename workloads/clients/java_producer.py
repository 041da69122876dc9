"""A producer of Kafka's own Java client, with as much of librdkafka's face as a sender needs.

So `workloads.clients.sender` sends and records with either. Each send is a future of the JVM, which
is asked for by a call from Python: some hundred records a second are what it can do. The futures of
a partition end in the order of its sends, so that the first one of each is asked for alone.
"""

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaError
from py4j.protocol import Py4JJavaError

from fencepost.workloads.clients.config import ProducerConfig
from fencepost.workloads.clients.java_gateway import JavaProgram, JavaVirtualMachine
from fencepost.workloads.clients.producer import GENERATIONS_MAX, produce
from fencepost.workloads.clients.shutdown import stop_on_sigterm
from fencepost.workloads.clients.transactional_config import read_as

_LOOK_S: Final = 0.005
"""The time between two looks at what is in flight."""
_FATAL: Final = KafkaError._FATAL  # noqa: SLF001  # the constant's name
_UNKNOWN: Final = -1
"""UNKNOWN_SERVER_ERROR, Kafka's code for an exception outside its protocol."""

Deliver = Callable[[Any, Any], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaProducerConfig:
    """The configuration of a Java producer."""

    producer: ProducerConfig
    """The producer's configuration, with settings in the words of the Java client."""
    java: JavaProgram


@dataclass(frozen=True, slots=True)
class _Report:
    """How a send ended, as `columns.MessageLike`."""

    of_topic: str
    of_partition: int
    payload: bytes
    at: int | None
    failure: KafkaError | None

    def topic(self) -> str:
        return self.of_topic

    def partition(self) -> int:
        return self.of_partition

    def offset(self) -> int | None:
        return self.at

    def value(self) -> bytes:
        return self.payload

    def error(self) -> KafkaError | None:
        return self.failure


class JavaProducer:
    """A KafkaProducer, as `workloads.clients.sender.Produces`."""

    def __init__(self, settings: Mapping[str, str], *, machine: JavaVirtualMachine) -> None:
        self._kafka = machine.classes.org.apache.kafka
        self._now = machine.classes.java.time.Duration.ofMillis(0)
        self._record = self._kafka.clients.producer.ProducerRecord
        self._producer = self._kafka.clients.producer.KafkaProducer(machine.map_of(settings))
        self._in_flight: dict[tuple[str, int], deque[tuple[Any, bytes, Deliver]]] = {}

    def produce_batch(
        self,
        topic: str,
        messages: list[dict[str, Any]],
        partition: int,
        *,
        on_delivery: Deliver,
    ) -> int:
        """Queue these for one partition; return how many were. The others get an `_error`.

        A producer that refuses a record at once has met an error that ends it (KafkaProducer.send).
        """
        waiting = self._in_flight.setdefault((topic, partition), deque())
        for place, message in enumerate(messages):
            record = self._record(topic, partition, None, message["value"])
            try:
                future = self._producer.send(record)
            except Py4JJavaError:
                for refused in messages[place:]:
                    refused["_error"] = KafkaError(_FATAL)
                return place
            waiting.append((future, message["value"], on_delivery))
        return len(messages)

    def poll(self, timeout: float) -> int:
        """Report the sends that ended; wait for one if none did."""
        deadline_s = time.monotonic() + timeout
        while not (count := self._report()) and (left_s := deadline_s - time.monotonic()) > 0:
            time.sleep(min(_LOOK_S, left_s))
        return count

    def purge(self) -> None:
        """Do nothing: closing gives up what is queued or in flight."""

    def close(self) -> None:
        """End every thread and connection."""
        self._producer.close(self._now)

    def _report(self) -> int:
        count = 0
        for (topic, partition), waiting in self._in_flight.items():
            while waiting and waiting[0][0].isDone():
                future, payload, deliver = waiting.popleft()
                at, failure = self._end(future)
                deliver(failure, _Report(topic, partition, payload, at, failure))
                count += 1
        return count

    def _end(self, future: Any) -> tuple[int | None, KafkaError | None]:
        try:
            metadata = future.get()
        except Py4JJavaError as error:
            # The future's own exception only says that there is a cause.
            cause = error.java_exception.getCause() or error.java_exception
            code = self._kafka.common.protocol.Errors.forException(cause).code()
            return None, KafkaError(code or _UNKNOWN)
        return (metadata.offset() if metadata.hasOffset() else None), None


def main(argv: Sequence[str]) -> int:
    """Produce as configured; return 0 when told to stop, 1 when every instance failed."""
    config = read_as(JavaProducerConfig, Path(argv[1]))
    stopped = stop_on_sigterm()
    with closing(JavaVirtualMachine(config.java)) as machine:
        if produce(config.producer, stopped, connect=partial(JavaProducer, machine=machine)):
            return 0
    print(f"gave up after {GENERATIONS_MAX} fatal errors", file=sys.stderr)  # noqa: T201  # its log
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
