"""Whole runs on the reference cluster as processes: no release of Kafka, the same checks."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusters.hosts.process import orphans
from harness.cli.main import main
from harness.library import find_scenario
from history.manifest import read_manifest
from history.reader import load_table
from history.run_directory import RunDirectory

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def run(*arguments: str, results: Path) -> "subprocess.CompletedProcess[str]":
    """As a user starts it."""
    return subprocess.run(
        [sys.executable, "-m", "harness.cli", "run", *arguments, "--cluster", "reference"],
        env={**os.environ, "FENCEPOST_RESULTS": str(results)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def said_of(ended: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    assert ended.stdout, ended.stderr
    (said,) = json.loads(ended.stdout)
    found: dict[str, Any] = said
    return found


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    yield
    assert orphans() == ()


def test_smoke_is_valid_and_leaves_its_evidence(tmp_path: Path) -> None:
    ended = run("smoke", "--time-limit", "12s", "--seed", "5", "--json", results=tmp_path)
    assert ended.returncode == 0, ended.stderr
    said = said_of(ended)
    assert said["validity"] == "valid"
    assert {check["validity"] for check in said["checks"].values()} == {"valid"}
    directory = RunDirectory(Path(said["run"]))
    manifest = read_manifest(directory.manifest_path)
    assert manifest.versions["cluster"] == "reference"
    assert not manifest.damages
    assert "--cluster reference" in manifest.command
    beats = [
        row for row in load_table(directory, "wire").to_pylist() if row["api"] == "BrokerHeartbeat"
    ]
    assert {(row["api_key"], row["api_version"]) for row in beats} == {(63, 1)}


@pytest.mark.parametrize(
    ("scenario", "flags", "lost"),
    [
        ("kip-903", ("--metadata-version", "1"), True),
        ("kip-903", ("--metadata-version", "2"), False),
        (
            "kip-903",
            ("--without-rule", "member_epochs_checked", "--without-rule", "epoch_from_fetch"),
            True,
        ),
        ("kip-903-controller-change", ("--metadata-version", "1"), True),
        ("kip-903-controller-change", (), False),
    ],
    ids=["level-1", "level-2", "level-3-without-the-rules", "new-controller-1", "new-controller-3"],
)
def test_e08_the_race_loses_data_below_level_2_and_not_from_level_2_on(
    scenario: str, flags: tuple[str, ...], tmp_path: Path, *, lost: bool
) -> None:
    said = said_of(run(scenario, "--seed", "6", "--json", *flags, results=tmp_path))
    found = {name for name, check in said["checks"].items() if check["validity"] == "invalid"}
    assert ({"lost-write", "stale-epoch-join"} <= found) is lost
    assert (said["validity"] == "invalid") is lost


def test_e07_under_an_old_version_of_alter_partition_the_hole_is_open_at_every_level(
    tmp_path: Path,
) -> None:
    """As before a controller is upgraded: epochs of members have no place in version 2."""
    old = "play:\n  - lower_version: {as: old, api: AlterPartition, to_version: 2, from: brokers}\n"
    scenario = tmp_path / "old-controller.yaml"
    scenario.write_text(find_scenario("kip-903").read_text().replace("play:\n", old, 1))
    said = said_of(run(str(scenario), "--seed", "6", "--json", results=tmp_path))
    found = {name for name, check in said["checks"].items() if check["validity"] == "invalid"}
    assert {"lost-write", "stale-epoch-join"} <= found


@pytest.mark.parametrize("level", ["2", "3"])
def test_v06_the_documents_trace_goes_back_below_level_3_and_not_at_it(
    level: str, tmp_path: Path
) -> None:
    ended = run(
        "read-after-write", "--metadata-version", level, "--seed", "6", "--json", results=tmp_path
    )
    said = said_of(ended)
    found = {name for name, check in said["checks"].items() if check["validity"] == "invalid"}
    stale = {"stale-read-after-write", "nonrepeatable-read"}
    assert found == (stale if level == "2" else set())
    assert said["as_expected"] is True


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
    arguments: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["run", *arguments, "--cluster", "reference", "--alongside"])
    assert ended.value.code == 254
    assert words in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
