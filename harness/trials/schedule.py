"""The steps of a trial, as they come: those of a play by their times, those of a storm as drawn.

Faults at random times rarely hit the millisecond between a vote and its answer. An ambush watches
what nodes note for the oracle, and with some chance strikes the very node that noted it, at once or
a moment later; it comes back soon. Only what the network and the disks have then counts.

In a *regicidal* trial mostly new leaders are struck, before any other node has what they appended,
so that logs diverge again and again; otherwise any node that notes something, now and then.
While a leader commits what its predecessors left, all controllers may go down at once, as in a rack
that loses its power: what one of them alone has, and what two have, is then what the next election
is about.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from clusters.kafka_port import Role, role_of
from clusters.node_port import notes
from clusters.port import NodeName, NodeState
from clusters.reference.simulated.cluster import SimulatedCluster
from clusters.topic_spec import keys_of
from harness.interpreter.interpreter import Interpreter
from harness.scenario.trial_spec import Storm
from harness.trials.plan import TrialPlan
from harness.trials.trial_cluster import Judge
from nemesis import late_messages, relays
from nemesis.chaos import Chaos
from nemesis.late_messages import drawn_late_word
from nemesis.mix import Mix
from nemesis.steps import dealt
from nemesis.targets import NamedNodes
from nemesis.verbs.await_condition import Await
from nemesis.verbs.cut_power import CutPower
from nemesis.verbs.kill import Kill
from nemesis.verbs.pause import Pause, Resume
from nemesis.verbs.start import Start
from nemesis.verbs.step import OnNodes, Play, Step
from nemesis.windows import drawn_window

_S: Final = 1_000_000_000
_TICK_NS: Final = 20_000_000
_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mood:
    chances: Mapping[str, float]
    """The chance of a strike, by what is noted."""
    inherited: float
    """The chance when a leader commits what others appended, or the first record of its own."""
    blackout: float
    """The share of the strikes then that hits all controllers."""
    delays_ms: tuple[float, ...]
    backs_ms: tuple[float, ...]
    """The time for which a struck node stays away, give or take a half."""
    strikes: tuple[type[OnNodes], ...]


_RESTLESS: Final = _Mood(
    chances={
        notes.VOTED: 0.25,
        notes.QUORUM_LEADER: 0.35,
        notes.APPENDED_METADATA: 0.02,
        notes.ACTIVE: 0.1,
    },
    inherited=0.4,
    blackout=0.0,
    delays_ms=(0.0, 0.5, 2.0, 10.0),
    backs_ms=(20.0, 100.0, 400.0, 1200.0),
    strikes=(CutPower, CutPower, Kill, Pause),
)
_REGICIDAL: Final = _Mood(
    chances={notes.QUORUM_LEADER: 0.6, notes.APPENDED_METADATA: 0.01},
    inherited=0.5,
    blackout=0.8,
    delays_ms=(0.0, 0.0, 0.5),
    backs_ms=(30.0, 300.0, 450.0),
    strikes=(Kill, Kill, Kill, CutPower),
)


class Schedule:
    """The schedule of one plan.

    It lets the world go on until a step is due, and begins when it is made.
    """

    def __init__(
        self,
        plan: TrialPlan,
        cluster: SimulatedCluster,
        interpreter: Interpreter,
        *,
        draw: random.Random,
        unless_misfit: Callable[[Step], Step | None],
    ) -> None:
        """`unless_misfit`: the step; None if a node was started as it should not be instead."""
        self._plan = plan
        self._cluster = cluster
        self._world = cluster.world
        self._interpreter = interpreter
        self._looks = interpreter.observer
        self._draw = draw
        self._unless_misfit = unless_misfit
        is_play = plan.storm is Storm.PLAY
        is_misfit = plan.old_software or plan.other_ids or plan.ill_timed or plan.unformatted
        self._has_misfits = is_play and is_misfit
        """A play then names each node that it starts: it is what became of a drawn schedule."""
        self._begin_ns = self._world.now_ns
        """The zero of a play's times."""
        self._given_up = False

    def missed(self) -> None:
        """Note that a step did not come to its end.

        A window that did not open is left; a play of the user's ends where it failed.
        """
        self._given_up = True

    def steps(self, end_ns: int) -> Iterator[Step | None]:
        """Yield the steps as they come; None: look again, time has passed."""
        match self._plan.storm:
            case Storm.PLAY:
                yield from self._of_play(tuple(self._plan.play or ()))
            case Storm.WINDOWS:
                yield from self._of_plays(end_ns, self._window, replicas_min=2)
            case Storm.RELAYS:
                yield from self._of_plays(end_ns, self._relay, replicas_min=relays.REPLICAS_MIN)
            case Storm.LATE_FETCHES:
                least = late_messages.REPLICAS_MIN
                yield from self._of_plays(end_ns, self._late_fetch, replicas_min=least)
            case Storm.LATE_WORDS:
                yield from self._of_plays(end_ns, self._late_word, replicas_min=2)
            case Storm.NONE:
                while self._world.now_ns < end_ns:
                    self._cluster.run(10 * _TICK_NS)
                    yield None
            case Storm.MIX | Storm.CHAOS | Storm.QUORUM:
                yield from self._as_they_are_due(end_ns)

    def _of_play(self, play: Play) -> Iterator[Step | None]:
        for _, step in dealt(play, self._draw):
            if self._given_up:
                return
            due_ns = self._begin_ns + round((step.at_s or 0.0) * _S)
            if due_ns > self._world.now_ns:  # of two at one time, nothing happens in between
                self._cluster.run(due_ns - self._world.now_ns)
            yield self._unless_misfit(step) if self._has_misfits else step

    def _of_plays(
        self, end_ns: int, drawn: Callable[[str, tuple[int, ...]], Play], *, replicas_min: int
    ) -> Iterator[Step | None]:
        """Yield the steps of drawn plays, one after the other.

        Each begins on a cluster that is whole if it can be.
        """
        keys = [
            (f"{topic.name}-{partition}", replicas)
            for topic in self._plan.topics
            for partition, replicas in enumerate(topic.assignment or ())
            if len(replicas) >= replicas_min
        ]
        while self._world.now_ns < end_ns:
            key, replicas = self._draw.choice(keys)
            self._given_up = False
            yield from self._of_play(drawn(key, self._led_first(key, replicas)))
            self._interpreter.heal_all()
            whole_by_ns = min(end_ns, self._world.now_ns + 5 * _S)
            while self._looks.impaired() and self._world.now_ns < whole_by_ns:
                self._cluster.run(5 * _TICK_NS)
                yield None

    def _window(self, key: str, replicas: tuple[int, ...]) -> Play:
        nodes = self._cluster.nodes
        return drawn_window(self._draw, key=key, replicas=replicas, nodes=nodes)

    def _relay(self, key: str, replicas: tuple[int, ...]) -> Play:
        return relays.drawn_relay(self._draw, key=key, replicas=replicas)

    def _late_fetch(self, key: str, replicas: tuple[int, ...]) -> Play:
        return late_messages.drawn_late_fetch(self._draw, key=key, replicas=replicas)

    def _late_word(self, key: str, replicas: tuple[int, ...]) -> Play:
        nodes = self._cluster.nodes
        return drawn_late_word(
            self._draw,
            key=key,
            replicas=replicas,
            controller=self._cluster.leader_now() or nodes[-1],
            ensemble=[node for node in nodes if role_of(node) is Role.ZOOKEEPER],
        )

    def _led_first(self, key: str, replicas: Sequence[int]) -> tuple[int, ...]:
        view = self._cluster.watch.view
        shown = None if view is None else view.partitions.get(key)
        leader = None if shown is None else shown.leader
        if leader is None or leader not in replicas:
            leader = replicas[0]
        return (leader, *(one for one in replicas if one != leader))

    def _as_they_are_due(self, end_ns: int) -> Iterator[Step | None]:
        plan, begin_ns = self._plan, self._world.now_ns
        keys = keys_of(plan.topics)
        nodes = self._cluster.nodes
        if plan.storm is Storm.QUORUM:
            nodes = tuple(node for node in nodes if role_of(node) is Role.CONTROLLER)
        chaos = Chaos(self._draw, nodes, wipes=plan.wipes)
        mix = None
        if plan.storm is Storm.MIX and plan.mix is not None:
            mix = Mix(plan.mix, self._draw, keys)
        while self._world.now_ns < end_ns:
            self._cluster.run(_TICK_NS if mix is None else 2 * _TICK_NS)
            now_s = (self._world.now_ns - begin_ns) / _S
            scene = self._looks.scene()
            if mix is None:
                steps = chaos.due(now_s, scene=scene)
            else:
                impaired = self._looks.impaired()
                due = mix.due(now_s, scene=scene, impaired=impaired, look=self._interpreter.look)
                steps = tuple(step for step in due if not isinstance(step, Await))
            for step in steps:
                yield self._unless_misfit(step)
            yield None


