"""The watch of last stable offsets: what it records, and when it stops."""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition

from fencepost.history.clock import Clock
from fencepost.workloads.clients.transactional_config import OffsetsConfig
from fencepost.workloads.clients.transactional_offsets import OffsetsWatch

SECOND_NS = 1_000_000_000
LATER_NS = 3600 * SECOND_NS
Look = Mapping[int, tuple[int, int] | None]
"""Last stable offset and high watermark by partition; None: its leader does not answer."""


@dataclass
class Answer:
    offset: int


@dataclass
class FakeAdmin:
    """Answers look after look; the last one again and again."""

    looks: list[Look]
    asked: list[IsolationLevel] = field(default_factory=list)

    def list_offsets(
        self, topic_partition_offsets: dict[TopicPartition, Any], **kwargs: Any
    ) -> dict[TopicPartition, Future[Any]]:
        isolation = kwargs["isolation_level"]
        self.asked.append(isolation)
        look = self.looks[0]
        if isolation is IsolationLevel.READ_COMMITTED and len(self.looks) > 1:
            self.looks.pop(0)
        answers = {}
        for place in topic_partition_offsets:
            future = answers[place] = Future[Any]()
            if (pair := look[place.partition]) is None:
                future.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
            else:
                future.set_result(Answer(pair[isolation is IsolationLevel.READ_UNCOMMITTED]))
        return answers


def watched(
    *looks: Look, due_ns: int = LATER_NS, deadline_ns: int = LATER_NS
) -> tuple[tuple[str, ...], list[tuple[str, int, int, bool]]]:
    """The settled keys, and what was recorded: key, last stable offset, high watermark, due."""
    rows: list[Mapping[str, Any]] = []
    config = OffsetsConfig(
        client="w",
        raw="",
        origin_ns=Clock.start().origin_ns,
        keys=("t-0", "t-1"),
        settings={},
        due_ns=due_ns,
        deadline_ns=deadline_ns,
        result="",
    )
    watch = OffsetsWatch(config, admin=FakeAdmin(list(looks)), record=rows.append)
    settled = watch.run(lambda: False)
    names = ("key", "last_stable_offset", "high_watermark", "due")
    return settled, [tuple(row[name] for name in names) for row in rows]


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.workloads.clients.transactional_offsets._PAUSE_S", 0)


def test_it_ends_at_once_where_every_transaction_has_ended() -> None:
    settled, rows = watched({0: (5, 5), 1: (0, 0)})
    assert settled == ("t-0", "t-1")
    assert rows == [("t-0", 5, 5, False), ("t-1", 0, 0, False)]


def test_it_waits_for_markers_and_records_only_what_has_changed() -> None:
    settled, rows = watched({0: (3, 5), 1: (1, 1)}, {0: (3, 5), 1: (1, 1)}, {0: (6, 6), 1: (1, 1)})
    assert settled == ("t-0", "t-1")
    assert rows == [("t-0", 3, 5, False), ("t-1", 1, 1, False), ("t-0", 6, 6, False)]


def test_a_key_that_is_held_up_when_all_is_due_is_recorded_as_that() -> None:
    settled, rows = watched({0: (3, 5), 1: (1, 1)}, due_ns=0)
    assert settled == ("t-1",)
    assert rows == [("t-0", 3, 5, True), ("t-1", 1, 1, True)]


def test_when_all_is_due_it_still_waits_for_a_leader_to_answer() -> None:
    settled, rows = watched({0: None, 1: (1, 1)}, {0: (3, 5), 1: None}, due_ns=0)
    assert settled == ("t-1",)
    assert rows == [("t-1", 1, 1, True), ("t-0", 3, 5, True)]


def test_it_gives_up_at_its_deadline() -> None:
    settled, rows = watched({0: None, 1: (1, 2)}, deadline_ns=0)
    assert settled == ()
    assert rows == [("t-1", 1, 2, False)]


def test_the_high_watermark_is_asked_for_first() -> None:
    admin = FakeAdmin([{0: (1, 1), 1: (1, 1)}])
    config = OffsetsConfig(
        client="w",
        raw="",
        origin_ns=Clock.start().origin_ns,
        keys=("t-0", "t-1"),
        settings={},
        due_ns=LATER_NS,
        deadline_ns=LATER_NS,
        result="",
    )
    OffsetsWatch(config, admin=admin, record=lambda _: None).run(lambda: False)
    assert admin.asked == [IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED]
