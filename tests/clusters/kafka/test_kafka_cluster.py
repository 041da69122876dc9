"""A real cluster of one controller and two brokers, and what is seen when something is done to it.

The tests share one cluster, and each leaves it whole.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from fencepost.clusters.abilities import Kills, Measures, Pauses, Snapshots, Starts, Stops, Wipes
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.formatting import directory_id_of
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.port import Cluster, NodeName, NodeState
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.failure import HarnessError, UsageError

pytestmark = pytest.mark.kafka

ONE, TWO, CONTROLLER = NodeName("broker-1"), NodeName("broker-2"), NodeName("controller-1")

Until = Callable[..., bool]


@pytest.fixture(scope="module")
def cluster(
    run_cluster: Callable[..., AbstractContextManager[KafkaCluster]], until: Until
) -> Iterator[KafkaCluster]:
    spec = KafkaSpec(brokers=2, release="4.3.1", settings={"replica.lag.time.max.ms": "2000"})
    with run_cluster(spec) as it:
        it.create_topics([TopicSpec(name="t", assignment=((2, 1), (1, 2)))])
        assert until(lambda: is_whole(it))
        yield it


@pytest.fixture(autouse=True)
def _left_whole(cluster: KafkaCluster, until: Until) -> Iterator[None]:
    yield
    assert until(lambda: is_whole(cluster), timeout_s=60)


def is_whole(cluster: KafkaCluster) -> bool:
    """Asked of each broker: for a while after a kill, the others do not know of it."""
    views = [cluster.view_by(broker) for broker in (ONE, TWO)]
    return all(
        view is not None
        and view.brokers == {1, 2}
        and all(len(seen.isr) == len(seen.replicas) for seen in view.partitions.values())
        for view in views
    )


def send(cluster: KafkaCluster, value: bytes, *, partition: int = 0) -> int:
    """Send a record to all replicas; its offset."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "acks": "all",
            "message.timeout.ms": 30000,
            "log_level": 0,
        }
    )
    offsets: list[int | None] = []
    producer.produce(
        "t", value, partition=partition, on_delivery=lambda _, sent: offsets.append(sent.offset())
    )
    assert producer.flush(30) == 0
    [offset] = offsets
    assert offset is not None
    return offset


def read(cluster: KafkaCluster, offset: int, *, partition: int = 0) -> bytes | None:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "log_level": 0}
    )
    try:
        consumer.assign([TopicPartition("t", partition, offset)])
        message = consumer.poll(30)
        return None if message is None else message.value()
    finally:
        consumer.close()


def log_of(cluster: KafkaCluster, node: NodeName) -> str:
    return "".join(log.read_text() for log in cluster.logs(node))


def test_it_is_a_cluster_with_every_ability(cluster: KafkaCluster) -> None:
    for ability in (Cluster, Starts, Stops, Kills, Pauses, Wipes, Snapshots, Measures):
        assert isinstance(cluster, ability)


def test_nodes_are_named_by_role_and_number_and_known_by_id(cluster: KafkaCluster) -> None:
    assert cluster.nodes == (CONTROLLER, ONE, TWO)
    assert [cluster.broker_id(node) for node in cluster.nodes] == [1001, 1, 2]
    assert [cluster.node_of(node_id) for node_id in (1001, 1, 2)] == list(cluster.nodes)


def test_versions_say_what_is_really_under_test(cluster: KafkaCluster) -> None:
    versions = cluster.versions
    assert (versions["kafka"], versions["metadata_version"]) == ("4.3.1", "4.3-IV0")
    assert len(versions["kafka_jars_sha256"]) == 64
    assert "AppInfoParser - Kafka version: 4.3.1" in log_of(cluster, ONE)


def test_explicit_replicas_are_where_the_assignment_says(cluster: KafkaCluster) -> None:
    view = cluster.view()
    assert view.partitions["t-0"].replicas == (2, 1)
    assert view.partitions["t-1"].replicas == (1, 2)


def test_clients_reach_it_by_its_bootstrap_servers(cluster: KafkaCluster) -> None:
    assert read(cluster, send(cluster, b"hello")) == b"hello"


def test_the_controller_says_that_it_leads(cluster: KafkaCluster) -> None:
    assert cluster.leader_now() == CONTROLLER


def test_topics_that_cannot_be_are_refused(cluster: KafkaCluster) -> None:
    for topic, message in (
        (TopicSpec(name="u", replication_factor=3), "there are 2 brokers"),
        (TopicSpec(name="u", assignment=((1, 9),)), "u cannot be created"),
        (TopicSpec(name="u/v", replication_factor=1), "Topic name is invalid"),
        (TopicSpec(name="u", replication_factor=1, settings={"x": "y"}), "Unknown topic config"),
    ):
        with pytest.raises(UsageError, match=message):
            cluster.create_topics([topic])
    with pytest.raises(HarnessError, match="already exists"):
        cluster.create_topics([TopicSpec(name="t", replication_factor=1)])


def test_usage_is_that_of_a_jvm(cluster: KafkaCluster) -> None:
    usage = cluster.usage(ONE)
    assert usage is not None
    assert usage.rss_bytes > 50 << 20
    assert usage.cpu_s > 0.1


