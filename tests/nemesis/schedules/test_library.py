"""Every schedule unfolds into plays that can be performed, end healed, and are what it prints."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

import pytest

from fencepost.clusters.port import NodeName, NodeState
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.stage import Stage
from fencepost.harness.scenario.trial_spec import Storm
from fencepost.harness.trials.plan import drawn_plan
from fencepost.harness.trials.storms import LAGGARDS, PLAY_STORMS
from fencepost.harness.trials.trial import run_trial
from fencepost.nemesis.messages import MESSAGES
from fencepost.nemesis.play import parse_play, refuse_contradictions, step_data, step_word
from fencepost.nemesis.schedules.chaos import chaos
from fencepost.nemesis.schedules.late_messages import LATE_FETCH, LATE_WORD
from fencepost.nemesis.schedules.printed import printed
from fencepost.nemesis.schedules.relays import RELAY
from fencepost.nemesis.schedules.schedule import Schedule, unfolded
from fencepost.nemesis.schedules.scope import Scope
from fencepost.nemesis.schedules.windows import MIX_STRIKES, message_fault, window
from fencepost.nemesis.targets import NamedNodes, Scene
from fencepost.nemesis.unfolding import May, MixMoment, Unfolding
from fencepost.nemesis.verbs.heal import HealPartition
from fencepost.nemesis.verbs.lift import Lift
from fencepost.nemesis.verbs.move_leader import MoveLeader
from fencepost.nemesis.verbs.partition import Partition
from fencepost.nemesis.verbs.registry import EPISODES, is_fault
from fencepost.nemesis.verbs.rule import Lay
from fencepost.nemesis.verbs.step import OnNodes, Play, Step
from fencepost.nemesis.verbs.wait import Wait
from fencepost.nemesis.wire.rules import Drop, Duplicate, Hold, Reorder

BROKERS = tuple(map(NodeName, ("broker-1", "broker-2", "broker-3")))
CONTROLLERS = tuple(map(NodeName, ("controller-1", "controller-2", "controller-3")))
SERVERS = tuple(map(NodeName, ("zookeeper-1", "zookeeper-2", "zookeeper-3")))
SEEDS = range(200)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A schedule around a partition, and the cluster that it unfolds on."""

    schedule: Schedule
    others: tuple[NodeName, ...] = CONTROLLERS
    controller: NodeName | None = None

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        return (*self.others, *BROKERS)

    def play(self, seed: int) -> Play:
        scope = Scope.around(
            random.Random(seed),
            key="t-0",
            replicas=(1, 2, 3),
            nodes=self.nodes,
            controller=self.controller,
        )
        return unfolded(self.schedule, scope)


CASES = {
    "window": Case(schedule=window()),
    "relay": Case(schedule=RELAY),
    "late fetch": Case(schedule=LATE_FETCH),
    **{
        f"late word, {node} is the controller": Case(
            schedule=LATE_WORD, others=SERVERS, controller=node
        )
        for node in BROKERS
    },
    **{f"window of {one}": Case(schedule=window(one, strikes=MIX_STRIKES)) for one in MESSAGES},
    **{f"ambush of {one}": Case(schedule=window(one, passes=True)) for one in MESSAGES},
    **{
        f"{type(action).__name__.lower()} of {one}": Case(schedule=message_fault(one, action))
        for one in MESSAGES
        for action in (Hold(), Drop(), Duplicate(), Reorder())
    },
}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@each_case
def test_a_play_reads_back_as_it_was_drawn_and_can_be_performed(case: Case) -> None:
    system = "kafka" if case.controller is None else "reference-zookeeper"
    stage = Stage(
        nodes=case.nodes,
        keys=("t-0",),
        broker_ids=(1, 2, 3),
        replicas={"t-0": (1, 2, 3)},
        system=system,
    )
    for seed in SEEDS:
        play = case.play(seed)
        refuse_contradictions(play, stage)
        assert parse_play([step_data(step) for step in play], stage) == play


@each_case
def test_performed_it_ends_healed(case: Case) -> None:
    scene = Scene(
        nodes=case.nodes,
        broker_ids={node: int(node[-1]) for node in BROKERS},
        view=None,
        active_controller=case.controller or CONTROLLERS[0],
    )
    for seed in SEEDS:
        under_way = Unfolding(prefix="p", play=case.play(seed), draw=random.Random(seed))
        moment = MixMoment(now_s=0.0, scene=scene, look=None)
        steps = tuple(under_way.due(moment, lambda _step, _node: May.YES))
        assert under_way.is_over
        states, left = state_after(steps)
        assert {*states.values()} <= {NodeState.RUNNING}
        assert not left


def state_after(steps: Play) -> tuple[dict[NodeName, NodeState], Counter[str]]:
    """Return the states of the nodes, and the names of rules and partitions that are left."""
    states: dict[NodeName, NodeState] = {}
    left: Counter[str] = Counter()
    after = {"start": NodeState.RUNNING, "resume": NodeState.RUNNING, "pause": NodeState.PAUSED}
    for step in steps:
        match step:
            case OnNodes(target=NamedNodes(nodes=nodes)):
                state = after.get(step_word(step), NodeState.DOWN)
                states |= dict.fromkeys(nodes, state)
            case Lay(name=name) | Partition(name=name):
                left[name] += 1
            case Lift(name=name) | HealPartition(name=name):
                left[name] -= 1
            case _:
                pass
    return states, +left


