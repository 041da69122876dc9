"""A scenario states a cluster on ZooKeeper; what cannot be is refused in one line each."""

from itertools import count
from pathlib import Path

import pytest

from fencepost.clusters.kafka.configuration import links_between, nodes_of
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.kafka_zookeeper.configuration import (
    properties,
    refuse_control_plane,
    session_timeout_ms,
)
from fencepost.clusters.kafka_zookeeper.releases import is_here
from fencepost.clusters.kafka_zookeeper.system import KafkaZooKeeperSpec
from fencepost.clusters.port import NodeName
from fencepost.clusters.systems import SYSTEMS, kinds_of_node, system_of
from fencepost.clusters.zookeeper.configuration import EnsembleServer
from fencepost.harness.scenario.scenario import Scenario, load_scenario
from fencepost.history.failure import UsageError
from fencepost.nemesis.messages import sent_by

SMOKE = """
name: s
cluster: {controllers: 3, brokers: 3, kafka: 4.3.1}
topics: [{name: t}]
workload: {kind: produce-poll}
"""
SYSTEM_FLAG = (("cluster", "system"), "kafka-zookeeper", "--system")


def loaded(directory: Path, text: str, *flags: tuple[tuple[str, ...], object, str]) -> Scenario:
    path = directory / "s.yaml"
    path.write_text(text)
    return load_scenario(path, flags)


def stated(directory: Path, cluster: str, rest: str = "") -> Scenario:
    return loaded(
        directory,
        f"name: s\ncluster: {{system: kafka-zookeeper, {cluster}}}\ntopics: [{{name: t}}]\n"
        f"workload: {{kind: produce-poll}}\n{rest}",
    )


