"""The interpreter of faults: a play step by step, or single steps; then the heal.

A mix (`mixing`) and a trial have schedules of their own, and their steps are performed here one by
one (`perform`). The policy of a trial is another one, and its cluster, its time and its looks are
those of a simulated world.

The bounds here have names. `StepOutcome` says how a play ended; whatever kept the schedule from
being performed whole is a *shortfall*, written to the manifest, and makes the verdict unknown
unless the checks find the run invalid.
"""

import math
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from fencepost.clusters.abilities import KeepsFiles, roles_in
from fencepost.clusters.evolution import Follows
from fencepost.clusters.kafka_conditions import Registered
from fencepost.clusters.kafka_port import Role
from fencepost.clusters.observation import (
    Acknowledged,
    AllRecovered,
    Changed,
    Condition,
    Held,
    Observation,
    Seen,
    since,
)
from fencepost.clusters.port import Cluster, NodeName
from fencepost.clusters.targets import VacantError
from fencepost.harness.interpreter.books import Played, Unwritten
from fencepost.harness.interpreter.client_faults import ClientFaults
from fencepost.harness.interpreter.network import Network
from fencepost.harness.interpreter.observer import Looks, looked_up, missing_in, whole_nodes
from fencepost.harness.interpreter.performer import Performer, action_of
from fencepost.harness.interpreter.policy import Policy
from fencepost.harness.interpreter.shortfalls import Shortfalls
from fencepost.harness.interpreter.window_book import WindowBook
from fencepost.harness.timing import FileWatch, RealTime, Time
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError
from fencepost.nemesis.play import step_data
from fencepost.nemesis.steps import dealt, next_ends
from fencepost.nemesis.targets import NamedNodes, Scene, resolve
from fencepost.nemesis.verbs.await_condition import Await
from fencepost.nemesis.verbs.members import RemoveNodes
from fencepost.nemesis.verbs.on_clients import OnClients
from fencepost.nemesis.verbs.registry import verb_of
from fencepost.nemesis.verbs.start_clients import StartClients
from fencepost.nemesis.verbs.step import OnNodes, Play, Step
from fencepost.nemesis.verbs.verb import OnClient
from fencepost.nemesis.verbs.wait import Wait

T = TypeVar("T")
_ROUNDED_S = 5.0
"""A margin above what the checks take off a stretch of time, as clocks differ."""


def _unwritten_windows() -> WindowBook:
    return WindowBook(Unwritten(), Clock(0))


