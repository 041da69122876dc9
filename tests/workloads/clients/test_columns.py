import numpy as np
import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st
from kafka_doubles import message

from fencepost.history.operation import Outcome
from fencepost.workloads.clients.columns import (
    FOREIGN_VALUE,
    ends_of,
    messages_of,
    polled_of,
    values_of,
)

VALUES = st.lists(st.integers(0, 2**62), max_size=30)


@given(values=VALUES, value_bytes=st.integers(8, 40))
def test_a_value_survives_the_way_to_the_broker_and_back(
    values: list[int], value_bytes: int
) -> None:
    messages = messages_of(np.array(values, dtype=np.int64), value_bytes=value_bytes)
    payloads = [record["value"] for record in messages]
    assert all(isinstance(payload, bytes) and len(payload) == value_bytes for payload in payloads)
    assert values_of(payloads).tolist() == values  # type: ignore[arg-type]  # bytes, see above


@given(payloads=st.lists(st.none() | st.binary(max_size=12), max_size=20))
def test_a_record_that_is_too_short_to_be_ours_has_the_foreign_value(
    payloads: list[bytes | None],
) -> None:
    expected = [
        FOREIGN_VALUE
        if payload is None or len(payload) < 8
        else int.from_bytes(payload[:8], "little", signed=True)
        for payload in payloads
    ]
    assert values_of(payloads).tolist() == expected


def test_a_report_without_an_error_is_ok_also_where_its_offset_is_not_known() -> None:
    ends = ends_of([message(5, offset=17), message(6, offset=None), message(7, offset=-1001)])
    assert ends.values.tolist() == [5, 6, 7]
    assert ends.offsets.tolist() == [17, -1, -1]
    assert ends.outcomes.tolist() == [Outcome.OK.code] * 3
    assert ends.errors.tolist() == [0, 0, 0]


def test_an_error_has_no_offset_whatever_librdkafka_counted_on_from() -> None:
    # The error answer has base offset -1: the second record of the batch "has" offset 0.
    code = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    ends = ends_of([message(5, offset=None, error=code), message(6, offset=0, error=code)])
    assert ends.offsets.tolist() == [-1, -1]


def test_an_acknowledgement_that_counts_on_from_no_offset_has_none() -> None:
    # DUPLICATE_SEQUENCE_NUMBER is a success without a base offset; so is acks=0.
    counted = [message(value, key=3, offset=value - 1 if value else None) for value in range(3)]
    ends = ends_of([message(9, key=3, offset=40), *counted, message(7, key=3, offset=60)])
    assert ends.offsets.tolist() == [40, -1, -1, -1, 60]
    assert set(ends.outcomes.tolist()) == {Outcome.OK.code}


def test_the_first_offsets_of_another_partition_are_believed() -> None:
    ends = ends_of([message(0, key=1, offset=None), message(1, key=2, offset=0)])
    assert ends.offsets.tolist() == [-1, 0]


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (KafkaError._MSG_TIMED_OUT, Outcome.INFO),
        (KafkaError.REQUEST_TIMED_OUT, Outcome.INFO),
        # librdkafka repeats as it likes: an earlier attempt may have been appended.
        (KafkaError.NOT_ENOUGH_REPLICAS, Outcome.INFO),
        (KafkaError._QUEUE_FULL, Outcome.FAIL),
        # A code that nobody has put on the list.
        (31999, Outcome.INFO),
    ],
)
def test_the_end_of_a_send_is_what_the_registry_says_of_its_error(
    code: int, outcome: Outcome
) -> None:
    ends = ends_of([message(5, offset=None, error=code), message(6)])
    assert ends.outcomes.tolist() == [outcome.code, Outcome.OK.code]
    assert ends.errors.tolist() == [code, 0]


def test_errors_between_polled_records_leave_the_records_in_their_order() -> None:
    polled = polled_of(
        [
            message(1, key=0, offset=10),
            message(None, error=KafkaError._MAX_POLL_EXCEEDED),
            message(2, key=3, offset=7),
            message(None, key=0, offset=11),
        ],
        key_of={("t", 0): 0, ("t", 3): 1},
    )
    assert polled.keys.tolist() == [0, 1, 0]
    assert polled.offsets.tolist() == [10, 7, 11]
    assert polled.values.tolist() == [1, 2, FOREIGN_VALUE]
    assert [error.code() for error in polled.errors] == [KafkaError._MAX_POLL_EXCEEDED]


def test_an_empty_poll_has_empty_columns_of_the_right_types() -> None:
    polled = polled_of([], key_of={})
    types = [column.dtype for column in (polled.keys, polled.offsets, polled.values)]
    assert types == [np.int32, np.int64, np.int64]
