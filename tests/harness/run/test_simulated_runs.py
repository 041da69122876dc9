"""Whole runs in virtual time: the scenarios of real clusters, the same files, the same verdicts."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Fencepost
from sealed_runs import sealed_table

from fencepost.checkers.facts import facts_of
from fencepost.checkers.metadata.log_of_record import log_of_record
from fencepost.history.manifest import RunState, read_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import RUN_TABLES

FENCEPOST = (sys.executable, "-m", "fencepost")
SIMULATED = ("--cluster", "simulated", "--seed", "7", "--alongside", "--json")
_SEED_2 = ("--cluster", "simulated", "--seed", "2", "--alongside", "--json")
_KIP_903 = ("run", "kip-903", *SIMULATED)


@pytest.mark.spark
@pytest.mark.slow
def test_kip_903_fires_at_level_1_and_holds_at_level_2(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    at_1 = fencepost(*_KIP_903, "--metadata-version", "1", results=tmp_path)
    assert {"stale-epoch-join", "lost-write"} <= at_1.violated
    assert at_1.said["as_expected"] is True
    at_2 = fencepost(*_KIP_903, "--metadata-version", "2", results=tmp_path)
    assert at_2.said["validity"] == "valid"
    assert at_2.said["as_expected"] is True
    assert read_manifest(at_2.run.manifest_path).state is RunState.CHECKED


@pytest.mark.slow
def test_kip_903_fires_without_the_rule_and_again_in_a_replay(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    off = ("--metadata-version", "2", "--without-rule", "member_epochs_checked")
    first = fencepost(*_KIP_903, *off, results=tmp_path)
    assert {"stale-epoch-join", "lost-write"} <= first.violated
    manifest = read_manifest(first.run.manifest_path)
    assert manifest.versions["rules_off"] == "member_epochs_checked"
    assert "--without-rule member_epochs_checked" in manifest.command
    again = fencepost("replay", str(first.run.root), "--alongside", "--json", results=tmp_path)
    assert {"stale-epoch-join", "lost-write"} <= again.violated


@pytest.mark.slow
def test_e03_an_epoch_that_is_not_taken_from_the_fetch_is_found_by_the_tape(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    ended = fencepost("run", "late-fetch", *SIMULATED, results=tmp_path)
    assert ended.said["validity"] == "valid"
    assert ended.said["checks"]["unfetched-epoch"]["cases"] > 0
    broken = ("--without-rule", "epoch_from_fetch")
    ended = fencepost("run", "late-fetch", *SIMULATED, *broken, results=tmp_path)
    # Nothing that compares the request with the registration has anything to say.
    assert {"unfetched-epoch", "lost-write"} <= ended.violated
    assert ended.violated.isdisjoint({"stale-epoch-join", "epoch-check-bypassed"})


COMBINED = """\
name: kip-903-combined
cluster:
  controllers: 1
  brokers: 3
  combined: true
  settings: {replica.lag.time.max.ms: 1500, broker.session.timeout.ms: 2000}
topics: [{name: t, replicas: [[2, 3]], settings: {min.insync.replicas: 1}}]
workload: {kind: produce-poll, producers: 1, consumers: 1, rate: 500, consume: assign}
play:
  - await: {acknowledged: 500}
  - pause: broker-3
  - await: {isr: {t-0: [2]}}
  - hold: {as: join, api: AlterPartition, from: broker-2, where: {key: t-0, isr includes: 3}}
  - resume: broker-3
  - await: {held: join}
  - kill: broker-3
  - await: {fenced: broker-3}
  - {wipe: broker-3, keep_directory_id: true}
  - hold: {as: catch-up, api: Fetch, from: broker-3, to: brokers, where: {metadata: false}}
  - start: broker-3
  - await: {unfenced: broker-3}
  - await: {held: catch-up}
  - kill: broker-2
  - release: join
  - await: {fenced: broker-2}
  - release: catch-up
  - wait: 500ms
  - start: broker-2
  - await: recovered
  - await: {acknowledged: 200}
