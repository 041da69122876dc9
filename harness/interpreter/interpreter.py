"""Drives faults through a run: a play step by step, or a mix until the time is up, then the heal.

The bounds here have names. `StepOutcome` says how a play ended; whatever kept the schedule from
being performed whole is a *shortfall*, written to the manifest, and makes the verdict unknown
unless the checks find the run invalid.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clusters.evolution import Follows, members_of
from clusters.kafka_port import LogEnds, Role, role_of
from clusters.port import Cluster, NodeName
from harness.interpreter.client_faults import ClientFaults
from harness.interpreter.network import Network
from harness.interpreter.observer import Looks, whole_nodes
from harness.interpreter.performer import Performer
from harness.interpreter.played import PerformedPlay
from harness.timing import RealTime, Time
from history.failure import HarnessError
from nemesis.conditions import (
    Acknowledged,
    AllRecovered,
    Condition,
    Held,
    Observation,
    Seen,
    holds,
    log_ends_asked,
)
from nemesis.mix import Mix
from nemesis.play import step_data
from nemesis.steps import Play, dealt
from nemesis.targets import Scene, resolve
from nemesis.verbs.await_condition import Await
from nemesis.verbs.members import RemoveNodes
from nemesis.verbs.on_clients import OnClients
from nemesis.verbs.registry import verb_of
from nemesis.verbs.step import OnNodes, Step
from nemesis.verbs.verb import OnClient
from nemesis.verbs.wait import Wait

__all__ = ["Interpreter"]

_TICK_S = 0.05
_RESTART_S = 60.0
"""For a node that was restarted to be whole again: several times what it takes."""
_ROUNDED_S = 5.0
"""More than what the checks take off a stretch of time, as clocks differ."""
_NAMED_MAX = 4
"""Named causes in one message; the rest is counted."""


@dataclass(slots=True, kw_only=True)
class Interpreter:
    """Performs schedules on one cluster. Times are seconds since its creation."""

    cluster: Cluster
    performer: Performer
    network: Network
    clients: ClientFaults
    played: PerformedPlay
    observer: Looks
    draw: random.Random
    on_tick: Callable[[float, Observation], None]
    """Called at every tick: progress, and the watch over clients and nodes."""
    time: Time = field(default_factory=RealTime)
    shortfalls: list[str] = field(default_factory=list)
    _begin_s: float = field(init=False)
    _end_s: float = math.inf
    """The time by which the step under way has to end."""

    def __post_init__(self) -> None:
        """Begin to count."""
        self._begin_s = self.time.now_s()

    def perform_play(self, play: Play, *, time_limit_s: float) -> None:
        """The steps in order. The first that fails or passes its bound ends the play there."""
        end_s = self._now_s() + time_limit_s
        for number, step in dealt(play, self.draw):
            try:
                done = self._perform(step, end_s)
            except HarnessError as error:
                done, reason = False, str(error)
            else:
                reason = f"its bound passed; {self._standing(step)}"
            if not done:
                words = step_data(step)
                self.shortfalls.append(f"step {number} of {len(play)} {words}: {reason}")
                return

    def perform_mix(self, mix: Mix, *, time_limit_s: float) -> None:
        """Random faults until the time is up."""
        end_s = self._now_s() + time_limit_s
        while self._now_s() < end_s:
            now = self._tick()
            impaired = frozenset(members_of(self.cluster)) - whole_nodes(now)
            for step in mix.due(self._now_s(), scene=self._scene(now), impaired=impaired):
                try:
                    self._perform(step, math.inf)  # what is due is done, however late
                except HarnessError as error:
                    self.shortfalls.append(f"{step_data(step)}: {error}")
                    return

    def idle(self, *, time_limit_s: float) -> None:
        """No faults: let the clients work."""
        self._until(lambda _: False, self._now_s() + time_limit_s)

    def heal(self, *, limit_s: float) -> bool:
        """Undo everything and wait until the cluster is whole, within the limit; whether it is."""
        whole = self._heal_all(self._now_s() + limit_s)
        if not whole:
            self.shortfalls.append(
                f"not whole {limit_s:g} s after healing: {_missing(self.observer.latest())}"
            )
            # A replica whose broker came back late is stuck only once it had the whole limit.
            end_s = self._now_s() + limit_s + _ROUNDED_S
            self._until(lambda now: not _left_out(now), end_s)
        return whole

    def _perform(self, step: Step, end_s: float) -> bool:
        if step.at_s is not None:
            self._until(lambda _: False, min(step.at_s, end_s))
        if self._now_s() >= end_s:
            raise HarnessError("the time limit of the run passed")
        self._end_s = end_s
        return verb_of(step).perform(step, self)

    def wait(self, step: Wait) -> bool:
        """Let time pass, no longer than the run lasts."""
        self.played.note(replace(step, at_s=self._now_s()))
        self._until(lambda _: False, min(self._now_s() + step.for_s, self._end_s))
        return True

    def await_condition(self, step: Await) -> bool:
        """Go on when the condition holds; False if it does not within the bound."""
        self.played.note(replace(step, at_s=self._now_s()))
        return self._await(step.condition, min(self._now_s() + step.within_s, self._end_s))

    def heal_all(self) -> bool:
        """Undo whatever is broken, and wait until everything is whole."""
        return self._heal_all(self._end_s)

    def on_clients(self, step: OnClients, do: OnClient, then: OnClient | None) -> bool:
        """Do it to the clients that the step comes to, and see it."""
        self.clients.perform(step, do, then, draw=self.draw, now_s=self._now_s())
        return True

    def on_the_wire(self, step: Step) -> bool:
        """Do to the network what the step says, and see it."""
        scene = self._scene(self.observer.latest())
        self.network.perform(step, scene=scene, draw=self.draw, now_s=self._now_s())
        return True

    def administer(self, step: Step, do: Callable[[Cluster, Any], None]) -> bool:
        """Do what an operator would, and see its end."""
        self.played.note(replace(step, at_s=self._now_s()))
        do(self.cluster, step)
        if isinstance(step, RemoveNodes):
            self.performer.forget(step.nodes)
        return True

    def act(self, step: OnNodes) -> bool:
        """Do it to the nodes that its target comes to, all together or one after the other."""
        nodes = resolve(step.target, self._scene(self.observer.latest()), self.draw)
        deed = verb_of(step).deed
        assert deed is not None, "it is done to nodes"
        if deed.one_by_one:
            return self._in_turn(step, nodes)
        self.performer.perform(deed.draws(step, self.draw), nodes, now_s=self._now_s())
        return True

    def _in_turn(self, step: OnNodes, nodes: Sequence[NodeName]) -> bool:
        """Each in turn; whether the last, too, was seen back in time."""
        for node in nodes:
            self.performer.perform(step, (node,), now_s=self._now_s())
            end_s = self._now_s() + _RESTART_S
            if role_of(node) is Role.CONTROLLER and isinstance(self.cluster, Follows):
                self.cluster.await_follower(node, within_s=_RESTART_S)
            self.observer.next_look(timeout_s=_RESTART_S)
            if not self._until(lambda now, node=node: node in whole_nodes(now), end_s):  # type: ignore[misc]
                return False
        return True

    def _await(self, condition: Condition, end_s: float) -> bool:
        before = self.observer.latest()
        if not isinstance(condition, Acknowledged | Held | Seen):
            self.observer.next_look(timeout_s=max(0.0, end_s - self._now_s()))

        def reached(now: Observation) -> bool:
            return holds(condition, self._with_log_ends(_since(now, before), condition))

        return self._until(reached, end_s)

    def _with_log_ends(self, now: Observation, condition: Condition) -> Observation:
        asked = log_ends_asked(condition)
        if not asked:
            return now
        assert isinstance(self.cluster, LogEnds)
        ends: dict[tuple[str, NodeName], int] = {}
        for key, node in asked:
            if (end := self.cluster.log_end(node, key)) is not None:
                ends[key, node] = end
        return replace(now, log_ends=ends)

    def _standing(self, step: Step) -> str:
        """What the cluster looked like when the bound of this step passed, in words."""
        if isinstance(step, Await) and isinstance(step.condition, Held | Seen):
            status = self.network.status().rules.get(step.condition.name)
            return f"the rule concerned {status.matched_count if status else 0} frames"
        return _missing(self.observer.latest()) or "everything is whole"

    def _heal_all(self, end_s: float) -> bool:
        self.network.heal_all(now_s=self._now_s())
        for healing in self.clients.heal_all():
            verb_of(healing).perform(healing, self)
        for steps in (self.performer.mend_all, self.performer.heal_all):
            for step in steps():
                self.act(step)
        return self._await(AllRecovered(), end_s)

    def _until(self, reached: Callable[[Observation], bool], end_s: float) -> bool:
        while True:
            now = self._tick()
            if reached(now):
                return True
            if self._now_s() >= end_s:
                return False

    def _tick(self) -> Observation:
        self.time.sleep(_TICK_S)
        now = self.observer.latest()
        self.performer.settle(now)
        self.network.settle()
        if now.view is not None:
            self.network.name_topics(now.view.topic_ids)
        self.on_tick(self._now_s(), now)
        return now

    def _scene(self, now: Observation) -> Scene:
        return Scene(
            nodes=members_of(self.cluster),
            broker_ids=dict(now.broker_ids),
            view=now.view,
            active_controller=now.active_controller,
        )

    def _now_s(self) -> float:
        return self.time.now_s() - self._begin_s


def _since(now: Observation, before: Observation) -> Observation:
    """The observation, with what is counted counted since `before`."""
    return replace(
        now,
        acknowledged_count=now.acknowledged_count - before.acknowledged_count,
        registrations={
            node: count - before.registrations.get(node, 0)
            for node, count in now.registrations.items()
        },
    )


def _left_out(now: Observation) -> list[tuple[str, int]]:
    """Replicas out of their ISR, though their brokers serve and somebody leads: (key, broker)."""
    if now.view is None:
        return []
    serving = now.view.brokers & now.view.serving
    return [
        (key, replica)
        for key, partition in now.view.partitions.items()
        if partition.leader is not None
        for replica in sorted({*partition.replicas} & serving - {*partition.isr})
    ]


def _missing(now: Observation) -> str:
    """What keeps the cluster from being whole, in words."""
    if now.view is None:
        return "no broker answers"
    found: list[str] = [
        f"{node} is {state}"
        for node, state in now.states.items()
        if state != "running" and node not in now.outsiders
    ]
    found += [
        f"{node} is fenced or does not answer"
        for node, broker_id in now.broker_ids.items()
        if broker_id not in now.view.brokers & now.view.serving and node not in now.outsiders
    ]
    found += [
        f"{key} has leader {p.leader} and isr {list(p.isr)} of {list(p.replicas)}"
        for key, p in now.view.partitions.items()
        if p.leader is None or set(p.isr) != set(p.replicas)
    ]
    more = f"; and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
    return "; ".join(found[:_NAMED_MAX]) + more
