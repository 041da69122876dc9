"""Reads of metadata by a stock client: who answered, what it showed, and what silence is called."""

from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException

from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address
from fencepost.workloads.clients import librdkafka_reads
from fencepost.workloads.clients.librdkafka_reads import LibrdkafkaReads

ONE, TWO = NodeName("broker-1"), NodeName("broker-2")
BROKERS: dict[NodeName, Address] = {ONE: ("127.0.0.1", 1), TWO: ("127.0.0.1", 2)}
TIMED_OUT = -185
TRANSPORT = -195


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> Mock:
    admin = Mock()
    monkeypatch.setattr(librdkafka_reads, "AdminClient", lambda _settings: admin)
    return admin


@pytest.fixture
def reads(admin: Mock) -> LibrdkafkaReads:
    del admin
    return LibrdkafkaReads(ONE, brokers=BROKERS, client_id="c")


def partition(number: int) -> SimpleNamespace:
    return SimpleNamespace(id=number, error=None, leader=2, isrs=[2], replicas=[2, 1])


def topic(*partitions: int, error: KafkaError | None = None) -> SimpleNamespace:
    return SimpleNamespace(error=error, partitions={one: partition(one) for one in partitions})


@pytest.mark.parametrize(("answering", "node"), [(2, TWO), (-1, ONE)])
def test_a_list_names_who_answered_and_what_it_lacks(
    admin: Mock, reads: LibrdkafkaReads, answering: int, node: NodeName
) -> None:
    """A client that has not learnt an id yet has asked the broker at which it starts."""
    electing = topic(error=KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
    admin.list_topics.return_value = SimpleNamespace(
        orig_broker_id=answering, topics={"t": topic(0), "u": electing, "of-others": topic(0)}
    )
    answered, items = reads.topics(["t", "u", "gone"], timeout_s=2)
    assert answered == node
    assert items == (
        *({"topic": "t", "partition": 0, "error": "NONE", "leader": 2, "isr": [2]} | REPLICAS,),
        {"topic": "u", "error": "LEADER_NOT_AVAILABLE"},
        {"topic": "gone", "error": "UNKNOWN_TOPIC_OR_PARTITION"},
    )


REPLICAS: dict[str, Any] = {"replicas": [2, 1]}


@pytest.mark.parametrize(
    ("code", "error"), [(TIMED_OUT, "REQUEST_TIMED_OUT"), (TRANSPORT, "NETWORK_EXCEPTION")]
)
def test_a_list_without_an_answer_claims_nothing(
    admin: Mock, reads: LibrdkafkaReads, code: int, error: str
) -> None:
    admin.list_topics.side_effect = KafkaException(KafkaError(code))
    assert reads.topics(["t"], timeout_s=2) == (ONE, ({"topic": "t", "error": error},))


def test_counters_are_read_from_the_broker_that_was_named(
    admin: Mock, reads: LibrdkafkaReads
) -> None:
    entry = SimpleNamespace(value="1000000000007")
    outcomes: Iterator[Any] = iter(
        [{"retention.ms": entry}, KafkaException(KafkaError(3)), {"retention.ms": None}]
    )

    def answer(resources: list[Any], **_options: Any) -> dict[Any, "Future[Any]"]:
        found: dict[Any, Future[Any]] = {one: Future() for one in resources}
        for future, outcome in zip(found.values(), outcomes, strict=False):
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
        return found

    admin.describe_configs.side_effect = answer
    node, items = reads.configs(["t", "gone"], timeout_s=2)
    assert node == ONE
    assert items == (
        {"topic": "t", "error": "NONE", "config_value": 7},
        {"topic": "gone", "error": "UNKNOWN_TOPIC_OR_PARTITION"},
    )
    assert admin.describe_configs.call_args.kwargs == {"request_timeout": 2, "broker": 1}
    assert reads.configs([], timeout_s=2) == (ONE, ())
