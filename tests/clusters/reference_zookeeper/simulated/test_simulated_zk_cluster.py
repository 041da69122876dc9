"""A simulated cluster of the ZooKeeper generation: what it can do, what it shows, its evidence."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fencepost.clusters.abilities import (
    Kills,
    Links,
    LosesPower,
    Pauses,
    Snapshots,
    Starts,
    Stops,
    Wipes,
)
from fencepost.clusters.kafka_port import Administers, LogEnds
from fencepost.clusters.kafka_zookeeper.view import KafkaZooKeeperView
from fencepost.clusters.port import Cluster, NodeName, NodeState
from fencepost.clusters.reference.nodes.configuration import S
from fencepost.clusters.reference.simulated.append_times import AppendTimes
from fencepost.clusters.reference.simulated.cluster import SimulatedCluster
from fencepost.clusters.reference_zookeeper.simulated.kit import ZkKit, build
from fencepost.clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.failure import UsageError
from fencepost.history.journal import journal_lines, journal_path

B1, B2, B3 = (NodeName(f"broker-{number}") for number in (1, 2, 3))
Z1 = NodeName("zookeeper-1")
TOPIC = TopicSpec(name="t", partitions=2, replication_factor=3)


def started(seed: int = 3, **spec: object) -> SimulatedCluster:
    cluster = build(ReferenceZooKeeperSpec(**spec), seed=seed)
    cluster.start()
    return cluster


def until(cluster: SimulatedCluster, what: Callable[[KafkaZooKeeperView], bool]) -> None:
    end_ns = cluster.world.now_ns + 30 * S
    while cluster.shown is None or not what(cluster.shown):
        assert cluster.world.now_ns < end_ns, cluster.shown
        cluster.run(20_000_000)


def is_whole(cluster: SimulatedCluster) -> Callable[[KafkaZooKeeperView], bool]:
    return lambda shown: shown.is_whole(frozenset(cluster.view_ids.values()))


def test_it_has_the_abilities_that_plays_ask_for() -> None:
    cluster = build(ReferenceZooKeeperSpec(), seed=1)
    abilities = (Starts, Stops, Kills, Pauses, Wipes, Snapshots, LosesPower, Links)
    for ability in (Cluster, *abilities, Administers, LogEnds):
        assert isinstance(cluster, ability)


@pytest.mark.parametrize("zookeepers", [1, 3])
def test_it_starts_makes_topics_and_ends_in_order(zookeepers: int) -> None:
    cluster = started(zookeepers=zookeepers)
    cluster.create_topics([TOPIC])
    shown = cluster.shown
    assert shown is not None
    assert set(shown.partitions) == {"t-0", "t-1"}
    assert set(shown.partitions["t-0"].isr) == {1, 2, 3}
    assert cluster.leader_now() in (B1, B2, B3)
    until(cluster, is_whole(cluster))
    cluster.run(S)
    cluster.stop()
    assert set(cluster.states.values()) == {NodeState.DOWN}
    assert [cluster.obituary(node) for node in cluster.nodes] == [
        f"{node} ended: cleanly" for node in cluster.nodes
    ]


def test_a_killed_broker_leaves_the_isr_and_registers_anew() -> None:
    cluster = started()
    cluster.create_topics([TOPIC])
    before = cluster.kit.sight.latest_registration(B1)
    assert before > 0
    cluster.kill_node(B1)
    until(cluster, lambda shown: 1 not in shown.brokers and shown.partitions["t-0"].isr == (2, 3))
    cluster.wipe_node(B1)
    cluster.start_node(B1)
    until(cluster, is_whole(cluster))
    assert cluster.kit.sight.latest_registration(B1) > before


def test_without_its_only_server_it_shows_nothing_and_comes_back_with_it() -> None:
    cluster = started()
    cluster.create_topics([TOPIC])
    cluster.kill_node(Z1)
    cluster.run(S)
    assert cluster.shown is None
    assert cluster.leader_now() is None
    cluster.start_node(Z1)
    until(cluster, is_whole(cluster))


def test_a_server_that_lost_its_disk_takes_over_what_the_others_have() -> None:
    cluster = started(zookeepers=3)
    cluster.create_topics([TOPIC])
    cluster.kill_node(Z1)
    cluster.wipe_node(Z1)
    cluster.start_node(Z1)
    cluster.run(S)
    until(cluster, is_whole(cluster))
    kit = cluster.kit
    assert isinstance(kit, ZkKit)
    ends = {kit.ensemble.log(host)[-1].zxid for host in kit.ensemble.hosts}
    assert len(ends) == 1


def test_the_same_seed_gives_the_same_world() -> None:
    digests = set()
    for _ in range(2):
        cluster = started(seed=5, zookeepers=3)
        cluster.kill_node(B2)
        cluster.run(5 * S)
        digests.add(cluster.versions["trace"])
    assert len(digests) == 1


def test_settings_reach_the_brokers_or_are_named() -> None:
    spec = {"settings": {"replica.lag.time.max.ms": "700", "log.cleaner.threads": "1"}}
    cluster = build(ReferenceZooKeeperSpec(**spec), seed=1)
    assert cluster.kit.configurations[B1].replica_lag_max_ns == 700_000_000
    assert cluster.kit.settings(B1)["replica.lag.time.max.ms"] == "700"
    assert cluster.kit.ignored_settings == ("log.cleaner.threads",)
    with pytest.raises(UsageError, match=r"replica\.lag\.time\.max\.ms"):
        build(ReferenceZooKeeperSpec(settings={"replica.lag.time.max.ms": "soon"}), seed=1)


def test_its_disks_are_evidence_as_those_of_a_real_ensemble(tmp_path: Path) -> None:
    cluster = started(zookeepers=3)
    with cluster.recorded(tmp_path, topics=["t"]):
        cluster.create_topics([TOPIC])
        cluster.kill_node(B1)
        until(cluster, lambda shown: sorted(shown.partitions["t-0"].isr) == [2, 3])
        cluster.stop()
    cluster.kit.write_witness(cluster.disks, tmp_path, topics=["t"], times=AppendTimes(0))
    shown = list(journal_lines(journal_path(tmp_path, "ensemble")))
    assert {one["node"] for one in shown} == {"zookeeper-1", "zookeeper-2", "zookeeper-3"}
    assert {one.get("mode") for one in shown} >= {"leader", "follower"}
    log = pq.read_table(tmp_path / "metadata_log.parquet").to_pylist()
    states = [
        (one["leader_epoch"], one["partition_epoch"], sorted(one["isr"]))
        for one in log
        if one["node"] == "zookeeper-1" and one["topic"] == "t" and one["partition"] == 0
    ]
    assert states[0] == (0, 0, [1, 2, 3])
    assert [2, 3] in [isr for *_, isr in states], "brokers that are stopped leave it, too"
    assert [epoch for _, epoch, _ in states] == list(range(len(states)))
    znodes = pq.read_table(tmp_path / "znodes.parquet").to_pylist()
    by_node = {
        node: {one["path"]: one["digest"] for one in znodes if one["node"] == node}
        for node in ("zookeeper-1", "zookeeper-2", "zookeeper-3")
    }
    assert by_node["zookeeper-1"] == by_node["zookeeper-2"] == by_node["zookeeper-3"]
    assert "/brokers/topics/t/partitions/1/state" in by_node["zookeeper-1"]
