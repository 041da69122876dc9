"""Drives faults through a run: a play step by step, or a mix until the time is up, then the heal.

The bounds here have names. `StepOutcome` says how a play ended; whatever kept the schedule from
being performed whole is a *shortfall*, written to the manifest, and makes the verdict unknown
unless the checks find the run invalid.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from clusters.port import Cluster
from harness.observer import Observer, whole_nodes
from harness.performer import Performer
from history.failure import HarnessError
from nemesis.conditions import Acknowledged, AllRecovered, Condition, Observation, holds
from nemesis.mix import Mix
from nemesis.play import Act, Await, Heal, Play, Step, Wait, step_data
from nemesis.targets import Scene, resolve

__all__ = ["Interpreter"]

_TICK_S = 0.05
_NAMED_MAX = 4
"""Named causes in one message; the rest is counted."""


@dataclass(slots=True, kw_only=True)
class Interpreter:
    """Performs schedules on one cluster. Times are seconds since its creation."""

    cluster: Cluster
    performer: Performer
    observer: Observer
    draw: random.Random
    on_tick: Callable[[float, Observation], None]
    """Called at every tick: progress, and the watch over clients and nodes."""
    shortfalls: list[str] = field(default_factory=list)
    _begin_s: float = field(default_factory=time.monotonic)

    def perform_play(self, play: Play, *, time_limit_s: float) -> None:
        """The steps in order. The first that fails or passes its bound ends the play there."""
        end_s = self._now_s() + time_limit_s
        for number, step in enumerate(play, start=1):
            try:
                done = self._perform(step, end_s)
            except HarnessError as error:
                done, reason = False, str(error)
            else:
                reason = "its bound passed"
            if not done:
                words = step_data(step)
                self.shortfalls.append(f"step {number} of {len(play)} {words}: {reason}")
                return

    def perform_mix(self, mix: Mix, *, time_limit_s: float) -> None:
        """Random faults until the time is up."""
        end_s = self._now_s() + time_limit_s
        while self._now_s() < end_s:
            now = self._tick()
            impaired = frozenset(self.cluster.nodes) - whole_nodes(now)
            for act in mix.due(self._now_s(), scene=self._scene(now), impaired=impaired):
                try:
                    self._act(act)
                except HarnessError as error:
                    self.shortfalls.append(f"{step_data(act)}: {error}")
                    return

    def idle(self, *, time_limit_s: float) -> None:
        """No faults: let the clients work."""
        self._until(lambda _: False, self._now_s() + time_limit_s)

    def heal(self, *, limit_s: float) -> None:
        """Undo everything and wait until the cluster is whole, within the limit."""
        if not self._heal_all(self._now_s() + limit_s):
            self.shortfalls.append(
                f"not whole {limit_s:g} s after healing: {_missing(self.observer.latest())}"
            )

    def _perform(self, step: Step, end_s: float) -> bool:
        if step.at_s is not None:
            self._until(lambda _: False, min(step.at_s, end_s))
        if self._now_s() >= end_s:
            raise HarnessError("the time limit of the run passed")
        match step:
            case Act():
                self._act(step)
                return True
            case Wait(for_s=for_s):
                self.performer.note(Wait(for_s=for_s, at_s=self._now_s()))
                self._until(lambda _: False, min(self._now_s() + for_s, end_s))
                return True
            case Await(condition=condition, within_s=within_s):
                self.performer.note(
                    Await(condition=condition, within_s=within_s, at_s=self._now_s())
                )
                return self._await(condition, min(self._now_s() + within_s, end_s))
            case Heal():
                return self._heal_all(end_s)

    def _act(self, act: Act) -> None:
        nodes = resolve(act.target, self._scene(self.observer.latest()), self.draw)
        self.performer.perform(act, nodes, now_s=self._now_s())

    def _await(self, condition: Condition, end_s: float) -> bool:
        before = self.observer.latest().acknowledged_count
        if not isinstance(condition, Acknowledged):
            self.observer.next_look(timeout_s=max(0.0, end_s - self._now_s()))
        return self._until(lambda now: holds(condition, _since(now, before)), end_s)

    def _heal_all(self, end_s: float) -> bool:
        for act in self.performer.heal_all():
            self._act(act)
        return self._await(AllRecovered(), end_s)

    def _until(self, reached: Callable[[Observation], bool], end_s: float) -> bool:
        while True:
            now = self._tick()
            if reached(now):
                return True
            if self._now_s() >= end_s:
                return False

    def _tick(self) -> Observation:
        time.sleep(_TICK_S)
        now = self.observer.latest()
        self.performer.settle(now)
        self.on_tick(self._now_s(), now)
        return now

    def _scene(self, now: Observation) -> Scene:
        return Scene(
            nodes=self.cluster.nodes,
            broker_ids=dict(now.broker_ids),
            view=now.view,
            active_controller=now.active_controller,
        )

    def _now_s(self) -> float:
        return time.monotonic() - self._begin_s


def _since(now: Observation, acknowledged_before: int) -> Observation:
    return Observation(
        view=now.view,
        active_controller=now.active_controller,
        states=now.states,
        broker_ids=now.broker_ids,
        acknowledged_count=now.acknowledged_count - acknowledged_before,
    )


def _missing(now: Observation) -> str:
    """What keeps the cluster from being whole, in words."""
    if now.view is None:
        return "no broker answers"
    found: list[str] = [
        f"{node} is {state}" for node, state in now.states.items() if state != "running"
    ]
    found += [
        f"{node} is fenced or does not answer"
        for node, broker_id in now.broker_ids.items()
        if broker_id not in now.view.brokers & now.view.serving
    ]
    found += [
        f"{key} has leader {p.leader} and isr {list(p.isr)} of {list(p.replicas)}"
        for key, p in now.view.partitions.items()
        if p.leader is None or set(p.isr) != set(p.replicas)
    ]
    more = f"; and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
    return "; ".join(found[:_NAMED_MAX]) + more
