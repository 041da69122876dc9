"""The Java client's exceptions, sorted by what can be done about them; no JVM is started."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from fencepost.workloads.clients.transactional_client import Group, Severity, TransactionError
from fencepost.workloads.clients.transactional_libraries import JavaTransactions

CODES = {"TimeoutException": 7, "ProducerFencedException": 90, "InvalidTxnStateException": 48}


@dataclass
class Thrown:
    """A Java exception by the simple name of its class, as py4j shows one."""

    name: str
    cause: "Thrown | None" = None
    _target_id: str = "o1"

    def getCause(self) -> "Thrown | None":  # noqa: N802  # Java's name
        return self.cause

    def getClass(self) -> Any:  # noqa: N802  # Java's name
        return SimpleNamespace(getSimpleName=lambda: self.name)

    def toString(self) -> str:  # noqa: N802  # Java's name
        return f"java: {self.name}"


@dataclass
class FakeMachine:
    """A JVM with one KafkaProducer, whose calls throw as told."""

    throws: dict[str, list[Thrown]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    sent: int = 0
    offsets: Any = None

    @property
    def classes(self) -> Any:
        def for_exception(thrown: Thrown) -> Any:
            return SimpleNamespace(code=lambda: CODES.get(thrown.name, -1))

        errors = SimpleNamespace(forException=for_exception)
        producer = SimpleNamespace(
            KafkaProducer=lambda _: self, ProducerRecord=lambda *parts: parts
        )
        consumer = SimpleNamespace(
            OffsetAndMetadata=lambda offset: ("at", offset),
            ConsumerGroupMetadata=lambda name: ("group", name),
        )
        kafka = SimpleNamespace(
            clients=SimpleNamespace(producer=producer, consumer=consumer),
            common=SimpleNamespace(
                protocol=SimpleNamespace(Errors=errors),
                TopicPartition=lambda *place: place,
            ),
        )
        duration = SimpleNamespace(ofMillis=lambda number: number)
        return SimpleNamespace(
            org=SimpleNamespace(apache=SimpleNamespace(kafka=kafka)),
            java=SimpleNamespace(time=SimpleNamespace(Duration=duration)),
        )

    def map_of(self, content: dict[str, str]) -> Any:
        return content

    def sendOffsetsToTransaction(self, positions: Any, group: Any) -> None:  # noqa: N802  # Java's
        self.offsets = (positions, group)
        self._call("sendOffsetsToTransaction")

    def send(self, record: Any) -> Any:
        self._call("send")
        assert record == ("t", 0, None, b"payload")
        offset = 40 + self.sent
        self.sent += 1

        def get() -> Any:
            self._call("get")
            return SimpleNamespace(hasOffset=lambda: True, offset=lambda: offset)

        return SimpleNamespace(get=get)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self._call(name)

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if waiting := self.throws.get(name):
            raise Py4JJavaError("it threw", waiting.pop(0))


def client(**throws: list[Thrown]) -> tuple[JavaTransactions, FakeMachine]:
    machine = FakeMachine(throws)
    return JavaTransactions({}, machine=machine), machine  # type: ignore[arg-type]


def caught(made: JavaTransactions, call: str) -> TransactionError:
    with pytest.raises(TransactionError) as error:
        getattr(made, call)(5)
    return error.value


def test_offsets_are_those_of_the_open_transaction_by_value() -> None:
    made, _ = client()
    made.begin()
    for value in (7, 8):
        made.send("t", 0, b"payload", value=value)
    made.flush(1)
    assert made.offsets == {7: 40, 8: 41}
    made.begin()
    assert made.offsets == {}


def test_after_a_time_out_the_same_call_is_made_again() -> None:
    made, machine = client(commitTransaction=[Thrown("TimeoutException")] * 2)
    made.commit(5)
    assert machine.calls.count("commitTransaction") == 3


def test_a_call_is_not_repeated_beyond_its_time() -> None:
    made, machine = client(abortTransaction=[Thrown("TimeoutException")])
    with pytest.raises(TransactionError) as error:
        made.abort(0)
    assert (error.value.severity, error.value.code) == (Severity.RETRIABLE, 7)
    assert machine.calls.count("abortTransaction") == 1


@pytest.mark.parametrize(
    ("thrown", "severity", "code"),
    [
        (Thrown("ProducerFencedException"), Severity.FATAL, 90),
        (Thrown("KafkaException", Thrown("InvalidTxnStateException")), Severity.FATAL, 48),
        (Thrown("KafkaException"), Severity.ABORTABLE, -1),
        (Thrown("KafkaException", Thrown("TimeoutException")), Severity.ABORTABLE, 7),
    ],
)
def test_an_exception_says_what_can_be_done_and_its_cause_why(
    thrown: Thrown, severity: Severity, code: int
) -> None:
    made, _ = client(commitTransaction=[thrown])
    error = caught(made, "commit")
    assert (error.severity, error.code) == (severity, code)


def test_a_record_that_was_not_delivered_leaves_an_abort() -> None:
    made, _ = client(get=[Thrown("ExecutionException", Thrown("TimeoutException"))])
    made.begin()
    made.send("t", 0, b"payload", value=7)
    error = caught(made, "flush")
    assert (error.severity, error.code) == (Severity.ABORTABLE, 7)
    assert made.offsets == {}


def test_a_fenced_record_is_fatal() -> None:
    made, _ = client(get=[Thrown("ExecutionException", Thrown("ProducerFencedException"))])
    made.begin()
    made.send("t", 0, b"payload", value=7)
    assert caught(made, "flush").severity is Severity.FATAL


def test_offsets_are_sent_for_the_group_and_again_after_a_time_out() -> None:
    made, machine = client(sendOffsetsToTransaction=[Thrown("TimeoutException")])
    made.send_offsets({("t", 1): 9}, group=Group(name="g", metadata=None), timeout_s=5)
    assert machine.offsets == ({("t", 1): ("at", 9)}, ("group", "g"))
    assert machine.calls.count("sendOffsetsToTransaction") == 2
