"""A real ensemble behind the proxy: read, held message by message, taped."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from kazoo.client import KazooClient
from waiting import until

from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.port import NodeName
from fencepost.clusters.system import Wanted
from fencepost.clusters.zookeeper.driver import DRIVER, ZooKeeperCluster
from fencepost.clusters.zookeeper.system import ZooKeeperSpec
from fencepost.harness.prepare.wiring import links_of, wired_route
from fencepost.history.clock import Clock
from fencepost.history.cluster_tables import write_cluster_tables
from fencepost.nemesis.wire.rules import Clause, Direction, Hold, Match, Operator, Rule
from fencepost.nemesis.wire.wire import Wire

pytestmark = pytest.mark.kafka

SPEC = ZooKeeperSpec(settings={"syncLimit": "100"})
"""Leader and follower wait 20 s for each other, so that what is held for a while parts nobody."""


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[tuple[ZooKeeperCluster, Wire]]:
    clock = Clock.start()
    with Warden(run_id="test") as warden, LocalHost(warden) as host:
        route = wired_route(SPEC.nodes, host=host, clients=True)
        cluster = ZooKeeperCluster(
            SPEC,
            prepared=DRIVER.prepare(SPEC, Wanted(), print),
            site=Site(host=host, directory=tmp_path / "nodes", clock=clock, route=route),
        )
        (tmp_path / "raw").mkdir()
        wire = Wire(
            links_of(cluster, route),
            warden=warden,
            directory=tmp_path / "raw",
            log=tmp_path / "proxy.log",
            clock=clock,
            answered=cluster.is_answered,
        )
        with wire:
            try:
                cluster.start()
                yield cluster, wire
            finally:
                cluster.stop()


def rows(tmp_path: Path) -> list[dict[str, Any]]:
    (tmp_path / "history").mkdir()
    write_cluster_tables(tmp_path / "raw", tmp_path / "history")
    found: list[dict[str, Any]] = pq.read_table(tmp_path / "history" / "wire.parquet").to_pylist()
    return found


def test_a_follower_without_commits_lags_until_they_are_released(
    ensemble: tuple[ZooKeeperCluster, Wire], tmp_path: Path
) -> None:
    cluster, wire = ensemble
    assert until(lambda: cluster.leader_now() is not None)
    leader = cluster.leader_now()
    follower, other = (name for name in cluster.nodes if name != leader)
    client = KazooClient(hosts=address_of(cluster, other), timeout=4.0)
    client.start(timeout=30)
    try:
        client.create("/held", b"0")
        assert until(lambda: lag(cluster, follower) == 0)
        commits = Match(direction=Direction.RESPONSE, api="COMMIT", sources=(follower,))
        wire.add(Rule(name="commits", action=Hold(), match=commits))
        client.set("/held", b"1")
        assert until(lambda: wire.status().rules["commits"].held_now == 1)
        client.set("/held", b"2")
        assert until(lambda: lag(cluster, follower) == 2)
        wire.release("commits")
        assert until(lambda: lag(cluster, follower) == 0)
        held_request(client, wire)
        taken_in_anew(cluster, follower)
    finally:
        client.stop()
        client.close()
    cluster.stop()
    wire.close()
    found = rows(tmp_path)
    held = [row for row in found if row["rule"] == "commits"]
    assert [(row["api"], row["action"], row["source"]) for row in held] == [
        ("COMMIT", "released", follower)
    ]
    assert held[0]["forwarded_ns"] > held[0]["time_ns"]
    apis = {row["api"] for row in found}
    assert apis >= {"InitialMessage", "Notification", "FOLLOWERINFO", "LEADERINFO", "NEWLEADER"}
    assert apis >= {"UPTODATE", "SNAP", "createSession", "setData"}
    assert not [row for row in found if "not decoded" in (row["detail"] or "")]


def held_request(client: KazooClient, wire: Wire) -> None:
    """A request that is held is late, and its session lives; nobody releases it."""
    named = (Clause(field="path", operator=Operator.IS, value="/held"),)
    wire.add(Rule(name="request", action=Hold(), match=Match(api="setData", where=named)))
    before = client.client_id
    assert client.set("/held", b"3").version == 3
    status = wire.status()
    assert status.rules["request"].delivered_count == 1
    assert client.client_id == before
    assert status.broken_count == 0


def taken_in_anew(cluster: ZooKeeperCluster, node: NodeName) -> None:
    """A server without its disk gets a snapshot."""
    cluster.kill_node(node)
    cluster.wipe_node(node)
    cluster.start_node(node)
    assert until(lambda: lag(cluster, node) == 0)


def lag(cluster: ZooKeeperCluster, node: NodeName) -> int | None:
    """How many transactions the leader is ahead; None: one of them does not say."""
    view, ids = cluster.view(), cluster.node_ids
    if view.leader not in view.servers or ids[node] not in view.servers:
        return None
    return view.zxid(view.leader) - view.zxid(ids[node])


def address_of(cluster: ZooKeeperCluster, node: NodeName) -> str:
    """Where clients find a server."""
    found: str = cluster.client_addresses()[cluster.node_ids[node] - 1]
    return found
