"""The performance of a mix: random faults until the time is up.

Whatever keeps the mix from being performed is a shortfall, and so is a nemesis that was idle for
too long: a run in which hardly anything was broken proves little, however long it was.

A step that fails, as of a node that died by itself, is a shortfall and ends no mix: everything is
healed, and the mix begins anew. So what is left of a night is not lost. Too many of them end it:
then something is wrong with the harness or its machine, and not with a node.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from fencepost.clusters.port import NodeName, NodeState
from fencepost.harness.interpreter.idleness import Idleness
from fencepost.harness.interpreter.interpreter import Interpreter
from fencepost.harness.interpreter.recovery import Recovery
from fencepost.history.failure import HarnessError
from fencepost.nemesis.mix import Mix
from fencepost.nemesis.play import step_data
from fencepost.nemesis.targets import NamedNodes, Scene
from fencepost.nemesis.verbs.await_condition import Await
from fencepost.nemesis.verbs.kill import Kill
from fencepost.nemesis.verbs.move_leader import MoveLeader
from fencepost.nemesis.verbs.registry import is_fault
from fencepost.nemesis.verbs.start import Start
from fencepost.nemesis.verbs.step import OnNodes, Step
from fencepost.nemesis.verbs.throttle import Throttle

IDLE_S_MAX: Final = 60.0
"""The longest time for which nothing may be broken though something is due."""

FAILURES_MAX: Final = 5
"""The number of steps that may fail. One more ends the mix."""


def perform_mix(
    interpreter: Interpreter,
    mix: Mix,
    *,
    time_limit_s: float,
    recovery_s: float = math.inf,
    zero_s: float = 0.0,
) -> Idleness:
    """Perform random faults until the time is up; return for how long nothing was broken.

    Nodes that are not whole `recovery_s` after all is healed are a shortfall. They are killed
    and started, as an operator would, so that what is left of the time is not lost, too.

    `zero_s`: the time of the run's clock when the interpreter was made.
    """
    idleness = Idleness(now_s=interpreter.now_s(), zero_s=zero_s)
    end_s = interpreter.now_s() + time_limit_s
    _perform_all(interpreter, mix, idleness, end_s=end_s, recovery_s=recovery_s)
    longest = idleness.longest
    if longest.idle_s > IDLE_S_MAX:
        interpreter.shortfalls.append(
            f"nothing was broken for {longest.idle_s:.1f} s though something was due, from "
            f"{longest.begin_s:.1f} s on: the nemesis waited for {longest.words}"
        )
    return idleness


def _perform_all(
    interpreter: Interpreter,
    mix: Mix,
    idleness: Idleness,
    *,
    end_s: float,
    recovery_s: float,
) -> None:
    recovery, failures = Recovery(limit_s=recovery_s), _Failures(interpreter, mix)
    announced = 0
    while interpreter.now_s() < end_s and not failures.are_too_many:
        interpreter.tick()
        idleness.pass_to(interpreter.now_s())
        scene, impaired = interpreter.observer.scene(), interpreter.observer.impaired()
        now_s = interpreter.now_s()
        if stuck := recovery.stuck(now_s, scene.nodes, impaired=impaired, idle=mix.is_idle):
            with failures.told("to start who does not come back"):
                _rescue(interpreter, stuck, after_s=recovery_s)
            idleness.now_is(None, broken=True)
        due = mix.due(interpreter.now_s(), scene=scene, impaired=impaired, look=interpreter.look)
        interpreter.windows.announce(mix.windows[announced:])
        announced = len(mix.windows)
        for place, step in enumerate(due):
            with failures.told(str(step_data(step)), undone=due[place + 1 :]) as performed:
                _perform(interpreter, step, scene)  # what is due is done, however late
                performed.append(step)
            idleness.pass_to(interpreter.now_s())
            if not performed:
                break
            if isinstance(step, OnNodes) and is_fault(step):
                idleness.now_is(None, broken=True)  # it may be over already, as a restart is
        idleness.now_is(mix.waits_for(impaired), broken=interpreter.is_broken)


@dataclass(slots=True)
class _Failures:
    """The steps that failed, each of which is told and healed."""

    interpreter: Interpreter
    mix: Mix
    _count: int = 0

    @property
    def are_too_many(self) -> bool:
        return self._count > FAILURES_MAX

    @contextmanager
    def told(self, words: str, *, undone: Sequence[Step] = ()) -> Iterator[list[Step]]:
        """Have everything healed if what is done meanwhile fails. `undone`: steps left out then."""
        try:
            yield []
        except HarnessError as error:
            self._tell(f"{words}: {error}")
            self.mix.abandon(undone)
            try:
                self.interpreter.start_over()
            except HarnessError as error:
                self._tell(f"the heal after that: {error}")

    def _tell(self, words: str) -> None:
        self._count += 1
        now_s = self.interpreter.now_s()
        self.interpreter.shortfalls.append(
            f"a step of the nemesis failed at {now_s:.1f} s: {words}"
        )
        if self.are_too_many:
            self.interpreter.shortfalls.append(
                f"the nemesis ended at {now_s:.1f} s: {self._count} of its steps had failed"
            )


def _rescue(interpreter: Interpreter, nodes: Sequence[NodeName], *, after_s: float) -> None:
    words = f"{after_s:g} s after a fault was healed"
    interpreter.shortfalls.not_whole(words, interpreter.observer.latest())
    for node in nodes:
        target = NamedNodes(nodes=(node,))
        if interpreter.cluster.state(node) is not NodeState.DOWN:
            interpreter.act(Kill(target=target))
        interpreter.act(Start(target=target))


def _perform(interpreter: Interpreter, step: Step, scene: Scene) -> None:
    """Perform a step of a mix.

    An operator's request may be refused in the middle of faults, and an idle node, such as a
    server of ZooKeeper's, never comes to a bound on its processor time.
    """
    if isinstance(step, Await):  # it holds: a replay waits for it there
        interpreter.note(step)
        return
    try:
        interpreter.perform(step, end_s=math.inf)
    except HarnessError:
        if not isinstance(step, MoveLeader | Throttle):
            raise
        return
    interpreter.windows.settle(interpreter.network.status)
    interpreter.windows.performed(step, scene)
