"""The steps of a schedule, done to a simulated cluster at once and without ceremony.

A run's interpreter wants evidence of each fault, keeps books and gives up where a step fails. A
trial's stage does what can be done and goes on: its schedules are random, and a node that has ended
by itself cannot be killed again. What steps mean is the same. A step that no trial can do is
refused before the first one (`why_not_tried`), and never left out.
"""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from operator import is_not
from typing import Any, Final

from clusters.kafka_port import Role, role_of
from clusters.port import CLIENTS, Cluster, NodeName, NodeState
from clusters.reference.oracle.oracle import Oracle
from clusters.reference.simulated.cluster import SimulatedCluster
from harness.interpreter.observer import whole_nodes
from history.failure import HarnessError
from nemesis.conditions import Condition, Observation, holds
from nemesis.simulated.wire import SimulatedWire
from nemesis.steps import Choose, Repeat
from nemesis.targets import NamedNodes, Scene, resolve
from nemesis.topology import Flows, flows_of
from nemesis.verbs.await_condition import Await
from nemesis.verbs.heal import HealPartition
from nemesis.verbs.lift import Lift
from nemesis.verbs.partition import Partition
from nemesis.verbs.pause import Resume
from nemesis.verbs.registry import verb_of
from nemesis.verbs.restart import Restart
from nemesis.verbs.rule import Lay
from nemesis.verbs.start import Start
from nemesis.verbs.step import Bounded, OnNodes, Parties, Step
from nemesis.verbs.stop import ShutDown
from nemesis.verbs.wait import Wait
from nemesis.wire.rules import Delay, Flow, Rule

__all__ = ["Stage", "why_not_tried"]

_S: Final = 1_000_000_000
_STEP_NS: Final = 10_000_000
_MOVE_S_MAX: Final = 1.5
_STOP_S: Final = 5.0


def why_not_tried(step: Step) -> str | None:
    """Why no trial can do this step; None if trials do it. Of a block, its steps are asked about.

    It is asked beside what the cluster can do (`harness.prepare.abilities`): trials do less.
    """
    return None if isinstance(step, Repeat | Choose) else verb_of(step).why_not_tried(step)


