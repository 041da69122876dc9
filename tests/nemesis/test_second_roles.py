"""Nodes that are broker and controller at once, as plays and mixes take them."""

import math
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from fencepost.clusters.kafka_conditions import CONDITIONS
from fencepost.clusters.kafka_port import ClusterView, PartitionView
from fencepost.clusters.observation import Observation
from fencepost.clusters.port import NodeName, NodeRoles
from fencepost.clusters.stage import Stage
from fencepost.history.failure import HarnessError, SpecError
from fencepost.nemesis.budget import NodeBudget
from fencepost.nemesis.disks import LostDisks
from fencepost.nemesis.messages import sent_by
from fencepost.nemesis.mix import Mix
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.nemesis.schedules.partitions import drawn_cut
from fencepost.nemesis.targets import NamedNodes, Scene, parse_target, resolve
from fencepost.nemesis.topology import Flows, cut_off, flows_of
from fencepost.nemesis.verbs.heal import HealPartition
from fencepost.nemesis.verbs.kill import Kill
from fencepost.nemesis.verbs.lift import Lift
from fencepost.nemesis.verbs.partition import Partition, parse_cut
from fencepost.nemesis.verbs.registry import STRIKES, verb_of
from fencepost.nemesis.verbs.restart import Restart
from fencepost.nemesis.verbs.rule import Lay
from fencepost.nemesis.verbs.step import OnNodes, Step
from fencepost.nemesis.wire.status import RuleStatus

NODES = tuple(NodeName(f"broker-{number}") for number in (1, 2, 3))
IDS = {node: int(node[-1]) for node in NODES}
ALL = NodeRoles(second=dict.fromkeys(NODES, "controller"))
FIRST = NodeRoles(second={NODES[0]: "controller"})
VIEW = ClusterView(
    time_ns=0,
    brokers=frozenset(IDS.values()),
    serving=frozenset(IDS.values()),
    partitions={"t-0": PartitionView(leader=2, isr=(2, 1, 3), replicas=(1, 2, 3))},
)


def scene(roles: NodeRoles = ALL) -> Scene:
    return Scene(nodes=NODES, broker_ids=IDS, view=VIEW, active_controller=NODES[0], roles=roles)


def stage(roles: NodeRoles = ALL) -> Stage:
    return Stage(nodes=NODES, keys=("t-0",), broker_ids=(1, 2, 3), node_roles=roles)


def hit(text: str, roles: NodeRoles) -> tuple[NodeName, ...]:
    return resolve(parse_target(text, stage(roles)), scene(roles), random.Random(1))


def test_roles_come_in_the_order_of_starting() -> None:
    assert FIRST.of(NODES[0]) == ("controller", "broker")
    assert FIRST.names(NODES) == ("controller", "broker")
    assert FIRST.among(NODES, "controller") == NODES[:1]
    assert FIRST.among(NODES, "broker") == NODES


def test_controllers_are_the_brokers_that_vote() -> None:
    assert hit("all controllers", FIRST) == NODES[:1]
    assert hit("all controllers", ALL) == NODES
    assert hit("one controller", FIRST) == NODES[:1]
    with pytest.raises(SpecError, match="'one controller' is not a target"):
        hit("one controller", NodeRoles())


def test_a_condition_on_a_controller_names_a_broker_that_votes() -> None:
    parse = CONDITIONS["active_controller"]
    assert parse("active_controller", "broker-1", stage(FIRST)).data() == {
        "active_controller": "broker-1"
    }
    with pytest.raises(SpecError, match=r"no such node: 'broker-2'; allowed: broker-1$"):
        parse("active_controller", "broker-2", stage(FIRST))


def test_messages_of_a_quorum_are_sent_where_three_brokers_vote() -> None:
    assert "Vote" in sent_by(NODES, ALL)
    assert "Vote" not in sent_by(NODES, FIRST)
    assert "BrokerHeartbeat" in sent_by(NODES, FIRST)
    assert "BrokerHeartbeat" not in sent_by(NODES)


def drawn_kills(
    down: dict[str, int], *, targets: tuple[str, ...], roles: NodeRoles
) -> Counter[int]:
    """Count the kills of a long run by the number of nodes that they take away at once."""
    spec = MixSpec(faults=("kill",), targets=targets, down=down, overlap=True)
    found: Counter[int] = Counter()
    for seed in range(20):
        mix = Mix(spec, random.Random(seed), ("t-0",))
        for tick in range(400):
            for step in mix.due(tick / 4, scene=scene(roles), impaired=frozenset()):
                if isinstance(step, Kill):
                    found[len(step.target.nodes)] += 1  # type: ignore[union-attr]
    return found


