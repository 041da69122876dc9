from pathlib import Path
from typing import Any

import pytest

from fencepost.workloads.clients.config import (
    ClientConfig,
    ConsumerConfig,
    FinalReaderConfig,
    ProducerConfig,
    read_config,
    write_config,
)
from fencepost.workloads.clients.places import key_indices, places_of

COMMON = ClientConfig(
    client="producer-0",
    process=3,
    process_stride=10,
    raw="/run/raw",
    origin_ns=123,
    keys=("a-0", "b-c-11"),
    settings={"acks": "all"},
    seed=7,
)
PRODUCER = ProducerConfig(
    common=COMMON, rate=12.5, value_bytes=8, batch_max=10, in_flight_max=20, flush_ms=30
)
CONSUMER = ConsumerConfig(common=COMMON, subscribe=True, reassign_s=1.5)
READER = FinalReaderConfig(common=COMMON, share=(0, 1), deadline_ns=60, result="/run/result.json")


@pytest.mark.parametrize("config", [PRODUCER, CONSUMER, READER])
def test_a_client_is_told_exactly_what_was_written(
    config: ProducerConfig | ConsumerConfig | FinalReaderConfig, tmp_path: Path
) -> None:
    write_config(tmp_path / "config.json", config)
    kind: type[Any] = type(config)
    assert read_config(tmp_path / "config.json", kind) == config


def test_logical_clients_of_one_process_have_numbers_and_names_of_their_own() -> None:
    assert [COMMON.process_of(generation) for generation in range(3)] == [3, 13, 23]
    assert [COMMON.name(generation) for generation in range(2)] == ["producer-0", "producer-0.1"]


def test_a_key_names_topic_and_partition_also_where_the_topic_has_hyphens() -> None:
    assert places_of(COMMON.keys) == (("a", 0), ("b-c", 11))
    assert key_indices(COMMON.keys) == {("a", 0): 0, ("b-c", 11): 1}
