"""Two brokers and a controller that only answer, on a simulated network with its wire."""

from typing import Any

from fencepost.clusters.node_port.effects import SEND, UNREACHABLE, Effects
from fencepost.clusters.reference.nodes.messages.control import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from fencepost.clusters.reference.nodes.messages.data import (
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    ProduceResponse,
)
from fencepost.clusters.simulation.host import SimulatedHost
from fencepost.clusters.simulation.world import World
from fencepost.nemesis.simulated.wire import SimulatedWire

CLIENTS_FROM = 1 << 20
HARNESS_FROM = 1 << 21
KEY = (7, 0)


class Answers:
    """Answers AlterPartition, Fetch and Produce at once, and remembers what it got."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.refused: list[Any] = []
        self.heard: list[tuple[str, int]] = []
        """What came of its requests, in order."""

    def handle(self, _now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        if kind == UNREACHABLE:
            self.refused.append(message)
            self.heard.append(("lost", message.correlation))
        elif kind >= 10:
            self.got.append(message)
            self.heard.append(("got", message.correlation))
            if kind == AlterPartitionRequest.kind:
                answer = AlterPartitionResponse(message.correlation, 0, message.items)
                effects.append((SEND, source, answer))
            elif kind == FetchRequest.kind:
                effects.append((SEND, source, FetchResponse(message.correlation, 0, ())))
            elif kind == BrokerRegistrationRequest.kind:
                registered = BrokerRegistrationResponse(message.correlation, 0, 1001, 4, 2_000)
                effects.append((SEND, source, registered))
            elif kind == BrokerHeartbeatRequest.kind:
                beaten = BrokerHeartbeatResponse(message.correlation, 0, 1001, 3, True, 2_000, -1)
                effects.append((SEND, source, beaten))
            elif kind == ProduceRequest.kind:
                effects.append((SEND, source, ProduceResponse(message.correlation, ())))


class NotedTape:
    """A journal that keeps its rows."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def frame(self, columns: Any, items: Any = ()) -> int:
        self.rows.append({**columns, "items": list(items)})
        return len(self.rows) - 1

    def fate(self, frame: int, *, action: str, forwarded_ns: int | None) -> None:
        self.rows[frame] |= {"action": action, "forwarded_ns": forwarded_ns}


class Stage:
    """`hosts` by name; `nodes` are what each got."""

    def __init__(self, *, clients: bool = False, overhears: bool = False) -> None:
        self.world = World(5)
        self.nodes: dict[str, Answers] = {}
        self.hosts: dict[str, SimulatedHost] = {}
        numbers = {"broker-1": 1, "broker-2": 2, "controller-1": 1001, "client": CLIENTS_FROM}
        for name, number in numbers.items():
            self.nodes[name] = Answers()
            self.hosts[name] = self.world.add(number, name, lambda n=name: self.nodes[n], tick_ns=0)
            self.world.start(self.hosts[name])
        self.tape = NotedTape()
        self.wire = SimulatedWire(
            self.world,
            journal=self.tape,
            clients_from=CLIENTS_FROM,
            harness_from=HARNESS_FROM,
            clients=clients,
            overhears=overhears,
        )
        self.wire.name_topics({"AAAAAAAAAAAAAAAAAAAABw": "t"})
        self.run(5)

    def run(self, ms: float) -> None:
        self.world.run(self.world.now_ns + int(ms * 1_000_000))

    def send(self, source: str, target: str, message: Any) -> Any:
        effect = (SEND, self.hosts[target].number, message)
        self.world._perform(self.hosts[source], self.world.now_ns, [effect])
        return message

    def alter(self, correlation: int, isr: tuple[int, ...] = (1, 2)) -> AlterPartitionRequest:
        item = AlterPartitionItem(KEY, 0, 0, isr, (4,) * len(isr))
        request = AlterPartitionRequest(correlation, 1, 4, 3, (item,))
        return self.send("broker-1", "controller-1", request)

    def register(self, correlation: int) -> BrokerRegistrationRequest:
        request = BrokerRegistrationRequest(correlation, 1, 7, -1, 0, (), (), None, "c")
        return self.send("broker-1", "controller-1", request)

    def beat(self, correlation: int) -> BrokerHeartbeatRequest:
        request = BrokerHeartbeatRequest(correlation, 1, 4, 0, 3, 2)
        return self.send("broker-1", "controller-1", request)

    def fetch(
        self, correlation: int, source: str = "broker-2", *, epoch: int = 9, partition: int = 0
    ) -> FetchRequest:
        place = ((KEY[0], partition), 0, 0, -1)
        request = FetchRequest(correlation, 2, epoch, 15, (place,), 0)
        return self.send(source, "broker-1", request)

    def got(self, name: str) -> list[int]:
        """The correlations of what a node got, in its order."""
        return [message.correlation for message in self.nodes[name].got]

    def restart(self, name: str) -> None:
        self.world.kill(self.hosts[name])
        self.world.start(self.hosts[name])