require: {served: [pause], judged: [stale-epoch-join, lost-write]}
"""


@pytest.mark.slow
def test_kip_903_fires_where_a_broker_is_the_controller_and_the_metadata_log_goes_on(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    """The hold of all Fetches of records leaves the metadata log alone: broker 3 is unfenced."""
    path = tmp_path / "combined.yaml"
    path.write_text(COMBINED)
    at_1 = fencepost("run", str(path), *SIMULATED, "--metadata-version", "1", results=tmp_path)
    assert {"stale-epoch-join", "lost-write"} <= at_1.violated
    assert read_manifest(at_1.run.manifest_path).second_roles == {"broker-1": "controller"}
    at_2 = fencepost("run", str(path), *SIMULATED, "--metadata-version", "2", results=tmp_path)
    assert at_2.said["validity"] == "valid"


@pytest.mark.slow
def test_a_storm_that_wipes_combined_nodes_is_valid(fencepost: Fencepost, tmp_path: Path) -> None:
    short = ("--time-limit", "60s", "--nemesis", "kill,wipe,partition,pause")
    ended = fencepost("run", "combined-storm", *SIMULATED, *short, results=tmp_path)
    assert ended.said["validity"] == "valid"
    assert "wipe" in sealed_table(ended.run, "faults")["fault"].to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["storm", "combined-storm"])
def test_a_storm_whose_nodes_cut_their_logs_is_judged_from_its_beginning(
    fencepost: Fencepost, scenario: str, tmp_path: Path
) -> None:
    settings = "{fencepost.metadata.snapshot.records: 200}"
    path = tmp_path / "cut.yaml"
    path.write_text(f"extends: {scenario}\nname: cut\ncluster: {{settings: {settings}}}\n")
    ended = fencepost("run", str(path), *SIMULATED, "--time-limit", "60s", results=tmp_path)
    assert ended.said["validity"] == "valid"
    manifest = read_manifest(ended.run.manifest_path)
    found = log_of_record(sealed_table(ended.run, "metadata_log"), facts_of(manifest))
    assert found.rows["metadata_offset"].to_pylist() == list(range(found.end_offset))
    assert not found.begins_with_snapshot
    assert found.end_offset > 400  # cut twice at least


RECREATED = """\
name: recreated
topics: [{name: t, replicas: [[1, 2, 3]]}]
workload: {kind: produce-poll, producers: 1, consumers: 1, rate: 200, consume: assign}
play:
  - delete_topic: t
  - await: {deleted: t}
  - create_topic: {name: t, replicas: [[2, 3]]}
  - await: recovered
  - start_clients: all
  - await: {acknowledged: 50}
