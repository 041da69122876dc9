"""Our own brokers on a real ensemble, as stock clients see them and as a nemesis treats them.

The tests of a protocol share one cluster, and each leaves it whole.
"""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from waiting import kill_all

from fencepost.clusters.abilities import (
    DisturbsPackets,
    Kills,
    Pauses,
    Snapshots,
    Starts,
    Stops,
    Wipes,
)
from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka_port import Administers, BrokerCluster, Registers
from fencepost.clusters.port import NodeName
from fencepost.clusters.reference_zookeeper.driver import DRIVER, ReferenceZooKeeperCluster
from fencepost.clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
from fencepost.clusters.system import Wanted
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError

pytestmark = pytest.mark.kafka

Until = Callable[..., bool]
ONE, TWO, THREE = (NodeName(f"broker-{number}") for number in (1, 2, 3))
SERVER = NodeName("zookeeper-1")
QUIET = {"log_level": 0}


@pytest.fixture(scope="module", params=[2, 1], ids=["heartbeats", "direct"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ReferenceZooKeeperCluster]:
    spec = ReferenceZooKeeperSpec(inter_broker_protocol=request.param)
    with Warden(run_id="test") as warden:
        it = ReferenceZooKeeperCluster(
            spec,
            prepared=DRIVER.prepare(spec, Wanted(), print),
            site=Site(
                host=LocalHost(warden),
                directory=tmp_path_factory.mktemp("nodes"),
                clock=Clock.start(),
            ),
            rules_off=("host_garbage_removed",),
        )
        try:
            it.start()
            it.create_topics([TopicSpec(name="t", assignment=((1, 2, 3),))])
            yield it
        finally:
            kill_all(it)
            it.stop()


@pytest.fixture(autouse=True)
def _left_whole(cluster: ReferenceZooKeeperCluster, until: Until) -> Iterator[None]:
    yield
    assert until(lambda: is_whole(cluster))


def is_whole(cluster: ReferenceZooKeeperCluster) -> bool:
    try:
        view = cluster.view()
    except HarnessError:  # no server lets itself be read just now
        return False
    members = frozenset(cluster.view_ids.values())
    return view.is_whole(members) and not view.lagging


def controller(cluster: ReferenceZooKeeperCluster) -> NodeName:
    """The active controller; there is one."""
    found = cluster.leader_now()
    assert found is not None
    return found


def produced(cluster: ReferenceZooKeeperCluster, values: list[bytes]) -> None:
    """Produce and wait for every acknowledgement."""
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", **QUIET})
    for value in values:
        producer.produce("t", value, partition=0, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(60) == 0
    assert errors == [None] * len(values)


def consumed(cluster: ReferenceZooKeeperCluster, last: bytes) -> list[bytes]:
    """Every record of the partition, up to one with this value."""
    servers = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", **QUIET}
    consumer = Consumer({**servers, "enable.auto.commit": False})
    consumer.assign([TopicPartition("t", 0, 0)])
    found: list[bytes] = []
    try:
        while last not in found:
            [message] = consumer.consume(1, timeout=60)
            found.append(message.value())
    finally:
        consumer.close()
    return found


def test_it_has_the_abilities_of_processes_and_says_what_runs(
    cluster: ReferenceZooKeeperCluster,
) -> None:
    abilities = (Starts, Stops, Kills, Pauses, Wipes, Snapshots, DisturbsPackets)
    assert all(isinstance(cluster, one) for one in abilities)
    assert all(isinstance(cluster, one) for one in (BrokerCluster, Administers, Registers))
    assert cluster.versions["cluster"] == "reference-zookeeper"
    assert cluster.versions["rules_off"] == "host_garbage_removed"
    assert cluster.versions["zookeeper"] == "3.9.5"


def test_stock_clients_produce_and_read_what_they_produced(
    cluster: ReferenceZooKeeperCluster,
) -> None:
    produced(cluster, [b"a", b"b", b"c"])
    assert consumed(cluster, b"c")[-3:] == [b"a", b"b", b"c"]


def test_the_controller_makes_and_deletes_topics(
    cluster: ReferenceZooKeeperCluster, until: Until
) -> None:
    topic = TopicSpec(name="u", partitions=2, replication_factor=3)
    cluster.create_topic(topic, via=None, within_s=30)
    assert until(lambda: {"u-0", "u-1"} <= set(cluster.view().partitions))
    cluster.delete_topic("u", via=None, within_s=30)
    assert until(lambda: "u-0" not in cluster.view().partitions)
    assert until(lambda: cluster.log_end(ONE, "u-0") is None)


def test_a_killed_leader_is_replaced_and_joins_again(
    cluster: ReferenceZooKeeperCluster, until: Until
) -> None:
    produced(cluster, [b"before"])
    registered = cluster.latest_registration(ONE)
    cluster.kill_node(ONE)
    assert until(lambda: cluster.view().partitions["t-0"].leader in (2, 3))
    produced(cluster, [b"while it is away"])
    cluster.start_node(ONE)
    assert until(lambda: is_whole(cluster))
    assert cluster.latest_registration(ONE) > registered
    assert until(lambda: cluster.log_end(ONE, "t-0") == cluster.log_end(TWO, "t-0"))


def test_a_paused_controller_is_replaced_and_goes_on_as_a_broker(
    cluster: ReferenceZooKeeperCluster, until: Until
) -> None:
    before = controller(cluster)
    cluster.pause_node(before)
    assert until(lambda: cluster.leader_now() not in (None, before))
    cluster.resume_node(before)
    assert until(lambda: is_whole(cluster))
    assert controller(cluster) != before


def test_a_broker_that_is_asked_to_stop_hands_its_leaderships_over_first(
    cluster: ReferenceZooKeeperCluster, until: Until
) -> None:
    cluster.move_leader("t-0", 2, within_s=30)
    assert cluster.stop_node(TWO)
    assert cluster.view().partitions["t-0"].leader in (1, 3)
    cluster.start_node(TWO)
    assert until(lambda: is_whole(cluster))


def test_a_wiped_broker_takes_over_what_the_others_have(
    cluster: ReferenceZooKeeperCluster, until: Until
) -> None:
    produced(cluster, [b"kept"])
    cluster.kill_node(THREE)
    cluster.wipe_node(THREE)
    assert not any(cluster.data_of(THREE).iterdir())
    cluster.start_node(THREE)
    assert until(lambda: is_whole(cluster))
    assert until(lambda: cluster.log_end(THREE, "t-0") == cluster.log_end(ONE, "t-0"))


def test_the_only_server_is_restarted_and_nothing_is_lost(
    cluster: ReferenceZooKeeperCluster, until: Until
) -> None:
    produced(cluster, [b"first"])
    cluster.kill_node(SERVER)
    cluster.start_node(SERVER)
    assert until(lambda: is_whole(cluster))
    produced(cluster, [b"last"])
    assert b"first" in consumed(cluster, b"last")
