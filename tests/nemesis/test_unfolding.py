"""A play within a mix goes on with the protocol, gives up in time, and undoes what it did."""

import random
from dataclasses import replace

from fencepost.clusters.kafka_conditions import Fenced
from fencepost.clusters.kafka_port import ClusterView, PartitionView
from fencepost.clusters.kafka_targets import LEADER
from fencepost.clusters.observation import Held, Observation
from fencepost.clusters.port import NodeName
from fencepost.nemesis.targets import ByRole, NamedNodes, Scene
from fencepost.nemesis.topology import Isolate, Party
from fencepost.nemesis.unfolding import Guard, May, MixMoment, Unfolding
from fencepost.nemesis.verbs.await_condition import Await
from fencepost.nemesis.verbs.heal import HealPartition
from fencepost.nemesis.verbs.kill import Kill
from fencepost.nemesis.verbs.lift import Lift
from fencepost.nemesis.verbs.partition import Partition
from fencepost.nemesis.verbs.pause import Pause, Resume
from fencepost.nemesis.verbs.rule import Lay
from fencepost.nemesis.verbs.start import Start
from fencepost.nemesis.verbs.step import Step
from fencepost.nemesis.verbs.wait import Wait
from fencepost.nemesis.verbs.wipe import Wipe
from fencepost.nemesis.wire.rules import Hold, Match
from fencepost.nemesis.wire.status import RuleStatus

NODES = tuple(map(NodeName, ("controller-1", "broker-1", "broker-2", "broker-3")))
IDS = {node: int(node[-1]) for node in NODES[1:]}
ONE, TWO = (NamedNodes(nodes=(node,)) for node in NODES[1:3])
LAY = Lay(name="window", action=Hold(), match=Match(api="AlterPartition"))
HELD = Await(condition=Held(name="window"), within_s=1.0)
VIEW = ClusterView(
    time_ns=0,
    brokers=frozenset({1, 3}),
    serving=frozenset({1, 3}),
    partitions={"t-0": PartitionView(leader=1, isr=(1, 3), replicas=(1, 2, 3))},
)
LOOK = Observation(
    view=VIEW, active_controller=NODES[0], states={}, broker_ids=IDS, acknowledged_count=0
)
SCENE = Scene(nodes=NODES, broker_ids=IDS, view=VIEW, active_controller=NODES[0])

HELD_ONCE = RuleStatus(
    matched_count=1,
    held_count=1,
    held_now=1,
    delivered_count=0,
    undeliverable_count=0,
    first=None,
    first_ns=None,
)


class Stage:
    def __init__(self, *play: Step, may: Guard = lambda _step, _node: May.YES) -> None:
        self.unfolding = Unfolding(prefix="mix-3", play=play, draw=random.Random(1))
        self.may = may
        self.look = LOOK

    def at(self, now_s: float) -> list[Step]:
        """The steps of this moment, but for awaits that came true."""
        moment = MixMoment(now_s=now_s, scene=SCENE, look=lambda: self.look)
        steps = list(self.unfolding.due(moment, self.may))
        return [step for step in steps if not isinstance(step, Await)]


def test_a_step_is_due_when_what_is_awaited_before_it_holds() -> None:
    stage = Stage(LAY, HELD, Kill(target=TWO))
    assert stage.at(0.0) == [replace(LAY, name="mix-3-window")]
    assert stage.at(5.0) == []
    stage.look = replace(LOOK, rules={"mix-3-window": HELD_ONCE})
    assert stage.at(5.1)[0] == Kill(target=TWO)


def test_what_does_not_come_in_time_is_given_up_and_everything_is_undone() -> None:
    isolated = Isolate(party=Party(targets=(ONE,)))
    stage = Stage(
        Partition(name="cut", cut=isolated), Pause(target=TWO), LAY, HELD, Kill(target=TWO)
    )
    assert len(stage.at(0.0)) == 3
    assert stage.at(19.0) == []
    stage.at(20.1)
    assert stage.at(20.2) == [
        Lift(name="mix-3-window"),
        HealPartition(name="mix-3-cut"),
        Resume(target=TWO),
    ]
    assert stage.unfolding.is_over


def test_a_state_that_held_before_is_no_evidence_of_it() -> None:
    stage = Stage(Kill(target=TWO), Await(condition=Fenced(node=NODES[2], fenced=True)), LAY)
    assert stage.at(0.0) == [Kill(target=TWO)]
    stage.look = replace(LOOK, look_count=1)  # it was under way when the wait began
    assert stage.at(0.1) == []
    stage.look = replace(LOOK, look_count=2)
    assert stage.at(0.2)[0] == replace(LAY, name="mix-3-window")


def test_time_passes_without_a_step() -> None:
    stage = Stage(Wait(for_s=2.0), Pause(target=TWO))
    assert stage.at(10.0) == []
    assert stage.at(11.9) == []
    assert stage.at(12.0)[0] == Pause(target=TWO)


def test_a_strike_that_may_not_be_is_left_out_with_all_that_rests_on_it() -> None:
    away = Await(condition=Fenced(node=NODES[2], fenced=True))
    steps = (Kill(target=TWO), Wipe(target=TWO), away, Start(target=TWO), LAY)
    stage = Stage(*steps, may=lambda _step, node: May.NO if node == NODES[2] else May.YES)
    assert stage.at(0.0) == [replace(LAY, name="mix-3-window"), Lift(name="mix-3-window")]


def test_a_strike_that_may_not_be_yet_waits_and_is_given_up_in_the_end() -> None:
    answers = [May.NOT_YET, May.NOT_YET, May.YES]
    stage = Stage(Kill(target=ONE), may=lambda _step, _node: answers.pop(0))
    assert stage.at(0.0) == []
    assert stage.at(1.0) == []
    assert stage.at(2.0) == [Kill(target=ONE), Start(target=ONE)]
    late = Stage(Kill(target=ONE), may=lambda _step, _node: May.NOT_YET)
    assert [late.at(at_s) for at_s in (0.0, 20.1, 20.2)] == [[], [], []]
    assert late.unfolding.is_over


def test_a_target_by_its_role_is_whoever_has_it_then() -> None:
    leader = ByRole(role=LEADER, key="t-0")
    stage = Stage(Kill(target=leader), Wipe(target=leader))
    assert stage.at(0.0) == [Kill(target=ONE), Wipe(target=ONE), Start(target=ONE)]


def test_a_node_counts_until_a_look_has_begun_since_it_was_mended() -> None:
    stage = Stage(Kill(target=TWO), Start(target=TWO), Wait(for_s=9.0))
    stage.at(0.0)
    assert stage.unfolding.nodes == {NODES[2]}
    stage.look = replace(LOOK, look_count=2)
    stage.at(1.0)
    assert not stage.unfolding.nodes
