"""The tape as requests and their answers."""

import pyarrow as pa
from metadata_logs import wire

from checkers.metadata.rpcs import rpcs

BEATS = """
    at 1000 broker-1 heartbeat epoch 1 offset 4 -> ok at 1010
    at 5000 broker-1 heartbeat epoch 9 offset 8 -> STALE_BROKER_EPOCH at 5010
"""


def with_one_number(tape: pa.Table) -> pa.Table:
    place = tape.schema.get_field_index("correlation_id")
    return tape.set_column(place, "correlation_id", pa.array([1] * len(tape), pa.int32()))


def told(tape: pa.Table) -> list[tuple[int, str | None]]:
    return [(rpc.of("broker_epoch"), rpc.error) for rpc in rpcs(tape, "BrokerHeartbeat")]


def test_a_number_that_is_used_again_is_answered_each_time() -> None:
    expected = [(1, "NONE"), (9, "STALE_BROKER_EPOCH")]
    assert told(wire(BEATS)) == told(with_one_number(wire(BEATS))) == expected


def test_a_number_that_is_used_again_answers_nothing_for_the_one_before() -> None:
    unanswered = BEATS.replace("ok at 1010", "nothing")
    expected = [(1, None), (9, "STALE_BROKER_EPOCH")]
    assert told(with_one_number(wire(unanswered))) == expected


def test_both_copies_of_a_duplicated_request_have_its_answer() -> None:
    copied = "at 1000 broker-1 heartbeat epoch 1 -> {} at 1010\n"
    tape = wire(copied.format("ok") + copied.format("ok").replace("ok at 1010", "nothing"))
    assert told(with_one_number(tape)) == [(1, "NONE"), (1, "NONE")]