@dataclass(slots=True, kw_only=True)
class Interpreter:
    """The performer of schedules on one cluster. Times are seconds since its creation."""

    cluster: Cluster
    performer: Performer
    network: Network
    clients: ClientFaults
    played: Played
    observer: Looks
    draw: random.Random
    on_tick: Callable[[float, Observation], None] | None
    """Called at every tick: progress, and the watch over clients and nodes. None: the run is not
    watched, and no fault is settled."""
    begin_clients: Callable[[], None] | None = None
    """Starts the clients; None: they have begun before the play."""
    windows: WindowBook = field(default_factory=_unwritten_windows)
    """The book of the windows that a mix opens."""
    time: Time = field(default_factory=RealTime)
    policy: Policy = field(default_factory=Policy)
    shortfalls: Shortfalls = field(default_factory=Shortfalls)
    _begin_s: float = field(init=False)
    _end_s: float = math.inf
    """The time by which the step under way has to end."""

    def __post_init__(self) -> None:
        """Begin to count."""
        self._begin_s = self.time.now_s()

    def perform_play(self, play: Play, *, time_limit_s: float) -> None:
        """Perform the steps in order.

        The first that fails or passes its bound ends the play there.
        """
        end_s = self.now_s() + time_limit_s
        for number, step in dealt(play, self.draw):
            self.performer.await_ends(next_ends(play[int(number.partition(".")[0]) - 1 :]))
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

    def look(self) -> Observation:
        """Return the latest look, with the registrations of every broker counted."""
        now = self.observer.latest()
        counts = {node: self.observer.registrations(node) for node in now.broker_ids}
        return replace(now, registrations=counts)

    def note(self, step: Step) -> None:
        """Write a step down that needs no performance."""
        self.played.note(step, at_s=self.now_s())

    @property
    def is_broken(self) -> bool:
        """Whether anything is broken whose heal has not been performed."""
        broken = any(fault.broken for fault in self.performer.open_faults)
        return broken or self.network.is_broken or bool(self.clients.open_labels)

    def idle(self, *, time_limit_s: float) -> None:
        """Let the clients work, without faults."""
        self._pass_until(self.now_s() + time_limit_s)

    def heal(self, *, limit_s: float) -> bool:
        """Undo everything and wait until the cluster is whole.

        Return whether it is, within the limit.
        """
        whole = self._heal_all(self.now_s() + limit_s)
        self.windows.close()
        if not whole:
            self.shortfalls.not_whole(f"{limit_s:g} s after healing", self.observer.latest())
            # A replica whose broker came back late is stuck only once it had the whole limit.
            end_s = self.now_s() + limit_s + _ROUNDED_S
            self._until(lambda now: now.view is None or not now.view.left_out, end_s)
        return whole

    def start_over(self) -> None:
        """Undo whatever is broken after a step that failed; wait for nothing."""
        self.windows.close()
        self._undo_all()
        self.performer.give_up("a step failed, and its nodes were healed")

    def _perform(self, step: Step, end_s: float) -> bool:
        if step.at_s is not None:
            self._pass_until(min(step.at_s, end_s))
        if self.now_s() >= end_s:
            raise HarnessError("the time limit of the run passed")
        return self.perform(step, end_s=end_s)

    def perform(self, step: Step, *, end_s: float) -> bool:
        """Do it now. False if what it waits for did not come by its bound, or by `end_s`."""
        self._end_s = end_s
        return verb_of(step).perform(step, self)

    def start_clients(self, step: StartClients) -> bool:
        """Start the clients of every workload."""
        self.played.note(step, at_s=self.now_s())
        if self.begin_clients is not None:
            self.begin_clients()
        return True

    def wait(self, step: Wait) -> bool:
        """Let time pass, no longer than the run lasts."""
        self.played.note(step, at_s=self.now_s())
        self._pass_until(min(self.now_s() + step.for_s, self._end_s))
        return True

    def await_condition(self, step: Await) -> bool:
        """Go on when the condition holds; False if it does not within the bound."""
        self.played.note(step, at_s=self.now_s())
        return self._await(step.condition, min(self.now_s() + step.within_s, self._end_s))

    def heal_all(self) -> bool:
        """Undo whatever is broken, and wait until everything is whole."""
        return self._heal_all(self._end_s)

    def on_clients(self, step: OnClients, do: OnClient, then: OnClient | None) -> bool:
        """Perform the step on the clients that it targets, and see its effect."""
        self.clients.perform(step, do, then, draw=self.draw, now_s=self.now_s())
        return True

    def on_the_wire(self, step: Step) -> bool:
        """Do to the network what the step says, and see it."""
        with suppress(*self.policy.left):
            self._once_held(
                lambda scene: self.network.perform(
                    step, scene=scene, draw=self.draw, now_s=self.now_s()
                )
            )
        return True

    def administer(
        self,
        step: Step,
        do: Callable[[Cluster, Any], None],
        one_by_one: Callable[[Any], Sequence[Step]],
    ) -> bool:
        """Do what an operator would, and see its end."""
        step = self.policy.bounded(step)
        self.played.note(step, at_s=self.now_s())
        for one in one_by_one(step):
            try:
                do(self.cluster, one)
            except HarnessError:
                if self.policy.demands_evidence:
                    raise
        if isinstance(step, RemoveNodes):
            self.performer.forget(step.nodes, "no member of the cluster any more")
        return True

    def act(self, step: OnNodes) -> bool:
        """Perform the step on the nodes of its target, all together or one after the other."""
        nodes: Sequence[NodeName] = ()
        with suppress(*self.policy.left):
            nodes = self._once_held(lambda scene: resolve(step.target, scene, self.draw))
        if action_of(verb_of(step)).parts is not None:
            return self._in_turn(step, nodes)
        self._do(step, nodes)
        return True

    def _once_held(self, do: Callable[[Scene], T]) -> T:
        """Do it once a node has the role that is targeted; the next leader has to be elected."""
        end_s = min(self.now_s() + self.policy.vacant_s, self._end_s)
        while True:
            try:
                return do(self.observer.scene())
            except VacantError:
                if self.now_s() >= end_s:
                    raise
            self.tick()

    def _do(self, step: OnNodes, nodes: Sequence[NodeName]) -> None:
        action = action_of(verb_of(step))
        bounded = action.draws(self.policy.bounded(step), self.draw)
        if self.policy.demands_evidence:
            self.performer.perform(bounded, nodes, now_s=self.now_s())
            return
        for node in nodes:
            if self.cluster.state(node) in action.tried_in:
                self.performer.perform(bounded, (node,), now_s=self.now_s())

    def _in_turn(self, step: OnNodes, nodes: Sequence[NodeName]) -> bool:
        """Do it to each node in turn; return whether every one was seen back in time."""
        for node in nodes:
            for part in self._parts(step, node):
                self._do(part, (node,))
            if not self._back(node):
                return False
        return True

    def _parts(self, step: OnNodes, node: NodeName) -> Sequence[OnNodes]:
        """The step as one, which has evidence, or as those that can be repeated one by one."""
        parts = action_of(verb_of(step)).parts
        if self.policy.demands_evidence or parts is None:
            return (step,)
        return parts(replace(step, target=NamedNodes(nodes=(node,))))

    def _back(self, node: NodeName) -> bool:
        """Wait until the node is whole; return whether it was in time."""
        within_s = self.policy.restart_s
        end_s = self.now_s() + within_s
        if self.policy.demands_evidence:
            votes = roles_in(self.cluster).has(node, Role.CONTROLLER)
            if votes and isinstance(self.cluster, Follows):
                self.cluster.await_follower(node, within_s=within_s)
            self.observer.next_look(timeout_s=within_s)
        else:
            end_s = min(end_s, self._end_s)
        return self._until(lambda now: node in whole_nodes(now), end_s)

    def _await(self, condition: Condition, end_s: float) -> bool:
        if isinstance(condition, Changed):
            return self._await_change(condition, end_s)
        is_counted = isinstance(condition, Acknowledged | Registered)
        asked = partial(looked_up, condition=condition, looks=self.observer, cluster=self.cluster)
        before = asked(self.observer.latest()) if is_counted else None
        if self.policy.demands_evidence and not isinstance(condition, Acknowledged | Held | Seen):
            self.observer.next_look(timeout_s=max(0.0, end_s - self.now_s()))

        def reached(now: Observation) -> bool:
            found = asked(now)
            return condition.holds(found if before is None else since(found, before))

        return self._until(reached, end_s)

    def _await_change(self, condition: Changed, end_s: float) -> bool:
        """Look at the file all the time between ticks: what follows may have to come at once."""
        assert isinstance(self.cluster, KeepsFiles)
        watch = FileWatch(self.cluster.data_of(condition.node) / condition.file)
        while not watch.changes_within(self.policy.tick_s, self.time):
            if self.now_s() >= end_s:
                return False
            self._look_around()
        return True

    def _standing(self, step: Step) -> str:
        """Describe, in words, the cluster as it was when the bound of this step passed."""
        if isinstance(step, Await) and isinstance(step.condition, Held | Seen):
            status = self.network.status().rules.get(step.condition.name)
            return f"the rule concerned {status.matched_count if status else 0} frames"
        return missing_in(self.observer.latest()) or "everything is whole"

    def _heal_all(self, end_s: float) -> bool:
        self._undo_all()
        return not self.policy.demands_evidence or self._await(AllRecovered(), end_s)

    def _undo_all(self) -> None:
        self.network.heal_all(now_s=self.now_s())
        for healing in self.clients.heal_all():
            verb_of(healing).perform(healing, self)
        for steps in (self.performer.mend_all, self.performer.heal_all):
            for step in steps():
                self.act(step)

    def _pass_until(self, end_s: float) -> None:
        if self.on_tick is None:
            self.time.sleep_until(self._begin_s + end_s)
        else:
            self._until(lambda _: False, end_s)

    def _until(self, reached: Callable[[Observation], bool], end_s: float) -> bool:
        # A state that held before a step is no evidence of it.
        now = self.tick() if self.policy.demands_evidence else self.observer.latest()
        while not reached(now):
            if self.now_s() >= end_s:
                return False
            now = self.tick()
        return True

    def tick(self) -> Observation:
        """Let a moment pass, and take note of what has changed."""
        self.time.sleep(self.policy.tick_s)
        return self._look_around()

    def _look_around(self) -> Observation:
        now = self.observer.latest()
        if self.on_tick is not None:
            self.performer.settle(now)
            self.network.settle()
            self.windows.settle(self.network.status)
            if now.view is not None:
                self.network.name_topics(now.view.names_of_ids)
            self.on_tick(self.now_s(), now)
        return now

    def now_s(self) -> float:
        """Return the seconds since this was made."""
        return self.time.now_s() - self._begin_s
