"""Whole runs of the ZooKeeper generation in virtual time."""

from pathlib import Path

import pytest
from commands import Fencepost
from sealed_runs import sealed_table

SIMULATED = ("--cluster", "simulated-zookeeper", "--seed", "7", "--alongside", "--json")
RESTARTS = """\
name: restarts
cluster: {system: reference-zookeeper, zookeepers: 3, brokers: 3}
topics:
  - {name: t, replicas: [[1, 2, 3]], settings: {min.insync.replicas: 2}}
workload: {kind: produce-poll, producers: 1, consumers: 1, rate: 200, acks: all, consume: assign}
play:
  - await: {acknowledged: 100}
  - kill: broker-1
  - await: {fenced: broker-1}
  - wipe: broker-1
  - start: broker-1
  - await: recovered
  - kill: zookeeper-1
  - await: {acknowledged: 100}
  - start: zookeeper-1
  - await: recovered
  - pause: broker-2
  - await: {not_in_isr: {t-0: 2}}
  - hold: {as: late, api: IsrChange, where: {key: t-0, isr includes: 2}}
  - resume: broker-2
  - await: {held: late}
  - release: late
  - await: recovered
recovery_limit: 60s
require: {faults: [kill, wipe, hold, pause], judged: [lost-write, two-leaders, stale-epoch-join]}
"""


@pytest.mark.slow
def test_its_evidence_is_judged_as_that_of_processes(fencepost: Fencepost, tmp_path: Path) -> None:
    path = tmp_path / "restarts.yaml"
    path.write_text(RESTARTS)
    ended = fencepost("run", str(path), *SIMULATED, results=tmp_path)
    assert ended.said["validity"] == "valid", ended.stderr
    assert ended.said["checks"]["lost-write"]["cases"] > 100
    apis = set(sealed_table(ended.run, "wire")["api"].to_pylist())
    assert {"IsrChange", "LeaderAndIsr", "MetadataHeartbeat", "UpdateMetadata"} <= apis
    log = sealed_table(ended.run, "metadata_log").to_pylist()
    of_servers = {one["node"] for one in log}
    assert of_servers == {"zookeeper-1", "zookeeper-2", "zookeeper-3"}
    modes = set(sealed_table(ended.run, "ensemble")["mode"].to_pylist())
    assert {"leader", "follower"} <= modes


def test_its_rules_are_none_of_the_other_generations(fencepost: Fencepost, tmp_path: Path) -> None:
    flags = ("--cluster", "simulated", "--without-rule", "empty_isr_refused", "--alongside")
    ended = fencepost("run", "smoke", *flags, results=tmp_path)
    assert ended.returncode == 254
    assert "there is no such rule" in ended.stderr
