"""Whole runs on the reference cluster as processes: no release of Kafka, the same checks."""

import json
from pathlib import Path

import pytest
from commands import Fencepost
from sealed_runs import sealed_table

from fencepost.harness.kept.kept_cluster import kept_of
from fencepost.harness.scenario.sources import find_scenario
from fencepost.history.manifest import read_manifest

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.usefixtures("nothing_is_left_behind"),
]


REFERENCE = ("--cluster", "reference", "--seed", "6", "--alongside", "--json")


def test_smoke_is_valid_and_leaves_its_evidence(fencepost: Fencepost, tmp_path: Path) -> None:
    short = ("--time-limit", "12s", "--no-require")  # too short for each kind of fault
    ended = fencepost("run", "smoke", *short, *REFERENCE, results=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.said["validity"] == "valid"
    assert ended.violated == set()
    manifest = read_manifest(ended.run.manifest_path)
    assert manifest.versions["cluster"] == "reference"
    assert not manifest.damages
    assert "--no-require --cluster reference" in manifest.command
    # What was tested, and what was waived, comes before the verdict.
    waived = [
        "faults kill, pause (--no-require)",
        "judged lost-write, unseen, nonlinearizable-isr, stale-read-after-write (--no-require)",
    ]
    about = {"system": "kafka", "cluster": "reference", "host": "local"}
    assert list(ended.said)[:6] == ["waived", "system", "cluster", "release", "host", "seed"]
    assert (ended.said["waived"], ended.said["as_expected"]) == (waived, None)
    assert about.items() <= ended.said.items()
    written = json.loads(ended.run.verdict_path.read_text())
    assert written["waived"] == waived
    assert about.items() <= written["tested"].items()
    beats = [
        row
        for row in sealed_table(ended.run, "wire").to_pylist()
        if row["api"] == "BrokerHeartbeat"
    ]
    # Before it knows the level, a broker speaks as at the first.
    api_versions = [(row["api_key"], row["api_version"]) for row in beats]
    assert api_versions[-1] == (63, 1)
    assert set(api_versions) <= {(58, 0), (63, 1)}


@pytest.mark.parametrize("make", ["reference", "simulated"])
def test_five_controllers_do_without_two(fencepost: Fencepost, tmp_path: Path, make: str) -> None:
    where = ("--cluster", make, *REFERENCE[2:])
    ended = fencepost("run", "quorum-of-five", *where, results=tmp_path)
    assert ended.said["validity"] == "valid", ended.stderr


# At which level the race is open, and which rules close it, the simulated runs show; here, that
# processes do the same.
def test_e08_the_race_loses_data_below_level_2(fencepost: Fencepost, tmp_path: Path) -> None:
    flags = ("--metadata-version", "1", "--keep-running", *REFERENCE)
    ended = fencepost("run", "kip-903", *flags, results=tmp_path)
    assert {"lost-write", "stale-epoch-join"} <= ended.violated
    # Its cluster is up again, and the run can be judged as before, meanwhile and afterwards.
    kept = kept_of(ended.run)
    assert kept is not None, ended.stderr
    assert f"end it: fencepost stop {ended.run.root}" in ended.stderr
    again = fencepost("check", "kip-903", "--json", results=tmp_path)
    assert again.said["findings"] == ended.said["findings"]
    assert again.said["checks"] == ended.said["checks"]
    assert fencepost("stop", "kip-903", results=tmp_path).returncode == 0
    assert not ended.run.kept.exists()


def test_e07_under_an_old_version_of_alter_partition_the_hole_is_open_at_every_level(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    """As before a controller is upgraded: epochs of members have no place in version 2."""
    old = "play:\n  - lower_version: {as: old, api: AlterPartition, to_version: 2, from: brokers}\n"
    scenario = tmp_path / "old-controller.yaml"
    scenario.write_text(find_scenario("kip-903").read_text().replace("play:\n", old, 1))
    ended = fencepost("run", str(scenario), *REFERENCE, results=tmp_path)
    assert {"lost-write", "stale-epoch-join"} <= ended.violated


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("smoke", "--without-rule", "no_rule"), "no_rule: there is no such rule"),
        (("smoke", "--metadata-version", "3.4"), "metadata.versions 1, 2, 3, found '3.4'"),
        (("transactions",), "the reference cluster has no transactions"),
    ],
    ids=["rule", "level", "transactions"],
)
def test_what_it_cannot_be_is_refused_before_anything_starts(
    fencepost: Fencepost, arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    ended = fencepost("run", *arguments, *REFERENCE, results=tmp_path)
    assert ended.returncode == 254
    assert words in ended.stderr
    assert not any(tmp_path.iterdir())