def test_a_killed_broker_is_down_loses_its_lead_and_comes_back(
    cluster: KafkaCluster, until: Until
) -> None:
    said = len(log_of(cluster, TWO))
    cluster.kill_node(TWO)
    assert cluster.state(TWO) is NodeState.DOWN
    assert cluster.usage(TWO) is None
    assert until(lambda: cluster.view().partitions["t-0"].leader == 1)
    assert until(lambda: cluster.view().brokers == {1})
    assert cluster.view_by(TWO) is None
    cluster.start_node(TWO)
    assert cluster.state(TWO) is NodeState.RUNNING
    assert until(lambda: is_whole(cluster))
    # The log goes on: nothing of the earlier start is lost.
    assert log_of(cluster, TWO).count("Kafka Server started") >= 2
    assert len(log_of(cluster, TWO)) > said


def test_a_paused_broker_leaves_the_isr_holds_nobody_up_and_comes_back(
    cluster: KafkaCluster, until: Until
) -> None:
    cluster.pause_node(ONE)
    assert cluster.state(ONE) is NodeState.PAUSED
    assert until(lambda: cluster.view().partitions["t-1"].isr == (2,))
    assert cluster.leader_now() == CONTROLLER
    cluster.resume_node(ONE)
    assert cluster.state(ONE) is NodeState.RUNNING
    assert until(lambda: is_whole(cluster))


def test_a_stopped_broker_takes_its_leave(cluster: KafkaCluster, until: Until) -> None:
    assert cluster.stop_node(ONE)
    assert cluster.state(ONE) is NodeState.DOWN
    assert "shut down completed" in log_of(cluster, ONE)
    assert until(lambda: cluster.view().brokers == {2})
    cluster.start_node(ONE)


def test_a_paused_broker_that_is_stopped_has_to_be_killed(cluster: KafkaCluster) -> None:
    cluster.pause_node(ONE)
    assert not cluster.stop_node(ONE, timeout_s=0.2)
    assert cluster.state(ONE) is NodeState.DOWN
    cluster.start_node(ONE)


def files_of(data: Path) -> set[str]:
    return {path.name for path in data.iterdir()}


def test_a_wiped_broker_has_nothing_but_its_id_and_replicates_everything_again(
    cluster: KafkaCluster, until: Until
) -> None:
    offset = send(cluster, b"survives")
    with pytest.raises(HarnessError, match="broker-2 is running: only a node that is down can be"):
        cluster.wipe_node(TWO)
    cluster.kill_node(TWO)
    data = cluster.data_of(TWO)
    before = directory_id_of(data)
    assert "t-0" in files_of(data)
    cluster.wipe_node(TWO)
    assert files_of(data) == {"bootstrap.checkpoint", "meta.properties"}
    assert directory_id_of(data) != before
    assert "node.id=2\n" in (data / "meta.properties").read_text()
    cluster.start_node(TWO)
    assert until(lambda: is_whole(cluster), timeout_s=60)
    assert "t-0" in files_of(data)
    assert read(cluster, offset) == b"survives"


def test_a_wipe_may_keep_the_directory_id(cluster: KafkaCluster) -> None:
    cluster.kill_node(TWO)
    before = directory_id_of(cluster.data_of(TWO))
    cluster.wipe_node(TWO, keep_directory_id=True)
    assert directory_id_of(cluster.data_of(TWO)) == before
    cluster.start_node(TWO)


def test_a_rolled_back_broker_has_the_disk_of_the_snapshot(
    cluster: KafkaCluster, until: Until
) -> None:
    offset = send(cluster, b"before", partition=1)
    cluster.snapshot_node(TWO, "old")
    assert cluster.state(TWO) is NodeState.RUNNING
    cluster.snapshot_node(TWO, "old")
    assert send(cluster, b"after", partition=1) > offset
    log = cluster.data_of(TWO) / "t-1" / "00000000000000000000.log"
    assert until(lambda: b"after" in log.read_bytes())  # it may be out of the ISR for a while
    cluster.kill_node(TWO)
    cluster.rollback_node(TWO, "old")
    assert b"before" in log.read_bytes()
    assert b"after" not in log.read_bytes()
    cluster.start_node(TWO)
    assert until(lambda: is_whole(cluster))
    assert until(lambda: b"after" in log.read_bytes())


def test_a_snapshot_that_was_never_taken_is_named_beside_those_that_were(
    cluster: KafkaCluster,
) -> None:
    cluster.kill_node(ONE)
    with pytest.raises(HarnessError, match="broker-1 has no snapshot old; it has: none"):
        cluster.rollback_node(ONE, "old")
    with pytest.raises(UsageError, match="cannot name a snapshot"):
        cluster.snapshot_node(ONE, "../old")
    cluster.start_node(ONE)


def test_with_every_broker_down_a_view_says_so(cluster: KafkaCluster) -> None:
    for broker in (ONE, TWO):
        cluster.kill_node(broker)
    with pytest.raises(HarnessError, match="no broker answered; nodes: controller-1 running, "):
        cluster.view()
    assert cluster.leader_now() == CONTROLLER
    for broker in (ONE, TWO):
        cluster.start_node(broker)
    assert cluster.state(TWO) is NodeState.RUNNING


def test_a_wiped_controller_is_formatted_like_a_new_one(cluster: KafkaCluster) -> None:
    """Snapshot first: a lone controller takes the cluster's metadata with it."""
    cluster.kill_node(CONTROLLER)
    assert cluster.leader_now() is None
    cluster.snapshot_node(CONTROLLER, "whole")
    cluster.wipe_node(CONTROLLER)
    assert files_of(cluster.data_of(CONTROLLER)) == {"bootstrap.checkpoint", "meta.properties"}
    cluster.rollback_node(CONTROLLER, "whole")
    assert "__cluster_metadata-0" in files_of(cluster.data_of(CONTROLLER))
    cluster.start_node(CONTROLLER)
