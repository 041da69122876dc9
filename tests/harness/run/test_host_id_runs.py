"""The corner cases of broker ids by host name (H06) and the double roll (Z13), as scenarios.

What each scenario expects is in its file. Without the rule that it is about, a check finds it out.
"""

from pathlib import Path

import pytest
from commands import Fencepost

from harness.scenario.sources import library

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NAMES = sorted(name for name in library() if name.startswith("host-ids-"))
IN_VIRTUAL_TIME = ("--cluster", "simulated-zookeeper", "--seed", "1", "--alongside", "--json")


@pytest.mark.parametrize("name", [*NAMES, "double-roll", "double-roll-back"])
def test_h06_z13_the_scenario_ends_as_it_expects(
    fencepost: Fencepost, tmp_path: Path, name: str
) -> None:
    ended = fencepost("run", name, *IN_VIRTUAL_TIME, results=tmp_path)
    assert ended.said["as_expected"] is True, (ended.said["validity"], ended.violated)


@pytest.mark.parametrize(
    ("name", "rule", "anomaly"),
    [
        ("host-ids-lost-disk", "host_keeps_its_id", "wrong-id"),
        ("host-ids-two-at-once", "one_missing_id_alone", "wrong-id"),
        ("host-ids-other-name", "host_mapping_written", "wrong-host-mapping"),
        ("host-ids-other-names-adopting", "host_garbage_removed", "host-garbage"),
        ("double-roll", "new_behaviour_gated", "ungated-request"),
    ],
)
def test_h06_z13_without_its_rule_a_check_finds_it_out(
    fencepost: Fencepost, tmp_path: Path, name: str, rule: str, anomaly: str
) -> None:
    flags = (*IN_VIRTUAL_TIME, "--without-rule", rule)
    ended = fencepost("run", name, *flags, results=tmp_path)
    assert anomaly in ended.violated


@pytest.mark.kafka
def test_h06_a_stolen_id_costs_the_records_of_its_owner_as_processes(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    ended = fencepost("run", "host-ids-stolen-id", "--seed", "1", "--json", results=tmp_path)
    assert ended.said["as_expected"] is True, (ended.said["validity"], ended.violated)
    assert "wrong-id" not in ended.violated
