"""A topic is created once, whatever happens to the first attempt, and then seen on every broker."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from broker_doubles import NO_TIME, fake_broker, metadata
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName

from fencepost.clusters.kafka import topics
from fencepost.clusters.kafka.topics import create_topics
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.failure import HarnessError, UsageError

TOPIC = TopicSpec(name="t", partitions=2)
CREATE, METADATA = 19, 3

Script = list[Any]


def created(code: ErrorCode = ErrorCode.none, message: str | None = None) -> CreateTopicsResponse:
    result = CreatableTopicResult(
        name=TopicName("t"), topic_id=None, error_code=code, error_message=message, configs=()
    )
    return CreateTopicsResponse(throttle_time=NO_TIME, topics=(result,))


LED = metadata([1], {"t": [(1, 0), (1, 0)]})
HALF_LED = metadata([1], {"t": [(1, 0), (-1, 0)]})


@contextmanager
def brokers(*scripts: Mapping[int, Script]) -> Iterator[Callable[[], dict[NodeName, Address]]]:
    """Brokers that answer each API's requests in the order of their script; the last repeats."""
    with ExitStack() as stack:
        addresses = {}
        for number, script in enumerate(scripts, start=1):
            left = {api: iter(answers) for api, answers in script.items()}
            last = {api: answers[-1] for api, answers in script.items()}
            broker = stack.enter_context(
                fake_broker(
                    lambda header, left=left, last=last: next(  # type: ignore[misc]
                        left[header.request_api_key], last[header.request_api_key]
                    )
                )
            )
            addresses[NodeName(f"broker-{number}")] = broker.address
        yield lambda: addresses


def first(addresses: Mapping[NodeName, Address]) -> dict[NodeName, Address]:
    """The first of these answers as the controller, too."""
    name = next(iter(addresses))
    return {name: addresses[name]}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "_CREATION_TIMEOUT_S", 0.5)
    monkeypatch.setattr(topics, "_REQUEST_TIMEOUT_S", 0.1)


def test_it_returns_once_every_broker_shows_every_leader() -> None:
    lagging: dict[int, Script] = {METADATA: [metadata([1]), HALF_LED, LED]}
    with brokers({CREATE: [created()], METADATA: [LED]}, lagging) as running:
        create_topics([TOPIC], leader=lambda: first(running()), brokers=running)


@pytest.mark.parametrize(
    "code",
    [ErrorCode.not_controller, ErrorCode.request_timed_out, ErrorCode.invalid_replication_factor],
)
def test_what_passes_is_tried_again(code: ErrorCode) -> None:
    script: dict[int, Script] = {CREATE: [created(code), created()], METADATA: [LED]}
    with brokers(script) as running:
        create_topics([TOPIC], leader=running, brokers=running)


@pytest.mark.usefixtures("impatient")
def test_a_topic_created_by_an_attempt_without_an_answer_counts_as_created() -> None:
    script: dict[int, Script] = {
        CREATE: [None, created(ErrorCode.topic_already_exists)],
        METADATA: [LED],
    }
    with brokers(script) as running:
        create_topics([TOPIC], leader=running, brokers=running)


def test_a_topic_that_was_there_before_is_an_error() -> None:
    message = "Topic 't' already exists."
    script = {CREATE: [created(ErrorCode.topic_already_exists, message)]}
    with brokers(script) as running, pytest.raises(HarnessError) as raised:
        create_topics([TOPIC], leader=running, brokers=running)
    assert str(raised.value) == f"topic t cannot be created: {message}"


def test_an_impossible_topic_is_the_users_error_in_kafkas_words() -> None:
    message = "Unknown topic config name: min.isr"
    script = {CREATE: [created(ErrorCode.invalid_config, message)]}
    with brokers(script) as running, pytest.raises(UsageError, match=message):
        create_topics([TOPIC], leader=running, brokers=running)


@pytest.mark.usefixtures("impatient")
def test_a_topic_that_is_never_created_says_why() -> None:
    code, message = ErrorCode.invalid_replication_factor, "3 replicas, 1 broker is unfenced"
    script = {CREATE: [created(code, message)]}
    with brokers(script) as running, pytest.raises(HarnessError) as raised:
        create_topics([TOPIC], leader=running, brokers=running)
    assert str(raised.value) == f"topics t could not be created: t: {message}"


@pytest.mark.usefixtures("impatient")
def test_a_leader_that_is_never_seen_says_where_and_which() -> None:
    with (
        brokers({CREATE: [created()], METADATA: [LED]}, {METADATA: [HALF_LED]}) as running,
        pytest.raises(HarnessError, match="topics without a leader: broker-2 lacks t-1"),
    ):
        create_topics([TOPIC], leader=lambda: first(running()), brokers=running)


@pytest.mark.usefixtures("impatient")
def test_without_any_controller_it_ends_at_the_bound() -> None:
    with pytest.raises(HarnessError, match="topics t could not be created: no controller answered"):
        create_topics([TOPIC], leader=dict, brokers=dict)
