"""An ensemble is of 1, 3 or 5 servers; what is the harness's own cannot be set."""

from pathlib import Path

import pytest

from fencepost.clusters.system import Make, System
from fencepost.clusters.systems import SYSTEMS
from fencepost.clusters.zookeeper.system import ZooKeeperSpec
from fencepost.harness.scenario.sections import parse_cluster
from fencepost.history.failure import SpecError
from fencepost.workloads.registry import KINDS


def test_servers_are_numbered_and_decide() -> None:
    spec = ZooKeeperSpec(servers=5)
    assert spec.nodes == tuple(f"server-{number}" for number in range(1, 6))
    assert all(role.serves_clients and role.decides for role in spec.roles)


def test_sessions_are_bounded_by_ticks_unless_the_settings_say_otherwise() -> None:
    assert ZooKeeperSpec().session_timeouts_ms == (400, 4000)
    stated = {"tickTime": "500", "maxSessionTimeout": "60000"}
    assert ZooKeeperSpec(settings=stated).session_timeouts_ms == (1000, 60000)


@pytest.mark.parametrize("servers", [1, 3, 5])
def test_an_odd_count_makes_an_ensemble(servers: int) -> None:
    assert parse_cluster({"system": "zookeeper", "servers": servers}) == ZooKeeperSpec(
        servers=servers
    )


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ({"servers": 2}, "1, 3 or 5 servers, found 2"),
        ({"servers": 4}, "1, 3 or 5 servers, found 4"),
        ({"servers": 0}, "1, 3 or 5 servers, found 0"),
        ({"brokers": 3}, "unknown key 'brokers'"),
        ({"kafka": "4.3.1"}, "unknown key 'kafka'"),
        ({"settings": {"dataDir": "/tmp"}}, "the harness makes dataDir itself"),
        ({"settings": {"server.1": "a:1:2"}}, "the harness makes server.1 itself"),
        ({"settings": {"tickTime": "soon"}}, "expected milliseconds, found 'soon'"),
        ({"settings": {"tickTime": 0}}, "expected milliseconds, found '0'"),
    ],
)
def test_what_cannot_be_is_refused(cluster: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_cluster({"system": "zookeeper", **cluster})


def test_a_workload_of_topics_is_not_for_an_ensemble() -> None:
    fitting = [word for word, kind in KINDS.items() if issubclass(ZooKeeperSpec, kind.for_clusters)]
    assert "produce-poll" not in fitting


def test_the_system_has_one_make_and_no_topics() -> None:
    system: System = SYSTEMS["zookeeper"]
    (make,) = system.makes
    assert isinstance(make, Make)
    assert make.title.format(release="3.9.5") == "ZooKeeper 3.9.5"
    assert not system.keyed
    assert Path(*make.driver_module.split(".")).with_suffix(".py").is_file()