def test_a_node_that_is_down_counts_under_both_of_its_roles() -> None:
    brokers = ("all brokers",)
    assert set(drawn_kills({"broker": 3, "controller": 1}, targets=brokers, roles=ALL)) == {1}
    assert set(drawn_kills({"broker": 1, "controller": 3}, targets=brokers, roles=ALL)) == {1}
    assert max(drawn_kills({"broker": 3, "controller": 3}, targets=brokers, roles=ALL)) == 3
    # Two brokers do not vote.
    assert set(drawn_kills({"broker": 3, "controller": 0}, targets=brokers, roles=FIRST)) <= {1, 2}
    assert not drawn_kills({"broker": 3, "controller": 0}, targets=brokers, roles=ALL)


def test_a_roll_leaves_out_nodes_of_a_role_that_may_not_be_down() -> None:
    spec = MixSpec(faults=("roll",), down={"broker": 1, "controller": 0})
    rolled = set()
    for seed in range(10):
        mix = Mix(spec, random.Random(seed), ("t-0",))
        for tick in range(200):
            for step in mix.due(tick / 4, scene=scene(FIRST), impaired=frozenset()):
                assert isinstance(step, Restart)
                rolled.update(step.target.nodes)  # type: ignore[union-attr]
    assert rolled == set(NODES[1:])


class Quorum:
    """Three nodes that are broker and controller at once, which need a while for what they do.

    A broker whose heartbeats are held is fenced, and votes on. A leader that is gone is noticed
    after `ELECTION_S`, and a node that comes back is whole `BACK_S` later.
    """

    ELECTION_S = 2.0
    BACK_S = 3.0
    TICK_S = 0.25

    def __init__(self, spec: MixSpec, seed: int) -> None:
        def stream(name: str) -> random.Random:
            return random.Random(f"{seed}/{name}")

        self.mix = Mix(spec, stream("mix"), ("t-0",), streams=stream)
        self.now_s = 0.0
        self.gone: dict[str, frozenset[NodeName]] = {}
        """The nodes that do not go on, by what took them: a word and a node, or a partition."""
        self.rules: dict[str, Lay] = {}
        self.back_at_s: dict[NodeName, float] = {}
        self.leader, self.leader_gone_s = NODES[0], math.inf
        self.looks = 0
        self.steps: list[Step] = []
        self.unsafe: list[str] = []

    def run(self, seconds: float) -> None:
        while self.now_s < seconds:
            self.now_s += self.TICK_S
            self.looks += 1
            self._elect()
            scene = self.scene()
            impaired = frozenset(NODES) - self.serving()
            for step in self.mix.due(self.now_s, scene=scene, impaired=impaired, look=self.look):
                self.apply(step, impaired)
                self.steps.append(step)

    def lost(self) -> frozenset[NodeName]:
        return frozenset().union(*self.gone.values())

    def serving(self) -> frozenset[NodeName]:
        """The brokers that are unfenced."""
        silent = {
            node
            for rule in self.rules.values()
            if rule.match.api == "BrokerHeartbeat" and isinstance(rule.source.target, NamedNodes)
            for node in rule.source.target.nodes
        }
        late = {node for node, at_s in self.back_at_s.items() if at_s > self.now_s}
        return frozenset(NODES) - self.lost() - silent - late

    def _elect(self) -> None:
        if self.leader not in self.lost():
            self.leader_gone_s = math.inf
        elif self.leader_gone_s == math.inf:
            self.leader_gone_s = self.now_s
        elif self.now_s > self.leader_gone_s + self.ELECTION_S:
            self.leader = min(frozenset(NODES) - self.lost(), default=self.leader)
            self.leader_gone_s = math.inf

    def scene(self) -> Scene:
        up = [IDS[node] for node in sorted(self.serving())]
        one = PartitionView(leader=up[0] if up else None, isr=tuple(up), replicas=(1, 2, 3))
        view = ClusterView(
            time_ns=0, brokers=frozenset(up), serving=frozenset(up), partitions={"t-0": one}
        )
        down = frozenset(node for node in NODES if f"down {node}" in self.gone)
        return replace(scene(), view=view, active_controller=self.leader, down=down)

    def look(self) -> Observation:
        """Every message is sent as soon as a rule waits for it."""
        held = RuleStatus(
            matched_count=1,
            held_count=1,
            held_now=0,
            delivered_count=0,
            undeliverable_count=0,
            first=None,
            first_ns=None,
        )
        now = self.scene()
        return Observation(
            view=now.view,
            active_controller=now.active_controller,
            states={},
            broker_ids=IDS,
            acknowledged_count=0,
            rules=dict.fromkeys(self.rules, held),
            registrations=dict.fromkeys(NODES, self.looks),
            look_count=self.looks,
        )

    def apply(self, step: Step, impaired: frozenset[NodeName]) -> None:
        match step:
            case OnNodes(target=NamedNodes(nodes=nodes)):
                for node in nodes:
                    self._strike(verb_of(step).word, node, impaired)
            case Partition(name=name, cut=Flows(flows=flows)):
                self.gone[name] = cut_off(flows, NODES, ALL)
            case HealPartition(name=name):
                self._back(self.gone.pop(name))
            case Lay(name=name):
                self.rules[name] = step
            case Lift(name=name):
                self._back(NODES)
                del self.rules[name]
            case _:
                pass  # It changes nothing about who goes on.
        if len(self.lost()) > 1:
            self.unsafe.append(f"{self.now_s}: {sorted(self.lost())} are gone at once")

    def _strike(self, word: str, node: NodeName, impaired: frozenset[NodeName]) -> None:
        if word in ("kill", "stop", "pause"):
            self.gone[f"{'paused' if word == 'pause' else 'down'} {node}"] = frozenset({node})
        elif word in ("start", "resume"):
            self.gone.pop(f"{'paused' if word == 'resume' else 'down'} {node}")
            self._back({node})
        elif word == "wipe":
            if self.leader in self.lost():
                self.unsafe.append(f"{self.now_s}: {node} loses its vote while nobody leads")
            if impaired - {node}:
                self.unsafe.append(f"{self.now_s}: {node} loses its vote beside {impaired}")

    def _back(self, nodes: Iterable[NodeName]) -> None:
        self.back_at_s |= dict.fromkeys(nodes, self.now_s + self.BACK_S)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("faults", [("late_fetch",), ("wipe",), ("wipe", *STRIKES)])