@each_case
def test_the_printed_form_names_each_step_that_it_takes(case: Case) -> None:
    words = {step_word(step) for seed in SEEDS for step in case.play(seed)}
    assert words <= named_by(case.schedule)


def named_by(schedule: Schedule) -> set[str]:
    text = printed(schedule).replace("start or resume", "start resume")
    return {*text.replace(":", " ").replace(",", " ").split()}


@each_case
def test_one_seed_draws_one_play(case: Case) -> None:
    assert case.play(3) == case.play(3)


@pytest.mark.parametrize("name", ["window", "relay", "late fetch", "window of AlterPartition"])
def test_seeds_differ(name: str) -> None:
    assert len({str(CASES[name].play(seed)) for seed in range(50)}) > 40


def test_every_window_holds_its_message_and_lets_it_go() -> None:
    for seed in SEEDS:
        play = CASES["window"].play(seed)
        laid = {step.name for step in play if isinstance(step, Lay)}
        assert "window" in laid
        assert laid == {step.name for step in play if isinstance(step, Lift)}


def test_every_relay_hands_the_leadership_on_to_somebody_else() -> None:
    for seed in SEEDS:
        moves = (s for s in CASES["relay"].play(seed) if isinstance(s, MoveLeader))
        leaders = [1, *(step.leaders["t-0"] for step in moves)]
        assert len(leaders) > 1
        assert all(a != b for a, b in pairwise(leaders))


def test_a_late_word_leaves_nothing_to_the_heal() -> None:
    apis: set[str | None] = set()
    for case in CASES.values():
        if case.controller is None:
            continue
        for seed in SEEDS:
            play = case.play(seed)
            states, left = state_after(play)
            assert {*states.values()} <= {NodeState.RUNNING}
            assert not left
            apis |= {step.match.api for step in play if isinstance(step, Lay)}
    assert apis == {"MetadataHeartbeat", "IsrChange", "UpdateMetadata", "LeaderAndIsr", "Fetch"}


def steps_of_chaos(seed: int) -> Iterator[Step]:
    nodes = (*CONTROLLERS, *BROKERS[:2])
    ids = {node: int(node[-1]) for node in BROKERS[:2]}
    scene = Scene(nodes=nodes, broker_ids=ids, view=None, active_controller=None)
    steps = chaos().unfold(Scope.of_scene(random.Random(seed), scene))
    return islice((step for step in steps if not isinstance(step, Wait)), 300)


def test_chaos_strikes_what_is_whole_and_mends_what_it_struck() -> None:
    words: set[str] = set()
    for seed in range(30):
        down: dict[NodeName, str] = {}
        cut: set[str] = set()
        for step in steps_of_chaos(seed):
            word = step_word(step)
            words.add(word)
            match step:
                case OnNodes(target=NamedNodes(nodes=(node,))):
                    if word in ("start", "resume"):
                        assert (down.pop(node) == "pause") == (word == "resume")
                    elif word == "wipe":
                        assert down[node] == "kill"
                    else:
                        assert node not in down
                        down[node] = word
                case Partition(name=name):
                    assert name not in cut
                    cut.add(name)
                case HealPartition(name=name):
                    cut.remove(name)
                case _:
                    raise AssertionError(step)
    assert words - {"heal"} == {
        *("kill", "stop", "start", "pause", "resume", "wipe", "cut_power", "partition")
    }
    assert words <= named_by(chaos())


def test_one_laggard_at_a_time_is_cut_off_from_the_controllers() -> None:
    ids = {node: int(node[-1]) for node in BROKERS}
    scene = Scene(nodes=(*CONTROLLERS, *BROKERS), broker_ids=ids, view=None, active_controller=None)
    drawn = LAGGARDS.unfold(Scope.of_scene(random.Random(1), scene))
    steps = [step for step in islice(drawn, 80) if not isinstance(step, Wait)]
    cuts, heals = steps[::2], steps[1::2]
    assert all(isinstance(step, HealPartition) for step in heals)
    flows = [step.cut.flows for step in cuts if isinstance(step, Partition)]
    late = {frozenset(receiver for _, receiver in one) for one in flows}
    assert late == {frozenset((node,)) for node in BROKERS}
    assert all({sender for sender, _ in one} == {*CONTROLLERS} for one in flows)


@pytest.mark.parametrize("kind", EPISODES)
def test_the_printed_form_of_a_kind_of_a_mix_names_its_faults(kind: str) -> None:
    episode = EPISODES[kind]
    words = {step_word(step) for step in episode.example() if is_fault(step)}
    assert words <= named_by(episode.schedule)


@pytest.mark.slow
def test_nearly_each_late_fetch_shows_an_epoch_not_taken_from_it_and_no_rule_missing() -> None:
    plans = [plan for plan in map(drawn_plan, range(1, 800)) if plan.storm is Storm.LATE_FETCHES]
    assert 10 < len(plans) < 50
    off = Rules().without("epoch_from_fetch")
    found = [run_trial(plan, off).anomalies for plan in plans[:10]]
    assert sum("stale-epoch-join" in anomalies for anomalies in found) >= 8
    for plan in plans[:10]:
        result = run_trial(plan, Rules())
        assert (result.crash, result.findings) == ("", ())


def test_the_storms_of_plays_are_among_those_tried_here() -> None:
    tried = [case.schedule for case in CASES.values()]
    assert all(one.schedule in tried for one in PLAY_STORMS.values())
