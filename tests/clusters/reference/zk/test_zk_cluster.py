"""A whole cluster of the ZooKeeper generation in virtual time."""

from zk_cluster import Cluster


def test_a_cluster_elects_a_controller_and_serves_a_topic() -> None:
    cluster = Cluster().ready()
    key = (cluster.create("t", (1, 2, 3)), 0)
    assert cluster.produce(key, "a", "b", broker=1) == 0
    assert cluster.consume(key, broker=1) == ["a", "b"]
    cluster.until(lambda: cluster.values(2, key) == cluster.values(3, key) == ["a", "b"])
