"""What can be asked of the transactions workload, and what cannot be."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from fencepost.workloads.client_library import ClientLibrary
from fencepost.workloads.generators.intents import Intent
from fencepost.workloads.transactions_spec import TransactionsSpec

SPEC = TypeAdapter(TransactionsSpec)


def spec(**fields: Any) -> TransactionsSpec:
    return SPEC.validate_python(fields)


def test_words_of_a_scenario_become_what_they_mean() -> None:
    made = spec(client="java", client_release="3.9.2", pattern=["commit", "abort"])
    assert (made.client, made.pattern) == (ClientLibrary.JAVA, (Intent.COMMIT, Intent.ABORT))


def test_consumers_may_be_java_s_where_producers_are_not() -> None:
    made = spec(readers=["librdkafka", "java"], consumers=3, client_release="3.9.2")
    assert [made.reader(number) for number in range(3)] == [
        ClientLibrary.LIBRDKAFKA,
        ClientLibrary.JAVA,
        ClientLibrary.LIBRDKAFKA,
    ]
    assert made.needs_java
    assert not spec(consumers=3).needs_java


def test_its_clients_are_promised_what_transactions_promise() -> None:
    promises = spec().promises
    assert (promises.idempotent, promises.acks, promises.consume) == (True, "all", "assign")


def test_each_producer_has_an_id_of_its_own_unless_they_share_them() -> None:
    assert len({spec(producers=3).transactional_id(number) for number in range(3)}) == 3
    shared = spec(producers=3, transactional_ids=2)
    assert [shared.transactional_id(n) for n in range(3)] == [
        "fencepost-0",
        "fencepost-1",
        "fencepost-0",
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"client_release": "3.9.2"}, "client_release needs client: java"),
        ({"readers": ["librdkafka", "java"]}, "2 readers for 1 consumers"),
        ({"readers": []}, "readers"),
        ({"readers": ["sarama"]}, "readers"),
        ({"transactional_ids": 3}, "3 transactional_ids for 2 producers"),
        ({"delivery_timeout_ms": 2000}, "request_timeout_ms must be at most delivery_timeout_ms"),
        ({"transaction_timeout_ms": 7000}, "delivery_timeout_ms must be at most transaction_time"),
        ({"settings": {"max.block.ms": "1"}}, "is stated by the field end_timeout_ms"),
        ({"settings": {"transactional.id": "x"}}, "is set by the workload"),
        ({"pattern": ["commit", "sometimes"]}, "pattern"),
        ({"abort_share": 1.5}, "abort_share"),
        ({"client": "sarama"}, "client"),
    ],
)
def test_what_cannot_be_is_refused_in_its_own_words(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        spec(**fields)
