"""A real ensemble of three, and what is seen when something is done to it. One for all tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from waiting import kill_all, leading

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
from fencepost.clusters.port import Observable
from fencepost.clusters.system import Wanted
from fencepost.clusters.zookeeper.driver import DRIVER, ZooKeeperCluster
from fencepost.clusters.zookeeper.system import ZooKeeperSpec
from fencepost.history.clock import Clock
from fencepost.history.journal import journal_lines, journal_path

pytestmark = pytest.mark.kafka

Until = Callable[..., bool]
NUMBERS = frozenset({1, 2, 3})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperCluster]:
    spec = ZooKeeperSpec()
    with Warden(run_id="test") as warden:
        it = ZooKeeperCluster(
            spec,
            prepared=DRIVER.prepare(spec, Wanted(), print),
            site=Site(
                host=LocalHost(warden),
                directory=tmp_path_factory.mktemp("nodes"),
                clock=Clock.start(),
            ),
        )
        try:
            it.start()
            yield it
        finally:
            kill_all(it)
            it.stop()


@pytest.fixture(autouse=True)
def _left_whole(cluster: ZooKeeperCluster, until: Until) -> Iterator[None]:
    yield
    assert until(lambda: is_whole(cluster))


@pytest.fixture
def client(cluster: ZooKeeperCluster) -> Iterator[KazooClient]:
    made = KazooClient(hosts=",".join(cluster.client_addresses()), timeout=4.0)
    made.start(timeout=30)
    yield made
    made.stop()
    made.close()


def is_whole(cluster: ZooKeeperCluster) -> bool:
    return cluster.view().is_whole(NUMBERS)


def test_it_has_the_abilities_of_processes(cluster: ZooKeeperCluster) -> None:
    abilities = (Starts, Stops, Kills, Pauses, Wipes, Snapshots, LosesPower, TroublesDisks)
    assert all(isinstance(cluster, one) for one in (*abilities, Skews, Throttles, Squeezes))
    assert isinstance(cluster, DisturbsPackets)
    assert isinstance(cluster, Observable)


def test_a_killed_leader_is_replaced_and_comes_back_with_what_was_written(
    cluster: ZooKeeperCluster, client: KazooClient, until: Until
) -> None:
    client.create("/killed", b"1")
    leader = leading(cluster)
    cluster.kill_node(leader)
    assert until(lambda: cluster.leader_now() not in (None, leader))
    assert until(lambda: client.connected)
    client.retry(client.set, "/killed", b"2")
    cluster.start_node(leader)
    assert until(lambda: is_whole(cluster))
    alone = KazooClient(hosts=cluster.client_addresses()[cluster.node_ids[leader] - 1])
    alone.start(timeout=30)
    try:
        alone.sync("/killed")
        assert alone.get("/killed")[0] == b"2"
    finally:
        alone.stop()
        alone.close()


def test_a_wiped_server_takes_over_all_that_the_others_have(
    cluster: ZooKeeperCluster, client: KazooClient, until: Until
) -> None:
    client.create("/wiped", b"kept")
    node = next(name for name in cluster.nodes if name != leading(cluster))
    cluster.kill_node(node)
    cluster.wipe_node(node)
    data = cluster.data_of(node)
    assert [path.name for path in data.iterdir()] == ["myid"]
    cluster.start_node(node)
    assert until(lambda: is_whole(cluster))
    assert cluster.view().zxid(cluster.node_ids[node]) > 0


def test_a_paused_follower_takes_no_part_and_the_others_go_on(
    cluster: ZooKeeperCluster, client: KazooClient, until: Until
) -> None:
    node = next(name for name in cluster.nodes if name != leading(cluster))
    cluster.pause_node(node)
    try:
        assert until(lambda: cluster.view().taking_part == NUMBERS - {cluster.node_ids[node]})
        assert until(lambda: client.connected)
    finally:
        cluster.resume_node(node)
    assert until(lambda: is_whole(cluster))


def test_each_probe_of_a_server_that_runs_is_answered_and_of_a_dead_one_is_not(
    cluster: ZooKeeperCluster, until: Until
) -> None:
    node = cluster.nodes[0]
    ends = [end for end in cluster.links() if end.target == node]
    elections = next(end.port for end in ends if end.source != "clients")
    clients = next(end.port for end in ends if end.source == "clients")
    for port in (elections, clients):
        assert cluster.is_answered(node, ("127.0.0.1", port), timeout_s=10.0)
    cluster.kill_node(node)
    for port in (elections, clients):
        assert not cluster.is_answered(node, ("127.0.0.1", port), timeout_s=1.0)
    cluster.start_node(node)
    assert until(lambda: is_whole(cluster))


def test_what_servers_show_is_recorded(
    cluster: ZooKeeperCluster, until: Until, tmp_path: Path
) -> None:
    def rows() -> list[dict[str, object]]:
        return list(journal_lines(journal_path(tmp_path, "ensemble")))

    with cluster.watch(tmp_path, topics=()):
        assert until(lambda: len(rows()) >= 2 * len(NUMBERS), timeout_s=30)
    found = rows()
    assert {row["node"] for row in found} == set(cluster.nodes)
    assert {row["node"] for row in found if row["mode"] == "leader"} == {leading(cluster)}
    assert all(row["serving"] for row in found)


def test_the_logs_tell_where_they_end(
    cluster: ZooKeeperCluster, client: KazooClient, tmp_path: Path
) -> None:
    client.create("/end", b"")
    ends = cluster.testify(tmp_path, topics=())
    assert ends.damaged == ()
    assert max(ends.last_zxids.values()) >= client.exists("/end").czxid
