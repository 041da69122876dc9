"""A whole run on nodes with networks of their own: packets are dropped, and nothing is left."""

from pathlib import Path

import pytest
from commands import Fencepost
from sealed_runs import sealed_table

from fencepost.clusters.hosts.ledger import left_ledgers
from fencepost.clusters.hosts.namespaces import why_no_namespaces
from fencepost.clusters.hosts.packets import why_no_rules
from fencepost.history.manifest import read_manifest

WHY_NOT = why_no_namespaces() or why_no_rules()
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
]

SCENARIO = """
name: lines
cluster: {controllers: 1, brokers: 3}
topics:
  - {name: t, partitions: 2, replication_factor: 3, settings: {min.insync.replicas: 2}}
workload: {kind: produce-poll, rate: 300, producers: 1, consumers: 1, consume: assign}
play:
  - await: {acknowledged: 100}
  - partition: {from: broker-2, to: controllers, as: mute, by: packets}
  - await: {fenced: broker-2}
  - heal: mute
  - await: recovered
  - bandwidth: {of: broker-1, rate: 5Mbit}
  - await: {acknowledged: 100}
  - heal: all
time_limit: 60s
"""


def test_packets_are_dropped_the_line_is_thin_and_nothing_is_left(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    scenario = tmp_path / "lines.yaml"
    scenario.write_text(SCENARIO)
    where = ("--cluster", "reference", "--host", "netns", "--alongside", "--seed", "5")
    ended = fencepost("run", str(scenario), "--json", *where, results=tmp_path / "results")
    assert ended.returncode == 0, ended.stderr
    assert ended.said["validity"] == "valid"
    run = ended.run
    assert read_manifest(run.manifest_path).versions["host"] == "netns"
    cut, bound = sealed_table(run, "faults").to_pylist()
    assert cut["evidence"].endswith("(packets are dropped)")
    assert "packets were dropped" in cut["heal_evidence"]
    assert "broker-1 sends" in bound["evidence"]
    assert "by: packets" in run.play_path.read_text()
    assert not [path for path in left_ledgers() if path.name.startswith("lines-")]
