"""librdkafka's errors, sorted by what can be done about them; its reports, by value."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition
from kafka_doubles import message

from fencepost.workloads.clients.transactional_client import Group, Severity, TransactionError
from fencepost.workloads.clients.transactional_libraries import LibrdkafkaTransactions

FENCED = KafkaError(KafkaError._FENCED, fatal=True)
AGAIN = KafkaError(KafkaError._TIMED_OUT, retriable=True)
ABORTABLE = KafkaError(KafkaError._MSG_TIMED_OUT, txn_requires_abort=True)
STATE = KafkaError(KafkaError._STATE)

Report = Callable[[KafkaError | None, Message], None]


@dataclass
class FakeProducer:
    """Fails its calls as told, each as often as told; answers sends at the next poll."""

    failures: dict[str, list[Exception]] = field(default_factory=dict)
    answers: list[KafkaError | None] = field(default_factory=list)
    """The error of each send, in order; of the rest, none. `...` for no answer at all."""
    calls: list[str] = field(default_factory=list)
    queue: list[Report] = field(default_factory=list)
    answered: int = 0
    base_offset: int = 40
    positions: list[tuple[str, int, int]] = field(default_factory=list)

    def init_transactions(self, timeout: float) -> None:
        assert timeout > 0
        self._call("init")

    def begin_transaction(self) -> None:
        self._call("begin")

    def commit_transaction(self, timeout: float) -> None:
        assert timeout > 0
        self._call("commit")

    def abort_transaction(self, timeout: float) -> None:
        assert timeout > 0
        self._call("abort")

    def send_offsets_to_transaction(
        self, positions: list[TopicPartition], group_metadata: object, timeout: float
    ) -> None:
        assert timeout > 0
        assert group_metadata == b"metadata"
        self.positions = [(one.topic, one.partition, one.offset) for one in positions]
        self._call("send_offsets")

    def produce(self, topic: str, value: bytes, *, partition: int, on_delivery: Report) -> None:
        assert (topic, partition, value) == ("t", 0, b"payload")
        self._call("produce")
        self.queue.append(on_delivery)

    def poll(self, timeout: float) -> int:
        del timeout
        self._call("poll")
        reports, self.queue = self.queue, []
        for report in reports:
            error = self.answers.pop(0) if self.answers else None
            report(error, message(1, offset=self.base_offset + self.answered))
            self.answered += 1
        return len(reports)

    def purge(self) -> None:
        self._call("purge")

    def close(self) -> None:
        self._call("close")

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if waiting := self.failures.get(name):
            raise waiting.pop(0)


def client(
    *answers: KafkaError | None, **failures: list[KafkaError | Exception]
) -> tuple[LibrdkafkaTransactions, FakeProducer]:
    raised = {
        name: [one if isinstance(one, Exception) else KafkaException(one) for one in errors]
        for name, errors in failures.items()
    }
    fake = FakeProducer(failures=raised, answers=list(answers))

    def connect(settings: dict[str, Any]) -> FakeProducer:
        assert settings == {"a": "b"}
        return fake

    return LibrdkafkaTransactions({"a": "b"}, connect=connect), fake


def send(made: LibrdkafkaTransactions, *values: int) -> None:
    for value in values:
        made.send("t", 0, b"payload", value=value)


def test_offsets_are_those_of_the_open_transaction_by_value() -> None:
    made, _ = client()
    made.begin()
    send(made, 7, 8)
    made.flush(1)
    assert made.offsets == {7: 40, 8: 41}
    made.begin()
    assert made.offsets == {}


def test_records_that_the_broker_had_already_have_no_offset() -> None:
    # librdkafka counts on from the base offset of such an answer, which is -1.
    made, fake = client()
    fake.base_offset = -1
    made.begin()
    send(made, 7, 8)
    made.flush(1)
    assert made.offsets == {}


def test_a_call_is_repeated_while_librdkafka_says_that_this_may_help() -> None:
    made, fake = client(commit=[AGAIN, AGAIN])
    made.commit(5)
    assert fake.calls.count("commit") == 3


def test_a_call_is_not_repeated_beyond_its_time() -> None:
    made, fake = client(abort=[AGAIN])
    with pytest.raises(TransactionError) as caught:
        made.abort(0)
    assert (caught.value.severity, fake.calls) == (Severity.RETRIABLE, ["abort"])


@pytest.mark.parametrize(
    ("error", "severity"),
    [
        (FENCED, Severity.FATAL),
        (ABORTABLE, Severity.ABORTABLE),
        (STATE, Severity.ABORTABLE),
    ],
)
@pytest.mark.parametrize("call", ["init", "commit", "abort"])
def test_an_error_says_what_can_be_done(call: str, error: KafkaError, severity: Severity) -> None:
    made, fake = client(**{call: [error]})
    with pytest.raises(TransactionError) as caught:
        getattr(made, call)(5)
    assert (caught.value.severity, caught.value.code) == (severity, error.code())
    assert fake.calls == [call]


def test_a_record_that_was_not_delivered_fails_the_flush() -> None:
    made, _ = client(None, ABORTABLE)
    made.begin()
    send(made, 7, 8)
    with pytest.raises(TransactionError) as caught:
        made.flush(1)
    assert caught.value.code == KafkaError._MSG_TIMED_OUT
    assert made.offsets == {7: 40}


def test_a_record_without_any_answer_fails_the_flush_when_its_time_is_up() -> None:
    made, _ = client()
    send(made, 7)
    with pytest.raises(TransactionError, match="1 records have no end") as caught:
        made.flush(0)
    assert caught.value.severity is Severity.ABORTABLE


def test_a_fatal_error_out_of_a_poll_is_one_of_the_flush() -> None:
    made, _ = client(poll=[FENCED])
    send(made, 7)
    with pytest.raises(TransactionError) as caught:
        made.flush(1)
    assert caught.value.severity is Severity.FATAL


@pytest.mark.parametrize("refusal", [STATE, BufferError("full")])
def test_what_is_refused_leaves_an_abort(refusal: KafkaError | Exception) -> None:
    made, _ = client(produce=[refusal])
    with pytest.raises(TransactionError) as caught:
        send(made, 7)
    assert caught.value.severity is Severity.ABORTABLE


def test_an_abort_takes_in_the_reports_that_it_caused() -> None:
    made, _ = client(ABORTABLE)
    send(made, 7)
    made.abort(1)
    made.begin()
    send(made, 8)
    made.flush(1)
    assert made.offsets == {8: 41}


def test_closing_never_fails() -> None:
    made, fake = client(close=[FENCED])
    made.close()
    assert fake.calls == ["purge", "close"]


GROUP = Group(name="g", metadata=b"metadata")


def test_offsets_are_sent_for_the_group_and_again_while_that_may_help() -> None:
    made, fake = client(send_offsets=[AGAIN])
    made.send_offsets({("t", 0): 7, ("t", 1): 9}, group=GROUP, timeout_s=5)
    assert fake.positions == [("t", 0, 7), ("t", 1, 9)]
    assert fake.calls == ["send_offsets"] * 2


def test_offsets_that_are_refused_leave_an_abort_or_less() -> None:
    for error, severity in ((ABORTABLE, Severity.ABORTABLE), (FENCED, Severity.FATAL)):
        made, _ = client(send_offsets=[error])
        with pytest.raises(TransactionError) as caught:
            made.send_offsets({("t", 0): 7}, group=GROUP, timeout_s=5)
        assert caught.value.severity is severity


def test_an_instance_that_does_not_come_back_from_sending_offsets_is_given_up() -> None:
    let_go = Event()

    class Stuck(FakeProducer):
        def send_offsets_to_transaction(
            self, positions: list[TopicPartition], group_metadata: object, timeout: float
        ) -> None:
            del positions, group_metadata, timeout
            let_go.wait(20)

    made = LibrdkafkaTransactions({}, connect=lambda _: Stuck(), stuck_s=0.05)
    with pytest.raises(TransactionError, match="still being sent") as caught:
        made.send_offsets({("t", 0): 7}, group=GROUP, timeout_s=0.05)
    let_go.set()
    assert caught.value.severity is Severity.FATAL
    assert caught.value.code == KafkaError._MSG_TIMED_OUT
