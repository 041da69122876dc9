"""A Java producer behind librdkafka's face: what it sends, and how sends end; no JVM is started."""

from collections import deque
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from confluent_kafka import KafkaError
from py4j.protocol import Py4JJavaError

from fencepost.history.operation import Outcome
from fencepost.workloads.clients.columns import ends_of, messages_of
from fencepost.workloads.clients.java_producer import JavaProducer


@dataclass(frozen=True)
class Thrown:
    """An exception of Java's, which may have a cause."""

    code: int
    cause: "Thrown | None" = None
    _target_id: str = "o1"
    _gateway_client: Any = None

    def getCause(self) -> "Thrown | None":  # noqa: N802  # Java's
        return self.cause

    def toString(self) -> str:  # noqa: N802  # Java's
        return "thrown"


@dataclass
class Future:
    """The future of a send: not done, an offset, or an exception."""

    end: int | Thrown | None = None

    def isDone(self) -> bool:  # noqa: N802  # Java's
        return self.end is not None

    def get(self) -> Any:
        if isinstance(self.end, Thrown):
            raise Py4JJavaError("it threw", self.end)
        at = self.end
        return SimpleNamespace(hasOffset=lambda: at != -1, offset=lambda: at)


@dataclass
class FakeKafka:
    """A KafkaProducer that notes its records, and refuses them once it has ended."""

    sent: list[tuple[Any, ...]] = field(default_factory=list)
    futures: deque[Future] = field(default_factory=deque)
    room: int = 1000
    closed: bool = False

    def send(self, record: tuple[Any, ...]) -> Future:
        if len(self.sent) >= self.room:
            raise Py4JJavaError("it threw", Thrown(-1))
        self.sent.append(record)
        self.futures.append(Future())
        return self.futures[-1]

    def close(self, _timeout: int) -> None:
        self.closed = True


def producer(fake: FakeKafka) -> JavaProducer:
    errors = SimpleNamespace(forException=lambda one: SimpleNamespace(code=lambda: one.code))
    of_producer = SimpleNamespace(
        KafkaProducer=lambda _: fake, ProducerRecord=lambda *content: content
    )
    kafka = SimpleNamespace(
        common=SimpleNamespace(protocol=SimpleNamespace(Errors=errors)),
        clients=SimpleNamespace(producer=of_producer),
    )
    java = SimpleNamespace(time=SimpleNamespace(Duration=SimpleNamespace(ofMillis=lambda ms: ms)))
    classes = SimpleNamespace(java=java, org=SimpleNamespace(apache=SimpleNamespace(kafka=kafka)))
    machine: Any = SimpleNamespace(classes=classes, map_of=dict)
    return JavaProducer({}, machine=machine)


def batch(*values: int) -> list[dict[str, Any]]:
    return messages_of(np.array(values, dtype=np.int64), value_bytes=16)


def test_sends_end_once_their_futures_are_done_and_in_the_order_of_each_partition() -> None:
    fake, reports = FakeKafka(), []
    made = producer(fake)
    for partition, values in ((0, (1, 2)), (1, (3,))):
        sent = made.produce_batch(
            "t", batch(*values), partition, on_delivery=lambda _, report: reports.append(report)
        )
        assert sent == len(values)
    assert [(topic, partition) for topic, partition, *_ in fake.sent] == [
        *(("t", 0), ("t", 0), ("t", 1)),
    ]
    assert not made.poll(0.01)
    fake.futures[1].end, fake.futures[2].end = 8, -1
    assert made.poll(1) == 1
    fake.futures[0].end = 7
    assert made.poll(0) == 2
    ends = ends_of(reports)
    assert ends.values.tolist() == [3, 1, 2]
    assert ends.offsets.tolist() == [-1, 7, 8]
    assert set(ends.outcomes.tolist()) == {Outcome.OK.code}


def test_a_future_that_fails_tells_the_error_of_its_cause() -> None:
    fake, reports = FakeKafka(), []
    made = producer(fake)
    made.produce_batch("t", batch(1), 0, on_delivery=lambda error, _: reports.append(error))
    fake.futures[0].end = Thrown(-1, cause=Thrown(45))
    assert made.poll(1) == 1
    assert reports[0].code() == KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_producer_that_has_ended_refuses_the_rest_of_a_batch() -> None:
    fake = FakeKafka(room=1)
    made = producer(fake)
    messages = batch(1, 2, 3)
    assert made.produce_batch("t", messages, 0, on_delivery=lambda *_: None) == 1
    fatal = KafkaError._FATAL  # the constant's name
    assert [one["_error"].code() for one in messages if "_error" in one] == [fatal, fatal]
    made.purge()
    made.close()
    assert fake.closed
