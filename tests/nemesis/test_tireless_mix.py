"""A mix never tires: whatever looks miss and however late they are, something is broken again soon.

The cluster of these tests does what it should: a node that is mended is whole again in time, and
registers anew. But looks are late, begin at their own times, and miss whatever is over by then;
some messages are never sent; some plays cannot begin.
"""

import random
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.clusters.kafka_port import ClusterView, PartitionView
from fencepost.clusters.observation import Observation
from fencepost.clusters.port import NodeName
from fencepost.harness.interpreter.idleness import Idleness
from fencepost.nemesis.mix import Mix
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.nemesis.targets import NamedNodes, Scene
from fencepost.nemesis.topology import Flows, cut_off
from fencepost.nemesis.verbs.heal import HealPartition
from fencepost.nemesis.verbs.lift import Lift
from fencepost.nemesis.verbs.partition import Partition
from fencepost.nemesis.verbs.registry import EPISODES, STRIKES, is_fault, verb_of
from fencepost.nemesis.verbs.restart import Restart
from fencepost.nemesis.verbs.rule import Lay
from fencepost.nemesis.verbs.step import OnNodes, Step
from fencepost.nemesis.wire.rules import Watch
from fencepost.nemesis.wire.status import RuleStatus

NODES = tuple(map(NodeName, ("controller-1", "broker-1", "broker-2", "broker-3")))
IDS = {node: int(node[-1]) for node in NODES[1:]}
STEP_S = 0.1
IDLE_S_MAX = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Adversary:
    """The bounds of what is drawn, in seconds, and the share of messages that are sent."""

    recovery_s: float
    """A mended node is whole within this."""
    look_s: float
    """A look takes as long, and shows the state at its beginning."""
    between_s: float
    sent: float


class World:
    """Nodes that recover, and looks at them that are late."""

    def __init__(self, spec: MixSpec, seed: int, adversary: Adversary) -> None:
        def stream(name: str) -> random.Random:
            return random.Random(f"{seed}/{name}")

        self.mix = Mix(spec, stream("mix"), ("t-0", "t-1"), streams=stream)
        self.adversary = adversary
        self.draw = stream("world")
        self.idleness = Idleness(now_s=0.0)
        self.down: dict[NodeName, set[str]] = {}
        """The broken nodes, with the words of what is broken."""
        self.cut: dict[str, frozenset[NodeName]] = {}
        self.laid: dict[str, bool] = {}
        """The rules, with whether their messages are sent."""
        self.watched: set[str] = set()
        self.back_at_s: dict[NodeName, float] = {}
        self.registered: Counter[NodeName] = Counter()
        self.look_count = 0
        self.shown = self._truth()
        self._under_way: deque[tuple[float, ClusterView]] = deque()
        self._next_look_s = 0.0
        self.fault_count = 0

    def run(self, seconds: float) -> None:
        for step in range(int(seconds / STEP_S)):
            now_s = step * STEP_S
            self._come_back(now_s)
            self._look(now_s)
            self.idleness.pass_to(now_s)
            impaired = self._impaired()
            scene = Scene(nodes=NODES, broker_ids=IDS, view=self.shown, active_controller=NODES[0])
            for act in self.mix.due(now_s, scene=scene, impaired=impaired, look=self.look):
                self._apply(act, now_s)
                if isinstance(act, OnNodes) and is_fault(act):
                    self.fault_count += 1
                    self.idleness.now_is(None, broken=True)
            met = any(sent for name, sent in self.laid.items() if name not in self.watched)
            broken = bool(self.down or self.cut or met)
            self.idleness.now_is(self.mix.waits_for(self._impaired()), broken=broken)

    def look(self) -> Observation:
        met = RuleStatus(
            matched_count=1,
            held_count=1,
            held_now=0,
            delivered_count=0,
            undeliverable_count=0,
            first=None,
            first_ns=None,
        )
        return Observation(
            view=self.shown,
            active_controller=NODES[0],
            states={},
            broker_ids=IDS,
            acknowledged_count=0,
            rules={name: met for name, sent in self.laid.items() if sent},
            registrations=dict(self.registered),
            look_count=self.look_count,
        )

    def _come_back(self, now_s: float) -> None:
        for node, at_s in list(self.back_at_s.items()):
            if at_s <= now_s and node not in self.down and node not in self._cut_off():
                del self.back_at_s[node]
                self.registered[node] += 1

    def _look(self, now_s: float) -> None:
        """Have looks begin and end: at most one is under way."""
        while self._under_way and self._under_way[0][0] <= now_s:
            self.shown = self._under_way.popleft()[1]
            self.look_count += 1
            self._next_look_s = now_s + self.draw.uniform(0.0, self.adversary.between_s)
        if not self._under_way and now_s >= self._next_look_s:
            ends_s = now_s + self.draw.uniform(0.0, self.adversary.look_s)
            self._under_way.append((ends_s, self._truth()))

    def _truth(self) -> ClusterView:
        away = {*self.down, *self.back_at_s, *self._cut_off()}
        up = [IDS[node] for node in IDS if node not in away]
        return ClusterView(
            time_ns=0,
            brokers=frozenset(up),
            serving=frozenset(up),
            partitions={
                key: PartitionView(leader=isr[0] if isr else None, isr=tuple(isr), replicas=all_)
                for key, isr, all_ in (("t-0", up, (1, 2, 3)), ("t-1", up[::-1], (3, 2, 1)))
            },
        )

    def _cut_off(self) -> frozenset[NodeName]:
        return frozenset().union(*self.cut.values())

    def _impaired(self) -> frozenset[NodeName]:
        """States of processes are known at once; all else by the latest look."""
        well = self.shown.taking_part - self.shown.lagging
        unseen = {node for node, number in IDS.items() if number not in well}
        return frozenset(unseen | {*self.down})

    def _apply(self, step: Step, now_s: float) -> None:
        match step:
            case Partition(name=name, cut=Flows(flows=flows)):
                self.cut[name] = cut_off(flows, NODES)
            case HealPartition(name=name):
                self._back(self.cut.pop(name), now_s)
            case Lay(name=name, action=action):
                self.laid[name] = self.draw.random() < self.adversary.sent
                self.watched |= {name} if isinstance(action, Watch) else set()
            case Lift(name=name):
                del self.laid[name]
            case OnNodes(target=NamedNodes(nodes=nodes)) if not isinstance(step, Restart):
                self._act(step, nodes, now_s)
            case _:
                pass  # no node is any the worse for it, once it is over

    def _act(self, step: OnNodes, nodes: Sequence[NodeName], now_s: float) -> None:
        verb = verb_of(step)
        if verb.fault and verb.healed_by in ("start", "resume"):
            for node in nodes:
                self.down.setdefault(node, set()).add(verb.word)
        elif verb.word in ("start", "resume"):
            for node in nodes:
                self.down.pop(node, None)
            self._back(nodes, now_s)

    def _back(self, nodes: Sequence[NodeName] | frozenset[NodeName], now_s: float) -> None:
        for node in sorted(nodes):
            self.back_at_s[node] = now_s + self.draw.uniform(0.0, self.adversary.recovery_s)