class Stage:
    """One cluster, its wire and its oracle, which is told whose disks lose something."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        *,
        wire: SimulatedWire | None,
        oracle: Oracle,
        draw: random.Random,
        told: Callable[[int, Step], None] | None = None,
    ) -> None:
        """`told`: who is to hear of each deed, with the time in ns, before it is done.

        Deeds are steps without anything left to draw: an act names its node, a rule its parties.
        """
        self._cluster = cluster
        self._wire = wire
        self._oracle = oracle
        self._draw = draw
        self._told = told or _nobody_hears
        self._ids = {
            node: cluster.broker_id(node) for node in cluster.nodes if role_of(node) is Role.BROKER
        }
        self._cuts: dict[str, frozenset[Flow]] = {}
        self._laid: list[str] = []
        self._scene: Scene | None = None
        self._impaired: tuple[tuple[object, ...], list[NodeState], frozenset[NodeName]]
        self._impaired = ((), [], frozenset())
        self._end_s = 0.0
        """Of the latest look: what was shown, the states of the nodes, and who was not whole."""

    @property
    def now_s(self) -> float:
        """Seconds of the world."""
        return self._cluster.world.now_ns / _S

    def scene(self) -> Scene:
        """What targets are resolved against."""
        view, active = self._cluster.watch.view, self._cluster.controller_leader()
        scene = self._scene
        if scene is None or scene.view is not view or scene.active_controller != active:
            scene = self._scene = Scene(
                nodes=self._cluster.nodes,
                broker_ids=self._ids,
                view=view,
                active_controller=active,
            )
        return scene

    def impaired(self) -> frozenset[NodeName]:
        """The nodes that are not whole."""
        cluster = self._cluster
        view = cluster.watch.view
        seen = () if view is None else (view.brokers, view.serving, view.partitions)
        states = [cluster.state(node) for node in cluster.nodes]
        before, was, impaired = self._impaired
        # A view shares with the one before what has not changed.
        if states != was or len(seen) != len(before) or any(map(is_not, seen, before)):
            impaired = frozenset(cluster.nodes) - whole_nodes(self._observation())
            self._impaired = (seen, states, impaired)
        return impaired

    def perform(self, step: Step, *, end_s: float) -> bool:
        """Do it; False if what it waits for did not come by its bound or `end_s`."""
        self._end_s = end_s
        return verb_of(step).perform(step, self)

    def heal(self) -> None:
        """Undo everything: the network is whole, and every node that can runs."""
        for name in list(self._laid):
            self._lift(name, discard=False)
        for name in list(self._cuts):
            self._mend(name)
        for node in self._cluster.nodes:
            state = self._cluster.state(node)
            if state is NodeState.PAUSED:
                self._do(Resume(target=NamedNodes(nodes=(node,))), node)
            elif state is NodeState.DOWN:
                self._do(Start(target=NamedNodes(nodes=(node,))), node)

    def heal_all(self) -> bool:
        """Undo everything, without waiting for the cluster."""
        self.heal()
        return True

    def wait(self, step: Wait) -> bool:
        """Let time pass, no longer than the trial lasts."""
        self._run_until(min(self._end_s, self.now_s + step.for_s))
        return True

    def await_condition(self, step: Await) -> bool:
        """Go on when the condition holds; False if it does not within the bound."""
        return self._await(step.condition, min(self._end_s, self.now_s + step.within_s))

    def administer(self, step: Bounded, do: Callable[[Cluster, Any], None]) -> bool:
        """Ask for it; what is refused just now is left."""
        asked = replace(step, within_s=min(step.within_s, _MOVE_S_MAX))
        self._tell(asked)
        with suppress(HarnessError):
            do(self._cluster, asked)
        return True

    def on_clients(self, step: Step, do: object, then: object) -> bool:
        """Refused before: a trial's clients are no processes."""
        del do, then
        raise AssertionError(f"refused before: {step}")

    def on_the_wire(self, step: Step) -> bool:
        """Do it to the network of the world, or to the frames in it."""
        match step:
            case Partition(name=name, cut=cut):
                self._cut(name, frozenset(flows_of(cut, self.scene(), self._draw)))
            case HealPartition(name=name):
                self._mend(name)
            case Lay():
                self._lay(step)
            case Lift(name=name, discard=discard):
                self._lift(name, discard=discard)
            case _:
                raise AssertionError(f"refused before: {step}")
        return True

    def act(self, step: OnNodes) -> bool:
        """Do it to each node that the target comes to, if there is any, and as far as it can be."""
        if isinstance(step, Restart):
            return self._restart(step)
        try:
            nodes = resolve(step.target, self.scene(), self._draw)
        except HarnessError:
            return True  # no node fits just now
        for node in nodes:
            self._do(step, node)
        return True

    def _restart(self, step: Restart) -> bool:
        """Each in turn; whether the last, too, is whole again by then."""
        for node in resolve(step.target, self.scene(), self._draw):
            target = NamedNodes(nodes=(node,))
            self._do(ShutDown(target=target, kind=step.kind), node)
            self._do(Start(target=target, kind=step.kind), node)
            while node in self.impaired():
                if self.now_s >= self._end_s:
                    return False
                self._cluster.run(_STEP_NS)
        return True

    def _do(self, step: OnNodes, node: NodeName) -> None:
        """Do it to the node, if it is in a state to which that can be done."""
        deed = verb_of(step).deed
        assert deed is not None, f"refused before: {step}"
        if self._cluster.state(node) not in deed.tried_in:
            return
        self._tell(replace(step, target=NamedNodes(nodes=(node,))))
        if isinstance(step, ShutDown):
            step = replace(step, timeout_s=_STOP_S)
        deed.do(self._cluster, (node,), step)
        if deed.loses_records:
            self._disk_lost(node)

    def _tell(self, deed: Step) -> None:
        self._told(self._cluster.world.now_ns, deed)

    def _disk_lost(self, node: NodeName) -> None:
        if role_of(node) is Role.BROKER:
            self._oracle.disk_lost(self._ids[node])

    def _await(self, condition: Condition, end_s: float) -> bool:
        before = self._observation()
        while not holds(condition, self._observation(since=before)):
            if self.now_s >= end_s:
                return False
            self._cluster.run(_STEP_NS)
        return True

    def _observation(self, since: Observation | None = None) -> Observation:
        """How things stand; what is counted, is counted `since` then."""
        cluster = self._cluster
        rules = {} if self._wire is None else self._wire.status().rules
        registrations = self._registrations()
        acknowledged_count = self._oracle.kept.acknowledged_count
        if since is not None:
            acknowledged_count -= since.acknowledged_count
            for node in registrations:
                registrations[node] -= since.registrations.get(node, 0)
        return Observation(
            view=cluster.watch.view,
            active_controller=cluster.controller_leader(),
            states={node: cluster.state(node) for node in cluster.nodes},
            broker_ids=self._ids,
            acknowledged_count=acknowledged_count,
            held_counts={name: rule.held_count for name, rule in rules.items()},
            matched_counts={name: rule.matched_count for name, rule in rules.items()},
            registrations=registrations,
        )

    def _registrations(self) -> dict[NodeName, int]:
        """A number of each broker that grows with its registrations."""
        brokers = self._oracle.decided.brokers
        return {
            node: brokers[number].broker_epoch
            for node, number in self._ids.items()
            if number in brokers
        }

    def _cut(self, name: str, flows: frozenset[Flow]) -> None:
        self._tell(Partition(name=name, cut=Flows(flows=flows)))
        self._cuts[name] = flows
        self._cluster.world.network.block(self._numbers(flows))

    def _mend(self, name: str) -> None:
        if name in self._cuts:
            self._tell(HealPartition(name=name))
        healed = self._cuts.pop(name, frozenset())
        others = frozenset().union(*self._cuts.values())
        self._cluster.world.network.unblock(self._numbers(healed - others))

    def _numbers(self, flows: frozenset[Flow]) -> list[tuple[int, int]]:
        number = self._cluster.broker_id
        return [(number(a), number(b)) for a, b in sorted(flows) if CLIENTS not in (a, b)]

    def _lay(self, step: Lay) -> None:
        assert self._wire is not None, "a plan that lays rules has a wire"
        if step.name in self._laid:
            return  # a drawn schedule names its rules by what they concern
        action = step.action
        if isinstance(action, Delay) and action.seed is None:
            action = replace(action, seed=self._draw.getrandbits(32))
        sources, targets = self._names(step.source), self._names(step.target)
        match = replace(step.match, sources=sources, targets=targets)
        self._tell(replace(step, action=action, source=_named(sources), target=_named(targets)))
        self._laid.append(step.name)
        self._wire.add(Rule(name=step.name, action=action, match=match))

    def _lift(self, name: str, *, discard: bool) -> None:
        if self._wire is None or name not in self._laid:
            return  # lifted already, by a heal
        self._tell(Lift(name=name, discard=discard))
        self._laid.remove(name)
        if discard:
            self._wire.discard(name)
        else:
            self._wire.release(name)

    def _names(self, parties: Parties) -> tuple[NodeName, ...]:
        if parties.clients:
            return (CLIENTS,)
        if parties.target is None:
            return ()
        if isinstance(parties.target, NamedNodes):
            return parties.target.nodes
        try:
            return tuple(resolve(parties.target, self.scene(), self._draw))
        except HarnessError:
            return ()

    def _run_until(self, end_s: float) -> None:
        self._cluster.run(max(0, int(end_s * _S) - self._cluster.world.now_ns))


def _named(names: tuple[NodeName, ...]) -> Parties:
    if CLIENTS in names:
        return Parties(clients=True)
    return Parties(target=NamedNodes(nodes=names)) if names else Parties()


def _nobody_hears(_now: int, _step: Step) -> None:
    pass
