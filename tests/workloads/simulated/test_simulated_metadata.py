"""Clients of metadata in virtual time keep their promise: so many topics at a time."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sealed_runs import sealed_table

from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.nodes.configuration import S
from fencepost.clusters.reference.simulated.quorum_kit import build as build_quorum
from fencepost.clusters.reference_zookeeper.simulated.kit import build as build_on_zookeeper
from fencepost.clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.run_directory import RunDirectory
from fencepost.workloads.metadata_spec import MetadataSpec
from fencepost.workloads.simulated.metadata import SimulatedMetadata

SPEC = MetadataSpec(write_rate=12, read_rate=12, topics=3)


class Run:
    """A cluster and its clients of metadata."""

    def __init__(self, cluster: Any, root: Path) -> None:
        self.cluster = cluster
        self.run = RunDirectory(root)
        self.run.raw.mkdir(parents=True)
        cluster.start()
        self.workload = SimulatedMetadata(SPEC, cluster, raw=self.run.raw, seed=5)
        self.workload.start()

    def go(self, seconds: float) -> None:
        self.cluster.run(int(seconds * S))

    def topics(self) -> set[str]:
        """The topics of the clients that brokers show."""
        keys = self.cluster.view().partitions
        return {topic for key in keys if (topic := key.rpartition("-")[0]).startswith("m-")}

    def ended(self) -> list[dict[str, Any]]:
        """Stop; the writes, in order."""
        self.workload.stop(30.0)
        tables = (sealed_table(self.run, name) for name in ("metadata_writes", "partition_writes"))
        return [row for table in tables for row in table.to_pylist()]


@pytest.fixture
def on_quorum(tmp_path: Path) -> Run:
    return Run(build_quorum(KafkaSpec(controllers=3), seed=11), tmp_path)


def test_topics_of_writes_without_an_answer_are_cleared(on_quorum: Run) -> None:
    for number in (1, 2, 3, 1):
        controller = NodeName(f"controller-{number}")
        broker = NodeName(f"broker-{number}")
        on_quorum.go(3)
        on_quorum.cluster.pause_node(broker)
        on_quorum.cluster.kill_node(controller)
        on_quorum.go(8)
        on_quorum.cluster.resume_node(broker)
        on_quorum.cluster.start_node(controller)
    on_quorum.go(10)
    assert len(on_quorum.topics()) <= SPEC.topics
    unclear = Counter(row["f"] for row in on_quorum.ended() if row["outcome"] == "info")
    assert {"create-topic", "delete-topic"} <= set(unclear)


def test_a_topic_that_comes_when_nobody_waits_for_it_is_found_and_deleted(on_quorum: Run) -> None:
    on_quorum.go(2)
    on_quorum.cluster.create_topics([TopicSpec(name="m-000300"), TopicSpec(name="m-000301")])
    on_quorum.go(12)
    assert not on_quorum.topics() & {"m-000300", "m-000301"}
    assert len(on_quorum.topics()) <= SPEC.topics


def test_where_brokers_pass_nothing_on_the_controller_is_asked(tmp_path: Path) -> None:
    run = Run(build_on_zookeeper(ReferenceZooKeeperSpec(), seed=11), tmp_path)
    run.go(20)
    controller = run.cluster.leader_now()
    run.cluster.kill_node(controller)
    run.go(20)
    run.cluster.start_node(controller)
    run.go(20)
    assert len(run.topics()) <= SPEC.topics
    rows = run.ended()
    answers = Counter((row["f"], row["outcome"]) for row in rows)
    for f in ("create-topic", "alter-config", "create-partitions", "delete-topic"):
        assert answers[f, "ok"] > 20, answers
    refused = [row for row in rows if row["error"] == "NOT_CONTROLLER"]
    assert {row["outcome"] for row in refused} == {"fail"}
    assert len(refused) < 0.1 * len(rows)
