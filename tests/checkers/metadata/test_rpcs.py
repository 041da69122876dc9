"""The tape as requests and their answers."""

import pyarrow as pa
from metadata_logs import wire

from fencepost.checkers.metadata.rpcs import in_turn, rpcs

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


def test_requests_are_taken_in_the_order_in_which_they_reach_their_target() -> None:
    """With each come those that were answered before it was taken, and after the one before."""
    tape = wire(
        """
        at 1000 passed 4000 broker-1 heartbeat epoch 1 -> ok at 4010
        at 1100 held broker-1 heartbeat epoch 2 -> nothing
        at 2000 broker-1 heartbeat epoch 3 -> ok at 3500
        at 3000 broker-1 heartbeat epoch 4 -> ok at 3010
        at 5000 broker-1 heartbeat epoch 5 -> nothing
        """
    )
    order = [
        (rpc.of("broker_epoch"), [one.of("broker_epoch") for one in answered])
        for rpc, answered in in_turn(rpcs(tape, "BrokerHeartbeat"))
    ]
    assert order == [(3, []), (4, []), (1, [4, 3]), (5, [1])]
