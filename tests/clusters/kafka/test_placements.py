"""Where a partition is, as a broker and the controller behind it say; or that nobody said."""

from typing import Any

import pytest
from broker_doubles import NO_TIME, metadata
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0.response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32

from clusters.kafka.connection import NoAnswerError
from clusters.kafka.placements import Placement, ask_placement


def moving(*partitions: int, topic: str = "t", code: ErrorCode = ErrorCode.none) -> Any:
    of_topic = OngoingTopicReassignment(
        name=TopicName(topic),
        partitions=tuple(OngoingPartitionReassignment(partition_index=i32(n)) for n in partitions),
    )
    return ListPartitionReassignmentsResponse(
        throttle_time=NO_TIME,
        error_code=code,
        error_message=None,
        topics=(of_topic,) if partitions else (),
    )


SHOWN = metadata([1], {"t": [(1, 0), (1, 0)]})
SILENCE = NoAnswerError("REQUEST_TIMED_OUT", sent=True)


class Answers:
    """A connection whose questions are answered in turn."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def ask(self, request: Any, response_type: Any, *, timeout_s: float) -> Any:
        assert timeout_s == 2
        self.asked.append(type(request).__name__)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, response_type)
        return answer


def placed(*answers: Any, partition: int = 1) -> Placement | None:
    connection: Any = Answers(*answers)
    found = ask_placement(connection, "t", partition, timeout_s=2)
    # First whether it moves: replicas that are shown after that are those it ended in.
    assert connection.asked in (
        ["ListPartitionReassignmentsRequest"],
        ["ListPartitionReassignmentsRequest", "MetadataRequest"],
    )
    return found


def test_a_partition_is_where_the_broker_shows_it() -> None:
    assert placed(moving(), SHOWN) == Placement(replicas=(1, 2), is_moving=False)


def test_it_moves_if_the_controller_says_so_of_it_and_of_no_other() -> None:
    assert placed(moving(1), SHOWN) == Placement(replicas=(1, 2), is_moving=True)
    assert placed(moving(0), SHOWN) == Placement(replicas=(1, 2), is_moving=False)
    assert placed(moving(1, topic="u"), SHOWN) == Placement(replicas=(1, 2), is_moving=False)


@pytest.mark.parametrize(
    "answers",
    [
        (SILENCE,),
        (moving(code=ErrorCode.not_controller), SHOWN),
        (moving(), SILENCE),
        (moving(), metadata([1], {"t": [(1, 0)]})),
    ],
)
def test_what_nobody_said_is_not_known(answers: Any) -> None:
    assert placed(*answers) is None


def test_it_is_still_only_where_nothing_is_under_way_and_the_order_is_the_same() -> None:
    still = Placement(replicas=(1, 2), is_moving=False)
    assert still.is_still_at((1, 2))
    assert still.is_still_at(None)
    assert not still.is_still_at((2, 1))
    assert not Placement(replicas=(1, 2), is_moving=True).is_still_at((1, 2))
    assert not Placement(replicas=(1, 2), is_moving=True).is_still_at(None)
