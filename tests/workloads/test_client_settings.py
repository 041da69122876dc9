import pytest
from confluent_kafka import Consumer, Producer

from fencepost.workloads.librdkafka import (
    consumer_settings,
    final_reader_settings,
    producer_settings,
    refused_setting,
)


def of_producer(**changes: object) -> dict[str, str]:
    arguments = {
        "bootstrap_servers": "127.0.0.1:1",
        "acks": "all",
        "idempotence": True,
        "linger_ms": 5,
        "message_timeout_ms": 15_000,
        "in_flight_max": 1000,
        "settings": {},
    }
    return producer_settings(**{**arguments, **changes})  # type: ignore[arg-type]  # by name


def of_consumer(settings: dict[str, str]) -> dict[str, str]:
    return consumer_settings(
        bootstrap_servers="127.0.0.1:1", isolation="read_uncommitted", settings=settings
    )


@pytest.mark.parametrize("idempotence", [True, False])
def test_librdkafka_knows_every_setting_of_a_producer(*, idempotence: bool) -> None:
    Producer({**of_producer(idempotence=idempotence), "log_level": "0"}).purge()


@pytest.mark.parametrize("settings", [{}, {"group.protocol": "consumer"}])
def test_librdkafka_knows_every_setting_of_a_consumer(settings: dict[str, str]) -> None:
    Consumer({**of_consumer(settings), "group.id": "g", "log_level": "0"}).close()


def test_librdkafka_knows_every_setting_of_a_final_reader() -> None:
    settings = final_reader_settings(bootstrap_servers="127.0.0.1:1", settings={})
    Consumer({**settings, "group.id": "g", "log_level": "0"}).close()


def test_a_users_setting_wins_over_a_default() -> None:
    assert of_producer(settings={"socket.timeout.ms": "9000"})["socket.timeout.ms"] == "9000"
    assert of_consumer({"check.crcs": "false"})["check.crcs"] == "false"


@pytest.mark.parametrize(
    "setting", ["acks", "enable.idempotence", "bootstrap.servers", "enable.auto.commit"]
)
def test_a_setting_that_the_recording_rests_on_is_refused_by_name(setting: str) -> None:
    refusal = refused_setting({"batch.size": "1000", setting: "1"})
    assert refusal is not None
    assert setting in refusal


def test_other_settings_are_the_users_own() -> None:
    assert refused_setting({"compression.type": "zstd", "batch.size": "1000"}) is None
