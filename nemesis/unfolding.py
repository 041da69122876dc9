"""A drawn play as an episode of a mix: a step is due when what the play waits for before it holds.

A play that is performed alone stops everything until its awaits hold. Here nothing stops: the mix
asks again and again, other episodes are healed meanwhile, and what does not come within its bound
is given up. Then, as at its end, a play undoes whatever it broke and laid.

Its steps were drawn before anything happened. So each is done only where it still can be: to a
node in the right state, within the budget, and so that nothing acknowledged is lost by design
(`Guard`). A strike that has to wait for the cluster to notice another one waits here.
"""

import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from fencepost.clusters.kafka_conditions import Fenced, Registered
from fencepost.clusters.observation import (
    Acknowledged,
    Condition,
    Down,
    Held,
    Observation,
    Seen,
    since,
)
from fencepost.clusters.port import NodeName, NodeState
from fencepost.history.failure import HarnessError
from fencepost.nemesis.disks import NEXT_LOOK
from fencepost.nemesis.targets import NamedNodes, Scene, resolve
from fencepost.nemesis.topology import Flows, cut_off, flows_of
from fencepost.nemesis.verbs.await_condition import Await
from fencepost.nemesis.verbs.heal import HealPartition
from fencepost.nemesis.verbs.lift import Lift
from fencepost.nemesis.verbs.move_leader import MoveLeader
from fencepost.nemesis.verbs.partition import Partition
from fencepost.nemesis.verbs.pause import Resume
from fencepost.nemesis.verbs.registry import VERBS, verb_of
from fencepost.nemesis.verbs.rule import Lay
from fencepost.nemesis.verbs.step import OnNodes, Play, Step
from fencepost.nemesis.verbs.stop import ShutDown
from fencepost.nemesis.verbs.wait import Wait

AWAIT_S: Final = 20.0
"""The bound of what a play waits for: a start of a node on a busy machine, an election."""
_MOVE_S: Final = 2.0
"""The bound of what a step itself waits for: nothing else is done meanwhile."""
_STOP_S: Final = 4.0
_ALWAYS_NEW: Final = (Held, Seen, Acknowledged, Registered, Down)
"""The conditions that need no look at the cluster: they are counted."""


class May(Enum):
    """The permission to strike a node."""

    YES = "yes"
    NOT_YET = "not yet"
    NO = "no"


