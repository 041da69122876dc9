"""Of several answers the most current one is taken, and a leader is who says so."""

from collections.abc import Callable

import pytest
from broker_doubles import fake_broker, metadata
from kio.schema.describe_quorum.v0.response import (
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32, i64

from fencepost.clusters.kafka.observation import (
    best_of,
    quorum_high_watermark,
    quorum_leader,
    view_of,
)
from fencepost.clusters.kafka_port import PartitionView
from fencepost.clusters.port import NodeName

ONE, TWO = NodeName("controller-1"), NodeName("controller-2")


def test_a_view_shows_leaders_isr_and_replicas_by_key() -> None:
    best = metadata([1, 2], {"t": [(1, 0), (-1, 3)]})
    # Broker 2 has just restarted: it answers, and does not list itself yet.
    view = view_of(best, answers={1: best, 2: metadata([1], {})}, time_ns=5)
    assert view.time_ns == 5
    assert view.brokers == {1, 2}
    assert view.serving == {1}
    assert view.partitions == {
        "t-0": PartitionView(leader=1, isr=(2,), replicas=(1, 2)),
        "t-1": PartitionView(leader=None, isr=(2,), replicas=(1, 2)),
    }


@pytest.mark.parametrize(
    ("answers", "best"),
    [
        # Broker 3 knows that it is fenced; it may lag behind.
        ({3: metadata([1, 2], {"t": [(1, 9)]}), 1: metadata([1, 2], {"t": [(1, 8)]})}, 1),
        # Broker 1 is cut off and does not know that it lost the leadership.
        ({1: metadata([1, 2, 3], {"t": [(1, 4)]}), 2: metadata([2, 3], {"t": [(2, 5)]})}, 2),
        # No leader epoch tells; two of three agree.
        ({1: metadata([1, 2, 3]), 2: metadata([2, 3]), 3: metadata([2, 3])}, 2),
        # All fenced: still an answer.
        ({2: metadata(), 1: metadata()}, 1),
    ],
    ids=["fenced", "cut off", "outvoted", "all fenced"],
)
def test_the_most_current_answer_is_taken(answers: dict[int, MetadataResponse], best: int) -> None:
    assert best_of(answers) is answers[best]


def quorum(
    leader: int,
    leader_epoch: int,
    error: ErrorCode = ErrorCode.none,
    *,
    high_watermark: int = 0,
) -> Callable[[object], DescribeQuorumResponse]:
    answer = DescribeQuorumResponse(
        error_code=ErrorCode.none,
        topics=(
            TopicData(
                topic_name=TopicName("__cluster_metadata"),
                partitions=(
                    PartitionData(
                        partition_index=i32(0),
                        error_code=error,
                        leader_id=BrokerId(i32(leader)),
                        leader_epoch=i32(leader_epoch),
                        high_watermark=i64(high_watermark),
                        current_voters=(),
                        observers=(),
                    ),
                ),
            ),
        ),
    )
    return lambda _: answer


def test_the_leader_is_the_controller_that_describes_the_quorum() -> None:
    refuses = quorum(1002, 7, error=ErrorCode.not_leader_or_follower)
    with fake_broker(refuses) as one, fake_broker(quorum(1002, 7)) as two:
        assert quorum_leader({ONE: one.address, TWO: two.address}) == 1002
        assert quorum_leader({ONE: one.address}) is None


def test_of_two_leaders_the_one_with_the_later_epoch_counts() -> None:
    with fake_broker(quorum(1001, 8)) as one, fake_broker(quorum(1002, 7)) as two:
        assert quorum_leader({ONE: one.address, TWO: two.address}) == 1001


def test_the_latest_leader_says_how_far_the_metadata_log_is_committed() -> None:
    old, new = quorum(1002, 7, high_watermark=90), quorum(1001, 8, high_watermark=3)
    with fake_broker(old) as one, fake_broker(new) as two:
        assert quorum_high_watermark({ONE: one.address, TWO: two.address}) == 3


def test_without_any_controller_there_is_no_leader() -> None:
    assert quorum_leader({}) is None
    assert quorum_high_watermark({}) == -1