def test_servers_are_nodes_that_decide_and_brokers_those_that_serve(tmp_path: Path) -> None:
    cluster = stated(tmp_path, "zookeepers: 3, brokers: 2, kafka: 3.4.1").cluster
    assert system_of(cluster).name == "kafka-zookeeper"
    names = ("zookeeper-1", "zookeeper-2", "zookeeper-3", "broker-1", "broker-2")
    assert cluster.nodes == names
    assert [kinds_of_node(node)[0].decides for node in cluster.nodes] == [True] * 3 + [False] * 2
    assert dict(cluster.view_ids) == dict(zip(names, (2001, 2002, 2003, 1, 2), strict=True))


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ("zookeepers: 2", "cluster.zookeepers: expected 1, 3 or 5 servers, found 2"),
        ("brokers: 10", "cluster.brokers: expected 1 to 9 brokers, found 10"),
        ("servers: 3", "unknown key 'servers'"),
        ("controllers: 1", "unknown key 'controllers'"),
        ("metadata_version: '3.4'", "unknown key 'metadata_version'"),
        ("zookeeper_settings: {dataDir: /tmp}", "the harness makes dataDir itself"),
        ("zookeeper_settings: {tickTime: soon}", "expected milliseconds, found 'soon'"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(tmp_path: Path, cluster: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        stated(tmp_path, cluster)
    assert message in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("release", "message"),
    [
        ("4.0.0", "too new to run on ZooKeeper"),
        ("4.3.1", "too new to run on ZooKeeper"),
        ("1.1.1", "too old"),
        ("newest", "is not a release of Kafka"),
    ],
)
def test_a_release_of_another_generation_is_refused(release: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        is_here(release)


def test_a_scenario_of_kafkas_is_laid_over_it(tmp_path: Path) -> None:
    text = f"""{SMOKE}
nemesis: {{faults: [kill], down: {{brokers: 1, controllers: 1}},
          targets: [one broker, one controller, all controllers, active controller, leader]}}
"""
    scenario = loaded(tmp_path, text, SYSTEM_FLAG, (("cluster", "kafka"), "3.4.1", "--kafka"))
    assert scenario.cluster == KafkaZooKeeperSpec(zookeepers=3, release="3.4.1")
    assert scenario.mix is not None
    assert dict(scenario.mix.down) == {"broker": 1, "zookeeper": 1}
    assert scenario.mix.targets == (
        *("one broker", "one zookeeper", "all zookeepers", "active controller", "leader"),
    )


def test_the_release_of_a_scenario_that_is_laid_over_it_is_left_behind(tmp_path: Path) -> None:
    assert loaded(tmp_path, SMOKE, SYSTEM_FLAG).cluster == KafkaZooKeeperSpec(zookeepers=3)


def test_what_it_lacks_is_refused_by_the_flag(tmp_path: Path) -> None:
    text = SMOKE.replace("brokers: 3", "brokers: 3, quorum: dynamic")
    with pytest.raises(UsageError, match=r"^--system: cluster.quorum: unknown key 'quorum'"):
        loaded(tmp_path, text, SYSTEM_FLAG)


def test_a_play_awaits_conditions_of_both(tmp_path: Path) -> None:
    play = (
        "play: [{kill: ensemble leader}, {pause: active controller}, {kill: leader of t-0},"
        " {await: {active_controller: broker-2}}, {await: {registered: broker-1}},"
        " {await: {isr: {t-0: [1, 2, 3]}}}, {await: {led: true}},"
        " {await: {ensemble_leader: zookeeper-1}}, {await: {last_zxid: {zookeeper-1: 0x10}}}]\n"
    )
    assert stated(tmp_path, "zookeepers: 3", play).play is not None
    for wrong in ("{led: 1}", "{follows: broker-1}", "{active_controller: zookeeper-1}"):
        with pytest.raises(UsageError):
            stated(tmp_path, "zookeepers: 3", f"play: [{{await: {wrong}}}]\n")


def test_clients_that_an_old_release_does_not_understand_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"clients of metadata need Kafka 3\.1, found 2\.8\.2"):
        loaded(
            tmp_path,
            SMOKE.replace("{kind: produce-poll}", "[{kind: produce-poll}, {kind: metadata}]"),
            SYSTEM_FLAG,
            (("cluster", "kafka"), "2.8.2", "--kafka"),
        )


def test_brokers_are_told_the_servers_and_what_is_set_wins() -> None:
    spec = KafkaZooKeeperSpec(
        settings={"zookeeper.session.timeout.ms": "9000", "min.insync.replicas": "1"},
        broker_settings={"min.insync.replicas": "2"},
    )
    nodes = nodes_of(spec, ports=count(1))
    server = EnsembleServer(
        name=NodeName("zookeeper-1"), number=1, client_port=7, quorum_port=8, election_port=9
    )
    told = properties(spec, nodes[1], servers=[server], data=Path("/d"), version="3.9.2")
    assert (told["broker.id"], told["zookeeper.connect"]) == ("2", "zookeeper-1.quorum:7")
    assert (told["min.insync.replicas"], session_timeout_ms(spec)) == ("2", 9000)
    assert told["listeners"] == "CLIENT://127.0.0.1:3,REPL://127.0.0.1:4"
    assert not {"process.roles", "node.id", "controller.quorum.voters"}.intersection(told)


def test_the_controller_may_tell_brokers_on_a_listener_of_its_own() -> None:
    spec = KafkaZooKeeperSpec(brokers=2, control_plane_listener=True)
    nodes = nodes_of(spec, ports=count(1))
    told = properties(spec, nodes[1], servers=[], data=Path("/d"), version="3.9.2")
    assert told["control.plane.listener.name"] == "CONTROL_PLANE"
    assert told["inter.broker.listener.name"] == "REPL"
    assert told["advertised.listeners"].split(",")[1:] == [
        "REPL://broker-2.repl:5",
        "CONTROL_PLANE://broker-2.repl:6",
    ]
    between = [(one.source, one.target, one.port) for one in links_between(nodes)]
    assert between == [
        *(("broker-2", "broker-1", 2), ("broker-2", "broker-1", 3)),
        *(("broker-1", "broker-2", 5), ("broker-1", "broker-2", 6)),
        *(("clients", "broker-1", 1), ("clients", "broker-2", 4)),
    ]
    plain = KafkaZooKeeperSpec()
    (node, *_) = nodes_of(plain, ports=count())
    without = properties(plain, node, servers=[], data=Path("/d"), version="3.9.2")
    assert "control.plane.listener.name" not in without


def test_a_release_that_has_no_such_listener_is_refused() -> None:
    spec = KafkaZooKeeperSpec(control_plane_listener=True)
    refuse_control_plane(spec, "2.2.2")
    refuse_control_plane(KafkaZooKeeperSpec(), "2.1.1")
    with pytest.raises(UsageError, match=r"Kafka 2\.1\.1 has no control\.plane\.listener\.name"):
        refuse_control_plane(spec, "2.1.1")


def test_every_target_that_it_draws_is_one(tmp_path: Path) -> None:
    targets = ", ".join(SYSTEMS["kafka-zookeeper"].mix_targets)
    nemesis = f"nemesis: {{faults: [kill], targets: [{targets}, ensemble follower]}}\n"
    assert stated(tmp_path, "zookeepers: 3", nemesis).mix is not None


def test_no_fault_waits_for_a_message_to_a_controller_of_kafkas_own() -> None:
    assert sent_by(KafkaZooKeeperSpec().nodes) == ("AlterPartition", "Fetch")
    assert "BrokerHeartbeat" in sent_by(KafkaSpec().nodes)
