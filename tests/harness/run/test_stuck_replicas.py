"""A simulated broker that never fetches a partition again: from the wait of a run to the check."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from sealed_runs import sealed_table

from fencepost.checkers.anomaly import anomalies_of
from fencepost.checkers.control_plane.stuck_isr import stuck_isrs
from fencepost.checkers.control_plane.stuck_replica import stuck_replicas
from fencepost.checkers.facts import facts_of
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.proof import Proof
from fencepost.checkers.table_check import TableKernel
from fencepost.clusters.reference.nodes.replicas.fetchers import Fetchers
from fencepost.clusters.reference.nodes.replicas.log import PartitionLog
from fencepost.clusters.systems import SIMULATED
from fencepost.harness.progress import TerminalProgress
from fencepost.harness.run.run import record_scenario
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import load_scenario
from fencepost.history.manifest import read_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.history.seal import seal

pytestmark = pytest.mark.slow

SCENARIO = """
name: deaf
title: A follower is killed and comes back
cluster: {controllers: 1, brokers: 3}
topics:
  - {name: t, replicas: [[1, 2, 3]], settings: {min.insync.replicas: 2}}
workload: {kind: produce-poll, rate: 50, producers: 1, consumers: 1, consume: assign}
play:
  - await: {acknowledged: 10}
  - kill: broker-3
  - await: {isr: {t-0: [1, 2]}}
  - start: broker-3
time_limit: 30s
recovery_limit: 10s
"""


def recorded(directory: Path) -> RunDirectory:
    (directory / "deaf.yaml").write_text(SCENARIO)
    scenario = load_scenario(directory / "deaf.yaml", [])
    options = RunOptions(results=directory, seed=1, command="", cluster=SIMULATED)
    run = record_scenario(scenario, options, TerminalProgress(Console(quiet=True), None))
    seal(run)
    return run


def proofs(kernel: TableKernel, run: RunDirectory) -> list[Proof]:
    tables = {name: sealed_table(run, name) for name in ("metadata_log", "replicas", "faults")}
    facts = facts_of(read_manifest(run.manifest_path))
    judged = kernel(tables, MetadataView(run=facts, metadata_log=tables["metadata_log"]))
    return [one.proof for _, found in judged for one in anomalies_of(found.table)]


def test_a_follower_that_fetches_again_is_back_in_time(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    assert not read_manifest(run.manifest_path).shortfalls
    assert not proofs(stuck_replicas, run)


def test_a_follower_that_never_fetches_again_is_found_by_the_end_of_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stop_fetching(monkeypatch, node_id=3)
    run = recorded(tmp_path)
    (proof,) = proofs(stuck_replicas, run)
    assert (proof.fact("broker_id"), proof.fact("key")) == (3, "t-0")
    assert (proof.fact("isr"), proof.fact("replicas")) == ("[1, 2]", "[1, 2, 3]")
    assert proof.fact("limit") == 10_000_000_000
    # It has not caught up, which is another thing than a leader that does not ask.
    assert not proofs(stuck_isrs, run)
    assert "not whole 10 s after healing" in read_manifest(run.manifest_path).shortfalls[0]


def _stop_fetching(monkeypatch: pytest.MonkeyPatch, *, node_id: int) -> None:
    """Under its second registration, the node asks nobody for partitions."""
    follow = Fetchers.follow
    epochs: set[int] = set()

    def forget(self: Fetchers, log: PartitionLog, *others: Any, **named: Any) -> None:
        follow(self, log, *others, **named)
        situation = self._situation
        if situation.node_id == node_id:
            epochs.add(situation.broker_epoch)
            if len(epochs) > 1:
                self.followers[log.key].fetcher.entries.pop(log.key)

    monkeypatch.setattr(Fetchers, "follow", forget)
