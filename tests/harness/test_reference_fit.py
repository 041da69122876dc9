"""What of a scenario for Kafka the reference cluster performs, and when it is named instead."""

from pathlib import Path

import pytest

from clusters.port import ClusterSpec
from harness import run
from harness.library import find_scenario
from harness.options import RunOptions
from harness.progress import Status
from harness.reference import fitted_to_reference, release_like
from harness.scenario import load_scenario
from history.failure import HarnessError, UsageError
from workloads.produce_poll_spec import Consume, ProducePollSpec


class Said:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    def show(self, status: Status) -> None:
        raise AssertionError(status)

    def elapsed_s(self) -> float:
        return 0.0


def _options(*rules: str) -> RunOptions:
    return RunOptions(results=Path("unused"), seed=1, command="", without_rules=rules)


def test_a_group_is_replaced_by_consumers_that_assign_and_that_is_said() -> None:
    said = Said()
    smoke = load_scenario(find_scenario("smoke"), [])
    fitted = fitted_to_reference(smoke, _options("one_vote"), said)
    assert isinstance(fitted.workload, ProducePollSpec)
    assert fitted.workload.consume is Consume.ASSIGN
    assert fitted.promises.consume == "assign"
    assert any("every consumer assigns" in line for line in said.lines)


def test_expectations_are_those_of_a_release_with_the_same_rules() -> None:
    smoke = load_scenario(
        find_scenario("smoke"), [(("cluster", "metadata_version"), "1", "--metadata-version")]
    )
    assert release_like(smoke) == "3.4.1"
    assert release_like(load_scenario(find_scenario("smoke"), [])) == "4.3.1"


def test_without_a_release_the_cluster_that_needs_none_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(_spec: ClusterSpec, _say: object) -> None:
        raise HarnessError("Kafka 4.3.1 cannot be fetched: no network")

    def refuses(_spec: ClusterSpec, _say: object) -> None:
        raise UsageError("there is no Kafka 9.9")

    smoke, progress = load_scenario(find_scenario("smoke"), []), Said()
    monkeypatch.setattr(run, "prepare", fails)
    with pytest.raises(HarnessError, match=r"no network\n\(--cluster reference needs no release"):
        run._prepared(smoke, progress)
    monkeypatch.setattr(run, "prepare", refuses)
    with pytest.raises(UsageError, match=r"^there is no Kafka 9\.9$"):
        run._prepared(smoke, progress)
