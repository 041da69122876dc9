"""The interpreter of trials: it does what can be done, writes it down, and goes on."""

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.kafka_targets import LEADER
from fencepost.clusters.port import NodeName, NodeState
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.oracle.oracle import DELIVERED, SENT, Oracle
from fencepost.clusters.reference.oracle.world_view import WorldView
from fencepost.clusters.reference.simulated.cluster import CLIENTS_FROM, SimulatedCluster
from fencepost.clusters.reference.simulated.quorum_kit import build
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.harness.interpreter.books import Unwritten
from fencepost.harness.interpreter.interpreter import Interpreter
from fencepost.harness.trials.directing import interpreter_of
from fencepost.nemesis.play import step_data
from fencepost.nemesis.targets import ByRole, NamedNodes
from fencepost.nemesis.topology import Flows
from fencepost.nemesis.verbs.heal import HealPartition
from fencepost.nemesis.verbs.kill import Kill
from fencepost.nemesis.verbs.move_leader import MoveLeader
from fencepost.nemesis.verbs.partition import Partition
from fencepost.nemesis.verbs.restart import Restart
from fencepost.nemesis.verbs.start import Start
from fencepost.nemesis.verbs.step import Step

ONE, TWO = NamedNodes(nodes=(NodeName("broker-1"),)), NamedNodes(nodes=(NodeName("broker-2"),))


class Books(Unwritten):
    """Rows of faults, and the words of steps."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.steps: list[str] = []

    def begin(self, fault: str, targets: Iterable[str], *, kind: str | None = None) -> int:
        self.rows.append([f"{kind or fault} {', '.join(targets)}"])
        return len(self.rows) - 1

    def effect(self, index: int, evidence: str) -> None:
        self.rows[index].append(evidence)

    def end(self, index: int, evidence: str) -> None:
        self.rows[index].append(evidence)

    def note(self, step: Step, **done: Any) -> None:
        self.steps += step_data(replace(step, **done)).keys() - {"at", "within"}


def directed(*, partitions: int = 1) -> tuple[Interpreter, SimulatedCluster, Books]:
    cluster, books = build(KafkaSpec(brokers=3), seed=1, rules=Rules()), Books()
    world = cluster.world
    oracle = Oracle(WorldView(world.hosts), lease_ns=10**9, min_isr=1, clients_from=CLIENTS_FROM)
    interpreter = interpreter_of(
        cluster, wire=None, oracle=oracle, draw=random.Random(1), journal=books, played=books
    )
    world.watch(oracle, sent=SENT, delivered=DELIVERED)
    cluster.start()
    cluster.create_topics((TopicSpec(name="t", assignment=((1, 2, 3),) * partitions),))
    return interpreter, cluster, books


def test_a_fault_ends_with_the_deed_that_heals_it() -> None:
    interpreter, cluster, books = directed()
    assert interpreter.perform(Kill(target=ONE), end_s=99.0)
    assert interpreter.perform(Start(target=ONE), end_s=99.0)
    assert cluster.state(ONE.nodes[0]) is NodeState.RUNNING
    assert [(row[0], row[2]) for row in books.rows] == [("kill broker-1", "broker-1: start")]
    assert books.steps == ["kill", "start"]


def test_what_cannot_be_done_just_now_is_left_and_not_written_down() -> None:
    interpreter, _, books = directed()
    leader = ByRole(role=LEADER, key="nobody-0")
    for step in (Start(target=ONE), Kill(target=leader), HealPartition(name="p")):
        assert interpreter.perform(step, end_s=99.0)
    assert (books.rows, books.steps) == ([], [])


def test_of_leaders_that_are_moved_one_that_is_refused_keeps_no_other_from_it() -> None:
    interpreter, cluster, _ = directed(partitions=2)
    assert interpreter.perform(Kill(target=TWO), end_s=99.0)
    assert interpreter.perform(MoveLeader(leaders={"t-0": 2, "t-1": 3}, within_s=30), end_s=99.0)
    partitions = cluster.view().partitions
    assert (partitions["t-0"].leader, partitions["t-1"].leader) == (1, 3)


def test_a_restart_is_written_down_as_its_parts_and_waited_for() -> None:
    interpreter, cluster, books = directed()
    assert interpreter.perform(Restart(target=ONE), end_s=99.0)
    assert books.steps == ["stop", "start"]
    assert interpreter.observer.impaired() == frozenset()
    cut = Flows(flows=frozenset({(ONE.nodes[0], TWO.nodes[0]), (TWO.nodes[0], ONE.nodes[0])}))
    assert interpreter.perform(Partition(name="p", cut=cut), end_s=99.0)
    now_s = cluster.world.now_ns / 1e9
    assert not interpreter.perform(Restart(target=ONE), end_s=now_s + 1.0)


def test_everything_is_healed_at_once_and_nothing_is_waited_for() -> None:
    interpreter, cluster, books = directed()
    interpreter.perform(Kill(target=ONE), end_s=99.0)
    flows = frozenset({(TWO.nodes[0], NodeName("broker-3"))})
    interpreter.perform(Partition(name="p", cut=Flows(flows=flows)), end_s=99.0)
    assert cluster.world.network.is_blocked((2, 3))
    before_ns = cluster.world.now_ns
    assert interpreter.heal_all()
    assert cluster.world.now_ns == before_ns
    assert not cluster.world.network.is_blocked((2, 3))
    assert all(len(row) == 3 for row in books.rows)
