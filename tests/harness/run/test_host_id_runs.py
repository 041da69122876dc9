"""The corner cases of broker ids by host name (H06) and the double roll (Z13), as scenarios.

What each scenario expects is in its file. Without the rule that it is about, a check finds it out.
"""

from pathlib import Path

import pytest
from commands import Fencepost
from rich.console import Console

from fencepost.checkers.check import check_run
from fencepost.checkers.runner.tasks import InProcessTasks
from fencepost.checkers.verdict import Validity, Verdict
from fencepost.clusters.reference_zookeeper.system import SIMULATED_ZOOKEEPER
from fencepost.harness.progress import TerminalProgress
from fencepost.harness.run.run import record_scenario
from fencepost.harness.scenario.expectation import expectation_for, is_met
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import Scenario, load_scenario
from fencepost.harness.scenario.sources import find_scenario, library
from fencepost.history.seal import seal

NAMES = sorted(name for name in library() if name.startswith(("host-ids-", "double-roll")))
QUIET = TerminalProgress(Console(quiet=True), None)


def judged(name: str, results: Path, *rules_off: str) -> tuple[Scenario, Verdict]:
    """Run a scenario in virtual time, and check it in this process."""
    scenario = load_scenario(find_scenario(name), ())
    options = RunOptions(
        results=results,
        seed=1,
        command="",
        cluster=SIMULATED_ZOOKEEPER,
        without_rules=rules_off,
    )
    run = record_scenario(scenario, options, QUIET)
    seal(run)
    return scenario, check_run(run, session=InProcessTasks())


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_h06_z13_the_scenario_ends_as_it_expects(tmp_path: Path, name: str) -> None:
    scenario, verdict = judged(name, tmp_path)
    expected = expectation_for(scenario.expect, release=scenario.cluster.release)
    assert expected is not None
    assert is_met(expected, verdict), {
        one.check: one.reason for one in verdict.checks if one.validity is not Validity.VALID
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rule", "anomaly"),
    [
        ("host-ids-lost-disk", "host_keeps_its_id", "wrong-id"),
        ("host-ids-two-at-once", "one_missing_id_alone", "wrong-id"),
        ("host-ids-other-name", "host_mapping_written", "wrong-host-mapping"),
        ("host-ids-other-names-adopting", "host_garbage_removed", "host-garbage"),
    ],
)
def test_h06_without_its_rule_a_check_finds_it_out(
    tmp_path: Path, name: str, rule: str, anomaly: str
) -> None:
    _, verdict = judged(name, tmp_path, rule)
    invalid = {one.check for one in verdict.checks if one.validity is Validity.INVALID}
    assert anomaly in invalid


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
def test_h06_a_stolen_id_costs_the_records_of_its_owner_as_processes(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    ended = fencepost("run", "host-ids-stolen-id", "--seed", "1", "--json", results=tmp_path)
    assert ended.said["as_expected"] is True, (ended.said["validity"], ended.violated)
    assert "wrong-id" not in ended.violated
