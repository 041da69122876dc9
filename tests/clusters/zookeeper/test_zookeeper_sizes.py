"""Ensembles of one and of five servers, and of another release than all other tests start."""

from collections.abc import Callable
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.system import Wanted
from fencepost.clusters.zookeeper.driver import DRIVER, ZooKeeperCluster
from fencepost.clusters.zookeeper.system import ZooKeeperSpec
from fencepost.history.clock import Clock

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize(
    ("servers", "release"), [(1, "3.9.5"), (5, "3.9.5"), (3, "3.7.2")], ids=["one", "five", "older"]
)
def test_what_was_written_outlives_the_death_of_as_many_servers_as_may_die(
    servers: int, release: str, warden: Warden, until: Callable[..., bool], tmp_path: Path
) -> None:
    spec = ZooKeeperSpec(servers=servers, release=release)
    cluster = ZooKeeperCluster(
        spec,
        prepared=DRIVER.prepare(spec, Wanted(), print),
        site=Site(host=LocalHost(warden), directory=tmp_path, clock=Clock.start()),
    )
    assert cluster.versions["zookeeper"] == release
    everyone = frozenset(range(1, servers + 1))
    client = KazooClient(hosts=",".join(cluster.client_addresses()), timeout=4.0)
    try:
        cluster.start()
        client.start(timeout=30)
        client.create("/kept", b"1")
        dying = cluster.nodes[: max(1, servers // 2)]
        for node in dying:
            cluster.kill_node(node)
        if servers > 1:
            client.retry(client.set, "/kept", b"2")
        for node in dying:
            cluster.start_node(node)
        assert until(lambda: cluster.leader_now() is not None)
        assert until(lambda: cluster.view().is_whole(everyone))
        assert client.retry(client.get, "/kept")[0] == (b"2" if servers > 1 else b"1")
    finally:
        client.stop()
        client.close()
        cluster.stop()
