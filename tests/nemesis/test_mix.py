"""The mix, driven through hours of simulated time: its promises hold at each step."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters.kafka_port import ClusterView, PartitionView, Role, role_of
from clusters.port import NodeName
from nemesis.mix import Mix, MixSpec
from nemesis.play import step_data, step_word
from nemesis.targets import NamedNodes, Scene
from nemesis.topology import Flows, cut_off
from nemesis.verbs.bandwidth import Bandwidth
from nemesis.verbs.heal import HealPartition
from nemesis.verbs.lift import Lift
from nemesis.verbs.on_clients import OnClients
from nemesis.verbs.partition import Partition
from nemesis.verbs.registry import EPISODES, is_fault
from nemesis.verbs.restart import Restart
from nemesis.verbs.rule import Lay
from nemesis.verbs.step import OnNodes, Step

NODES = tuple(map(NodeName, ("controller-1", "broker-1", "broker-2", "broker-3")))
IDS = {node: int(node[-1]) for node in NODES[1:]}
STEP_S = 0.25
BREAKING = {"kill", "stop", "pause"} | {
    "cut_power",
    "fill_disk",
    "lock_disk",
    "fail_disk",
    "stall_disk",
    "slow_disk",
}
LOSING = {"wipe", "rollback", "cut_power", "flip_bit", "lock_disk", "fail_disk"}


class Sim:
    """Nodes that recover a while after the act that mends them."""

    def __init__(self, spec: MixSpec, seed: int) -> None:
        self.mix = Mix(spec, random.Random(seed), ("t-0",))
        self.recovery_s = random.Random(seed + 1)
        self.down: set[NodeName] = set()
        self.cut: dict[str, frozenset[NodeName]] = {}
        self.laid: set[str] = set()
        self.back_at_s: dict[NodeName, float] = {}

    def run(self, seconds: float) -> Iterator[tuple[float, frozenset[NodeName], tuple[Step, ...]]]:
        """(time, nodes impaired before the acts, acts) for every step."""
        for step in range(int(seconds / STEP_S)):
            now_s = step * STEP_S
            self.back_at_s = {n: at_s for n, at_s in self.back_at_s.items() if at_s > now_s}
            impaired = frozenset(self.gone() | set(self.back_at_s))
            acts = self.mix.due(now_s, scene=self.scene(), impaired=impaired)
            for act in acts:
                self.apply(act, now_s)
            yield now_s, impaired, acts

    def gone(self) -> set[NodeName]:
        return self.down.union(*self.cut.values())

    def apply(self, step: Step, now_s: float) -> None:
        match step:
            case OnNodes():
                self.apply_act(step, now_s)
            case Partition(name=name, cut=Flows(flows=flows)):
                assert name not in self.cut
                self.cut[name] = cut_off(flows, NODES)
            case Bandwidth(name=name, target=NamedNodes(nodes=nodes)):
                assert name not in self.cut
                self.cut[name] = frozenset(nodes)
            case HealPartition(name=name):
                del self.cut[name]
            case Lay(name=name):
                assert name not in self.laid
                self.laid.add(name)
            case Lift(name=name):
                self.laid.remove(name)
            case OnClients():
                pass  # no node is any the worse for it
            case _:
                raise AssertionError(step)

    def apply_act(self, act: OnNodes, now_s: float) -> None:
        assert isinstance(act.target, NamedNodes)
        for node in act.target.nodes:
            if step_word(act) in BREAKING:
                assert node not in self.down, "broken twice"
                self.down.add(node)
            elif step_word(act) in ("start", "resume", "mend_disk"):
                assert node in self.down, "mended though whole"
                self.down.remove(node)
                self.back_at_s[node] = now_s + self.recovery_s.uniform(0, 4)
            elif isinstance(act, Restart):
                assert node not in self.gone(), "restarted though it is broken"
                self.back_at_s[node] = now_s  # whoever performs it waits for each in turn
            elif step_word(act) in ("wipe", "rollback", "flip_bit"):
                assert node in self.down, "disk touched while the node runs"

    def scene(self) -> Scene:
        up = [IDS[node] for node in NODES[1:] if node not in self.down]
        partition = PartitionView(leader=up[0] if up else None, isr=tuple(up), replicas=(1, 2, 3))
        ids = frozenset(up)
        view = ClusterView(time_ns=0, brokers=ids, serving=ids, partitions={"t-0": partition})
        return Scene(nodes=NODES, broker_ids=IDS, view=view, active_controller=NODES[0])


SPECS = st.builds(
    lambda faults, brokers, controllers, overlap: MixSpec(
        faults=tuple(faults),
        targets=("one broker", "leader", "isr follower", "active controller", "all brokers"),
        down={"broker": brokers, "controller": controllers},
        overlap=overlap,
    ),
    st.lists(st.sampled_from(sorted(EPISODES)), min_size=1, unique=True),
    st.integers(0, 3),
    st.integers(0, 1),
    st.booleans(),
)


@settings(max_examples=3 * settings().max_examples // 5)
@given(SPECS, st.integers(1, 10_000))
def test_never_more_nodes_are_down_than_the_budget_allows(spec: MixSpec, seed: int) -> None:
    sim = Sim(spec, seed)
    for now_s, _, _ in sim.run(300):
        impaired = sim.gone() | {node for node, at_s in sim.back_at_s.items() if at_s > now_s}
        for role, budget in (
            (Role.BROKER, spec.down_max("broker")),
            (Role.CONTROLLER, spec.down_max("controller")),
        ):
            assert sum(role_of(node) is role for node in impaired) <= budget


@settings(max_examples=2 * settings().max_examples // 5)
@given(SPECS, st.integers(1, 10_000))
def test_a_disk_is_lost_only_while_every_replica_is_in_sync(spec: MixSpec, seed: int) -> None:
    for _, impaired, acts in Sim(spec, seed).run(300):
        for act in acts:
            if isinstance(act, OnNodes) and step_word(act) in LOSING:
                assert isinstance(act.target, NamedNodes)
                assert not impaired
                assert len(act.target.nodes) == 1


def test_without_overlap_a_fault_begins_only_when_the_last_one_is_over() -> None:
    begun = 0
    for _, impaired, acts in Sim(MixSpec(), seed=7).run(600):
        words = {step_word(act) for act in acts if isinstance(act, OnNodes)}
        if words & {"kill", "pause", "stop"}:
            begun += 1
            assert not impaired
    assert begun > 30


def test_with_overlap_two_nodes_are_broken_at_once() -> None:
    spec = MixSpec(overlap=True, down={"broker": 2}, gap_s=(0.5, 1.0), targets=("one broker",))
    sim = Sim(spec, seed=3)
    assert max(len(sim.down) for _ in sim.run(120)) == 2


@pytest.mark.parametrize("kind", EPISODES)
def test_every_kind_of_fault_comes_and_is_healed(kind: str) -> None:
    words = [
        next(word for word in step_data(act) if word != "at")
        for _, _, acts in Sim(MixSpec(faults=(kind,), targets=("one broker",)), seed=5).run(120)
        for act in acts
    ]
    steps = EPISODES[kind].example()
    first = step_word(next(step for step in reversed(steps) if is_fault(step)))
    last = step_word(steps[-1])
    assert words.count(first) > 3
    assert words.count(last) >= words.count(first) - 1


@pytest.mark.parametrize("overlap", [False, True])
def test_in_rounds_no_kind_comes_again_before_each_has_come(*, overlap: bool) -> None:
    faults = ("kill", "pause", "wipe", "skew", "fill_disk")
    spec = MixSpec(faults=faults, rounds=True, overlap=overlap)
    firsts = ["kill", "pause", "skew", "fill_disk"]
    words = [
        "wipe" if "wipe" in words else found[0]
        for _, _, acts in Sim(spec, seed=9).run(600)
        if (words := [step_word(act) for act in acts if isinstance(act, OnNodes)])
        and (found := [word for word in words if word in firsts])
    ]
    rounds = [words[at : at + len(faults)] for at in range(0, len(words), len(faults))]
    assert len(rounds) > 5
    assert all(set(turn) == {*firsts, "wipe"} for turn in rounds[:-1])


@pytest.mark.parametrize("seed", range(20))
def test_in_rounds_two_faults_do_not_both_meet_the_controller(seed: int) -> None:
    """Or else a run of two faults may have nothing to judge about leaders and members."""
    spec = MixSpec(faults=("kill", "pause"), rounds=True, gap_s=(1, 1), duration_s=(1, 1))
    acts = [
        act
        for _, _, acts in Sim(spec, seed=seed).run(60)
        for act in acts
        if isinstance(act, OnNodes) and step_word(act) in ("kill", "pause")
    ]
    targets = [act.target for act in acts]
    pairs = zip(targets[::3], targets[1::3], strict=False)
    assert len(targets) > 6
    for pair in pairs:
        assert pair != (NamedNodes(nodes=NODES[:1]), NamedNodes(nodes=NODES[:1]))


@pytest.mark.parametrize("seed", range(8))
def test_what_a_scenario_demands_comes_before_anything_else(seed: int) -> None:
    spec = MixSpec(faults=("kill", "pause", "skew", "wipe"), demanded=("pause", "skew"))
    begun = [
        act.kind for _, _, acts in Sim(spec, seed=seed).run(600) for act in acts if _begins(act)
    ]
    assert set(begun[:2]) == {"pause", "skew"}
    assert set(begun[2:]) == set(spec.faults)


def _begins(step: object) -> bool:
    return isinstance(step, OnNodes) and step_word(step) in {"kill", "pause", "skew"}


def test_a_demand_that_can_never_be_met_does_not_stop_the_others() -> None:
    spec = MixSpec(
        faults=("roll", "delay"),
        demanded=("roll",),
        down={"broker": 0, "controller": 0},
    )
    words = [act for _, _, acts in Sim(spec, seed=2).run(600) for act in acts]
    assert sum(isinstance(step, Lay) for step in words) > 5


def test_a_kind_that_can_never_begin_does_not_stop_the_others() -> None:
    spec = MixSpec(faults=("roll", "delay"), rounds=True, down={"broker": 0, "controller": 0})
    words = [act for _, _, acts in Sim(spec, seed=2).run(600) for act in acts]
    assert sum(isinstance(step, Lay) for step in words) > 5


def test_a_roll_is_of_a_whole_role_and_comes_only_when_all_is_whole() -> None:
    rolled = set()
    spec = MixSpec(faults=("roll", "kill"), overlap=True)
    for _, impaired, acts in Sim(spec, seed=4).run(600):
        for act in acts:
            if isinstance(act, Restart):
                assert isinstance(act.target, NamedNodes)
                assert not impaired
                rolled.add(act.target.nodes)
    assert rolled == {NODES[:1], NODES[1:]}


def test_one_seed_gives_one_schedule_and_another_seed_another() -> None:
    def schedule(seed: int) -> list[tuple[float, tuple[Step, ...]]]:
        return [(now_s, acts) for now_s, _, acts in Sim(MixSpec(), seed).run(200) if acts]

    assert schedule(11) == schedule(11)
    assert schedule(11) != schedule(12)
