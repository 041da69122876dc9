"""When a final read may call itself complete."""

import time
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from kafka_doubles import PollNote, PollNotes, ScriptedConsumer, message

from fencepost.history.operation import F, Outcome
from fencepost.workloads.clients.config import ClientConfig, FinalReaderConfig
from fencepost.workloads.clients.final_reader import FinalReader
from fencepost.workloads.generators.agenda import Agenda

EOF = KafkaError._PARTITION_EOF


def read(
    script: list[Any],
    *,
    watermarks: list[Any],
    limit_s: float = 5,
) -> tuple[list[PollNote], Agenda, ScriptedConsumer]:
    notes = PollNotes()
    origin_ns = time.monotonic_ns()
    made: list[ScriptedConsumer] = []

    def connect(conf: dict[str, Any]) -> Any:
        made.append(ScriptedConsumer(conf, script, watermarks=watermarks))
        return made[-1]

    config = FinalReaderConfig(
        common=ClientConfig(
            client="final-reader-0",
            process=4,
            process_stride=6,
            raw="",
            origin_ns=origin_ns,
            keys=("t-0",),
            settings={},
            seed=1,
        ),
        share=(0,),
        deadline_ns=int(limit_s * 1e9),
        result="",
    )
    agenda = Agenda(config.share, deadline_ns=config.deadline_ns)
    FinalReader(config, recorder=notes, connect=connect).run(agenda, lambda: False)
    return notes.polls, agenda, made[0]


def test_it_is_ok_once_it_reached_the_end_that_it_asked_for_first() -> None:
    polls, agenda, consumer = read(
        [[message(5, offset=0)], [message(6, offset=1), message(7, offset=2)]], watermarks=[(0, 3)]
    )
    assert agenda.done == (0,)
    assert [(poll.f, poll.key, poll.outcome) for poll in polls] == [(F.FINAL_READ, 0, Outcome.OK)]
    assert [value for _, _, value, _ in polls[0].records] == [5, 6, 7]
    assert [name for name, _ in consumer.calls] == [
        "watermarks",
        "assign",
        "consume",
        "consume",
        "unassign",
    ]


def test_it_begins_at_the_first_offset_that_the_log_still_has() -> None:
    _, _, consumer = read([[message(5, offset=40)]], watermarks=[(40, 41)])
    assert ("assign", [(0, 40)]) in consumer.calls


def test_an_empty_log_is_read_completely_at_once() -> None:
    polls, agenda, consumer = read([], watermarks=[(0, 0)])
    assert agenda.done == (0,)
    assert polls[0].records == []
    assert "consume" not in [name for name, _ in consumer.calls]


def test_an_end_without_records_is_reached_by_the_end_of_file_event() -> None:
    polls, agenda, _ = read(
        [[message(5, offset=0)], [message(None, offset=4, error=EOF)]], watermarks=[(0, 4)]
    )
    assert agenda.done == (0,)
    assert polls[0].outcome is Outcome.OK


def test_an_end_of_file_before_the_end_is_not_the_end() -> None:
    polls, _, _ = read(
        [
            [message(5, offset=0), message(None, offset=1, error=EOF)],
            [message(6, offset=1)],
        ],
        watermarks=[(0, 2)],
    )
    assert [value for _, _, value, _ in polls[0].records] == [5, 6]
    assert polls[0].outcome is Outcome.OK


def test_a_read_that_meets_an_error_is_info_and_is_done_again_from_the_start() -> None:
    polls, agenda, _ = read(
        [
            [message(5, offset=0), message(None, error=KafkaError._AUTO_OFFSET_RESET)],
            [message(5, offset=0), message(6, offset=1)],
        ],
        watermarks=[(0, 2), (0, 2)],
    )
    assert [poll.outcome for poll in polls] == [Outcome.INFO, Outcome.OK]
    assert polls[0].error == KafkaError._AUTO_OFFSET_RESET
    # Its records are evidence all the same, in a session of their own.
    assert polls[0].records == [(0, 0, 5, 0)]
    assert polls[1].records == [(0, 0, 5, 1), (0, 1, 6, 1)]
    assert agenda.done == (0,)


def test_it_asks_for_the_end_again_until_the_leader_knows_it() -> None:
    unavailable = KafkaException(KafkaError(KafkaError.OFFSET_NOT_AVAILABLE))
    _, agenda, _ = read([], watermarks=[unavailable, None, (0, 0)])
    assert agenda.done == (0,)


def test_a_key_whose_end_is_not_reached_in_time_is_info_and_not_complete() -> None:
    polls, agenda, _ = read([], watermarks=[(0, 9)], limit_s=0.05)
    assert agenda.left == (0,)
    assert [poll.outcome for poll in polls] == [Outcome.INFO]
    assert polls[0].error == KafkaError._TIMED_OUT