class LeaderKiller:
    """A watcher of the world in front of the oracle: it passes everything on. `end` mends."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        oracle: Judge,
        interpreter: Interpreter,
        *,
        seed: int,
        regicidal: bool,
    ) -> None:
        self._cluster = cluster
        self._oracle = oracle
        self._interpreter = interpreter
        self._draw = random.Random(f"ambush/{seed}")  # noqa: S311  # to be repeated
        self._names = {cluster.broker_id(node): node for node in cluster.nodes}
        self._controllers = [n for n in cluster.nodes if role_of(n) is Role.CONTROLLER]
        self._mood = _REGICIDAL if regicidal else _RESTLESS
        self._inherited: dict[int, int] = {}
        """The offset below which a leader's log existed when it was elected; -1: not known yet."""
        self._armed = False
        self.started = oracle.started
        self.sent = oracle.sent
        self.delivered = oracle.delivered

    def begin(self) -> None:
        """Strike nodes from now on."""
        self._armed = True

    def end(self) -> None:
        """Strike no more; nodes that are still down come back at their times."""
        self._armed = False

    def note(self, now: int, node: int, note: tuple[Any, ...]) -> None:
        """Tell the oracle; then perhaps strike the node."""
        self._oracle.note(now, node, note)
        if not self._armed or node not in self._names:
            return
        if note[1] == notes.QUORUM_LEADER:
            self._inherited[node] = -1
        elif note[1] == notes.APPENDED_METADATA and self._inherited.get(node) == -1:
            self._inherited[node] = note[2]
        elif note[1] == notes.COMMITTED_METADATA:
            if note[2] > self._inherited.get(node, -1):
                is_first = self._inherited.pop(node, None) is not None
            else:
                is_first = True
            if is_first and self._draw.random() < self._mood.inherited:
                self._at_inherited(self._names[node])
            return
        chance = self._mood.chances.get(note[1])
        if chance is not None and self._draw.random() < chance:
            self._strike(self._names[node], after_ms=self._draw.choice(self._mood.delays_ms))

    def _at_inherited(self, leader: NodeName) -> None:
        is_blackout = self._draw.random() < self._mood.blackout
        for node in self._controllers if is_blackout else [leader]:
            self._strike(node, after_ms=0.0)

    def _strike(self, node: NodeName, *, after_ms: float) -> None:
        draw, world = self._draw, self._cluster.world
        word = draw.choice(self._mood.strikes)
        at_ns = world.now_ns + int(after_ms * _MS)
        back_ns = at_ns + int(draw.choice(self._mood.backs_ms) * _MS * (0.5 + draw.random()))
        world.call(at_ns, lambda: self._down(node, word))
        world.call(back_ns, lambda: self._up(node))

    def _down(self, node: NodeName, step: type[OnNodes]) -> None:
        if self._armed and self._cluster.state(node) is NodeState.RUNNING:
            self._act(step, node)

    def _up(self, node: NodeName) -> None:
        state = self._cluster.state(node)
        if state is not NodeState.RUNNING:
            self._act(Resume if state is NodeState.PAUSED else Start, node)

    def _act(self, step: type[OnNodes], node: NodeName) -> None:
        self._interpreter.perform(step(target=NamedNodes(nodes=(node,))), end_s=0.0)
