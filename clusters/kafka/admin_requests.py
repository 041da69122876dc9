"""The changes of a cluster's metadata, as requests and as what their answers prove.

A broker passes a write on to the controller, and again if it loses the connection on the way
(`ForwardingManager`). So an answer may be that of a second attempt: "exists already" can mean that
the first one created it. Only what a controller refuses whatever happened before is a certain no
(`history/errors.toml`).
"""

import base64
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from kio.schema.alter_partition_reassignments.v0.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.alter_partition_reassignments.v0.response import (
    AlterPartitionReassignmentsResponse,
)
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta

from fencepost.clusters.kafka.api_versions import NEWEST, ApiVersions
from fencepost.clusters.kafka.connection import NoAnswerError, NodeConnection
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.errors import (
    ATTEMPTS_UNBOUNDED,
    Definite,
    ErrorSystem,
    outcome_of,
    registry,
)
from fencepost.history.operation import Outcome

_TOPIC: Final = i8(2)
"""The resource type."""
_SET: Final = i8(0)
_PREFERRED: Final = i8(0)

_OF_ONE_ATTEMPT: Final = frozenset(
    entry.name
    for entry in registry(ErrorSystem.METADATA).values()
    if entry.definite is Definite.SINGLE_ATTEMPT
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The outcome of a write."""

    outcome: Outcome
    error: str | None = None
    """The error by Kafka's name; None if it is ok."""
    message: str = ""
    """The cluster's message about the error."""
    topic_id: str | None = None
    """The topic's id, of a creation that is ok."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A request that changes one thing, and how to read its answer."""

    request: Any
    response_type: type[Any]
    answered: Callable[[Any], Answered]


def ask_write(connection: NodeConnection, write: Write, *, timeout_s: float) -> Answered:
    """Ask a node to do it, once. A request that was never sent is a fail; silence is info."""
    try:
        response = connection.ask(write.request, write.response_type, timeout_s=timeout_s)
    except NoAnswerError as silence:
        outcome = Outcome.INFO if silence.sent else Outcome.FAIL
        return Answered(outcome=outcome, error=silence.reason)
    return write.answered(response)


def ask_broker(connection: NodeConnection, write: Write, *, timeout_s: float) -> Answered:
    """Ask a broker for a client, once: what it refuses before it passes anything on is a fail."""
    answer = ask_write(connection, write, timeout_s=timeout_s)
    if answer.error in _OF_ONE_ATTEMPT:
        return replace(answer, outcome=Outcome.FAIL)
    return answer


def create_topic(
    topic: TopicSpec, *, timeout_s: float, api_versions: ApiVersions = NEWEST
) -> Write:
    """Create a topic, by counts or by its assignment of broker ids."""
    request = api_versions.creation.CreateTopicsRequest(
        topics=(creatable(topic, api_versions.creation),), timeout=_timeout(timeout_s)
    )

    def answered(response: Any) -> Answered:
        (result,) = response.topics
        topic_id = getattr(result, "topic_id", None)
        text = topic_id_text(topic_id) if topic_id else None
        return answer_of(result.error_code, result.error_message, topic_id=text)

    response_type = api_versions.created.CreateTopicsResponse
    return Write(request=request, response_type=response_type, answered=answered)


def create_partitions(topic: str, count: int, *, timeout_s: float) -> Write:
    """Return a write that gives a topic `count` partitions, more than it has by now.

    An error that it already has as many is what a second attempt finds, and no certain no.
    """
    wanted = CreatePartitionsTopic(name=TopicName(topic), count=i32(count), assignments=None)
    request = CreatePartitionsRequest(
        topics=(wanted,), timeout=_timeout(timeout_s), validate_only=False
    )

    def answered(response: CreatePartitionsResponse) -> Answered:
        (result,) = response.results
        answer = answer_of(result.error_code, result.error_message)
        if result.error_code is ErrorCode.invalid_partitions:
            return replace(answer, outcome=Outcome.INFO)
        return answer

    return Write(request=request, response_type=CreatePartitionsResponse, answered=answered)


def delete_topic(name: str, *, timeout_s: float, api_versions: ApiVersions = NEWEST) -> Write:
    """Delete whatever topic has this name."""

    def answered(response: Any) -> Answered:
        (result,) = response.responses
        return answer_of(result.error_code, getattr(result, "error_message", None))

    return Write(
        request=api_versions.deletion_request(name, timeout=_timeout(timeout_s)),
        response_type=api_versions.deleted,
        answered=answered,
    )


def alter_config(topic: str, settings: Mapping[str, str]) -> Write:
    """Set these settings of a topic; the others stay."""
    configs = tuple(
        AlterableConfig(name=name, config_operation=_SET, value=value)
        for name, value in settings.items()
    )
    resource = AlterConfigsResource(resource_type=_TOPIC, resource_name=topic, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)

    def answered(response: IncrementalAlterConfigsResponse) -> Answered:
        (result,) = response.responses
        return answer_of(result.error_code, result.error_message)

    return Write(request=request, response_type=IncrementalAlterConfigsResponse, answered=answered)


def reassign(topic: str, partition: int, replicas: Sequence[int], *, timeout_s: float) -> Write:
    """Have a partition on these brokers, the preferred leader first; begun when it is ok."""
    wanted = tuple(BrokerId(i32(broker_id)) for broker_id in replicas)
    return _reassignment(topic, partition, wanted, timeout_s=timeout_s)


def cancel_reassignment(topic: str, partition: int, *, timeout_s: float) -> Write:
    """Have a partition stay, or be again, where it was; ok only where a reassignment went on."""
    return _reassignment(topic, partition, None, timeout_s=timeout_s)


def elect_preferred(topic: str, partition: int, *, timeout_s: float) -> Write:
    """Make the first of the replicas the leader; ok also where it leads already."""
    request = ElectLeadersRequest(
        election_type=_PREFERRED,
        topic_partitions=(TopicPartitions(topic=TopicName(topic), partitions=(i32(partition),)),),
        timeout=_timeout(timeout_s),
    )

    def answered(response: ElectLeadersResponse) -> Answered:
        results = [
            one for topic in response.replica_election_results for one in topic.partition_result
        ]
        for result in results:
            if result.error_code is not ErrorCode.election_not_needed:
                return answer_of(result.error_code, result.error_message)
        return answer_of(response.error_code, None)

    return Write(request=request, response_type=ElectLeadersResponse, answered=answered)


def creatable(topic: TopicSpec, creation: Any) -> Any:
    """A topic as a request to create it names it; `creation`: the version of the request."""
    explicit = topic.assignment is not None
    return creation.CreatableTopic(
        name=TopicName(topic.name),
        num_partitions=i32(-1 if explicit else topic.partitions),
        replication_factor=i16(-1 if explicit else topic.replication_factor),
        assignments=tuple(_assignments(topic.assignment or (), creation)),
        configs=tuple(
            creation.CreatableTopicConfig(name=name, value=str(value))
            for name, value in topic.settings.items()
        ),
    )


def answer_of(code: ErrorCode, message: str | None, *, topic_id: str | None = None) -> Answered:
    """Return what an error code proves of the write that it answers."""
    if code is ErrorCode.none:
        return Answered(outcome=Outcome.OK, topic_id=topic_id)
    outcome = outcome_of(code.value, attempts_max=ATTEMPTS_UNBOUNDED, system=ErrorSystem.METADATA)
    return Answered(outcome=outcome, error=error_name(code), message=message or "")


def error_name(code: ErrorCode) -> str:
    """Return the error's name in Kafka's protocol."""
    return code.name.upper()


def topic_id_text(topic_id: uuid.UUID) -> str:
    """Return the id as Kafka's tools write it: 22 characters of URL-safe base 64."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def _reassignment(
    topic: str, partition: int, replicas: tuple[BrokerId, ...] | None, *, timeout_s: float
) -> Write:
    one = ReassignablePartition(partition_index=i32(partition), replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        timeout=_timeout(timeout_s),
        topics=(ReassignableTopic(name=TopicName(topic), partitions=(one,)),),
    )

    def answered(response: AlterPartitionReassignmentsResponse) -> Answered:
        if response.error_code is not ErrorCode.none:
            return answer_of(response.error_code, response.error_message)
        ((result,),) = (of_topic.partitions for of_topic in response.responses)
        return answer_of(result.error_code, result.error_message)

    return Write(
        request=request, response_type=AlterPartitionReassignmentsResponse, answered=answered
    )


def _assignments(assignment: Collection[Sequence[int]], creation: Any) -> Iterable[Any]:
    for partition, replicas in enumerate(assignment):
        ids = tuple(BrokerId(i32(broker_id)) for broker_id in replicas)
        yield creation.CreatableReplicaAssignment(partition_index=i32(partition), broker_ids=ids)


def _timeout(timeout_s: float) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=int(timeout_s * 1000)))
