"""Reads of one broker as rows, and of a partition's place: what it showed, or did not know."""

import threading
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from broker_doubles import NO_TIME, fake_broker, metadata
from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kio.schema.describe_quorum.v0.response import (
    DescribeQuorumResponse,
    PartitionData,
    ReplicaState,
    TopicData,
)
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0.response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kio.schema.metadata.v12.response import MetadataResponse, MetadataResponseTopic
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64
from sealed_runs import sealed_table

from fencepost.clusters.kafka.connection import NoAnswerError, NodeConnection
from fencepost.clusters.kafka.describing import (
    DescribeRecorder,
    Placement,
    ask_overview,
    ask_placement,
    config_items,
    metadata_items,
)
from fencepost.clusters.kafka.metadata_watch import MetadataWatch, quorum_offsets
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address
from fencepost.history.clock import Clock
from fencepost.history.counter import COUNTER_SETTING, counter_value
from fencepost.history.failure import HarnessError
from fencepost.history.journal import ReadJournal
from fencepost.history.run_directory import RunDirectory

ONE = NodeName("broker-1")


def shown() -> MetadataResponse:
    """Two partitions of `t`, and `u`, which the broker does not know."""
    answer = metadata([1], {"t": [(1, 5), (-1, 6)]})
    known = replace(answer.topics[0], topic_id=uuid.UUID(int=1))
    unknown = MetadataResponseTopic(
        error_code=ErrorCode.unknown_topic_or_partition,
        name=TopicName("u"),
        topic_id=None,
        partitions=(),
    )
    return replace(answer, topics=(known, unknown))


def configs(value: str | None, code: ErrorCode = ErrorCode.none) -> DescribeConfigsResponse:
    config = DescribeConfigsResourceResult(
        name=COUNTER_SETTING,
        value=value,
        read_only=False,
        is_sensitive=False,
        synonyms=(),
        documentation=None,
    )
    result = DescribeConfigsResult(
        error_code=code,
        error_message=None,
        resource_type=i8(2),
        resource_name="t",
        configs=(config,) if code is ErrorCode.none else (),
    )
    return DescribeConfigsResponse(throttle_time=NO_TIME, results=(result,))


def test_a_row_a_partition_and_one_for_a_topic_that_is_unknown() -> None:
    first, second, unknown = metadata_items(shown())
    assert first == {
        "topic": "t",
        "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "partition": 0,
        "error": "NONE",
        "leader": 1,
        "leader_epoch": 5,
        "isr": [2],
        "replicas": [1, 2],
    }
    assert (second["partition"], second["leader"], second["leader_epoch"]) == (1, -1, 6)
    assert unknown == {"topic": "u", "error": "UNKNOWN_TOPIC_OR_PARTITION"}


def test_a_setting_carries_a_number_and_what_it_was_before_is_none_of_ours() -> None:
    value = counter_value(7)
    assert list(config_items(configs(value))) == [
        {"topic": "t", "error": "NONE", "config_value": 7}
    ]
    for other in ("604800000", "-1", None):
        unset = {"topic": "t", "error": "NONE", "config_value": None}
        assert list(config_items(configs(other))) == [unset]
    missing = configs(None, ErrorCode.unknown_topic_or_partition)
    assert list(config_items(missing)) == [{"topic": "t", "error": "UNKNOWN_TOPIC_OR_PARTITION"}]


def recorded(tmp_path: Path, answer: Any | None, names: Sequence[str]) -> list[dict[str, Any]]:
    run = RunDirectory(tmp_path)
    run.raw.mkdir()
    with (
        ReadJournal(run.raw, Clock(0)) as journal,
        fake_broker(lambda _: answer) as broker,
        NodeConnection(broker.address, client_id="me") as connection,
    ):
        recorder = DescribeRecorder(journal, process=4)
        recorder.topics(ONE, connection, names, timeout_s=60.0 if answer else 0.1)
    rows: list[dict[str, Any]] = sealed_table(run, "describes").to_pylist()
    return rows


def test_a_read_is_recorded_with_who_asked_whom(tmp_path: Path) -> None:
    rows = recorded(tmp_path, shown(), ["t", "u"])
    assert [(row["topic"], row["partition"]) for row in rows] == [("t", 0), ("t", 1), ("u", None)]
    assert {(row["read"], row["process"], row["node"]) for row in rows} == {(0, 4, "broker-1")}
    assert all(row["call_ns"] < row["return_ns"] for row in rows)


def test_a_read_without_an_answer_is_recorded_and_claims_nothing(tmp_path: Path) -> None:
    rows = recorded(tmp_path, None, ["t", "u"])
    assert [(row["topic"], row["error"]) for row in rows] == [
        ("t", "REQUEST_TIMED_OUT"),
        ("u", "REQUEST_TIMED_OUT"),
    ]
    assert {row["topic_id"] for row in rows} == {None}


def quorum(leader_epoch: int, ends: dict[int, int], error: ErrorCode) -> DescribeQuorumResponse:
    states = tuple(
        ReplicaState(replica_id=BrokerId(i32(node)), log_end_offset=i64(end))
        for node, end in ends.items()
    )
    partition = PartitionData(
        partition_index=i32(0),
        error_code=error,
        leader_id=BrokerId(i32(1001)),
        leader_epoch=i32(leader_epoch),
        high_watermark=i64(0),
        current_voters=states[:1],
        observers=states[1:],
    )
    topic = TopicData(topic_name=TopicName("__cluster_metadata"), partitions=(partition,))
    return DescribeQuorumResponse(error_code=ErrorCode.none, topics=(topic,))


def test_the_latest_leader_says_what_each_replica_has() -> None:
    answers = [
        quorum(4, {1001: 90, 1: 70}, ErrorCode.none),
        quorum(5, {1002: 81, 1: 80, 2: -1}, ErrorCode.none),
        quorum(6, {1003: 99}, ErrorCode.not_leader_or_follower),
    ]
    assert list(quorum_offsets(answers)) == [(1002, 80), (1, 79)]
    assert list(quorum_offsets([])) == []


def test_a_watch_whose_thread_ended_early_says_so_at_its_end(tmp_path: Path) -> None:
    asked = threading.Event()

    def controllers() -> dict[NodeName, Address]:
        asked.set()
        raise StopIteration("no node has the id 7")

    watch = MetadataWatch(
        tmp_path,
        clock=Clock.start(),
        topics=(),
        brokers={},
        controllers=controllers,
        node_of=lambda _: ONE,
    )
    with pytest.raises(HarnessError, match=r"ended early: .*no node has the id 7"), watch:
        assert asked.wait(10)


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
    found, error = ask_placement(connection, "t", partition, timeout_s=2)
    # First whether it moves: replicas that are shown after that are those it ended in.
    assert connection.asked in (
        ["ListPartitionReassignmentsRequest"],
        ["ListPartitionReassignmentsRequest", "MetadataRequest"],
    )
    assert (found is None) == (error is not None)
    return found


def test_an_overview_names_all_topics_and_where_clients_find_the_controller() -> None:
    answer = replace(shown(), controller_id=BrokerId(i32(1)))
    (one,) = answer.brokers
    connection: Any = Answers(answer, replace(answer, controller_id=BrokerId(i32(-1))))
    overview = ask_overview(connection, timeout_s=2)
    assert overview.topics == ("t", "u")
    assert overview.controller == (str(one.host), int(one.port))
    assert ask_overview(connection, timeout_s=2).controller is None


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