"""


@pytest.mark.slow
def test_clients_that_begin_in_the_play_write_to_the_topic_that_is_there_then(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    path = tmp_path / "recreated.yaml"
    path.write_text(RECREATED)
    ended = fencepost("run", str(path), *SIMULATED, results=tmp_path)
    # What had been written to the one that was deleted would be lost.
    assert ended.said["validity"] == "valid"
    assert ended.said["checks"]["lost-write"]["cases"] >= 50
    types = sealed_table(ended.run, "metadata_log")["type"].to_pylist()
    assert "RemoveTopicRecord" in types


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "flags"),
    [
        (
            "kip-903",
            ("--without-rule", "member_epochs_checked", "--without-rule", "epoch_from_fetch"),
        ),
        ("kip-903-controller-change", ("--metadata-version", "1")),
    ],
    ids=["level-3-without-the-rules", "new-controller-1"],
)
def test_e08_the_race_loses_data_wherever_its_rules_are_not(
    fencepost: Fencepost, scenario: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    ended = fencepost("run", scenario, *SIMULATED, *flags, results=tmp_path)
    assert {"stale-epoch-join", "lost-write"} <= ended.violated


@pytest.mark.slow
def test_e08_a_change_of_the_controller_opens_nothing(fencepost: Fencepost, tmp_path: Path) -> None:
    ended = fencepost("run", "kip-903-controller-change", *SIMULATED, results=tmp_path)
    assert ended.said["validity"] == "valid"


@pytest.mark.slow
def test_v06_the_documents_trace_goes_back_below_level_3_and_not_at_it(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    for level, stale in {
        "2": {"stale-read-after-write", "nonrepeatable-read"},
        "3": set(),
    }.items():
        ended = fencepost(
            "run", "read-after-write", *SIMULATED, "--metadata-version", level, results=tmp_path
        )
        assert ended.violated == stale
        assert ended.said["as_expected"] is True


@pytest.mark.spark
@pytest.mark.slow
def test_what_a_trial_found_is_a_run_for_check_report_replay_and_run(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    off = ("--without-rule", "epoch_from_offset")
    trial = ("simulate", "storm", "--first", "2", "--seeds", "1", *off)
    assert fencepost(*trial, results=tmp_path).returncode == 1
    (stored,) = (tmp_path / "trials").iterdir()
    checked = fencepost("check", str(stored), "--json", results=tmp_path)
    assert {"epoch-went-back", "illegal-transition"} == checked.violated
    assert fencepost("report", str(stored), results=tmp_path).returncode == 0
    assert (stored / "report.html").is_file()
    replayed = fencepost("replay", str(stored), "--alongside", "--json", results=tmp_path)
    assert replayed.violated == checked.violated
    again = fencepost("run", str(stored / "scenario.yaml"), *_SEED_2, *off, results=tmp_path)
    assert again.violated == checked.violated


@pytest.mark.spark
@pytest.mark.slow
def test_a_random_run_is_valid_and_the_same_again_bit_for_bit(tmp_path: Path) -> None:
    found = [_judged_in_a_process(tmp_path / seed, hash_seed=seed) for seed in ("0", "1")]
    assert [said["validity"] for said, _ in found] == ["valid", "valid"]
    one, other = (read_manifest(run.manifest_path) for _, run in found)
    assert one.versions["trace"]
    assert one.versions == other.versions
    assert one.digests == other.digests
    assert len(one.digests) > len(RUN_TABLES)
    assert one.recorded == other.recorded
    assert found[0][1].play_path.read_text() == found[1][1].play_path.read_text()
    for table in ("wire", "metadata_log", "describes", "metadata_writes", "replica_records"):
        assert sealed_table(found[0][1], table).num_rows > 0, table


IDLE = """\
name: idle
topics: [{name: t}]
workload: {kind: produce-poll, rate: 100, consume: assign}
nemesis: {faults: [kill, pause], gap: 1s, down: {brokers: 0, controllers: 0}}
time_limit: 5s
"""


@pytest.mark.slow
def test_a_run_in_which_none_of_its_faults_took_effect_is_unknown_and_says_so_first(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    (tmp_path / "idle.yaml").write_text(IDLE)
    asked = {
        (
            "storm",
            "--time-limit",
            "500ms",
        ): "partition, delay, kill, pause, restart, window, late_fetch, hold, drop, delay_rpc, "
        "duplicate, reorder, ambush, relay",
        (str(tmp_path / "idle.yaml"),): "kill, pause",
    }
    for arguments, kinds in asked.items():
        ended = fencepost("run", *arguments, *SIMULATED, results=tmp_path / "results")
        assert ended.returncode == 2
        # Standard output belongs to the JSON document.
        words = f"UNKNOWN: none of the faults that were asked for ({kinds}) took effect"
        assert f"\n{words}" in f"\n{ended.stderr}"


def _judged_in_a_process(results: Path, *, hash_seed: str) -> tuple[dict[str, Any], RunDirectory]:
    ended = subprocess.run(
        [*FENCEPOST, "run", "metadata", "--time-limit", "15s", *SIMULATED],
        env={**os.environ, "FENCEPOST_RESULTS": str(results), "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.stdout, ended.stderr
    (said,) = json.loads(ended.stdout)
    return said, RunDirectory(Path(said["run"]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("transactions", "--cluster", "simulated"), "no transactions"),
        (("smoke", "--cluster", "simulated", "--without-rule", "nonsense"), "no such rule"),
        (("smoke", "--cluster", "simulated", "--metadata-version", "3.5"), "1, 2, 3"),
        (("smoke", "--cluster", "simulated", "--kafka", "3.9.2"), "leave --kafka or --cluster out"),
        (("smoke", "--without-rule", "one_vote"), "for reference nodes"),
        (("storm", "--cluster", "simulated", "--no-wire"), "without --no-wire"),
        (("disks", "--cluster", "simulated"), "disks.yaml:25: play[1]: fill_disk: this cluster"),
        (("smoke", "--cluster", "simulated", "--nemesis", "kill,skew"), "--nemesis: nemesis.faul"),
        (("storm", "--window", "AlterPartitoin"), "did you mean 'AlterPartition'?"),
        (("storm", "--window", "Vote", "--nemesis", "relay"), "relay holds Fetches"),
        (("kafka-zookeeper-storm", "--nemesis", "late_fetch"), "late_fetch holds heartbeats"),
    ],
    ids=[
        "transactions",
        "rule",
        "level",
        "kafka",
        "kafka-rules",
        "wire",
        "disks",
        "clocks",
        "message",
        "fetches",
        "heartbeats",
    ],
)
def test_what_cannot_be_in_virtual_time_is_refused_at_once(
    arguments: tuple[str, ...],
    words: str,
    fencepost: Fencepost,
    tmp_path: Path,
) -> None:
    ended = fencepost("run", *arguments, "--alongside", results=tmp_path)
    assert ended.returncode == 254
    assert words in ended.stderr
    assert not list(tmp_path.glob("*/*/manifest.json"))
