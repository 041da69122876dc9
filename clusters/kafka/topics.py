"""Topics are created for certain: asked for once or again, and then seen on every broker.

The active controller is asked itself. Through a broker it would take 30 s
(`controller.socket.timeout.ms`) where the controller that led before is paused: the broker waits
for its answer.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from kio.schema.create_topics.v7.response import CreatableTopicResult
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.response import MetadataResponse
from kio.static.primitive import i32Timedelta

from fencepost.clusters.kafka.admin_requests import creatable
from fencepost.clusters.kafka.api_versions import NEWEST, ApiVersions
from fencepost.clusters.kafka.multi_node_requests import ask
from fencepost.clusters.kafka.observation import ask_metadata, view_of
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.failure import HarnessError, UsageError

_CREATION_TIMEOUT_S: Final = 30.0
_REQUEST_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.02

# The specification cannot be met: the user has to change it.
_IMPOSSIBLE: Final = frozenset(
    {
        ErrorCode.invalid_topic_exception,
        ErrorCode.invalid_partitions,
        ErrorCode.invalid_replica_assignment,
        ErrorCode.invalid_config,
        ErrorCode.invalid_request,
        ErrorCode.policy_violation,
    }
)
# The cluster cannot for now. A replication factor is only invalid while brokers are fenced, or
# for ever: the bound tells.
_PASSING: Final = frozenset(
    {
        ErrorCode.not_controller,
        ErrorCode.request_timed_out,
        ErrorCode.invalid_replication_factor,
        ErrorCode.throttling_quota_exceeded,
        ErrorCode.network_exception,
        ErrorCode.unknown_server_error,
    }
)

Brokers = Callable[[], Mapping[NodeName, Address]]
"""The brokers that run at the time of asking, with their addresses for clients."""
Leader = Callable[[], Mapping[NodeName, Address]]
"""The active controller at the time of asking, if there is one."""


def create_topics(
    topics: Sequence[TopicSpec],
    *,
    leader: Leader,
    brokers: Brokers,
    api_versions: ApiVersions = NEWEST,
) -> None:
    """Create topics, and return when every unfenced broker shows a leader for each partition.

    Raises UsageError if Kafka finds a topic impossible, HarnessError if one exists already or is
    not seen everywhere within 30 s.
    """
    deadline = time.monotonic() + _CREATION_TIMEOUT_S
    _create(topics, leader=leader, deadline=deadline, api_versions=api_versions)
    _await_leaders(topics, brokers=brokers, deadline=deadline, api_versions=api_versions)


def _create(
    topics: Sequence[TopicSpec], *, leader: Leader, deadline: float, api_versions: ApiVersions
) -> None:
    missing = {topic.name: topic for topic in topics}
    attempted = False
    problem = "no controller answered"
    while missing:
        if time.monotonic() > deadline:
            raise HarnessError(f"topics {', '.join(missing)} could not be created: {problem}")
        for result in _attempt(missing.values(), leader=leader(), api_versions=api_versions):
            # After an attempt without an answer, an existing topic may well be ours.
            if _is_created(result, attempted=attempted):
                del missing[str(result.name)]
            else:
                problem = f"{result.name}: {result.error_message or result.error_code.name}"
        attempted = True
        if missing:
            time.sleep(_POLL_S)


def _attempt(
    topics: Iterable[TopicSpec], *, leader: Mapping[NodeName, Address], api_versions: ApiVersions
) -> tuple[CreatableTopicResult, ...]:
    request = api_versions.creation.CreateTopicsRequest(
        topics=tuple(creatable(topic, api_versions.creation) for topic in topics),
        timeout=i32Timedelta.parse(timedelta(seconds=_REQUEST_TIMEOUT_S)),
    )
    response = api_versions.created.CreateTopicsResponse
    answers = ask(leader, request, response, timeout_s=_REQUEST_TIMEOUT_S)
    return tuple(result for answer in answers.values() for result in answer.topics)


def _is_created(result: CreatableTopicResult, *, attempted: bool) -> bool:
    code = result.error_code
    if code is ErrorCode.none or (code is ErrorCode.topic_already_exists and attempted):
        return True
    if code in _PASSING:
        return False
    kind = UsageError if code in _IMPOSSIBLE else HarnessError
    raise kind(f"topic {result.name} cannot be created: {result.error_message or code.name}")


def _await_leaders(
    topics: Sequence[TopicSpec], *, brokers: Brokers, deadline: float, api_versions: ApiVersions
) -> None:
    wanted = {key for topic in topics for key in topic.keys}
    while True:
        answers = ask_metadata(brokers(), api_versions=api_versions)
        lacking = {name: wanted - _led(answer) for name, answer in answers.items()}
        if answers and not any(lacking.values()):
            return
        if time.monotonic() > deadline:
            where = "; ".join(
                f"{name} lacks {', '.join(sorted(keys))}" for name, keys in lacking.items() if keys
            )
            raise HarnessError(f"topics without a leader: {where or 'no broker answered'}")
        time.sleep(_POLL_S)


def _led(answer: MetadataResponse) -> set[str]:
    """The keys that have a leader."""
    partitions = view_of(answer, time_ns=0).partitions
    return {key for key, partition in partitions.items() if partition.leader is not None}
