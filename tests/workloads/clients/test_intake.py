"""What a transactional producer takes in: from where its group is, anew unless it committed."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition
from kafka_doubles import PollNotes, ScriptedConsumer, message

from fencepost.history.clock import Clock
from fencepost.history.operation import Outcome
from fencepost.workloads.clients.intake import Intake
from fencepost.workloads.clients.transactional_config import IntakeConfig

OK, FAIL, INFO = Outcome.OK, Outcome.FAIL, Outcome.INFO
KEYS = ("t-0", "t-1")


@dataclass
class GroupConsumer(ScriptedConsumer):
    """One whose group has committed what it was told, answer by answer."""

    answers: list[Any] = field(default_factory=list)

    def committed(self, places: list[TopicPartition], *, timeout: float) -> list[TopicPartition]:
        del timeout
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return [
            TopicPartition(place.topic, place.partition, offset)
            for place, offset in zip(places, answer, strict=True)
        ]

    def consumer_group_metadata(self) -> bytes:
        return b"metadata"


@dataclass
class EventNotes:
    """A journal that remembers."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)

    def begin(self, columns: Any) -> int:
        self.rows.append(dict(columns))
        return len(self.rows) - 1

    def note(self, number: int, columns: Any) -> None:
        self.rows[number] |= columns

    def end(self, number: int, columns: Any) -> None:
        assert number not in self.ended
        self.ended.append(number)
        self.note(number, columns)

    def told(self) -> list[tuple[str, str, list[int]]]:
        return [(row["f"], row["outcome"], row["offsets"]) for row in self.rows]


class Bench:
    """An intake between its doubles."""

    def __init__(self, *polls: Any, committed: list[Any]) -> None:
        self.polls, self.notes = PollNotes(), EventNotes()
        self.consumer = GroupConsumer(config={}, script=list(polls), answers=committed)
        self.intake = Intake(
            IntakeConfig(group="g", process=9, records_max=3, settings={"a": "b"}),
            keys=KEYS,
            process=1,
            recorder=self.polls,
            journal=self.notes,
            clock=Clock.start(),
            connect=self._connect,
        )

    def _connect(self, settings: dict[str, Any]) -> GroupConsumer:
        assert settings == {"a": "b", "group.id": "g"}
        return self.consumer

    def assigns(self) -> list[Any]:
        return [what for call, what in self.consumer.calls if call == "assign"]


def test_it_reads_on_from_where_its_group_is_and_from_the_beginning_where_that_is_nowhere() -> None:
    bench = Bench(
        [message(7, key=1, offset=40), message(8, key=1, offset=43)], committed=[[-1001, 40]]
    )
    taken = bench.intake.take()
    assert bench.assigns() == [[(0, OFFSET_BEGINNING), (1, 40)]]
    assert taken is not None
    assert (taken.offsets_before, taken.offsets) == ({1: 40}, {1: 44})
    assert ("consume", 3) in bench.consumer.calls
    assert bench.notes.told() == [("fetch-offsets", "ok", [-1, 40])]
    (poll,) = bench.polls.polls
    assert [(key, offset, value) for key, offset, value, _ in poll.records] == [
        (1, 40, 7),
        (1, 43, 8),
    ]


def test_after_a_commit_it_goes_on_and_after_anything_else_it_asks_again() -> None:
    bench = Bench(
        [message(7, offset=0)],
        [message(8, offset=1)],
        [message(8, offset=1)],
        committed=[[-1001, -1001], [1, -1001]],
    )
    for outcome in (OK, FAIL, INFO):
        taken = bench.intake.take()
        assert taken is not None
        assert bench.intake.sending(taken) == {("t", 0): taken.offsets[0]}
        bench.intake.ended(outcome, error=7)
    assert bench.notes.told() == [
        ("fetch-offsets", "ok", [-1, -1]),
        ("send-offsets", "ok", [1]),
        ("send-offsets", "fail", [2]),
        ("fetch-offsets", "ok", [1, -1]),
        ("send-offsets", "info", [2]),
    ]
    assert [row["offsets_before"] for row in bench.notes.rows if "offsets_before" in row] == [
        [0],
        [1],
        [1],
    ]
    # What was read once more is of another session: nobody claims an order over both.
    sessions = [poll.records[0][3] for poll in bench.polls.polls]
    assert sessions[0] == sessions[1] != sessions[2]


def test_a_transaction_that_sent_nothing_and_failed_takes_the_same_again() -> None:
    bench = Bench([message(7, offset=0)], [message(7, offset=0)], committed=[[-1001, -1001]] * 2)
    assert bench.intake.take() is not None
    bench.intake.ended(FAIL)
    again = bench.intake.take()
    assert again is not None
    assert again.offsets_before == {0: 0}
    assert [f for f, *_ in bench.notes.told()] == ["fetch-offsets"] * 2


def test_without_an_answer_nothing_is_taken_and_it_asks_again() -> None:
    silence = KafkaException(KafkaError(KafkaError._TIMED_OUT))
    bench = Bench([message(7, offset=0)], committed=[silence, [-1001, -1001]])
    assert bench.intake.take() is None
    assert not bench.polls.polls
    assert bench.intake.take() is not None
    assert [outcome for _, outcome, _ in bench.notes.told()] == ["fail", "ok"]
    assert bench.notes.rows[0]["error"] == "_TIMED_OUT"


@pytest.mark.parametrize(
    "trouble",
    [
        KafkaException(KafkaError(KafkaError._TRANSPORT)),
        [message(None, error=KafkaError._TRANSPORT)],
    ],
)
def test_after_a_poll_that_failed_it_asks_again_where_it_is(trouble: Any) -> None:
    bench = Bench(trouble, [message(7, offset=0)], committed=[[-1001, -1001]] * 2)
    assert bench.intake.take() is None
    assert bench.intake.take() is not None
    assert [f for f, *_ in bench.notes.told()] == ["fetch-offsets"] * 2
    assert bench.polls.polls[0].outcome is not OK


def test_its_group_is_told_in_the_words_of_either_library() -> None:
    group = Bench(committed=[]).intake.group
    assert (group.name, group.metadata) == ("g", b"metadata")
