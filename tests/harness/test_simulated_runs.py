"""Whole runs in virtual time: the scenarios of real clusters, the same files, the same verdicts."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from history.manifest import RunState, read_manifest
from history.reader import load_table
from history.run_directory import RunDirectory
from history.schema import RUN_TABLES

FENCEPOST = (sys.executable, "-m", "harness.cli")
SIMULATED = ("--cluster", "simulated", "--seed", "7")


def fencepost(
    *arguments: str, results: Path, hash_seed: str = "0"
) -> "subprocess.CompletedProcess[str]":

    environment = {**os.environ, "FENCEPOST_RESULTS": str(results), "PYTHONHASHSEED": hash_seed}
    return subprocess.run(
        [*FENCEPOST, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def judged(
    *arguments: str, results: Path, hash_seed: str = "0"
) -> tuple[dict[str, Any], RunDirectory]:
    ended = fencepost("run", *arguments, *SIMULATED, "--json", results=results, hash_seed=hash_seed)
    assert ended.returncode in (0, 1), ended.stderr
    (said,) = json.loads(ended.stdout)
    return said, RunDirectory(Path(said["run"]))


def violated(said: dict[str, Any]) -> set[str]:
    return {name for name, one in said["checks"].items() if one["validity"] == "invalid"}


@pytest.mark.spark
@pytest.mark.slow
def test_kip_903_fires_at_level_1_and_holds_at_level_2(tmp_path: Path) -> None:
    said, _ = judged("kip-903", "--metadata-version", "1", results=tmp_path)
    assert {"stale-epoch-join", "lost-write"} <= violated(said)
    assert said["as_expected"] is True
    said, run = judged("kip-903", "--metadata-version", "2", results=tmp_path)
    assert said["validity"] == "valid"
    assert said["as_expected"] is True
    assert read_manifest(run.manifest_path).state is RunState.CHECKED
    said, run = judged(
        "kip-903",
        "--metadata-version",
        "2",
        "--without-rule",
        "member_epochs_checked",
        results=tmp_path,
    )
    assert {"stale-epoch-join", "lost-write"} <= violated(said)
    manifest = read_manifest(run.manifest_path)
    assert manifest.versions["rules_off"] == "member_epochs_checked"
    assert "--without-rule member_epochs_checked" in manifest.command
    ended = fencepost("replay", str(run.root), "--json", results=tmp_path)
    (said,) = json.loads(ended.stdout)
    assert {"stale-epoch-join", "lost-write"} <= violated(said)


@pytest.mark.spark
@pytest.mark.slow
def test_e03_an_epoch_that_is_not_taken_from_the_fetch_is_found_by_the_tape(tmp_path: Path) -> None:
    said, _ = judged("late-fetch", results=tmp_path)
    assert said["validity"] == "valid"
    assert said["checks"]["unfetched-epoch"]["cases"] > 0
    said, _ = judged("late-fetch", "--without-rule", "epoch_from_fetch", results=tmp_path)
    # Nothing that compares the request with the registration has anything to say.
    assert {"unfetched-epoch", "lost-write"} <= violated(said)
    assert violated(said).isdisjoint({"stale-epoch-join", "epoch-check-bypassed"})


@pytest.mark.spark
@pytest.mark.slow
def test_v06_the_documents_trace_goes_back_below_level_3_and_not_at_it(tmp_path: Path) -> None:
    for level in ("2", "3"):
        said, _ = judged("read-after-write", "--metadata-version", level, results=tmp_path)
        stale = {"stale-read-after-write", "nonrepeatable-read"}
        assert violated(said) == (stale if level == "2" else set())
        assert said["as_expected"] is True


@pytest.mark.spark
@pytest.mark.slow
def test_a_random_run_is_valid_and_the_same_again_bit_for_bit(tmp_path: Path) -> None:
    found = [
        judged("metadata", "--time-limit", "15s", results=tmp_path / seed, hash_seed=seed)
        for seed in ("0", "1")
    ]
    assert [said["validity"] for said, _ in found] == ["valid", "valid"]
    one, other = (read_manifest(run.manifest_path) for _, run in found)
    assert one.versions["trace"]
    assert one.versions == other.versions
    assert one.digests == other.digests
    assert len(one.digests) > len(RUN_TABLES)
    assert one.recorded == other.recorded
    assert found[0][1].play_path.read_text() == found[1][1].play_path.read_text()
    for table in ("wire", "metadata_log", "describes", "metadata_writes", "replica_records"):
        assert load_table(found[0][1], table).num_rows > 0, table


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("transactions", "--cluster", "simulated"), "no transactions"),
        (("smoke", "--cluster", "simulated", "--without-rule", "nonsense"), "no such rule"),
        (("smoke", "--cluster", "simulated", "--metadata-version", "3.5"), "1, 2, 3"),
        (("smoke", "--cluster", "simulated", "--kafka", "3.9.2"), "leave --kafka or --cluster out"),
        (("smoke", "--without-rule", "one_vote"), "our own nodes"),
        (("storm", "--cluster", "simulated", "--no-wire"), "without --no-wire"),
        (("disks", "--cluster", "simulated"), "disks.yaml:25: play[1]: fill_disk: this cluster"),
        (("smoke", "--cluster", "simulated", "--nemesis", "kill,skew"), "--nemesis: nemesis.faul"),
    ],
    ids=["transactions", "rule", "level", "kafka", "kafka-rules", "wire", "disks", "clocks"],
)
def test_what_cannot_be_in_virtual_time_is_refused_at_once(
    arguments: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["run", *arguments, "--alongside"])
    assert ended.value.code == 254
    assert words in capsys.readouterr().err
    assert not list(tmp_path.glob("*/*/manifest.json"))
