from pathlib import Path

import pytest

from fencepost.history.run_directory import RunDirectory
from fencepost.workloads.client_plan import ClientPlan
from fencepost.workloads.produce_poll_spec import Consume, ProducePollSpec


def plan(spec: ProducePollSpec, *, key_count: int = 5) -> ClientPlan:
    return ClientPlan(
        spec=spec,
        bootstrap_servers="127.0.0.1:1",
        keys=tuple(f"t-{partition}" for partition in range(key_count)),
        run=RunDirectory(Path("/run")),
        origin_ns=0,
        seed=1,
    )


def test_no_two_logical_clients_of_a_run_have_one_process_number() -> None:
    clients = plan(ProducePollSpec(producers=3, consumers=4))
    of_all_kinds = [
        *(producer.common for producer in clients.producers()),
        *(consumer.common for consumer in clients.consumers()),
        *(reader.common for reader in clients.final_readers(deadline_ns=0)),
    ]
    numbers = [client.process_of(generation) for client in of_all_kinds for generation in range(9)]
    assert len(set(numbers)) == len(numbers)


def test_the_rate_is_of_all_producers_together() -> None:
    producers = plan(ProducePollSpec(producers=4, rate=1000)).producers()
    assert [producer.rate for producer in producers] == [250] * 4


@pytest.mark.parametrize(
    ("consume", "subscribed"),
    [
        (Consume.ASSIGN, [False, False, False]),
        (Consume.SUBSCRIBE, [True, True, True]),
        (Consume.BOTH, [False, True, False]),
    ],
)
def test_consumers_assign_or_subscribe_as_the_spec_says(
    consume: Consume, subscribed: list[bool]
) -> None:
    consumers = plan(ProducePollSpec(consumers=3, consume=consume)).consumers()
    assert [consumer.subscribe for consumer in consumers] == subscribed


@pytest.mark.parametrize("key_count", [1, 2, 7])
def test_each_key_is_read_back_by_one_final_reader(key_count: int) -> None:
    readers = plan(ProducePollSpec(), key_count=key_count).final_readers(deadline_ns=0)
    assert sorted(key for reader in readers for key in reader.share) == list(range(key_count))
    assert all(reader.share for reader in readers)


def test_large_values_bound_a_producer_by_bytes() -> None:
    (producer,) = plan(ProducePollSpec(producers=1, value_bytes=900_000)).producers()
    assert 1 <= producer.batch_max < 10
    assert producer.batch_max < producer.in_flight_max < 100
    (producer,) = plan(ProducePollSpec(producers=1)).producers()
    assert (producer.batch_max, producer.in_flight_max) == (1000, 20_000)
