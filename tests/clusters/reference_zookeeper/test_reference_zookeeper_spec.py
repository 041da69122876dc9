"""A scenario states a reference cluster on ZooKeeper; what cannot be is refused in one line."""

from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.clusters.abilities import direct
from fencepost.clusters.kafka.configuration import nodes_of
from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.zk.rules import ZkRules
from fencepost.clusters.reference_zookeeper.configuration import ignored, properties
from fencepost.clusters.reference_zookeeper.simulated.driver import DRIVER as SIMULATED
from fencepost.clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
from fencepost.clusters.systems import MAKES, system_of
from fencepost.clusters.zookeeper.configuration import EnsembleServer
from fencepost.harness.prepare.reference import level_of, promises_of, release_like, rules_without
from fencepost.harness.scenario.scenario import Scenario, load_scenario
from fencepost.history.failure import UsageError

SERVER = EnsembleServer(
    name=NodeName("zookeeper-1"), number=1, client_port=2181, quorum_port=2, election_port=3
)


def stated(directory: Path, cluster: str) -> Scenario:
    path = directory / "s.yaml"
    path.write_text(
        f"name: s\ncluster: {{system: reference-zookeeper, {cluster}}}\ntopics: [{{name: t}}]\n"
        "workload: {kind: produce-poll}\n"
    )
    return load_scenario(path, ())


def properties_of(spec: ReferenceZooKeeperSpec, *rules_off: str) -> dict[str, str]:
    node = nodes_of(spec, ports=iter(range(9000, 9100)))[0]
    return properties(
        spec,
        node,
        servers=[SERVER],
        data=Path("/data"),
        hosts=Path("/hosts"),
        rules_off=rules_off,
        route=direct,
    )


def test_its_brokers_are_our_own_and_its_servers_zookeepers(tmp_path: Path) -> None:
    spec = stated(tmp_path, "zookeepers: 3, brokers: 2").cluster
    assert system_of(spec).makes[0] is MAKES["reference-zookeeper"]
    assert spec.nodes == ("zookeeper-1", "zookeeper-2", "zookeeper-3", "broker-1", "broker-2")
    assert (level_of(spec), release_like(spec)) == (2, "3.9.2")


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ("zookeepers: 2", "cluster.zookeepers: expected 1, 3 or 5 servers, found 2"),
        ("inter_broker_protocol: 3", "cluster.inter_broker_protocol: expected 1 or 2, found 3"),
        ("kafka: 3.4.1", "cluster.kafka: the reference brokers run no release of Kafka"),
        ("metadata_version: '3.4'", "unknown key 'metadata_version'"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(tmp_path: Path, cluster: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        stated(tmp_path, cluster)
    assert message in str(refused.value)


def test_a_broker_is_told_the_protocol_its_id_and_the_ensemble() -> None:
    settings = {"replica.lag.time.max.ms": "900", "log.cleaner.threads": "1"}
    spec = ReferenceZooKeeperSpec(inter_broker_protocol=1, settings=settings)
    found = properties_of(spec, "timeouts_ordered")
    assert found["zookeeper.connect"] == "zookeeper-1.quorum:2181"
    assert (found["broker.id"], found["inter.broker.protocol.version"]) == ("1", "1")
    assert (found["host.name"], found["replica.lag.time.max.ms"]) == ("broker-1.repl", "900")
    assert found["fencepost.rules.off"] == "timeouts_ordered"
    assert "log.cleaner.threads" not in found
    assert ignored(spec) == ("log.cleaner.threads",)


def test_a_rule_of_this_generation_can_be_left_out_and_an_unknown_one_not() -> None:
    assert not rules_without(["empty_isr_refused"], ZkRules()).empty_isr_refused
    with pytest.raises(UsageError, match="no such rule"):
        rules_without(["empty_isr_refused"], Rules())


def test_a_rule_is_switched_on_by_the_settings_in_virtual_time_too() -> None:
    switched_on = {"fencepost.rules.on": "member_incarnations_checked"}
    for settings, kept in (({}, False), (switched_on, True)):
        spec = ReferenceZooKeeperSpec(settings=settings)
        cluster = SIMULATED.simulate(spec, seed=1, rules_off=["empty_isr_refused"])
        assert cluster.kit.rules.member_incarnations_checked is kept
        assert not cluster.kit.rules.empty_isr_refused


def test_it_promises_leases_from_the_protocol_on_that_has_heartbeats(tmp_path: Path) -> None:
    for protocol in (1, 2):
        scenario = stated(tmp_path, f"brokers: 3, inter_broker_protocol: {protocol}")
        expected = replace(scenario.promises, leases=protocol > 1)
        assert promises_of(scenario) == expected


def test_brokers_are_told_no_id_in_virtual_time_alone() -> None:
    spec = ReferenceZooKeeperSpec(settings={"broker.id": "-1"})
    with pytest.raises(UsageError, match=r"broker\.id -1: .* in virtual time alone"):
        properties_of(spec)
    cluster = SIMULATED.simulate(spec, seed=1, rules_off=())
    told = cluster.kit.settings(NodeName("broker-2"))
    assert (told["broker.id"], told["host.name"]) == ("-1", "broker-2")
    assert told["fencepost.disk.broker.id"] == "2"
    cluster.start()
    assert cluster.view().brokers == {1, 2, 3}
