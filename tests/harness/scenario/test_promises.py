"""What clients are promised on nodes of our own."""

from dataclasses import replace
from typing import Any

import pytest

from fencepost.harness.prepare.reference import promises_of
from fencepost.harness.scenario.scenario import Scenario, load_scenario
from fencepost.harness.scenario.sources import find_scenario
from fencepost.workloads.metadata_spec import MetadataSpec


def scenario(level: str | None) -> Scenario:
    found = load_scenario(find_scenario("smoke"), [])
    return replace(found, cluster=replace(found.cluster, metadata_version=level))


@pytest.mark.parametrize(("level", "age_max_ms"), [("1", None), ("2", None), ("3", 0), (None, 0)])
def test_metadata_is_never_old_where_brokers_hide_what_not_all_have(
    level: str | None, age_max_ms: float | None
) -> None:
    promised = promises_of(scenario(level))
    assert promised.metadata_age_max_ms == age_max_ms
    assert promised.leases
    assert replace(promised, leases=False, metadata_age_max_ms=None) == scenario(level).promises


def test_clients_go_on_until_there_are_settled_reads_where_these_are_held_to_an_age() -> None:
    smoke = scenario(None)
    metadata = smoke.beside_of(MetadataSpec)
    assert metadata is not None
    assert metadata.settled_age_max_ms is not None
    assert smoke.promises.metadata_settled_age_max_ms == metadata.settled_age_max_ms
    assert smoke.promises.metadata_settle_ms == metadata.settle_ms
    assert smoke.clients_after_healing_s > metadata.settle_ms / 1000
    figures = replace(smoke, beside=(replace(metadata, settled_age_max_ms=None),))
    assert figures.clients_after_healing_s == replace(smoke, beside=()).clients_after_healing_s
    assert figures.clients_after_healing_s < metadata.settle_ms / 1000
    assert not replace(smoke, beside=()).promises.metadata_age_is_bounded


@pytest.mark.parametrize("name", ["smoke", "storm", "all-faults", "metadata", "visibility"])
def test_a_nightly_holds_reads_of_metadata_to_an_age(name: str) -> None:
    assert load_scenario(find_scenario(name), []).promises.metadata_age_is_bounded


def asked(name: str, **changes: object) -> set[str]:
    found = load_scenario(find_scenario(name), [])
    beside = tuple(replace(one, **changes) for one in found.beside)
    return set(replace(found, beside=beside).asked_operations)


TOPICS = {"create-topic", "delete-topic", "alter-config", "create-partitions"}


def test_a_scenario_says_which_kinds_of_operation_its_clients_set_out_to_do() -> None:
    assert asked("smoke") == TOPICS
    assert asked("smoke", grows=0, alters=0) == {"create-topic", "delete-topic"}
    assert asked("smoke", alters=0, topics=6) == TOPICS  # a topic that stays is altered
    assert asked("membership") == {"reassign", "cancel-reassignment"}
    assert asked("membership", cancel_share=0.0) == {"reassign"}
    assert asked("transactions") == {"commit", "abort", "fetch-offsets", "send-offsets"}
    assert not asked("kip-903")


def test_the_slower_clients_are_the_later_they_have_done_everything() -> None:
    smoke = scenario(None)
    (metadata,) = smoke.beside
    slow = replace(smoke, beside=(replace(metadata, write_rate=0.5),))
    for f, due_s in smoke.asked_operations.items():
        assert due_s is not None
        assert due_s < 20
        later_s = slow.asked_operations[f]
        assert later_s is not None
        assert later_s > 60


def test_a_trial_owes_no_kind_of_operation() -> None:
    trial: Any = object()
    assert not replace(scenario(None), trial=trial).asked_operations
