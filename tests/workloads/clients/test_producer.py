"""A producer's promises to the recorder, with librdkafka and the recorder replaced by doubles."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from kafka_doubles import QueueProducer, SendNotes

from fencepost.history.clock import Clock
from fencepost.history.counts import live_counts
from fencepost.history.operation import Outcome
from fencepost.workloads.clients.config import ClientConfig, ProducerConfig
from fencepost.workloads.clients.producer import produce
from fencepost.workloads.clients.sender import Sender
from fencepost.workloads.clients.shutdown import Ending


def config(raw: Path | str = "", *, flush_ms: int = 50, in_flight_max: int = 100) -> ProducerConfig:
    return ProducerConfig(
        common=ClientConfig(
            client="producer-0",
            process=0,
            process_stride=4,
            raw=str(raw),
            origin_ns=0,
            keys=("t-0", "t-1", "t-2"),
            settings={},
            seed=1,
        ),
        rate=0,
        value_bytes=8,
        batch_max=20,
        in_flight_max=in_flight_max,
        flush_ms=flush_ms,
    )


def rounds(count: int, *, before: Callable[[int], None] = lambda _: None) -> Callable[[], bool]:
    """Stop after so many questions; `before` is called with the number of each."""
    asked = 0

    def stopped() -> bool:
        nonlocal asked
        before(asked)
        asked += 1
        return asked > count

    return stopped


class Bench:
    """A sender between its two doubles."""

    def __init__(
        self, settings: ProducerConfig, stopped: Callable[[], bool], *, room: int = 10**9
    ) -> None:
        self.notes = SendNotes()
        self.producers: list[QueueProducer] = []

        def connect(conf: dict[str, object]) -> QueueProducer:
            self.producers.append(QueueProducer(conf, room=room))
            return self.producers[-1]

        self.sender = Sender(
            settings,
            generation=0,
            recorder=self.notes,
            clock=Clock.start(),
            stopped=stopped,
            connect=connect,
        )
        self.kafka = self.producers[0]


def test_every_send_that_was_answered_is_recorded_with_its_offset() -> None:
    bench = Bench(config(), rounds(10))
    assert bench.sender.run() is Ending.STOPPED
    assert len(bench.notes.invoked) == 200
    assert bench.notes.values(Outcome.OK) == list(bench.notes.invoked)
    for key, log in bench.kafka.log.items():
        for offset, value in enumerate(log):
            assert bench.notes.invoked[value] == key
            assert bench.notes.ended[value] == (Outcome.OK, offset, 0)


def test_records_of_a_key_are_queued_in_the_order_of_their_invocations() -> None:
    bench = Bench(config(), rounds(10))
    bench.sender.run()
    assert sorted(bench.kafka.log) == [0, 1, 2]
    for log in bench.kafka.log.values():
        assert log == sorted(log)


def test_no_more_than_the_bound_is_in_flight() -> None:
    bench = Bench(config(in_flight_max=50), rounds(10))
    bench.kafka.answering = False
    bench.sender.run()
    assert len(bench.notes.invoked) == 50


def test_sends_without_an_answer_stay_open_after_a_bounded_wait() -> None:
    bench = Bench(config(), rounds(3))
    bench.kafka.answering = False
    assert bench.sender.run() is Ending.STOPPED
    assert bench.notes.invoked
    assert not bench.notes.ended


def test_a_full_queue_is_waited_for_and_changes_no_order() -> None:
    bench = Bench(config(flush_ms=10_000), lambda: len(bench.notes.ended) >= 100, room=3)
    bench.sender.run()
    # Told to stop, it no longer waits for room: the last ones may be refused.
    assert bench.notes.values(Outcome.OK)[:100] == list(range(100))
    for log in bench.kafka.log.values():
        assert log == sorted(log)


def test_records_that_a_queue_never_took_surely_did_not_happen() -> None:
    bench = Bench(config(), rounds(1), room=2)
    bench.kafka.answering = False
    bench.sender.run()
    refused = bench.notes.values(Outcome.FAIL)
    assert len(refused) == 18
    assert {bench.notes.ended[value][2] for value in refused} == {KafkaError._QUEUE_FULL}


def test_records_that_are_refused_for_another_reason_are_not_tried_again() -> None:
    bench = Bench(config(flush_ms=10**9), rounds(1))
    bench.kafka.refusal = KafkaError._UNKNOWN_PARTITION
    bench.sender.run()
    assert bench.notes.values(Outcome.FAIL) == list(bench.notes.invoked)


def test_an_indefinite_error_is_info() -> None:
    bench = Bench(config(), rounds(1))
    bench.kafka.answer_error = KafkaError._MSG_TIMED_OUT
    bench.sender.run()
    assert bench.notes.values(Outcome.INFO) == list(bench.notes.invoked)


def test_a_fatal_error_ends_the_logical_client_after_its_answers_came() -> None:
    def fail_at(asked: int) -> None:
        if asked == 2:
            bench.kafka.fail_for_good()

    bench = Bench(config(), rounds(10, before=fail_at))
    assert bench.sender.run() is Ending.FATAL
    assert set(bench.notes.ended) == set(bench.notes.invoked)


def test_after_a_fatal_error_a_new_process_goes_on(tmp_path: Path) -> None:
    producers: list[QueueProducer] = []

    def connect(conf: dict[str, object]) -> QueueProducer:
        producers.append(QueueProducer(conf))
        return producers[-1]

    def stopped() -> bool:
        if not producers or sum(map(len, producers[-1].log.values())) < 40:
            return False
        if len(producers) < 3:
            producers[-1].fail_for_good()
        return len(producers) == 3

    assert produce(config(tmp_path), stopped, connect=connect)
    counts = live_counts(tmp_path)
    assert sorted(counts.by_client) == ["producer-0", "producer-0.1", "producer-0.2"]
    assert counts.info == 0
    assert counts.ok + counts.fail == counts.invoked
    assert all(client.ok for client in counts.by_client.values())
    processes = {
        value >> 40 for producer in producers for log in producer.log.values() for value in log
    }
    assert processes == {0, 4, 8}


def test_a_producer_that_meets_nothing_but_fatal_errors_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencepost.workloads.clients.producer.GENERATIONS_MAX", 3)

    def connect(conf: dict[str, object]) -> QueueProducer:
        producer = QueueProducer(conf)
        producer.refusal = KafkaError._FATAL
        return producer

    assert not produce(config(tmp_path), rounds(100), connect=connect)
    assert len(live_counts(tmp_path).by_client) == 3
