"""Clients of a simulated ensemble that do what a test tells them, and write down what they hear."""

from collections.abc import Callable
from typing import Any

from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.node_port.effects import SEND, TICK, Effects
from fencepost.clusters.node_port.zookeeper import (
    ZOOKEEPER,
    CloseSession,
    OpenSession,
    Operation,
    SessionEvent,
    SessionState,
    WatchEvent,
    ZkRequest,
    ZkResponse,
)
from fencepost.clusters.simulation.host import SimulatedHost
from fencepost.clusters.simulation.world import World
from fencepost.clusters.simulation.zookeeper.ensemble import SimulatedEnsemble
from fencepost.clusters.simulation.zookeeper.sessioned import SessionedNode
from fencepost.clusters.simulation.zookeeper.timing import Timing

MS = 1_000_000


class Client:
    """A node that sends what it is given at its next tick."""

    def __init__(self) -> None:
        self.alarm = Alarm()
        self.to_send: list[Any] = []
        self.heard: list[Any] = []
        self.correlation = 0

    def handle(self, _now: int, _source: int, kind: int, message: Any, effects: Effects) -> None:
        if kind == TICK:
            self.alarm.reset()
            effects.extend((SEND, ZOOKEEPER, one) for one in self.to_send)
            self.to_send.clear()
        elif kind in (ZkResponse.kind, SessionEvent.kind, WatchEvent.kind):
            self.heard.append(message)

    def answer(self, correlation: int) -> ZkResponse | None:
        for one in self.heard:
            if isinstance(one, ZkResponse) and one.correlation == correlation:
                return one
        return None

    @property
    def states(self) -> list[SessionState]:
        return [one.state for one in self.heard if isinstance(one, SessionEvent)]

    @property
    def watched(self) -> list[tuple[str, str]]:
        return [(one.type.value, one.path) for one in self.heard if isinstance(one, WatchEvent)]


class ZkStage:
    """An ensemble and its clients in a world of their own."""

    def __init__(
        self, servers: int = 1, clients: int = 1, *, seed: int = 1, **options: Any
    ) -> None:
        timing = options.pop("timing", None) or Timing()
        self.world = World(seed, **options)
        self.ensemble = SimulatedEnsemble(self.world, servers, timing=timing)
        self.clients = [Client() for _ in range(clients)]
        self.hosts: list[SimulatedHost] = [
            self.world.add(n, f"client-{n}", lambda n=n: self._node(n)) for n in range(clients)
        ]
        self.ensemble.start()
        self.until(lambda: self.ensemble.leader is not None)
        for host in self.hosts:
            self.world.start(host)
        self.run(50)

    def _node(self, number: int) -> SessionedNode:
        self.clients[number] = Client()
        return SessionedNode(self.clients[number], number=number, servers=self.ensemble.numbers)

    def run(self, ms: float) -> None:
        self.world.run(self.world.now_ns + int(ms * MS))

    def until(self, reached: Callable[[], bool], within_ms: int = 20_000) -> None:
        for _ in range(within_ms):
            if reached():
                return
            self.run(1)
        raise AssertionError("not reached in time")

    def send(self, number: int, message: Any) -> None:
        host = self.hosts[number]
        self.clients[number].to_send.append(message)
        host.tick_at_ns = self.world.now_ns
        self.world.push(self.world.now_ns, host, number, TICK, None)

    def open(self, *numbers: int, timeout_ms: int = 2000) -> None:
        for number in numbers or range(len(self.clients)):
            self.send(number, OpenSession(0, timeout_ms))
            self.until(lambda n=number: SessionState.CONNECTED in self.clients[n].states)

    def close(self, number: int) -> None:
        self.send(number, CloseSession(0))
        self.run(30)

    def ask(self, number: int, *operations: Operation) -> int:
        """Send a request; return its correlation."""
        client = self.clients[number]
        client.correlation += 1
        self.send(number, ZkRequest(client.correlation, operations))
        return client.correlation

    def do(self, number: int, *operations: Operation) -> ZkResponse:
        """Send a request, and return its answer."""
        correlation = self.ask(number, *operations)
        client = self.clients[number]
        self.until(lambda: client.answer(correlation) is not None)
        answer = client.answer(correlation)
        assert answer is not None
        return answer

    def state(self, number: int, *wanted: SessionState) -> None:
        """Wait until the session has gone through these states, the last ones of all."""
        client = self.clients[number]
        self.until(lambda: client.states[-len(wanted) :] == list(wanted))