KINDS = sorted((EPISODES.keys() | set(STRIKES)) - {"packets", "bandwidth"})
ADVERSARIES = st.builds(
    lambda recovery_s, look_s, between_s, sent: Adversary(
        recovery_s=recovery_s, look_s=look_s, between_s=between_s, sent=sent
    ),
    st.sampled_from([0.0, 0.3, 3.0, 10.0]),
    st.sampled_from([0.0, 0.5, 2.0]),
    st.sampled_from([0.0, 0.1, 1.0]),
    st.sampled_from([0.5, 0.9, 1.0]),
)
SPECS = st.builds(
    lambda faults, brokers, overlap, rounds: MixSpec(
        faults=("kill", *faults),
        targets=("one broker", "leader", "isr follower", "active controller"),
        gap_s=(1.0, 2.0),
        duration_s=(3.0, 6.0),
        down={"broker": brokers},
        overlap=overlap,
        rounds=rounds,
    ),
    st.lists(st.sampled_from(sorted(KINDS)), min_size=0, max_size=8, unique=True),
    st.integers(1, 2),
    st.booleans(),
    st.booleans(),
)


@settings(max_examples=settings().max_examples // 2)
@given(SPECS, st.integers(1, 10_000), ADVERSARIES)
def test_a_mix_is_never_silent_for_long(spec: MixSpec, seed: int, adversary: Adversary) -> None:
    world = World(spec, seed, adversary)
    world.run(400)
    longest = world.idleness.longest
    assert longest.idle_s < IDLE_S_MAX, f"{longest.begin_s:.1f} s: {longest.words}"
    assert world.fault_count > 5


@pytest.mark.parametrize("seed", range(6))
def test_a_disk_that_no_look_has_shown_to_be_lost_stops_nothing(seed: int) -> None:
    """Its node is whole again before the next look begins."""
    spec = MixSpec(faults=("window",), gap_s=(1.0, 2.0), down={"broker": 2}, rounds=True)
    quick = Adversary(recovery_s=0.0, look_s=0.0, between_s=5.0, sent=1.0)
    world = World(spec, seed, quick)
    world.run(900)
    assert world.idleness.longest.idle_s < IDLE_S_MAX
