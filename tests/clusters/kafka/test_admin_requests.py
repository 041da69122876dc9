"""What an answer to a write proves: ok, a certain no, or nothing."""

import uuid
from typing import Any

import pytest
from broker_doubles import NO_TIME
from kio.schema.alter_partition_reassignments.v0.response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kio.schema.create_partitions.v3.response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse
from kio.schema.elect_leaders.v2.response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32

from fencepost.clusters.kafka.admin_requests import (
    Answered,
    Write,
    alter_config,
    ask_broker,
    ask_write,
    cancel_reassignment,
    create_partitions,
    create_topic,
    delete_topic,
    elect_preferred,
    reassign,
)
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.operation import Outcome

ID = uuid.UUID(int=1)
ID_TEXT = "AAAAAAAAAAAAAAAAAAAAAQ"
NAME = TopicName("t")


def creation(code: ErrorCode) -> tuple[Write, Any]:
    result = CreatableTopicResult(
        name=NAME, topic_id=ID, error_code=code, error_message=None, configs=()
    )
    write = create_topic(TopicSpec(name="t"), timeout_s=1)
    return write, CreateTopicsResponse(throttle_time=NO_TIME, topics=(result,))


def deletion(code: ErrorCode) -> tuple[Write, Any]:
    result = DeletableTopicResult(name=NAME, topic_id=None, error_code=code)
    write = delete_topic("t", timeout_s=1)
    return write, DeleteTopicsResponse(throttle_time=NO_TIME, responses=(result,))


def alteration(code: ErrorCode) -> tuple[Write, Any]:
    result = AlterConfigsResourceResponse(
        error_code=code, error_message=None, resource_type=i8(2), resource_name="t"
    )
    write = alter_config("t", {"retention.ms": "1"})
    return write, IncrementalAlterConfigsResponse(throttle_time=NO_TIME, responses=(result,))


def growth(code: ErrorCode) -> tuple[Write, Any]:
    result = CreatePartitionsTopicResult(name=NAME, error_code=code, error_message=None)
    response = CreatePartitionsResponse(throttle_time=NO_TIME, results=(result,))
    return create_partitions("t", 2, timeout_s=1), response


def cancellation(code: ErrorCode) -> tuple[Write, Any]:
    return cancel_reassignment("t", 0, timeout_s=1), reassignment(code)[1]


def reassignment(code: ErrorCode) -> tuple[Write, Any]:
    result = ReassignablePartitionResponse(
        partition_index=i32(0), error_code=code, error_message=None
    )
    response = AlterPartitionReassignmentsResponse(
        throttle_time=NO_TIME,
        error_code=ErrorCode.none,
        error_message=None,
        responses=(ReassignableTopicResponse(name=NAME, partitions=(result,)),),
    )
    return reassign("t", 0, [1, 2], timeout_s=1), response


def election(code: ErrorCode) -> tuple[Write, Any]:
    result = PartitionResult(partition_id=i32(0), error_code=code, error_message=None)
    response = ElectLeadersResponse(
        throttle_time=NO_TIME,
        error_code=ErrorCode.none,
        replica_election_results=(ReplicaElectionResult(topic="t", partition_result=(result,)),),
    )
    return elect_preferred("t", 0, timeout_s=1), response


KINDS = [creation, deletion, alteration, growth, reassignment, cancellation, election]


def answered(kind: Any, code: ErrorCode) -> Answered:
    write, response = kind(code)
    answer: Answered = write.answered(response)
    return answer


@pytest.mark.parametrize("kind", KINDS)
def test_no_error_is_ok_a_doubtful_one_is_info_and_a_certain_one_a_fail(kind: Any) -> None:
    assert answered(kind, ErrorCode.none).outcome is Outcome.OK
    assert answered(kind, ErrorCode.request_timed_out) == Answered(
        outcome=Outcome.INFO, error="REQUEST_TIMED_OUT", topic_id=None
    )
    assert answered(kind, ErrorCode.policy_violation).outcome is Outcome.FAIL


def test_what_was_created_has_its_id_as_the_tools_write_it() -> None:
    assert answered(creation, ErrorCode.none).topic_id == ID_TEXT


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (creation, ErrorCode.topic_already_exists),
        (deletion, ErrorCode.unknown_topic_or_partition),
        (alteration, ErrorCode.unknown_topic_or_partition),
        (growth, ErrorCode.invalid_partitions),
        (cancellation, ErrorCode.no_reassignment_in_progress),
    ],
)
def test_what_a_first_attempt_may_have_done_is_info(kind: Any, code: ErrorCode) -> None:
    """The broker asks the controller again when the connection breaks, and tells of the second."""
    assert answered(kind, code).outcome is Outcome.INFO


def test_a_reassignment_names_its_replicas_and_a_cancellation_none() -> None:
    asked = [
        write.request for write, _ in (reassignment(ErrorCode.none), cancellation(ErrorCode.none))
    ]
    replicas = [request.topics[0].partitions[0].replicas for request in asked]
    assert replicas == [(1, 2), None]


def test_a_leader_that_leads_already_is_elected() -> None:
    assert answered(election, ErrorCode.election_not_needed).outcome is Outcome.OK
    assert answered(election, ErrorCode.preferred_leader_not_available).outcome is Outcome.INFO


class Told:
    """A connection to a node that gives one answer."""

    def __init__(self, response: Any) -> None:
        self.response = response

    def ask(self, _request: Any, _type: Any, *, timeout_s: float) -> Any:
        assert timeout_s == 1
        return self.response


@pytest.mark.parametrize("asked", [creation, deletion, growth, cancellation])
def test_a_broker_that_is_not_the_controller_has_refused_and_a_controller_may_not(
    asked: Any,
) -> None:
    write, response = asked(ErrorCode.not_controller)
    told: Any = Told(response)
    refused = ask_broker(told, write, timeout_s=1)
    assert (refused.outcome, refused.error) == (Outcome.FAIL, "NOT_CONTROLLER")
    # One of KRaft that loses its office says so of what its successor may yet commit.
    assert ask_write(told, write, timeout_s=1).outcome is Outcome.INFO


def test_partitions_that_are_there_already_may_be_those_that_were_asked_for() -> None:
    write, response = growth(ErrorCode.invalid_partitions)
    told: Any = Told(response)
    assert ask_broker(told, write, timeout_s=1).outcome is Outcome.INFO
