"""The steps of a trial, as they come: those of a play by their times, those of a storm as drawn."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from clusters.kafka_port import Role, keys_of, role_of
from clusters.reference.simulated.cluster import SimulatedCluster
from harness.interpreter.interpreter import Interpreter
from harness.scenario.trial_spec import Storm
from harness.trials.plan import TrialPlan
from nemesis import late_fetches, relays
from nemesis.chaos import Chaos
from nemesis.late_words import drawn_late_word
from nemesis.mix import Mix
from nemesis.steps import Play, dealt
from nemesis.verbs.await_condition import Await
from nemesis.verbs.step import Step
from nemesis.windows import drawn_window

__all__ = ["Schedule"]

_S: Final = 1_000_000_000
_TICK_NS: Final = 20_000_000


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
                least = late_fetches.REPLICAS_MIN
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
        return late_fetches.drawn_late_fetch(self._draw, key=key, replicas=replicas)

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
                due = mix.due(now_s, scene=scene, impaired=impaired, look=self._looks.latest)
                steps = tuple(step for step in due if not isinstance(step, Await))
            for step in steps:
                yield self._unless_misfit(step)
            yield None
