"""A scenario states a cluster that migrates; what cannot be is refused in one line."""

from pathlib import Path

import pytest

from fencepost.clusters.kafka_migrating.releases import is_here
from fencepost.clusters.kafka_migrating.system import KafkaMigratingSpec
from fencepost.clusters.systems import ROLES, SYSTEMS, system_of
from fencepost.harness.scenario.scenario import Scenario, load_scenario
from fencepost.history.failure import UsageError


def stated(directory: Path, cluster: str, rest: str = "") -> Scenario:
    path = directory / "s.yaml"
    path.write_text(
        f"name: s\ncluster: {{system: kafka-migrating, {cluster}}}\ntopics: [{{name: t}}]\n"
        f"workload: {{kind: produce-poll}}\n{rest}"
    )
    return load_scenario(path, ())


def test_servers_start_before_controllers_and_these_before_brokers(tmp_path: Path) -> None:
    cluster = stated(tmp_path, "zookeepers: 1, controllers: 3, brokers: 2").cluster
    assert system_of(cluster).name == "kafka-migrating"
    names = (
        "zookeeper-1",
        *("controller-1", "controller-2", "controller-3"),
        *("broker-1", "broker-2"),
    )
    assert cluster.nodes == names
    assert dict(cluster.view_ids) == {"zookeeper-1": 2001, "broker-1": 1, "broker-2": 2}


def test_a_role_means_the_same_in_every_system() -> None:
    for system in SYSTEMS.values():
        assert [ROLES[role.name] for role in system.spec.roles] == list(system.spec.roles)


def test_the_cluster_that_it_becomes_has_the_same_settings() -> None:
    spec = KafkaMigratingSpec(controllers=3, brokers=2, release="3.6.0", settings={"a": "b"})
    assert (spec.kraft.controllers, spec.kraft.brokers, spec.kraft.release) == (3, 2, "3.6.0")
    assert spec.kraft.settings == {"a": "b"}


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ("controllers: 2", "cluster.controllers: expected 1, 3 or 5 controllers, found 2"),
        ("zookeepers: 2", "cluster.zookeepers: expected 1, 3 or 5 servers, found 2"),
        ("quorum: dynamic", "unknown key 'quorum'"),
        (
            "control_plane_listener: true",
            "cluster.control_plane_listener: KRaft controllers have none",
        ),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(tmp_path: Path, cluster: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        stated(tmp_path, cluster)
    assert message in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("release", "message"),
    [("3.4.1", "too old to migrate as 3.5 does"), ("4.0.0", "too new to run on ZooKeeper")],
)
def test_a_release_that_cannot_migrate_is_refused(release: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        is_here(release)


def test_a_broker_or_a_controller_may_be_the_active_one(tmp_path: Path) -> None:
    for node in ("broker-1", "controller-1"):
        play = f"play: [{{await: {{active_controller: {node}}}}}]\n"
        assert stated(tmp_path, "controllers: 1", play).play is not None
    with pytest.raises(UsageError, match="no such node: 'zookeeper-1'"):
        stated(tmp_path, "controllers: 1", "play: [{await: {active_controller: zookeeper-1}}]\n")
