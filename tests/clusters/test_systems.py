"""A system is one entry of the registry; scenarios, plays, mixes and partitions go by it."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from fencepost.clusters import systems
from fencepost.clusters.kafka.configuration import nodes_of
from fencepost.clusters.kafka_migrating.system import KafkaMigratingSpec
from fencepost.clusters.kafka_port import BrokersSpec, KafkaSpec, Quorum
from fencepost.clusters.kafka_zookeeper.system import KafkaZooKeeperSpec
from fencepost.clusters.observation import AllRecovered, Condition, Down, Observation
from fencepost.clusters.port import ClusterSpec, NodeName, NodeRole, NodeState
from fencepost.clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
from fencepost.clusters.system import Make, System
from fencepost.clusters.systems import ROLES, SYSTEMS, kinds_of_node, system_of
from fencepost.clusters.zookeeper.system import ZooKeeperSpec
from fencepost.harness.scenario.scenario import Scenario, load_scenario
from fencepost.history.failure import SpecError, UsageError
from fencepost.nemesis.mix import Mix
from fencepost.nemesis.schedules.partitions import drawn_cut
from fencepost.nemesis.steps import flat
from fencepost.nemesis.targets import Scene
from fencepost.nemesis.verbs.kill import Kill
from fencepost.workloads.kind import WorkloadKind
from fencepost.workloads.registry import KINDS


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftSpec(ClusterSpec):
    """A key-value store over Raft: one role, no topics."""

    servers: int = 3
    roles: ClassVar[tuple[NodeRole, ...]] = (
        NodeRole(name="server", serves_clients=True, decides=True, port_count=3),
    )

    @property
    def counts(self) -> Mapping[str, int]:
        return {"server": self.servers}

    def check(self) -> None:
        if self.servers % 2 == 0:
            raise SpecError(("servers",), f"an odd count of servers, found {self.servers}")


def _led(_word: str, _operand: object, _stage: object) -> Condition:
    return Down(node=NodeName("server-1"))


RAFT = System(
    name="raft",
    spec=RaftSpec,
    makes=(Make(name="raft", driver_module="nowhere", title="Raft {release}"),),
    tables=(),
    conditions={"led": _led},
    keyed=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """What the clients of the store do."""

    rate: int = 10


LOAD = WorkloadKind(word="load", spec=LoadSpec, module="nowhere", for_clusters=RaftSpec)
SERVERS = tuple(NodeName(f"server-{number}") for number in (1, 2, 3))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SYSTEMS, "raft", RAFT)
    monkeypatch.setitem(KINDS, "load", LOAD)
    monkeypatch.setitem(systems.ROLES, "server", RaftSpec.roles[0])


def scenario(directory: Path, text: str, kind: str = "load") -> Scenario:
    path = directory / "s.yaml"
    path.write_text(f"name: s\nworkload: {{kind: {kind}}}\n{text}")
    return load_scenario(path, [])


def scene(nodes: tuple[NodeName, ...] = SERVERS) -> Scene:
    return Scene(nodes=nodes, broker_ids={}, view=None, active_controller=None)


def test_the_keys_under_cluster_are_the_systems_own(tmp_path: Path) -> None:
    loaded = scenario(tmp_path, "cluster: {system: raft, servers: 5}\n")
    assert loaded.cluster == RaftSpec(servers=5)
    assert loaded.cluster.nodes[-1] == "server-5"
    assert system_of(loaded.cluster) is RAFT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cluster: {system: raft, brokers: 3}\n", "unknown key 'brokers'"),
        ("cluster: {system: raft, servers: 4}\n", "an odd count of servers"),
        ("cluster: {system: rafts}\n", "did you mean 'raft'"),
        ("cluster: {system: raft}\ntopics: [{name: t}]\n", "a cluster of raft has no topics"),
        ("cluster: {servers: 3}\n", "unknown key 'servers'"),
        (
            "cluster: {system: raft}\nplay: [{kill: one broker}]\n",
            "one|minority|majority|all servers",
        ),
        ("cluster: {system: raft}\nplay: [{await: {isr: {}}}]\n", "unknown condition 'isr'"),
        ("cluster: {system: raft}\nnemesis: {down: {brokers: 1}}\n", "unknown key 'brokers'"),
        (
            "cluster: {system: raft}\nplay: [{partition: {shape: one, among: brokers}}]\n",
            "unknown among 'brokers'",
        ),
    ],
)
def test_what_the_system_has_not_is_refused_with_what_it_has(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(UsageError) as refused:
        scenario(tmp_path, text)
    assert message in str(refused.value)


def test_a_workload_is_for_the_systems_whose_clusters_its_clients_can_talk_to(
    tmp_path: Path,
) -> None:
    with pytest.raises(UsageError, match=r"unknown workload 'produce-poll'; allowed: load"):
        scenario(tmp_path, "cluster: {system: raft}\n", kind="produce-poll")
    with pytest.raises(UsageError, match="unknown workload 'load'"):
        scenario(tmp_path, "topics: [{name: t}]\n")


def test_a_play_names_its_roles_and_awaits_its_conditions(tmp_path: Path) -> None:
    loaded = scenario(
        tmp_path,
        "cluster: {system: raft}\n"
        "play: [{kill: one server}, {await: {led: yes}}, {start: all servers}]\n",
    )
    assert isinstance(next(flat(loaded.play or ())), Kill)


def test_a_mix_keeps_its_budget_of_the_systems_roles(tmp_path: Path) -> None:
    loaded = scenario(
        tmp_path,
        "cluster: {system: raft}\nnemesis: {faults: [kill], targets: [one server],"
        " gap: 1s, duration: 60s, down: {servers: 2}, overlap: true}\n",
    )
    assert loaded.mix is not None
    mix = Mix(spec=loaded.mix, draw=random.Random(1), keys=())
    killed = [
        node
        for second in range(30)
        for step in mix.due(float(second), scene=scene(), impaired=frozenset())
        if isinstance(step, Kill)
        for node in step.target.nodes
    ]
    assert len(killed) == 2


def test_partitions_are_drawn_over_nodes_that_serve_and_decide_at_once() -> None:
    for seed in range(50):
        flows, lost = drawn_cut(scene(), random.Random(seed))
        assert flows.flows
        assert 0 < len(lost) < len(SERVERS)


def test_one_role_means_the_same_in_every_system() -> None:
    said = [role for system in SYSTEMS.values() for role in system.spec.roles]
    assert all(ROLES[role.name] == role for role in said)
    assert kinds_of_node(SERVERS[0])[0].decides


def test_recovered_is_what_the_systems_own_view_says() -> None:
    class Whole:
        def is_whole(self, members: frozenset[int]) -> bool:
            return members == frozenset({7})

    now = Observation(
        view=Whole(),
        active_controller=None,
        states=dict.fromkeys(SERVERS, NodeState.RUNNING),
        broker_ids={SERVERS[0]: 7},
        acknowledged_count=0,
    )
    assert AllRecovered().holds(now)


@pytest.mark.parametrize(
    ("spec", "servers"),
    [
        (KafkaSpec(controllers=3, brokers=4), 0),
        (KafkaSpec(controllers=3, brokers=3, combined=True), 0),
        (KafkaSpec(quorum=Quorum.DYNAMIC, spare_controllers=2, spare_brokers=1), 0),
        (KafkaZooKeeperSpec(zookeepers=3), 3),
        (KafkaZooKeeperSpec(control_plane_listener=True), 1),
        (KafkaMigratingSpec(controllers=3), 1),
        (ReferenceZooKeeperSpec(zookeepers=3, brokers=2), 3),
    ],
)
def test_nodes_take_as_many_ports_as_their_spec_says(spec: BrokersSpec, servers: int) -> None:
    ports = iter(range(spec.port_count()))
    listening = [port for node in nodes_of(spec, ports=ports) for port in node.ports.values()]
    assert listening == list(range(len(listening)))
    # The others are those of its ensemble.
    assert len(list(ports)) == ZooKeeperSpec(servers=servers).port_count() == 3 * servers
