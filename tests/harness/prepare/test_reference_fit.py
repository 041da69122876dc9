"""What of a scenario for Kafka the reference cluster performs, and when it is named instead."""

from pathlib import Path
from typing import Any

import pytest

from fencepost.clusters.kafka_port import of_kafka
from fencepost.clusters.provision.releases import UnfetchedError
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.specs import release_like
from fencepost.clusters.systems import KAFKA, REFERENCE
from fencepost.harness.prepare import releases as releases_module
from fencepost.harness.prepare.reference import (
    fitted_to_reference,
    refuse_unsimulated_clients,
    refuse_what_is_kafkas,
    rules_without,
)
from fencepost.harness.prepare.releases import available_cluster, default_cluster, way_out
from fencepost.harness.progress import Status
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import load_scenario
from fencepost.harness.scenario.sources import find_scenario
from fencepost.history.failure import UsageError
from fencepost.workloads.produce_poll_spec import Consume, ProducePollSpec


class Said:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    def live(self, line: str) -> None:
        """Forget it."""

    def show(self, status: Status) -> None:
        raise AssertionError(status)

    def elapsed_s(self) -> float:
        return 0.0


def _options(*rules: str) -> RunOptions:
    return RunOptions(results=Path("unused"), seed=1, command="", without_rules=rules)


def test_a_group_is_replaced_by_consumers_that_assign_and_that_is_said() -> None:
    said = Said()
    smoke = load_scenario(find_scenario("smoke"), [])
    fitted = fitted_to_reference(smoke, _options("one_vote"), said.say)
    assert isinstance(fitted.workload, ProducePollSpec)
    assert fitted.workload.consume is Consume.ASSIGN
    assert fitted.promises.consume == "assign"
    assert any("every consumer assigns" in line for line in said.lines)


def test_what_only_kafka_has_is_refused_with_its_place(tmp_path: Path) -> None:
    named = load_scenario(find_scenario("smoke"), [(("cluster", "kafka"), "3.9.2", "--kafka")])
    with pytest.raises(
        UsageError, match=r"^--kafka: cluster\.kafka: the reference cluster runs no release"
    ):
        refuse_what_is_kafkas(named)
    path = tmp_path / "dynamic.yaml"
    text = (
        find_scenario("smoke")
        .read_text()
        .replace("brokers: 3\n", "brokers: 3\n  quorum: dynamic\n", 1)
    )
    path.write_text(text)
    line = 1 + text.splitlines().index("  quorum: dynamic")
    with pytest.raises(UsageError, match=rf":{line}: cluster\.quorum: .* static quorums only$"):
        refuse_what_is_kafkas(load_scenario(path, []))


def test_a_stock_client_does_not_read_in_virtual_time(tmp_path: Path) -> None:
    text = find_scenario("visibility").read_text()
    path = tmp_path / "stock.yaml"
    path.write_text(text.replace("kind: metadata", "kind: metadata\n    reader: librdkafka"))
    with pytest.raises(UsageError, match="librdkafka cannot be a reader in virtual time"):
        refuse_unsimulated_clients(load_scenario(path, []))
    refuse_unsimulated_clients(load_scenario(find_scenario("visibility"), []))


def test_a_rule_that_is_not_there_is_refused_with_the_nearest_one() -> None:
    assert not rules_without(["one_vote"], Rules()).one_vote
    with pytest.raises(
        UsageError, match=r"one_voot: there is no such rule; did you mean 'one_vote'"
    ):
        rules_without(["one_voot"], Rules())


def _unfetched(*_: object, **__: object) -> None:
    raise UnfetchedError("Kafka 4.3.1 is not in the cache, and there is no network")


def test_where_no_release_can_be_fetched_the_reference_cluster_takes_its_place_if_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    smoke = load_scenario(find_scenario("smoke"), [])
    monkeypatch.setattr(releases_module, "is_here", lambda _: False)
    monkeypatch.setattr(releases_module, "fetch_release", lambda *_, **__: None)
    assert available_cluster(smoke, said.append) is KAFKA
    assert said == []
    monkeypatch.setattr(releases_module, "fetch_release", _unfetched)
    assert available_cluster(smoke, said.append) is REFERENCE
    (line,) = said
    assert "there is no network: the run is on the reference cluster instead" in line
    # A gate that nobody asked to fall back tests the release, or fails.
    assert default_cluster(smoke) is KAFKA


def test_a_release_that_cannot_be_fetched_is_an_error_with_the_ways_out() -> None:
    smoke = load_scenario(find_scenario("smoke"), [])
    error = UnfetchedError("Kafka 4.3.1 is not in the cache, and there is no network")
    said = str(way_out(smoke, error))
    assert said.startswith(f"{error}; --cluster reference runs this scenario on nodes of our own")
    assert "--cluster auto" in said
    # What nodes of our own cannot do is not offered.
    assert way_out(load_scenario(find_scenario("transactions"), []), error) is error


def test_a_plan_says_that_a_release_is_to_be_fetched_and_fetches_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    smoke = load_scenario(find_scenario("smoke"), [])
    monkeypatch.setattr(releases_module, "is_here", lambda _: False)
    monkeypatch.delattr(releases_module, "fetch_release")
    assert available_cluster(smoke, said.append, fetch=False) is KAFKA
    assert said == ["Kafka 4.3.1 is to be fetched first; if it cannot be: --cluster reference"]


@pytest.mark.parametrize(
    ("scenario", "overrides"),
    [
        ("transactions", []),
        ("smoke", [(("cluster", "kafka"), "3.9.2", "--kafka")]),
        ("kip-903-unfinalised", []),
        ("reformatted-controller-dynamic", []),
    ],
    ids=["transactions", "a-release", "a-level-of-kafka", "a-dynamic-quorum"],
)
def test_what_the_reference_cluster_cannot_do_stays_kafkas(
    scenario: str, overrides: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases_module, "fetch_release", _unfetched)
    loaded = load_scenario(find_scenario(scenario), overrides)
    assert available_cluster(loaded, pytest.fail) is KAFKA


def test_expectations_are_those_of_a_release_with_the_same_rules() -> None:
    smoke = load_scenario(
        find_scenario("smoke"), [(("cluster", "metadata_version"), "1", "--metadata-version")]
    )
    assert release_like(of_kafka(smoke.cluster)) == "3.4.1"
    assert release_like(of_kafka(load_scenario(find_scenario("smoke"), []).cluster)) == "4.3.1"
