"""Clusters that change while they run: another release, other feature levels, other members."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.features import finalised_by
from fencepost.clusters.kafka.preparation import with_levels, with_release
from fencepost.clusters.kafka.prepared import KafkaPrepared
from fencepost.clusters.kafka_port import KafkaSpec, Quorum
from fencepost.clusters.port import NodeName, NodeState
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError, UsageError

pytestmark = pytest.mark.kafka

CONTROLLER, BROKER, SPARE = map(NodeName, ("controller-1", "broker-1", "broker-2"))
OLD = KafkaSpec(controllers=1, brokers=1, release="3.9.2")
GROWING = KafkaSpec(controllers=1, brokers=1, spare_brokers=1)
DYNAMIC = KafkaSpec(controllers=3, brokers=1, quorum=Quorum.DYNAMIC)
T = TopicSpec(name="t", partitions=2, replication_factor=1)
WITHIN_S = 90.0

Prepares = Callable[[KafkaSpec], KafkaPrepared]


def cluster_of(
    spec: KafkaSpec, prepared: KafkaPrepared, warden: Warden, place: Path
) -> KafkaCluster:
    return KafkaCluster(
        spec,
        prepared=prepared,
        site=Site(host=LocalHost(warden), directory=place, clock=Clock.start()),
    )


def test_nodes_come_up_on_another_release_and_the_cluster_at_its_levels(
    prepared: Prepares, tmp_path: Path
) -> None:
    ready = with_release(prepared(OLD), "4.3.1", spec=OLD, progress=print)
    ready = with_levels(ready, "4.3", spec=OLD, progress=print)
    with Warden(run_id="test") as warden:
        cluster = cluster_of(OLD, ready, warden, tmp_path / "nodes")
        try:
            cluster.start()
            cluster.create_topics([T])
            for node in (CONTROLLER, BROKER):
                cluster.stop_node(node)
                assert "was of Kafka 3.9.2, and is of 4.3.1" in cluster.change_release(
                    node, "4.3.1"
                )
                cluster.start_node(node)
            cluster.await_follower(CONTROLLER, within_s=WITHIN_S)
            said = cluster.finalise("4.3", within_s=WITHIN_S)
            assert "metadata.version 21 → 30" in said
            port = cluster.bootstrap_servers.rpartition(":")[2]
            shown = finalised_by({BROKER: ("127.0.0.1", int(port))})[BROKER]
            assert shown["metadata.version"] == 30
            assert shown["transaction.version"] == 2
            assert "already" in cluster.finalise("4.3", within_s=WITHIN_S)
            with pytest.raises(HarnessError, match="was not prepared"):
                cluster.finalise("4.2", within_s=1.0)
        finally:
            cluster.stop()
        subjects = [change.subject for change in cluster.changes()]
        assert subjects[:2] == [CONTROLLER, BROKER]
        assert "metadata.version" in subjects
        raw = tmp_path / "raw"
        raw.mkdir()
        report = cluster.testify(raw, topics=["t"])
    assert not report.unknown_type_counts, "the records of both releases are known"
    assert not report.damages


def test_a_release_that_does_not_know_a_version_refuses_it_before_anything_starts(
    prepared: Prepares,
) -> None:
    with pytest.raises(UsageError, match=r'cannot start a cluster at metadata version "9\.9"'):
        with_levels(prepared(OLD), "9.9", spec=OLD, progress=print)


def test_a_broker_comes_and_another_goes_with_all_that_it_had(
    prepared: Prepares, tmp_path: Path
) -> None:
    with Warden(run_id="test") as warden:
        cluster = cluster_of(GROWING, prepared(GROWING), warden, tmp_path)
        try:
            cluster.start()
            assert cluster.state(SPARE) is NodeState.DOWN
            assert SPARE not in cluster.members()
            cluster.create_topics([T])
            cluster.add_node(SPARE, within_s=WITHIN_S)
            assert "2 replicas moved" in cluster.remove_node(BROKER, within_s=WITHIN_S)
            assert cluster.members() == {CONTROLLER, SPARE}
            view = cluster.view()
            assert view.brokers == {2}
            assert {key: one.replicas for key, one in view.partitions.items()} == {
                "t-0": (2,),
                "t-1": (2,),
            }
            cluster.wipe_node(BROKER)
            cluster.add_node(BROKER, within_s=WITHIN_S)
            assert cluster.view().brokers == {1, 2}
        finally:
            cluster.stop()


def test_a_controller_that_lost_its_disk_is_replaced(prepared: Prepares, tmp_path: Path) -> None:
    lost = NodeName("controller-2")
    with Warden(run_id="test") as warden:
        cluster = cluster_of(DYNAMIC, prepared(DYNAMIC), warden, tmp_path)
        try:
            cluster.start()
            cluster.kill_node(lost)
            assert "on 1 disks" in cluster.remove_node(lost, within_s=WITHIN_S)
            cluster.wipe_node(lost)
            assert "as a voter" in cluster.add_node(lost, within_s=WITHIN_S)
            assert lost in cluster.await_follower(lost, within_s=WITHIN_S)
        finally:
            cluster.stop()
