"""A Java consumer behind librdkafka's face: where it starts, what it returns; no JVM is started."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition
from py4j.protocol import Py4JJavaError

from fencepost.workloads.clients.columns import polled_of
from fencepost.workloads.clients.java_consumer import JavaConsumer


@dataclass(frozen=True)
class Thrown:
    """An exception of Java's."""

    code: int
    is_retriable: bool
    _target_id: str = "o1"
    _gateway_client: Any = None

    def toString(self) -> str:  # noqa: N802  # Java's
        return "thrown"


@dataclass
class FakeKafka:
    """A KafkaConsumer that notes what it is asked, and throws or returns as told."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    polled: list[Any] = field(default_factory=list)
    throws: Thrown | None = None

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            self.calls.append((name, *arguments))
            if self.throws is not None:
                raise Py4JJavaError("it threw", self.throws)
            records = SimpleNamespace(iterator=lambda: iter(self.polled))
            return records if name == "poll" else None

        return call


class JavaList(list[Any]):
    def add(self, item: Any) -> None:
        self.append(item)


def consumer(fake: FakeKafka) -> JavaConsumer:
    errors = SimpleNamespace(forException=lambda one: SimpleNamespace(code=lambda: one.code))
    common = SimpleNamespace(
        TopicPartition=lambda topic, partition: (topic, partition),
        protocol=SimpleNamespace(Errors=errors),
    )
    clients = SimpleNamespace(consumer=SimpleNamespace(KafkaConsumer=lambda _: fake))
    retriable = SimpleNamespace(isInstance=lambda one: one.is_retriable)
    java = SimpleNamespace(
        util=SimpleNamespace(ArrayList=JavaList),
        time=SimpleNamespace(Duration=SimpleNamespace(ofMillis=lambda ms: ms)),
        lang=SimpleNamespace(Class=SimpleNamespace(forName=lambda _: retriable)),
    )
    kafka = SimpleNamespace(common=common, clients=clients)
    classes = SimpleNamespace(java=java, org=SimpleNamespace(apache=SimpleNamespace(kafka=kafka)))
    machine: Any = SimpleNamespace(classes=classes, map_of=dict)
    return JavaConsumer({}, machine=machine)


def record(value: int, *, offset: int) -> Any:
    return SimpleNamespace(
        topic=lambda: "t",
        partition=lambda: 1,
        offset=lambda: offset,
        value=lambda: bytearray(value.to_bytes(8, "little")),
    )


def test_each_key_is_read_from_where_it_was_told() -> None:
    fake = FakeKafka()
    consumer(fake).assign([TopicPartition("t", 0, OFFSET_BEGINNING), TopicPartition("t", 1, 70)])
    assert fake.calls == [
        ("assign", [("t", 0), ("t", 1)]),
        ("seekToBeginning", [("t", 0)]),
        ("seek", ("t", 1), 70),
    ]


def test_nothing_is_sought_to_its_beginning_where_no_key_begins_there() -> None:
    """To the Java client an empty list means every key."""
    fake = FakeKafka()
    consumer(fake).assign([TopicPartition("t", 1, 70)])
    assert fake.calls == [("assign", [("t", 1)]), ("seek", ("t", 1), 70)]


def test_what_it_polls_reads_as_what_librdkafka_polls() -> None:
    fake = FakeKafka(polled=[record(7, offset=3), record(8, offset=5)])
    polled = polled_of(consumer(fake).consume(10, 0.25), key_of={("t", 1): 4})
    assert polled.keys.tolist() == [4, 4]
    assert polled.offsets.tolist() == [3, 5]
    assert polled.values.tolist() == [7, 8]
    assert fake.calls == [("poll", 250)]


@pytest.mark.parametrize("is_retriable", [True, False])
def test_what_may_pass_leaves_the_instance_and_what_may_not_ends_it(is_retriable: bool) -> None:  # noqa: FBT001  # both
    fake = FakeKafka()
    made = consumer(fake)
    fake.throws = Thrown(code=13, is_retriable=is_retriable)
    with pytest.raises(KafkaException) as raised:
        made.consume(10, 0.1)
    (error,) = raised.value.args
    assert (error.code(), error.fatal()) == (13, not is_retriable)
