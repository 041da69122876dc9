"""The settings of topics and brokers, as a broker reads them from ZooKeeper."""

from zk_cluster import Cluster

from fencepost.clusters.node_port.zookeeper import ZOOKEEPER
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.client import DescribeConfigsRequest
from fencepost.clusters.reference.nodes.messages.control import (
    AlterConfigsRequest,
    CreateTopicsRequest,
    NewTopic,
)

MIN_ISR = "min.insync.replicas"
TOPIC, BROKER = 2, 4


def described(cluster: Cluster, broker: int, kind: int, name: str) -> str:
    """The setting as this broker describes it."""
    request = DescribeConfigsRequest(0, ((kind, name, (MIN_ISR,)),))
    ((_, _, error, ((_, value, _),)),) = cluster.ask(broker, request).resources
    assert error == Error.NONE
    return str(value)


def alter(cluster: Cluster, kind: int, name: str, value: str | None) -> None:
    request = AlterConfigsRequest(0, ((kind, name, MIN_ISR, value),))
    response = cluster.ask(cluster.controller(), request)
    assert response.resources[0][2] == Error.NONE, response


def test_settings_of_a_new_topic_hold_for_its_first_record() -> None:
    cluster = Cluster().ready()
    key = (cluster.create("t", (1, 2), **{MIN_ISR: "3"}), 0)
    cluster.until(lambda: cluster.broker(1).replicas.leaders[key].min_isr == 3)
    assert cluster.produce(key, "a", broker=1) == Error.NOT_ENOUGH_REPLICAS
    cluster.until(lambda: described(cluster, 3, TOPIC, "t") == "3")


def test_a_leader_acknowledges_nothing_before_its_settings_are_read() -> None:
    cluster = Cluster().ready()
    leader = next(one for one in cluster.hosts if one != cluster.controller())
    cluster.block(ZOOKEEPER + 1, leader)
    topic = NewTopic("t", -1, -1, ((leader,),))
    cluster.ask(cluster.controller(), CreateTopicsRequest(0, (topic,), 1_000 * MS))
    cluster.until(lambda: bool(cluster.broker(leader).replicas.leaders))
    (key,) = cluster.broker(leader).replicas.leaders
    assert cluster.produce(key, "a", broker=leader) == Error.NOT_ENOUGH_REPLICAS
    cluster.heal(ZOOKEEPER + 1, leader)
    cluster.until(lambda: cluster.produce(key, "b", broker=leader) == Error.NONE)
    assert cluster.values(leader, key) == ["b"]


def test_nor_by_those_of_a_topic_of_the_same_name_that_was_deleted() -> None:
    cluster = Cluster().ready()
    leader = next(one for one in cluster.hosts if one != cluster.controller())
    cluster.create("t", (leader,))
    cluster.delete("t")
    cluster.until(lambda: not any(cluster.broker(one).image.topics for one in cluster.hosts))
    cluster.block(ZOOKEEPER + 1, leader)
    topic = NewTopic("t", -1, -1, ((leader,),), ((MIN_ISR, "2"),))
    cluster.ask(cluster.controller(), CreateTopicsRequest(0, (topic,), 1_000 * MS))
    cluster.until(lambda: bool(cluster.broker(leader).replicas.leaders))
    (key,) = cluster.broker(leader).replicas.leaders
    assert cluster.produce(key, "a", broker=leader) == Error.NOT_ENOUGH_REPLICAS


def test_changed_settings_reach_every_broker() -> None:
    cluster = Cluster().ready()
    key = (cluster.create("t", (1, 2)), 0)
    alter(cluster, TOPIC, "t", "2")
    for broker in cluster.hosts:
        cluster.until(lambda broker=broker: described(cluster, broker, TOPIC, "t") == "2")
    assert cluster.broker(1).replicas.leaders[key].min_isr == 2
    alter(cluster, TOPIC, "t", None)
    cluster.until(lambda: described(cluster, 1, TOPIC, "t") == "1")


def test_settings_of_all_brokers_and_of_one_are_told_apart() -> None:
    cluster = Cluster().ready()
    key = (cluster.create("t", (1, 2)), 0)
    alter(cluster, BROKER, "", "2")
    cluster.until(lambda: cluster.broker(1).replicas.leaders[key].min_isr == 2)
    alter(cluster, BROKER, "1", "3")
    cluster.until(lambda: cluster.broker(1).replicas.leaders[key].min_isr == 3)


def test_settings_are_read_again_by_a_new_process_and_after_a_lost_session() -> None:
    cluster = Cluster().ready()
    cluster.create("t", (1, 2))
    other = next(one for one in cluster.hosts if one != cluster.controller())
    cluster.kill(other)
    alter(cluster, TOPIC, "t", "2")
    cluster.start(other)
    cluster.until(cluster.is_ready)
    cluster.until(lambda: described(cluster, other, TOPIC, "t") == "2")


def test_settings_of_a_topic_made_again_are_its_own() -> None:
    cluster = Cluster().ready()
    cluster.create("t", (1, 2), **{MIN_ISR: "2"})
    cluster.delete("t")
    cluster.until(lambda: not cluster.broker(1).replicas.hosted)
    cluster.until(lambda: not any(cluster.broker(one).image.topics for one in cluster.hosts))
    key = (cluster.create("t", (1, 2)), 0)
    cluster.until(lambda: cluster.broker(1).replicas.leaders[key].min_isr == 1)
    assert described(cluster, 1, TOPIC, "t") == "1"
