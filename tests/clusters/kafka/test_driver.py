"""The driver of Kafka's clusters names the place or the way out of what cannot be had."""

import pytest

from fencepost.clusters.kafka import driver
from fencepost.clusters.kafka.driver import DRIVER
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.system import Wanted
from fencepost.history.failure import HarnessError, SpecError, UsageError


def failing(error: Exception) -> object:
    def fails(*_: object, **__: object) -> None:
        raise error

    return fails


def said(words: str) -> None:
    pytest.fail(words)


def test_without_a_release_the_cluster_that_needs_none_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = HarnessError("Kafka 4.3.1 cannot be fetched: no network")
    monkeypatch.setattr(driver, "prepare", failing(error))
    with pytest.raises(HarnessError, match=r"no network\n\(--cluster reference needs no release"):
        DRIVER.prepare(KafkaSpec(), Wanted(), said)
    monkeypatch.setattr(driver, "prepare", failing(UsageError("there is no Kafka 9.9")))
    with pytest.raises(UsageError, match=r"^there is no Kafka 9\.9$"):
        DRIVER.prepare(KafkaSpec(), Wanted(), said)


def test_a_release_that_a_step_names_and_there_is_not_has_the_steps_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(driver, "prepare", lambda _spec, _say: None)
    monkeypatch.setattr(driver, "with_release", failing(UsageError("there is no Kafka 9.9")))
    with pytest.raises(SpecError, match=r"there is no Kafka 9\.9") as refused:
        DRIVER.prepare(KafkaSpec(), Wanted(releases=[(3, "9.9")]), said)
    assert refused.value.path == ("play", 3)
