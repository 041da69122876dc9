"""A simulated cluster whose nodes are controller and broker at once."""

from collections.abc import Callable

import pytest

from fencepost.clusters.abilities import CombinesRoles
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.port import NodeName, NodeState
from fencepost.clusters.reference.nodes.configuration import S
from fencepost.clusters.reference.simulated.cluster import SimulatedCluster
from fencepost.clusters.reference.simulated.quorum_kit import build
from fencepost.clusters.topic_spec import TopicSpec

B1, B2, B3 = (NodeName(f"broker-{number}") for number in (1, 2, 3))


def started(seed: int = 3, *, controllers: int = 3) -> SimulatedCluster:
    cluster = build(KafkaSpec(controllers=controllers, brokers=3, combined=True), seed=seed)
    cluster.start()
    return cluster


def until(cluster: SimulatedCluster, what: Callable[[], bool]) -> None:
    end_ns = cluster.world.now_ns + 60 * S
    while not what():
        assert cluster.world.now_ns < end_ns, cluster.watch.view
        cluster.run(20_000_000)


def whole(cluster: SimulatedCluster) -> bool:
    view = cluster.watch.view
    return view is not None and view.is_whole(frozenset({1, 2, 3}))


def test_there_are_brokers_and_no_other_node() -> None:
    cluster = started()
    assert isinstance(cluster, CombinesRoles)
    assert cluster.nodes == (B1, B2, B3)
    assert [cluster.broker_id(node) for node in cluster.nodes] == [1, 2, 3]
    until(cluster, lambda: cluster.leader_now() in cluster.nodes)
    assert {(one.source, one.target) for one in cluster.links()} >= {(B2, B1), (B1, B2)}


@pytest.mark.parametrize("controllers", [1, 3])
def test_an_operator_asks_the_active_controller_or_any_broker(controllers: int) -> None:
    cluster = started(controllers=controllers)
    until(cluster, lambda: cluster.leader_now() is not None)
    for name in (None, *cluster.nodes):
        topic = TopicSpec(name=f"by-{name}", partitions=1, replication_factor=3)
        assert cluster.create_topic(topic, via=name, within_s=10)


@pytest.mark.parametrize("wiped", [False, True])
def test_a_kill_of_the_active_controller_is_one_of_a_broker(*, wiped: bool) -> None:
    cluster = started()
    cluster.create_topics([TopicSpec(name="t", assignment=((1, 2, 3),))])
    until(cluster, lambda: cluster.leader_now() is not None)
    active = cluster.leader_now()
    assert active is not None
    cluster.kill_node(active)
    gone = cluster.broker_id(active)
    until(cluster, lambda: cluster.leader_now() not in (None, active))
    until(
        cluster,
        lambda: cluster.watch.view is not None and gone not in cluster.watch.view.taking_part,
    )
    if wiped:
        cluster.wipe_node(active)
    cluster.start_node(active)
    until(cluster, lambda: whole(cluster))


def test_a_clean_stop_ends_all_of_them() -> None:
    cluster = started()
    cluster.stop()
    assert {cluster.state(node) for node in cluster.nodes} == {NodeState.DOWN}


def test_a_seed_repeats_it() -> None:
    def digest(seed: int) -> str:
        cluster = started(seed)
        cluster.create_topics([TopicSpec(name="t", partitions=3)])
        return cluster.world.digest()

    assert digest(3) == digest(3)
    assert digest(3) != digest(4)