def test_a_mix_leaves_a_majority_that_has_what_was_committed(
    faults: tuple[str, ...], seed: int
) -> None:
    """A voter that is fenced votes on; one that forgets how it voted comes back to a leader."""
    spec = MixSpec(
        faults=faults,
        targets=("one broker", "leader", "active controller"),
        rounds=True,
        gap_s=(1.0, 2.0),
        duration_s=(4.0, 10.0),
        down={"broker": 1, "controller": 1},
    )
    quorum = Quorum(spec, seed)
    quorum.run(200)
    assert not quorum.unsafe


def test_a_broker_that_is_fenced_is_gone_as_a_broker_and_votes_on() -> None:
    budget = NodeBudget(MixSpec(down={"broker": 1, "controller": 1}))
    fenced, other, _ = NODES
    assert budget.may_go(fenced, {fenced}, ALL)
    assert not budget.may_go(fenced, {fenced, other}, ALL)
    assert budget.may_go(fenced, {fenced, other}, NodeRoles())


def test_no_voter_is_struck_while_another_one_has_lost_its_disk() -> None:
    disks = LostDisks()
    disks.lose(NODES[0], look_count=0, registrations=0)
    fenced = replace(VIEW, serving=frozenset({2, 3}))
    shown = replace(scene(), view=replace(fenced, partitions={}))
    disks.look(shown, look_count=9, registrations=lambda _: 1, impaired=NODES[:1])
    assert not disks.pending
    assert disks.hinders(NODES[1], shown)
    assert not disks.hinders(NODES[0], shown)
    assert not disks.hinders(NODES[1], replace(shown, roles=NodeRoles()))


def test_voters_lose_their_disks_all_the_same() -> None:
    spec = MixSpec(
        faults=("wipe",), targets=("active controller",), down={"broker": 1, "controller": 1}
    )
    quorum = Quorum(spec, 1)
    quorum.run(200)
    assert sum(verb_of(step).word == "wipe" for step in quorum.steps) > 5


@pytest.mark.parametrize("roles", [ALL, FIRST])
def test_drawn_cuts_can_be_made_whoever_votes(roles: NodeRoles) -> None:
    drawn = [drawn_cut(scene(roles), random.Random(seed)) for seed in range(200)]
    assert all(cut.flows and lost for cut, lost in drawn)


def test_groups_of_all_brokers_and_all_controllers_are_one_group_too_many() -> None:
    cut = parse_cut({"groups": ["brokers", "controllers"]}, stage())
    with pytest.raises(HarnessError, match="is in two groups"):
        flows_of(cut, scene(), random.Random(1))


def test_where_halves_tie_the_one_that_decides_stays() -> None:
    four = (*NODES, NodeName("broker-4"))
    halves = {(one, other) for one in four[:2] for other in four[2:]}
    flows = frozenset(halves | {(other, one) for one, other in halves})
    second = NodeRoles(second={four[2]: "controller"})
    assert cut_off(flows, four, second) == set(four[:2])
    assert cut_off(flows, four, replace(second, second={four[0]: "controller"})) == set(four[2:])
