"""A simulated cluster keeps the promises of `clusters.port`, in virtual time."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.clusters.abilities import (
    Explains,
    Kills,
    Links,
    LosesPower,
    Pauses,
    Snapshots,
    Starts,
    Stops,
    Wipes,
)
from fencepost.clusters.kafka_port import Administers, ClusterView, KafkaSpec, LogEnds
from fencepost.clusters.node_port.storage import META_PROPERTIES
from fencepost.clusters.port import Cluster, NodeName, NodeState
from fencepost.clusters.reference.nodes.configuration import S
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.simulated.cluster import SimulatedCluster
from fencepost.clusters.reference.simulated.nodes import configured, ignored
from fencepost.clusters.reference.simulated.quorum_kit import build
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.failure import HarnessError, UsageError

B1, B2, B3 = (NodeName(f"broker-{number}") for number in (1, 2, 3))
C1 = NodeName("controller-1")


def _started(seed: int = 3, **spec: object) -> SimulatedCluster:
    cluster = build(KafkaSpec(**{"brokers": 3, **spec}), seed=seed)
    cluster.start()
    return cluster


def _until(cluster: SimulatedCluster, what: Callable[[ClusterView], bool]) -> None:
    """A broker that died delays all reads of metadata until it is fenced: no view, meanwhile."""
    end_ns = cluster.world.now_ns + 30 * S
    while cluster.watch.view is None or not what(cluster.watch.view):
        assert cluster.world.now_ns < end_ns, cluster.watch.view
        cluster.run(20_000_000)


def test_it_has_the_abilities_that_plays_ask_for() -> None:
    cluster = build(KafkaSpec(), seed=1)
    for ability in (
        Cluster,
        Starts,
        Stops,
        Kills,
        Pauses,
        Wipes,
        Snapshots,
        Administers,
        LogEnds,
        LosesPower,
        Explains,
        Links,
    ):
        assert isinstance(cluster, ability), ability


def test_a_started_cluster_shows_all_brokers_and_its_topics_have_leaders() -> None:
    cluster = _started(controllers=3)
    cluster.create_topics([TopicSpec(name="t", partitions=3)])
    view = cluster.view()
    assert view.brokers == view.serving == frozenset({1, 2, 3})
    assert {key: one.isr for key, one in view.partitions.items()}.keys() == {"t-0", "t-1", "t-2"}
    assert all(set(one.isr) == {1, 2, 3} for one in view.partitions.values())
    assert cluster.leader_now() in cluster.nodes[:3]
    assert list(view.topic_ids.values()) == ["t"]


def test_a_killed_broker_is_fenced_and_back_after_its_start() -> None:
    cluster = _started()
    cluster.kill_node(B2)
    assert cluster.state(B2) is NodeState.DOWN
    _until(cluster, lambda view: 2 not in view.brokers)
    cluster.start_node(B2)
    _until(cluster, lambda view: 2 in view.brokers & view.serving)


def test_a_paused_broker_keeps_its_process_and_does_not_serve() -> None:
    cluster = _started()
    cluster.pause_node(B2)
    assert cluster.state(B2) is NodeState.PAUSED
    _until(cluster, lambda view: 2 not in view.brokers)
    cluster.resume_node(B2)
    _until(cluster, lambda view: 2 in view.serving)
    with pytest.raises(HarnessError, match="not paused"):
        cluster.resume_node(B2)


def test_a_stopped_broker_goes_by_itself_and_its_leaderships_before_it() -> None:
    cluster = _started()
    cluster.create_topics([TopicSpec(name="t", assignment=((1, 2, 3),))])
    assert cluster.stop_node(B1)
    assert cluster.obituary(B1) == "broker-1 ended: cleanly"
    assert cluster.view().partitions["t-0"].leader in (2, 3)


def test_a_wiped_disk_is_formatted_anew_with_another_directory_unless_it_keeps_it() -> None:
    cluster = _started()
    with pytest.raises(HarnessError, match="in use"):
        cluster.wipe_node(B3)
    cluster.kill_node(B3)
    disk = cluster.host(B3).disk
    before = disk.files[META_PROPERTIES]
    cluster.wipe_node(B3, keep_directory_id=True)
    assert disk.files[META_PROPERTIES] == before
    cluster.wipe_node(B3)
    assert disk.files[META_PROPERTIES].directory_id != before.directory_id
    assert disk.batch_count == 0
    cluster.start_node(B3)
    _until(cluster, lambda view: 3 in view.serving)


def test_a_copy_of_a_disk_can_be_put_back_and_only_one_that_there_is() -> None:
    cluster = _started()
    cluster.snapshot_node(B1, "before")
    cluster.kill_node(B1)
    with pytest.raises(HarnessError, match="no snapshot 'other'"):
        cluster.rollback_node(B1, "other")
    cluster.rollback_node(B1, "before")
    cluster.start_node(B1)
    _until(cluster, lambda view: 1 in view.serving)


def test_a_node_without_power_says_what_it_lost_and_comes_back() -> None:
    cluster = _started()
    assert "that it had written are lost" in cluster.cut_power([C1])
    assert cluster.state(C1) is NodeState.DOWN
    cluster.start_node(C1)
    _until(cluster, lambda _: cluster.leader_now() == C1)


def test_leaders_and_replicas_are_moved_as_an_operator_asks() -> None:
    cluster = _started()
    cluster.create_topics([TopicSpec(name="t", assignment=((1, 2),))])
    cluster.move_leader("t-0", 2, within_s=30)
    assert cluster.view().partitions["t-0"].leader == 2
    cluster.reassign("t-0", (3, 1), within_s=30)
    assert cluster.view().partitions["t-0"].replicas == (3, 1)
    cluster.kill_node(B2)
    assert "granted" in cluster.reassign("t-0", (2, 1), within_s=30, awaited=False)
    assert set(cluster.view().partitions["t-0"].replicas) == {1, 2, 3}
    cluster.start_node(B2)
    _until(cluster, lambda _: cluster.view().partitions["t-0"].replicas == (2, 1))
    with pytest.raises(HarnessError, match="cannot lead"):
        cluster.move_leader("t-0", 3, within_s=30)
    assert cluster.create_topic(TopicSpec(name="u"), via=B2, within_s=30) == "created topic u"
    with pytest.raises(HarnessError, match="TOPIC_ALREADY_EXISTS"):
        cluster.create_topic(TopicSpec(name="u"), via=None, within_s=30)


def test_a_cluster_without_a_controller_says_so_in_time() -> None:
    cluster = _started()
    cluster.kill_node(C1)
    begin_ns = cluster.world.now_ns
    with pytest.raises(HarnessError, match="could not create topic t in time"):
        cluster.create_topic(TopicSpec(name="t"), via=None, within_s=3)
    assert cluster.world.now_ns - begin_ns < 10 * S


def test_every_node_is_down_after_the_stop_also_a_paused_one() -> None:
    cluster = _started()
    cluster.pause_node(B2)
    cluster.stop()
    assert {cluster.state(node) for node in cluster.nodes} == {NodeState.DOWN}


def test_settings_have_kafkas_names_and_units() -> None:
    found = configured(
        {"broker.session.timeout.ms": "2000", "min.insync.replicas": "2"},
        node_id=1,
        is_controller=False,
        voters=(1001,),
        cluster_id="c",
    )
    assert found.lease_timeout_ns == 2 * S
    assert found.min_insync_replicas == 2
    assert ignored({"log.cleaner.threads": "1", "replica.lag.time.max.ms": "5"}) == (
        "log.cleaner.threads",
    )
    with pytest.raises(UsageError, match=r"broker\.session\.timeout\.ms: expected a whole number"):
        build(KafkaSpec(settings={"broker.session.timeout.ms": "soon"}), seed=1)


def test_levels_are_one_to_three() -> None:
    assert build(KafkaSpec(metadata_version="1"), seed=1).kit.level == 1
    assert build(KafkaSpec(), seed=1).kit.level == 3
    with pytest.raises(UsageError, match="1, 2, 3"):
        build(KafkaSpec(metadata_version="3.5"), seed=1)


def test_the_rules_that_are_off_are_named_in_the_versions() -> None:
    cluster = build(KafkaSpec(), seed=1, rules=Rules().without("one_vote"))
    assert cluster.versions["rules_off"] == "one_vote"


def test_nobody_changes_a_message_under_way() -> None:
    cluster = build(KafkaSpec(controllers=3, brokers=3), seed=4, witnessed=True)
    cluster.start()
    cluster.create_topics([TopicSpec(name="t", partitions=3)])
    cluster.kill_node(B1)
    cluster.run(8 * S)
    cluster.start_node(B1)
    _until(cluster, lambda view: view.serving == {1, 2, 3})


_PROGRAM = """
from fencepost.clusters.kafka_port import KafkaSpec, TopicSpec
from fencepost.clusters.reference.simulated.quorum_kit import build
cluster = build(KafkaSpec(controllers=3, brokers=3), seed=9, witnessed=True)
cluster.start()
cluster.create_topics([TopicSpec(name="t", partitions=4)])
cluster.kill_node("broker-2")
cluster.run(6_000_000_000)
cluster.start_node("broker-2")
cluster.run(6_000_000_000)
print(cluster.world.event_count, cluster.world.digest())
"""


@pytest.mark.slow
def test_all_that_nodes_say_is_the_same_under_any_hash_seed() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[4],
            capture_output=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("0", "1", "42")
    }
    assert len(found) == 1
