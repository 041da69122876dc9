"""Each server's files lead it to the others, over whatever the route puts in between."""

from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.clusters.zookeeper.configuration import (
    EnsembleServer,
    configuration,
    hosts_file,
    links_between,
)
from fencepost.clusters.zookeeper.system import SYSTEM, ZooKeeperSpec

SERVERS = tuple(
    EnsembleServer(
        name=NodeName(f"server-{number}"),
        number=number,
        client_port=1000 + number,
        quorum_port=2000 + number,
        election_port=3000 + number,
        address=f"10.0.0.{number}",
    )
    for number in (1, 2, 3)
)
ONE, TWO, THREE = SERVERS


def settings(spec: ZooKeeperSpec = ZooKeeperSpec()) -> dict[str, str]:  # noqa: B008  # frozen
    return configuration(spec, TWO, servers=SERVERS, data="/data")


def test_all_servers_are_known_by_name_with_their_two_ports() -> None:
    found = settings()
    assert found["server.1"] == "server-1.quorum:2001:3001"
    assert found["server.3"] == "server-3.quorum:2003:3003"
    assert (found["clientPort"], found["clientPortAddress"]) == ("1002", "10.0.0.2")
    assert found["dataDir"] == "/data"
    assert found["4lw.commands.whitelist"] == "*"


def test_bounds_follow_the_tick() -> None:
    assert (settings()["initLimit"], settings()["syncLimit"]) == ("50", "10")
    slow = settings(ZooKeeperSpec(settings={"tickTime": "2000"}))
    assert (slow["tickTime"], slow["initLimit"], slow["syncLimit"]) == ("2000", "5", "1")


def test_a_spec_wins_over_the_defaults() -> None:
    assert settings(ZooKeeperSpec(settings={"syncLimit": "3"}))["syncLimit"] == "3"


def test_a_server_finds_each_other_where_the_route_says_and_itself_directly() -> None:
    def route(source: NodeName, target: NodeName) -> str | None:
        return f"127.{source[-1]}.{target[-1]}.1" if target != THREE.name else None

    lines = hosts_file(TWO.name, servers=SERVERS, route=route).splitlines()
    assert "127.2.1.1 server-1.quorum" in lines
    assert "10.0.0.2 server-2.quorum" in lines
    assert "10.0.0.3 server-3.quorum" in lines


def test_servers_dial_each_other_on_two_ports_and_clients_all() -> None:
    links = links_between(SERVERS)
    assert {link.protocol for link in links} == SYSTEM.protocols
    ports = [link.port for link in links if (link.source, link.target) == (ONE.name, TWO.name)]
    assert ports == [3002, 2002], "the one on which every server listens is probed"
    assert [link.port for link in links if link.source == CLIENTS] == [1001, 1002, 1003]
    assert not any(link.source == link.target for link in links)
    assert len(links) == 3 * 2 * 2 + 3
