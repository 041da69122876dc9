"""The mix, driven through hours of simulated time: its promises hold at each step."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.clusters.kafka_port import ClusterView, PartitionView, Role, role_of
from fencepost.clusters.observation import Observation
from fencepost.clusters.port import NodeName
from fencepost.nemesis.mix import Mix
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.nemesis.play import step_data, step_word
from fencepost.nemesis.targets import NamedNodes, Scene
from fencepost.nemesis.topology import Flows, cut_off
from fencepost.nemesis.verbs.await_condition import Await
from fencepost.nemesis.verbs.bandwidth import Bandwidth
from fencepost.nemesis.verbs.episode import EpisodeWindow
from fencepost.nemesis.verbs.heal import HealPartition
from fencepost.nemesis.verbs.lift import Lift
from fencepost.nemesis.verbs.move_leader import MoveLeader
from fencepost.nemesis.verbs.on_clients import OnClients
from fencepost.nemesis.verbs.partition import Partition
from fencepost.nemesis.verbs.registry import EPISODES, STRIKES, is_fault
from fencepost.nemesis.verbs.restart import Restart
from fencepost.nemesis.verbs.rule import Lay
from fencepost.nemesis.verbs.step import Breaking, OnNodes, Step
from fencepost.nemesis.wire.status import RuleStatus

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
EMPTYING = {"wipe", "rollback", "cut_power"}
"""What a disk had is gone by these. A disk that is locked or failed has all of it again later."""


class Sim:
    """Nodes that recover a while after the act that mends them."""

    def __init__(
        self, spec: MixSpec, seed: int, *, recovery: int = 0, streams: bool = False
    ) -> None:
        def stream(name: str) -> random.Random:
            return random.Random(f"{seed}/{name}")

        self.mix = Mix(spec, stream("mix"), ("t-0", "t-1"), streams=stream if streams else None)
        self.recovery_s = random.Random(seed + 1 + recovery)
        self.down: set[NodeName] = set()
        self.cut: dict[str, frozenset[NodeName]] = {}
        self.laid: set[str] = set()
        self.back_at_s: dict[NodeName, float] = {}
        self.looks = 0
        self.registered: Counter[NodeName] = Counter()

    def run(self, seconds: float) -> Iterator[tuple[float, frozenset[NodeName], tuple[Step, ...]]]:
        """(time, nodes impaired before the acts, acts) for every step."""
        for step in range(int(seconds / STEP_S)):
            now_s = step * STEP_S
            self.back_at_s = {n: at_s for n, at_s in self.back_at_s.items() if at_s > now_s}
            impaired = frozenset(self.gone() | set(self.back_at_s))
            self.looks += 1
            scene = self.scene()
            acts = self.mix.due(now_s, scene=scene, impaired=impaired, look=self.look)
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
            case OnClients() | Await() | MoveLeader():
                pass  # no node is any the worse for it
            case _:
                raise AssertionError(step)

    def apply_act(self, act: OnNodes, now_s: float) -> None:
        assert isinstance(act.target, NamedNodes)
        for node in act.target.nodes:
            if step_word(act) in BREAKING:
                assert node not in self.down or step_word(act) == "kill", "broken twice"
                self.down.add(node)
            elif step_word(act) in ("start", "resume", "mend_disk"):
                assert node in self.down, "mended though whole"
                self.down.remove(node)
                self.back_at_s[node] = now_s + self.recovery_s.uniform(0, 4)
                self.registered[node] += 1
            elif isinstance(act, Restart):
                assert node not in self.gone(), "restarted though it is broken"
                self.back_at_s[node] = now_s  # whoever performs it waits for each in turn
            elif step_word(act) in ("wipe", "rollback", "flip_bit"):
                assert node in self.down, "disk touched while the node runs"

    def look(self) -> Observation:
        """Every message is sent as soon as a rule waits for it."""
        counts = RuleStatus(
            matched_count=1,
            held_count=1,
            held_now=0,
            delivered_count=0,
            undeliverable_count=0,
            first=None,
            first_ns=None,
        )
        return Observation(
            view=self.scene().view,
            active_controller=NODES[0],
            states={},
            broker_ids=IDS,
            acknowledged_count=0,
            rules=dict.fromkeys(self.laid, counts),
            registrations=dict(self.registered),
            look_count=self.looks,
        )

    def scene(self) -> Scene:
        away = self.gone() | set(self.back_at_s)
        up = [IDS[node] for node in NODES[1:] if node not in away]
        partition = PartitionView(leader=up[0] if up else None, isr=tuple(up), replicas=(1, 2, 3))
        ids, last = frozenset(up), tuple(reversed(up))
        other = PartitionView(leader=last[0] if last else None, isr=last, replicas=(3, 2, 1))
        partitions = {"t-0": partition, "t-1": other}
        view = ClusterView(time_ns=0, brokers=ids, serving=ids, partitions=partitions)
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
    """Unless a play takes it, which looks at the ISR."""
    for _, impaired, acts in Sim(spec, seed).run(300):
        for act in acts:
            if isinstance(act, OnNodes) and step_word(act) in LOSING and act.kind not in STRIKES:
                assert isinstance(act.target, NamedNodes)
                assert not impaired
                assert len(act.target.nodes) == 1


@given(SPECS, st.integers(1, 10_000))
def test_what_a_lost_disk_had_is_on_another_one_that_goes_on(spec: MixSpec, seed: int) -> None:
    spec = replace(spec, faults=tuple(sorted({*spec.faults, "window", "late_fetch"})))
    sim, lost = Sim(spec, seed), dict[NodeName, int]()
    for _, impaired, acts in sim.run(300):
        lost = {node: looks for node, looks in lost.items() if node in impaired}
        gone = set(impaired)
        for act in acts:
            if not isinstance(act, OnNodes) or not is_fault(act):
                continue
            assert isinstance(act.target, NamedNodes)
            brokers = [node for node in act.target.nodes if node in IDS]
            for node in act.target.nodes:
                assert all(one == node or sim.looks >= looks + 2 for one, looks in lost.items()), (
                    "struck before the cluster knew that a replica is lost"
                )
            gone |= set(brokers)
            if step_word(act) in EMPTYING and brokers:
                assert gone <= {*IDS}, "nobody may be there who keeps the others' sessions"
                assert set(brokers) >= lost.keys(), "a second disk"
                assert set(brokers) <= impaired or set(IDS) - gone, "the last member of the ISR"
                lost |= dict.fromkeys(brokers, sim.looks)


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


@pytest.mark.parametrize("kind", sorted(EPISODES.keys() - set(STRIKES)))
def test_every_kind_of_fault_comes_and_is_healed(kind: str) -> None:
    spec = MixSpec(faults=(kind,), targets=("one broker",))
    words = [
        next(word for word in step_data(act) if word != "at")
        for _, _, acts in Sim(spec, seed=5).run(120)
        for act in acts
    ]
    steps = EPISODES[kind].example()
    first = step_word(next(step for step in reversed(steps) if is_fault(step)))
    last = step_word(steps[-1])
    assert words.count(first) > 3
    assert words.count(last) >= words.count(first) - 1


@pytest.mark.parametrize("kind", STRIKES)
def test_every_strike_comes_and_undoes_what_it_did(kind: str) -> None:
    sim = Sim(MixSpec(faults=(kind,), down={Role.BROKER: 2}), seed=5)
    steps = [act for _, _, acts in sim.run(300) for act in acts]
    laid = {act.name for act in steps if isinstance(act, Lay)}
    assert len({name.rpartition("-")[0] for name in laid}) > 3
    assert {act.kind for act in steps if isinstance(act, Breaking) and is_fault(act)} == {kind}
    lifted = {act.name for act in steps if isinstance(act, Lift)}
    assert len(laid - lifted) <= 2
    assert len(sim.down) <= 2


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


ALL = MixSpec(
    faults=(*STRIKES, "window", "kill", "partition", "pause", "wipe"),
    targets=("one broker", "leader", "isr follower", "active controller"),
    down={"broker": 2},
    rounds=True,
)


@pytest.mark.parametrize("seed", range(10))
def test_the_seed_alone_says_which_faults_come_and_what_they_wait_for(seed: int) -> None:
    """Whatever the cluster does meanwhile: nodes come back sooner or later, others lead."""

    def drawn(recovery: int) -> tuple[list[str], list[EpisodeWindow]]:
        sim, kinds = Sim(ALL, seed, recovery=recovery, streams=True), dict[str, None]()
        for _, _, acts in sim.run(900):
            for act in acts:
                if isinstance(act, Breaking):
                    kinds |= {f"{sim.mix._turn_count} {act.kind}": None}
        return list(kinds), sim.mix.windows

    one, other = drawn(1), drawn(1000)
    for told, again in zip(one, other, strict=True):
        count = min(len(told), len(again))
        assert count > 10
        assert told[: count - 1] == again[: count - 1]


def test_another_seed_draws_other_windows() -> None:
    def drawn(seed: int) -> list[str]:
        sim = Sim(ALL, seed, streams=True)
        for _ in sim.run(600):
            pass
        return [window.kind for window in sim.mix.windows]

    assert drawn(1) != drawn(2)
    assert len({kind for seed in range(6) for kind in drawn(seed)}) > 4


def test_only_the_messages_that_were_asked_for_are_waited_for() -> None:
    sim = Sim(replace(ALL, faults=("window", "ambush"), windows=("BrokerHeartbeat",)), seed=4)
    for _ in sim.run(600):
        pass
    assert {window.kind.split()[0] for window in sim.mix.windows} == {"BrokerHeartbeat"}


def test_power_is_cut_in_windows_where_the_mix_cuts_power() -> None:
    def struck(*faults: str) -> set[str]:
        spec = replace(ALL, faults=("window", *faults))
        acts = [act for seed in range(4) for _, _, acts in Sim(spec, seed).run(900) for act in acts]
        found = [act for act in acts if isinstance(act, OnNodes) and act.kind == "window"]
        return {step_word(act) for act in found}

    assert struck() >= {"kill", "wipe", "pause", "stop"}
    assert "cut_power" not in struck()
    assert "cut_power" in struck("cut_power")
