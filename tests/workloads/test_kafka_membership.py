"""The membership workload against a real cluster: partitions move, and the record says so."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sealed_runs import sealed_table

from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.connection import NodeConnection
from fencepost.clusters.kafka.describing import ask_placement
from fencepost.clusters.port import NodeName
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock
from fencepost.history.run_directory import RunDirectory
from fencepost.workloads.journalled import JournalledWorkload, clients_way
from fencepost.workloads.kind import Setup
from fencepost.workloads.membership import build
from fencepost.workloads.membership_spec import MembershipSpec

pytestmark = pytest.mark.kafka

TOPIC = "moved"
MOVED = TopicSpec(name=TOPIC, partitions=4, replication_factor=2)
KEYS = MOVED.keys
WAIT_S = 90.0

Make = Callable[..., tuple[JournalledWorkload, RunDirectory]]


@pytest.fixture(scope="module")
def moved(cluster: KafkaCluster) -> None:
    cluster.create_topics([MOVED])


@pytest.fixture
def make(
    moved: None,  # noqa: ARG001  # its topic is there
    cluster: KafkaCluster,
    warden: Warden,
    tmp_path: Path,
) -> Iterator[Make]:
    made: list[JournalledWorkload] = []

    def of(spec: MembershipSpec) -> tuple[JournalledWorkload, RunDirectory]:
        run = RunDirectory.create(tmp_path, "test", datetime.now(UTC))
        nothing: Any = None  # is asked of what was prepared
        setup = Setup(
            cluster=cluster,
            prepared=nothing,
            topics=(MOVED,),
            warden=warden,
            run=run,
            clock=Clock.start(),
            seed=7,
            first_process=20,
        )
        workload = build(spec, setup)
        made.append(workload)
        return workload, run

    yield of
    for workload in made:
        workload.stop(timeout_s=0)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {WAIT_S:.0f} s: {what}"
        time.sleep(0.02)


def test_partitions_are_where_the_record_says_that_they_went(
    make: Make, cluster: KafkaCluster
) -> None:
    spec = MembershipSpec(rate=10, moves=24, replicas_min=1, replicas_max=3, cancel_share=0.0)
    workload, run = make(spec)
    workload.start()
    wait_until(lambda: workload.counts().ok >= 24, "the budget was used up")
    time_of_moves = workload.counts().invoked
    workload.stop(timeout_s=30)
    assert workload.failures() == ()
    rows = sealed_table(run, "partition_writes").to_pylist()
    assert len(rows) == time_of_moves == 24
    assert [row["index"] for row in rows] == list(range(24))
    assert {(row["f"], row["outcome"]) for row in rows} == {("reassign", "ok")}
    assert {row["node"] for row in rows} == {"broker-1", "broker-2", "broker-3"}
    assert {row["process"] for row in rows} == {20, 21}
    where: dict[int, list[int]] = {}
    been: dict[int, list[list[int]]] = {}
    for row in rows:
        assert row["call_ns"] < row["return_ns"] < row["over_ns"]
        assert 1 <= len(row["replicas"]) <= 3
        # It was asked of any broker, which may have been behind.
        places = been.setdefault(row["partition"], [row["replicas_before"]])
        assert row["replicas_before"] in places
        places.append(row["replicas"])
        where[row["partition"]] = row["replicas"]
    shown = cluster.view().partitions
    assert {n: list(shown[f"{TOPIC}-{n}"].replicas) for n in range(len(KEYS))} == where


def test_what_cannot_be_over_is_called_off_and_left_where_it_was(
    make: Make, cluster: KafkaCluster
) -> None:
    """A broker that is paused holds every move onto it."""
    spec = MembershipSpec(
        rate=20, movers=2, replicas_min=1, replicas_max=3, cancel_share=0.5, completion_limit_ms=500
    )
    workload, run = make(spec)
    workload.start()
    cluster.pause_node(NodeName("broker-3"))
    try:
        wait_until(lambda: called_off_count(workload, run) >= 1, "a move was called off")
    finally:
        cluster.resume_node(NodeName("broker-3"))
    workload.stop(timeout_s=30)
    assert workload.failures() == ()
    rows = sealed_table(run, "partition_writes").to_pylist()
    called_off = [row for row in rows if row["f"] == "cancel-reassignment"]
    assert any(row["outcome"] == "ok" and row["over_ns"] is not None for row in called_off)
    # Nothing is under way when it has ended.
    host_and_port = clients_way(cluster)[NodeName("broker-1")]

    def still(key: str) -> bool:
        topic, _, partition = key.rpartition("-")
        with NodeConnection(host_and_port, client_id="test") as connection:
            placement, _ = ask_placement(connection, topic, int(partition), timeout_s=60)
        return placement is not None and not placement.is_moving

    wait_until(lambda: all(still(key) for key in KEYS), "no partition is on its way")


def called_off_count(workload: JournalledWorkload, run: RunDirectory) -> int:
    """Cancellations that were granted and seen to be over."""
    assert not workload.failures()
    (journal,) = run.raw.glob("partition_writes.*.jsonl")
    whole, _, _ = journal.read_text().rpartition("\n")
    lines = [json.loads(line) for line in whole.splitlines()]
    asked = {line["begin"] for line in lines if line.get("f") == "cancel-reassignment"}
    return sum(line.get("end") in asked and line.get("over_ns") is not None for line in lines)
