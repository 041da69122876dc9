"""The steps of a trial, as they come: those of a play by their times, those of a storm as drawn."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from fencepost.clusters.kafka_port import Role, role_of
from fencepost.clusters.node_port import notes
from fencepost.clusters.port import NodeName, NodeState
from fencepost.clusters.reference.simulated.cluster import SimulatedCluster
from fencepost.clusters.simulation.world import World
from fencepost.clusters.topic_spec import keys_of
from fencepost.harness.interpreter.interpreter import Interpreter
from fencepost.harness.scenario.trial_spec import Storm
from fencepost.harness.trials.plan import TrialPlan
from fencepost.harness.trials.storms import (
    LAGGARD,
    LAGGARDS,
    PLAY_STORMS,
    REGICIDAL,
    RESTLESS,
    Reaction,
)
from fencepost.harness.trials.trial_cluster import Judge
from fencepost.nemesis.mix import Mix
from fencepost.nemesis.schedules.chaos import chaos
from fencepost.nemesis.schedules.schedule import unfolded
from fencepost.nemesis.schedules.scope import CONTROLLERS, ONE, STRUCK, Scope
from fencepost.nemesis.steps import dealt
from fencepost.nemesis.targets import NamedNodes
from fencepost.nemesis.verbs.await_condition import Await
from fencepost.nemesis.verbs.heal import HealPartition
from fencepost.nemesis.verbs.pause import Resume
from fencepost.nemesis.verbs.start import Start
from fencepost.nemesis.verbs.step import OnNodes, Play, Step
from fencepost.nemesis.verbs.wait import Wait

_S: Final = 1_000_000_000
_TICK_NS: Final = 20_000_000


class TrialSteps:
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
            case Storm.WINDOWS | Storm.RELAYS | Storm.LATE_FETCHES | Storm.LATE_WORDS as storm:
                yield from self._of_plays(end_ns, storm)
            case Storm.NONE:
                while self._world.now_ns < end_ns:
                    self._cluster.run(10 * _TICK_NS)
                    yield None
            case Storm.CHAOS | Storm.QUORUM:
                yield from self._of_chaos(end_ns)
            case Storm.MIX:
                yield from self._of_mix(end_ns)

    def _of_play(self, play: Play) -> Iterator[Step | None]:
        for _, step in dealt(play, self._draw):
            if self._given_up:
                return
            due_ns = self._begin_ns + round((step.at_s or 0.0) * _S)
            if due_ns > self._world.now_ns:  # of two at one time, nothing happens in between
                self._cluster.run(due_ns - self._world.now_ns)
            yield self._unless_misfit(step) if self._has_misfits else step

    def _of_plays(self, end_ns: int, storm: Storm) -> Iterator[Step | None]:
        """Yield the steps of drawn plays, one after the other.

        Each begins on a cluster that is whole if it can be.
        """
        drawn = PLAY_STORMS[storm]
        keys = [
            (f"{topic.name}-{partition}", replicas)
            for topic in self._plan.topics
            for partition, replicas in enumerate(topic.assignment or ())
            if len(replicas) >= drawn.replicas_min
        ]
        while self._world.now_ns < end_ns:
            key, replicas = self._draw.choice(keys)
            self._given_up = False
            scope = Scope.around(
                self._draw,
                key=key,
                replicas=self._led_first(key, replicas),
                nodes=self._cluster.nodes,
                controller=self._controller() if storm is Storm.LATE_WORDS else None,
            )
            yield from self._of_play(unfolded(drawn.schedule, scope))
            self._interpreter.heal_all()
            whole_by_ns = min(end_ns, self._world.now_ns + 5 * _S)
            while self._looks.impaired() and self._world.now_ns < whole_by_ns:
                self._cluster.run(5 * _TICK_NS)
                yield None

    def _controller(self) -> NodeName:
        return self._cluster.leader_now() or self._cluster.nodes[-1]

    def _led_first(self, key: str, replicas: Sequence[int]) -> tuple[int, ...]:
        view = self._cluster.watch.view
        shown = None if view is None else view.partitions.get(key)
        leader = None if shown is None else shown.leader
        if leader is None or leader not in replicas:
            leader = replicas[0]
        return (leader, *(one for one in replicas if one != leader))

    def _of_chaos(self, end_ns: int) -> Iterator[Step | None]:
        nodes, begin_ns = self._cluster.nodes, self._world.now_ns
        if self._plan.storm is Storm.QUORUM:
            nodes = tuple(node for node in nodes if role_of(node) is Role.CONTROLLER)
        scope = Scope.of_scene(self._draw, self._looks.scene(), nodes=nodes)
        drawn, due_s = chaos(self._plan.wipes).unfold(scope), 0.0
        while self._world.now_ns < end_ns:
            self._cluster.run(_TICK_NS)
            now_s, due = (self._world.now_ns - begin_ns) / _S, []
            while due_s <= now_s:
                step = next(drawn)
                if isinstance(step, Wait):
                    due_s += step.for_s
                else:
                    due.append(step)
            for step in due:
                yield self._unless_misfit(step)
            yield None

    def _of_mix(self, end_ns: int) -> Iterator[Step | None]:
        assert self._plan.mix is not None
        mix = Mix(self._plan.mix, self._draw, keys_of(self._plan.topics))
        begin_ns = self._world.now_ns
        while self._world.now_ns < end_ns:
            self._cluster.run(2 * _TICK_NS)
            due = mix.due(
                (self._world.now_ns - begin_ns) / _S,
                scene=self._looks.scene(),
                impaired=self._looks.impaired(),
                look=self._interpreter.look,
            )
            for step in due:
                if not isinstance(step, Await):
                    yield self._unless_misfit(step)
            yield None


def perform_in_time(
    steps: Iterator[Step],
    world: World,
    perform: Callable[[Step], None],
    *,
    goes_on: Callable[[], bool] = lambda: True,
) -> None:
    """Perform each step once the waits before it have passed, while the world goes on."""
    for step in steps:
        if isinstance(step, Wait):
            world.call(
                world.now_ns + int(step.for_s * _S),
                lambda: (
                    perform_in_time(steps, world, perform, goes_on=goes_on) if goes_on() else None
                ),
            )
            return
        perform(step)


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
        self._controllers = tuple(n for n in cluster.nodes if role_of(n) is Role.CONTROLLER)
        self._reactions = REGICIDAL if regicidal else RESTLESS
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
            if is_first:
                self._react(self._reactions.inherited, self._names[node])
            return
        reaction = self._reactions.noted.get(note[1])
        if reaction is not None:
            self._react(reaction, self._names[node])

    def _react(self, reaction: Reaction, node: NodeName) -> None:
        scope = Scope(draw=self._draw, parties={ONE: (node,), CONTROLLERS: self._controllers})
        unfolded(reaction.whom, scope)
        for struck in scope.party(STRUCK):
            one = Scope(draw=self._draw, parties={STRUCK: (struck,)})
            steps = unfolded(reaction.strike, one)
            perform_in_time(iter(steps), self._cluster.world, self._perform)

    def _perform(self, step: Step) -> None:
        """Strike a node that runs; mend one that does not, whatever struck it last."""
        assert isinstance(step, OnNodes)
        assert isinstance(step.target, NamedNodes)
        state = self._cluster.state(step.target.nodes[0])
        if isinstance(step, Start | Resume):
            is_due = state is not NodeState.RUNNING
            step = (Resume if state is NodeState.PAUSED else Start)(target=step.target)
        else:
            is_due = self._armed and state is NodeState.RUNNING
        if is_due:
            self._interpreter.perform(step, end_s=0.0)


class SlowNodes:
    """The laggards of a trial, at most one at a time, from `begin` to `end`.

    They hear late of decisions, one after the other, and stay unfenced. A broker that is cut off
    from the controllers in both directions is soon fenced, and the others do not wait for it. One
    that is told nothing, while its heartbeats arrive, counts as present for a lease: a laggard
    shows what the others do before it knows.
    """

    def __init__(self, cluster: SimulatedCluster, interpreter: Interpreter, *, seed: int) -> None:
        self._world = cluster.world
        self._interpreter = interpreter
        self._draw = random.Random(f"laggards/{seed}")  # noqa: S311  # to be repeated
        self._goes_on = False

    def begin(self) -> None:
        """Begin the laggards; the first one follows after a gap."""
        self._goes_on = True
        scope = Scope.of_scene(self._draw, self._interpreter.observer.scene())
        steps = LAGGARDS.unfold(scope)
        perform_in_time(steps, self._world, self._perform, goes_on=lambda: self._goes_on)

    def end(self) -> None:
        """End the laggards; a late broker hears of everything."""
        self._goes_on = False
        self._perform(HealPartition(name=LAGGARD))

    def _perform(self, step: Step) -> None:
        self._interpreter.perform(step, end_s=0.0)
