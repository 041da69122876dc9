"""The metadata workload against a real cluster: what it did is on the record, however it ended."""

import os
import signal
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sealed_runs import sealed_table
from waiting import until

from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.metadata_watch import MetadataWatch
from fencepost.clusters.kafka_port import Role
from fencepost.clusters.port import NodeName
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock
from fencepost.history.run_directory import RunDirectory
from fencepost.workloads.journalled import JournalledWorkload, clients_way
from fencepost.workloads.kind import Setup
from fencepost.workloads.metadata import build
from fencepost.workloads.metadata_spec import MetadataSpec

pytestmark = pytest.mark.kafka

SPEC = MetadataSpec(write_rate=30, read_rate=120, alters=2)
ENOUGH = 40


def begun(cluster: KafkaCluster, warden: Warden, root: Path) -> tuple[JournalledWorkload, Any]:
    run = RunDirectory.create(root, "test", datetime.now(UTC))
    nothing: Any = None  # is asked of what was prepared
    setup = Setup(
        cluster=cluster,
        prepared=nothing,
        topics=(),
        warden=warden,
        run=run,
        clock=Clock.start(),
        seed=7,
        first_process=10,
    )
    workload = build(SPEC, setup)
    workload.start()
    return workload, run


def test_writes_and_reads_of_every_broker_are_on_the_record(
    cluster: KafkaCluster, warden: Warden, tmp_path: Path
) -> None:
    workload, run = begun(cluster, warden, tmp_path)
    assert until(lambda: workload.counts().ok >= ENOUGH)
    assert not workload.failures()
    workload.stop(timeout_s=20)
    assert not workload.failures()
    counts = workload.counts()

    writes = sealed_table(run, "metadata_writes").to_pylist()
    grown = sealed_table(run, "partition_writes").to_pylist()
    for rows in (writes, grown):
        assert [row["index"] for row in rows] == list(range(len(rows)))
    assert len(writes) + len(grown) == counts.invoked
    assert Counter(row["outcome"] for row in (*writes, *grown))["ok"] == counts.ok
    assert {row["f"] for row in grown} == {"create-partitions"}
    acknowledged = [row for row in writes if row["outcome"] == "ok"]
    assert {row["f"] for row in acknowledged} == {"create-topic", "alter-config", "delete-topic"}
    assert {row["node"] for row in acknowledged} == {"broker-1", "broker-2", "broker-3"}
    calls = [row["call_ns"] for row in writes]
    assert calls == sorted(calls)
    created = [row["topic_id"] for row in acknowledged if row["f"] == "create-topic"]
    assert len(set(created)) == len(created)
    assert None not in created

    reads = sealed_table(run, "describes").to_pylist()
    assert {row["node"] for row in reads} == {"broker-1", "broker-2", "broker-3"}
    assert {row["process"] for row in reads} == {13, 14, 15}
    assert {row["error"] for row in reads} <= {
        "NONE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "LEADER_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",  # a broker that stands still for two seconds
    }
    assert {row["topic_id"] for row in reads} & set(created)
    written = {(row["topic"], row["config_value"]) for row in acknowledged}
    assert {(row["topic"], row["config_value"]) for row in reads} & written
    partitions_of = {(row["topic"], row["partition"]) for row in reads}
    assert {(row["topic"], row["partition_count"] - 1) for row in grown} & partitions_of


def test_a_client_that_was_killed_leaves_what_was_under_way_as_info(
    cluster: KafkaCluster, warden: Warden, tmp_path: Path
) -> None:
    workload, run = begun(cluster, warden, tmp_path)
    cluster.pause_node(NodeName("broker-2"))
    try:
        # One write hangs in the paused broker, and the journal says so before its answer. A write
        # that is only just under way may end before the signal comes: the same one, a second on.
        hanging = -1

        def hangs() -> bool:
            nonlocal hanging
            before, hanging = hanging, workload.counts().invoked
            return hanging > sum(ends(workload)) and hanging == before

        assert until(hangs, every_s=1.0)
        (pid,) = workload.pids.values()
        os.kill(pid, signal.SIGKILL)
        assert until(lambda: bool(workload.failures()))
    finally:
        cluster.resume_node(NodeName("broker-2"))
    workload.stop(timeout_s=20)
    tables = ("metadata_writes", "partition_writes")
    writes = [row for name in tables for row in sealed_table(run, name).to_pylist()]
    open_writes = [row for row in writes if row["return_ns"] is None]
    assert open_writes
    assert {row["outcome"] for row in open_writes} == {"info"}


def test_a_topic_that_comes_when_nobody_waits_for_it_is_deleted(
    cluster: KafkaCluster, warden: Warden, tmp_path: Path
) -> None:
    workload, _ = begun(cluster, warden, tmp_path)
    cluster.create_topics([TopicSpec(name="m-000300", replication_factor=1)])
    assert until(lambda: "m-000300-0" not in cluster.view().partitions)
    workload.stop(timeout_s=20)
    assert not workload.failures()


def ends(workload: JournalledWorkload) -> tuple[int, int, int]:
    counts = workload.counts()
    return counts.ok, counts.fail, counts.info


def test_the_harness_watches_the_run_s_topics_on_every_broker_and_the_quorum(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    cluster.create_topics([TopicSpec(name="watched", partitions=2)])
    run = RunDirectory.create(tmp_path, "test", datetime.now(UTC))
    watch = MetadataWatch(
        run.raw,
        clock=Clock.start(),
        topics=["watched"],
        brokers=clients_way(cluster),
        controllers=lambda: cluster._running(Role.CONTROLLER),
        node_of=cluster.node_of,
    )
    offsets = run.raw / "metadata_offsets.jsonl"
    with watch:
        assert until(lambda: offsets.read_bytes().count(b"\n") >= 2 * 4)
    reads = sealed_table(run, "describes").to_pylist()
    assert {(row["node"], row["partition"]) for row in reads} == {
        (f"broker-{number}", partition) for number in (1, 2, 3) for partition in (0, 1)
    }
    assert {(row["process"], row["topic"], row["error"]) for row in reads} == {
        (-1, "watched", "NONE")
    }
    rows = sealed_table(run, "metadata_offsets").to_pylist()
    assert {row["node"] for row in rows} == set(cluster.nodes)
    assert {row["source"] for row in rows} == {"quorum"}
    assert min(row["metadata_offset"] for row in rows) > 0