Guard = Callable[[OnNodes | Partition, NodeName], May]
"""(step, node) → whether the step may be done to it now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixMoment:
    """The present, as a mix sees it."""

    now_s: float
    scene: Scene
    look: Callable[[], Observation] | None
    """Returns the latest look. None: whatever is awaited is there at once."""
    patience_s: float = AWAIT_S
    """The bound of what begins to be waited for now."""


@dataclass(slots=True, kw_only=True)
class Unfolding:
    """A play under way. Ask `due` until it `is_over`."""

    prefix: str
    """It precedes the names of rules and partitions, which are then of this play alone."""
    play: Play
    draw: random.Random
    """Resolves targets."""
    down: dict[NodeName, type[OnNodes]] = field(default_factory=dict)
    """The nodes that it broke, with the step that mends each."""
    is_over: bool = False
    _to_come: deque[Step] = field(init=False)
    _laid: list[str] = field(default_factory=list)
    _cut: dict[str, frozenset[NodeName]] = field(default_factory=dict)
    _mended: dict[NodeName, int] = field(default_factory=dict)
    """The nodes that no look has shown since they were mended, with the looks by then."""
    _looks: int = 0
    _until_s: float | None = None
    """The bound of what is waited for, or the end of a wait."""
    _before: Observation | None = None
    """The look at the time when the wait for a condition began."""

    def __post_init__(self) -> None:
        """Begin at the first step."""
        self._to_come = deque(_named(step, self.prefix) for step in self.play)

    @property
    def nodes(self) -> frozenset[NodeName]:
        """The nodes that it has broken or cut off, and those that cannot be known to be back."""
        return self._broken_now.union(self._mended)

    @property
    def _broken_now(self) -> frozenset[NodeName]:
        return frozenset(self.down).union(*self._cut.values())

    @property
    def awaited(self) -> str:
        """The event that it waits for, in words; empty while it waits for a drawn time."""
        match self._to_come[0] if self._to_come else None:
            case None | Wait():
                return ""
            case Await(condition=condition):
                return _words_of(condition.data())
            case step:
                return f"leave to {verb_of(step).word}"

    def due(self, moment: MixMoment, may: Guard) -> Iterator[Step]:
        """Yield the steps that are due; an Await is there to be noted: it holds already."""
        self._see_mended(moment)
        while self._to_come:
            step = self._to_come[0]
            if not self._is_reached(step, moment):
                return
            if isinstance(step, OnNodes | Partition):
                ready, found = self._struck(step, moment, may)
                if not ready:
                    return
                yield from found
            else:
                yield from self._done(step, moment)
            self._to_come.popleft()
            self._until_s = self._before = None
        yield from self._undone()

    def give_up(self) -> None:
        """Leave out all that is still to come."""
        self._to_come.clear()

    def _see_mended(self, moment: MixMoment) -> None:
        if moment.look is not None and self._mended:
            self._looks = looks = moment.look().look_count
            self._mended = {n: at for n, at in self._mended.items() if looks < at + NEXT_LOOK}

    def _is_reached(self, step: Step, moment: MixMoment) -> bool:
        """Return whether the play goes on here; give it up if the bound has passed."""
        if moment.look is None or not isinstance(step, Await | Wait):
            return True
        if isinstance(step, Wait):
            if self._until_s is None:
                self._until_s = moment.now_s + step.for_s
            return moment.now_s >= self._until_s
        if self._is_moot(step.condition):
            return True
        now = moment.look()
        if self._before is None:
            self._before, self._until_s = now, moment.now_s + moment.patience_s
        if _holds(step.condition, now, self._before):
            return True
        self._give_up_late(moment)
        return False

    def _is_moot(self, condition: Condition) -> bool:
        """Return whether it waits for what a step that was left out would have caused."""
        match condition:
            case Fenced(node=node, fenced=True):
                return node not in self._broken_now
            case Fenced(node=node) | Registered(node=node):
                return node in self.down
            case _:
                return False

    def _give_up_late(self, moment: MixMoment) -> None:
        """Give up what is to come, if its bound has passed."""
        if self._until_s is None:
            self._until_s = moment.now_s + moment.patience_s
        elif moment.now_s > self._until_s:
            self._to_come.clear()  # the next call undoes what was done

    def _struck(
        self, step: OnNodes | Partition, moment: MixMoment, may: Guard
    ) -> tuple[bool, list[Step]]:
        """Return whether it is time for the step, and what of it can be done."""
        if isinstance(step, Partition):
            flows = flows_of(step.cut, moment.scene, self.draw)
            step = replace(step, cut=Flows(flows=flows))
            nodes = tuple(sorted(cut_off(flows, moment.scene.nodes, moment.scene.roles)))
        else:
            nodes = tuple(node for node in self._resolved(step, moment) if self._fits(step, node))
        answers = {node: may(step, node) for node in nodes if not self._mends(step)}
        if May.NOT_YET in answers.values() and moment.look is not None:
            self._give_up_late(moment)
            return False, []
        nodes = tuple(node for node in nodes if answers.get(node, May.YES) is May.YES)
        return True, [self._broken(step, nodes)] if nodes else []

    def _broken(self, step: OnNodes | Partition, nodes: tuple[NodeName, ...]) -> Step:
        if isinstance(step, Partition):
            self._cut[step.name] = frozenset(nodes)
            return step
        verb = verb_of(step)
        for node in nodes:
            if self._mends(step):
                del self.down[node]
                self._mended[node] = self._looks
            else:
                self.down[node] = VERBS[verb.healed_by].step
        if isinstance(step, ShutDown):
            step = replace(step, timeout_s=min(step.timeout_s, _STOP_S))
        return replace(step, target=NamedNodes(nodes=nodes))

    def _resolved(self, step: OnNodes, moment: MixMoment) -> tuple[NodeName, ...]:
        try:
            return resolve(step.target, moment.scene, self.draw)
        except HarnessError:
            return ()  # no node is that at present

    def _fits(self, step: OnNodes, node: NodeName) -> bool:
        """Return whether the node is in a state for this step; mends are for what it broke."""
        state = NodeState.RUNNING
        if node in self.down:
            state = NodeState.PAUSED if self.down[node] is Resume else NodeState.DOWN
        action = verb_of(step).action
        assert action is not None
        return state in action.tried_in and (node in self.down or not self._mends(step))

    def _mends(self, step: OnNodes | Partition) -> bool:
        action = verb_of(step).action
        return action is not None and action.heals is not None

    def _done(self, step: Step, moment: MixMoment) -> Iterator[Step]:
        match step:
            case Lay(name=name):
                self._laid.append(name)
                yield step
            case Lift(name=name):
                if name in self._laid:
                    self._laid.remove(name)
                    yield step
            case HealPartition(name=name):
                if name in self._cut:
                    self._mended |= dict.fromkeys(self._cut.pop(name), self._looks)
                    yield step
            case MoveLeader():
                yield replace(step, within_s=_MOVE_S)
            case Await() if self._is_moot(step.condition):
                pass
            case Await():
                if moment.look is None:
                    self._mended.clear()  # whatever is awaited is there at once
                yield step
            case Wait():
                pass  # it has passed
            case _:
                yield step

    def _undone(self) -> Iterator[Step]:
        """Yield what undoes all that it did, and end."""
        self.is_over = True
        yield from (Lift(name=name) for name in self._laid)
        yield from (HealPartition(name=name) for name in self._cut)
        for node, mend in self.down.items():
            yield mend(target=NamedNodes(nodes=(node,)))


def _holds(condition: Condition, now: Observation, before: Observation) -> bool:
    if isinstance(condition, Acknowledged | Registered):
        return condition.holds(since(now, before))
    # A state that held before a step is no evidence of it: a look has to have begun since.
    is_new = isinstance(condition, _ALWAYS_NEW) or now.look_count >= before.look_count + NEXT_LOOK
    return is_new and condition.holds(now)


def _words_of(data: object) -> str:
    """Return a condition, as a play writes it, in words."""
    if isinstance(data, dict):
        return ", ".join(f"{word} {_words_of(value)}" for word, value in data.items())
    return str(data)


def _named(step: Step, prefix: str) -> Step:
    """Return the step, with names of rules and partitions that no other play has."""
    match step:
        case Lay() | Lift() | Partition() | HealPartition():
            return replace(step, name=f"{prefix}-{step.name}")
        case Await(condition=Held() | Seen() as condition):
            named = replace(condition, name=f"{prefix}-{condition.name}")
            return replace(step, condition=named, within_s=AWAIT_S)
        case Await():
            return replace(step, within_s=AWAIT_S)
        case _:
            return step
