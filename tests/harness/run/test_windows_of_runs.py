"""Windows of real runs in virtual time: recorded, judged, summed up, and judged again the same."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Fencepost
from sealed_runs import sealed_table

from fencepost.checkers.grounds.windows import window_kinds
from fencepost.harness.series.window_grid import kinds_json
from fencepost.history.manifest import read_manifest, write_manifest
from fencepost.history.run_directory import RunDirectory

pytestmark = pytest.mark.slow

MIDST = """\
name: midst
cluster: {kafka: 4.3.1, controllers: 1, brokers: 3}
topics: [{name: t, partitions: 2, replication_factor: 3, settings: {min.insync.replicas: 2}}]
workload: {kind: produce-poll, producers: 1, consumers: 2, rate: 30}
nemesis: {faults: [window], windows: [AlterPartition], gap: [1s, 2s], duration: [2s, 3s]}
time_limit: 40s
require: {windows: [AlterPartition]}
expect: [{valid: true}]
"""
TWO_RUNS = ("--cluster", "simulated", "--seed", "2", "--runs", "2")


def lines(text: str, word: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.startswith(word)]


def test_windows_are_recorded_and_judged_again_as_they_were(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    (tmp_path / "midst.yaml").write_text(MIDST)
    ended = fencepost("run", str(tmp_path / "midst.yaml"), *TWO_RUNS, results=tmp_path)
    (path,) = (tmp_path / "midst" / "series").glob("*.json")
    stored = json.loads(path.read_text())
    runs = [RunDirectory(Path(one["run"])) for one in stored["runs"]]
    for run, told in zip(runs, stored["runs"], strict=True):
        manifest = read_manifest(run.manifest_path)
        kinds = window_kinds(
            sealed_table(run, "windows"),
            asked=manifest.asked_windows,
            strikes=manifest.asked_strikes,
        )
        assert told["windows"] == kinds_json(kinds)
        assert [kind.kind.split()[0] for kind in kinds] == ["AlterPartition"] * 2
        assert 'data-window="0"' in run.report_path.read_text()
    grid = stored["windows"]["kinds"]["AlterPartition request"]
    assert grid["struck"] > 0, "seeds that strike: draw others if what is drawn changed"
    assert ended.returncode == 0

    again = fencepost("check", *(str(run.root) for run in runs), results=tmp_path)
    assert lines(again.stdout, "  windows ") != []
    for word in ("windows, ", "kill", "pause", "wipe", "struck", "closed unused"):
        assert lines(again.stdout, word) == lines(ended.stdout, word) != []


def test_a_run_without_the_strike_that_was_demanded_is_unknown(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    scenario = tmp_path / "midst.yaml"
    scenario.write_text(MIDST.replace("40s", "2s"))
    ended = fencepost(
        "run", str(scenario), "--cluster", "simulated", "--seed", "2", "--json", results=tmp_path
    )
    assert ended.said["validity"] == "unknown"
    reason = ended.said["checks"]["window-strikes"]["reason"]
    assert reason.startswith("the scenario demands that a window of AlterPartition be struck")
    # As an earlier version left it: without the table, and without a word of it.
    manifest = read_manifest(ended.run.manifest_path)
    recorded = tuple(name for name in manifest.recorded if name != "windows")
    digests = {name: one for name, one in manifest.digests.items() if "windows" not in name}
    older = replace(manifest, recorded=recorded, digests=digests, required_windows=())
    write_manifest(ended.run.manifest_path, older)
    ended.run.table_path("windows").unlink()
    again = fencepost("check", str(ended.run.root), results=tmp_path)
    assert "  windows not recorded" in again.stdout.splitlines()
    assert "Not recorded." in ended.run.report_path.read_text()
