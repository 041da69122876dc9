"""A consumer's promises to the recorder, with librdkafka and the recorder replaced by doubles."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition
from kafka_doubles import PollNotes, ScriptedConsumer, message

from fencepost.history.counts import live_counts
from fencepost.history.operation import Outcome
from fencepost.workloads.clients.config import ClientConfig, ConsumerConfig
from fencepost.workloads.clients.consumer import Poller, consume


def config(raw: Path | str = "", *, subscribe: bool, reassign_s: float = 0) -> ConsumerConfig:
    return ConsumerConfig(
        common=ClientConfig(
            client="consumer-0",
            process=2,
            process_stride=4,
            raw=str(raw),
            origin_ns=0,
            keys=("t-0", "t-1"),
            settings={},
            seed=1,
        ),
        subscribe=subscribe,
        reassign_s=reassign_s,
    )


def poll(settings: ConsumerConfig, script: list[Any]) -> tuple[PollNotes, ScriptedConsumer, bool]:
    """What is recorded of a script that is played to its end, and by which consumer."""
    notes = PollNotes()
    made: list[ScriptedConsumer] = []

    def connect(conf: dict[str, Any]) -> Any:
        made.append(ScriptedConsumer(conf, script))
        return made[-1]

    poller = Poller(settings, generation=0, recorder=notes, connect=connect)
    told_to = poller.run(lambda: not script)
    # Told to stop, it polled once more and found nothing.
    assert (notes.polls.pop().records, made[0].calls.pop()[0]) == ([], "consume")
    return notes, made[0], told_to


def rebalance(
    event: str, keys: list[int], returned: list[Any]
) -> Callable[[ScriptedConsumer], list[Any]]:
    """A poll during which the group gives or takes keys."""

    def during_poll(consumer: ScriptedConsumer) -> list[Any]:
        consumer.rebalance[event](consumer, [TopicPartition("t", key) for key in keys])
        return returned

    return during_poll


def test_every_record_of_a_poll_is_recorded_in_order_with_its_session() -> None:
    notes, consumer, told_to = poll(
        config(subscribe=False),
        [
            [message(7, key=1, offset=4), message(8, key=0, offset=9)],
            [],
            [message(9, key=1, offset=5)],
        ],
    )
    assert told_to
    assert [note.records for note in notes.polls] == [
        [(1, 4, 7, 0), (0, 9, 8, 0)],
        [],
        [(1, 5, 9, 0)],
    ]
    assert {note.outcome for note in notes.polls} == {Outcome.OK}
    assert consumer.calls[0] == ("assign", [(0, OFFSET_BEGINNING), (1, OFFSET_BEGINNING)])


def test_records_before_an_error_count_and_the_poll_is_info() -> None:
    notes, _, _ = poll(
        config(subscribe=False),
        [
            [message(7, offset=0), message(None, error=KafkaError._MAX_POLL_EXCEEDED)],
            [message(8, offset=5)],
        ],
    )
    bad, after = notes.polls
    assert (bad.outcome, bad.error) == (Outcome.INFO, KafkaError._MAX_POLL_EXCEEDED)
    assert bad.records == [(0, 0, 7, 0)]
    # What the bad poll took along is not known: no order is claimed across it.
    assert after.records == [(0, 5, 8, 1)]


def test_a_poll_that_raises_is_recorded_with_its_error() -> None:
    notes, _, _ = poll(
        config(subscribe=False), [KafkaException(KafkaError(KafkaError._TRANSPORT)), []]
    )
    assert [note.outcome for note in notes.polls] == [Outcome.INFO, Outcome.OK]
    assert notes.polls[0].error == KafkaError._TRANSPORT


def test_a_rebalance_that_gives_a_key_back_starts_its_next_session() -> None:
    notes, consumer, _ = poll(
        config(subscribe=True),
        [
            rebalance("on_assign", [0, 1], [message(1, key=0, offset=0)]),
            rebalance("on_revoke", [0], [message(2, key=0, offset=1)]),
            rebalance("on_assign", [0], [message(2, key=0, offset=1), message(3, key=1, offset=0)]),
        ],
    )
    assert consumer.calls[0] == ("subscribe", ["t"])
    records = [record for note in notes.polls for record in note.records]
    assert [session for _, _, _, session in records] == [0, 0, 1, 0]


def test_offsets_are_committed_only_after_the_records_before_them_are_recorded() -> None:
    recorded_at_commit: list[int] = []

    class Committing(ScriptedConsumer):
        def commit(self, *, asynchronous: bool) -> None:
            assert asynchronous
            recorded_at_commit.append(sum(note.outcome is not None for note in notes.polls))

    notes = PollNotes()
    script: list[Any] = [rebalance("on_assign", [0, 1], [message(1)])]
    poller = Poller(
        config(subscribe=True),
        generation=0,
        recorder=notes,
        connect=lambda conf: Committing(conf, script),  # type: ignore[arg-type,return-value]  # a double
    )
    poller.run(lambda: not script)
    assert recorded_at_commit == [1]


def test_a_consumer_that_owns_nothing_commits_nothing() -> None:
    _, consumer, _ = poll(config(subscribe=True), [[], []])
    assert "commit" not in [name for name, _ in consumer.calls]


def test_a_new_assign_goes_back_over_some_records_in_a_new_session(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr("fencepost.workloads.clients.consumer.Rereads.is_due", lambda *_: True)
    notes, consumer, _ = poll(
        config(subscribe=False, reassign_s=1),
        [[message(n, offset=n) for n in range(50)], [message(3, offset=3)]],
    )
    assigns = [what for name, what in consumer.calls if name == "assign"]
    assert all(0 <= offset <= 50 for _, offset in assigns[-1])
    sessions = [{record[3] for record in note.records} for note in notes.polls]
    assert sessions == [{1}, {2}]


def test_after_a_fatal_error_a_new_process_goes_on(tmp_path: Path) -> None:
    fatal = KafkaError(KafkaError.FENCED_INSTANCE_ID, fatal=True)
    script: list[Any] = [[message(1)], KafkaException(fatal), [message(1)], []]
    made: list[ScriptedConsumer] = []

    def connect(conf: dict[str, Any]) -> Any:
        made.append(ScriptedConsumer(conf, script))
        return made[-1]

    assert consume(config(tmp_path, subscribe=False), lambda: not script, connect=connect)
    counts = live_counts(tmp_path)
    assert {name: client.polls for name, client in counts.by_client.items()} == {
        "consumer-0": 2,
        "consumer-0.1": 3,
    }
    assert [consumer.calls[-1] for consumer in made] == [("close", None)] * 2


def test_told_to_stop_it_polls_on_until_a_poll_returns_nothing() -> None:
    notes = PollNotes()
    script: list[Any] = [[message(1)], [message(2)], [], [message(3)]]
    poller = Poller(
        config(subscribe=False),
        generation=0,
        recorder=notes,
        connect=lambda conf: ScriptedConsumer(conf, script),  # type: ignore[arg-type,return-value]  # a double
    )
    poller.run(lambda: True)
    assert [[value for _, _, value, _ in note.records] for note in notes.polls] == [[1], [2], []]
