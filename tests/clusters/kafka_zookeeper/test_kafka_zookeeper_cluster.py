"""A real cluster on ZooKeeper, and what is seen when something is done to it. One for all tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from waiting import kill_all

from fencepost.clusters.abilities import (
    DisturbsPackets,
    Kills,
    LosesPower,
    Pauses,
    Skews,
    Snapshots,
    Squeezes,
    Starts,
    Stops,
    Throttles,
    TroublesDisks,
    Wipes,
)
from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.configuration import Listener
from fencepost.clusters.kafka_port import Administers, BrokerCluster, Registers
from fencepost.clusters.kafka_zookeeper.cluster import KafkaZooKeeperCluster
from fencepost.clusters.kafka_zookeeper.driver import DRIVER
from fencepost.clusters.kafka_zookeeper.system import KafkaZooKeeperSpec
from fencepost.clusters.port import NodeName
from fencepost.clusters.system import Wanted
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError

pytestmark = pytest.mark.kafka

Until = Callable[..., bool]
SPEC = KafkaZooKeeperSpec(brokers=2, control_plane_listener=True)
SERVER, FIRST, SECOND = SPEC.nodes


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaZooKeeperCluster]:
    with Warden(run_id="test") as warden:
        it = KafkaZooKeeperCluster(
            SPEC,
            prepared=DRIVER.prepare(SPEC, Wanted(), print),
            site=Site(
                host=LocalHost(warden),
                directory=tmp_path_factory.mktemp("nodes"),
                clock=Clock.start(),
            ),
        )
        try:
            it.start()
            it.create_topics([TopicSpec(name="t", replication_factor=2)])
            yield it
        finally:
            kill_all(it)
            it.stop()


@pytest.fixture(autouse=True)
def _left_whole(cluster: KafkaZooKeeperCluster, until: Until) -> Iterator[None]:
    yield
    assert until(lambda: is_whole(cluster))


def is_whole(cluster: KafkaZooKeeperCluster) -> bool:
    try:
        return cluster.view().is_whole(frozenset(cluster.view_ids.values()))
    except HarnessError:  # no server lets itself be read just now
        return False


def controller(cluster: KafkaZooKeeperCluster) -> NodeName:
    """The active controller; there is one."""
    found = cluster.leader_now()
    assert found is not None
    return found


def test_it_has_the_abilities_of_processes(cluster: KafkaZooKeeperCluster) -> None:
    abilities = (Starts, Stops, Kills, Pauses, Wipes, Snapshots, LosesPower, TroublesDisks)
    assert all(isinstance(cluster, one) for one in (*abilities, Skews, Throttles, Squeezes))
    assert isinstance(cluster, DisturbsPackets)
    assert isinstance(cluster, BrokerCluster)
    assert isinstance(cluster, Administers)
    assert isinstance(cluster, Registers)


def test_it_shows_what_the_znodes_have(cluster: KafkaZooKeeperCluster) -> None:
    view = cluster.view()
    assert view.brokers == view.serving == {1, 2}
    assert set(view.partitions["t-0"].isr) == {1, 2}
    assert list(view.names_of_ids.values()) == ["t"]
    assert cluster.view_ids[controller(cluster)] == view.controller


def test_a_killed_controller_is_replaced_and_started_when_its_session_has_ended(
    cluster: KafkaZooKeeperCluster, until: Until
) -> None:
    before = controller(cluster)
    registered = cluster.latest_registration(before)
    cluster.kill_node(before)
    cluster.start_node(before)
    assert until(lambda: is_whole(cluster))
    assert controller(cluster) != before
    assert cluster.latest_registration(before) > registered


def test_a_wiped_broker_takes_over_what_the_other_has(
    cluster: KafkaZooKeeperCluster, until: Until
) -> None:
    cluster.kill_node(SECOND)
    cluster.wipe_node(SECOND)
    assert not any(cluster.data_of(SECOND).iterdir())
    assert until(lambda: cluster.view().brokers == {1})
    cluster.start_node(SECOND)
    assert until(lambda: is_whole(cluster))
    assert until(lambda: cluster.log_end(SECOND, "t-0") == cluster.log_end(FIRST, "t-0"))


def test_a_server_that_is_away_shows_nothing_and_comes_back(
    cluster: KafkaZooKeeperCluster, until: Until
) -> None:
    cluster.kill_node(SERVER)
    assert cluster.leader_now() is None
    with pytest.raises(HarnessError, match="no server answered a read of its znodes"):
        cluster.view()
    cluster.start_node(SERVER)
    assert until(lambda: is_whole(cluster))


def test_every_link_leads_where_a_node_answers(cluster: KafkaZooKeeperCluster) -> None:
    ways = {(link.source, link.target) for link in cluster.links()}
    assert {(FIRST, SERVER), (SECOND, SERVER), (FIRST, SECOND), ("clients", FIRST)} <= ways
    assert ("clients", SERVER) not in ways
    assert all(cluster.answers(node, timeout_s=5.0) for node in cluster.nodes)


def test_the_controller_dials_the_others_on_a_listener_of_its_own(
    cluster: KafkaZooKeeperCluster,
) -> None:
    other = SECOND if controller(cluster) == FIRST else FIRST
    port = cluster.port_of(other, Listener.CONTROL_PLANE)
    dialled = [one.raddr.port for one in psutil.net_connections("tcp") if one.raddr]
    assert port in dialled
    assert port in [one.port for one in cluster.links() if one.target == other]


def test_the_disks_tell_of_replicas(cluster: KafkaZooKeeperCluster, tmp_path: Path) -> None:
    report = cluster.testify(tmp_path, topics=["t"])
    assert report.replica_count == 2
    assert not report.damaged
