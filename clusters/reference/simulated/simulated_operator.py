"""A harness's own host in a simulated world: it asks nodes, by hand or all the time.

`SimulatedOperator` asks one thing at a time, and lets the world go on until it is answered, as a
person at a terminal does. It is no node: no host asks it anything.
"""

from collections.abc import Callable
from typing import Any, Final

from fencepost.clusters.node_port.effects import SEND, TICK, UNREACHABLE, Effects
from fencepost.clusters.simulation.host import SimulatedHost
from fencepost.clusters.simulation.world import World

_STEP_NS: Final = 1_000_000
"""The precision with which an answer is noticed."""


class _Caller:
    """Sends what it is given, and keeps what comes back."""

    def __init__(self) -> None:
        self.correlation = 0
        self.to_send: list[tuple[int, Any]] = []
        self.answers: dict[int, Any] = {}

    def handle(self, _now: int, _source: int, kind: int, message: Any, effects: Effects) -> None:
        """Send what waits; keep an answer, None for one that will not come."""
        if kind == TICK:
            effects.extend((SEND, target, request) for target, request in self.to_send)
            self.to_send.clear()
        elif kind == UNREACHABLE:
            self.answers[message.correlation] = None
        elif kind & 1:
            self.answers[message.correlation] = message


class SimulatedOperator:
    """Asks nodes of a world, one request at a time."""

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self._caller = _Caller()
        self._host: SimulatedHost = world.add(number, "operator", lambda: self._caller, tick_ns=0)
        world.start(self._host)

    def ask(self, target: int, request: Callable[[int], Any], *, timeout_ns: int) -> Any:
        """Return the answer to `request(correlation)`; None if none came in time."""
        caller, world = self._caller, self._world
        caller.correlation += 1
        correlation = caller.correlation
        caller.to_send.append((target, request(correlation)))
        world.push(world.now_ns, self._host, self._host.number, TICK, None)
        end_ns = world.now_ns + timeout_ns
        while correlation not in caller.answers and world.now_ns < end_ns:
            world.run(min(end_ns, world.now_ns + _STEP_NS))
        return caller.answers.pop(correlation, None)
