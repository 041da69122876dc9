"""Nodes that do little, for the world alone: they write down all that happens to them."""

from dataclasses import dataclass
from typing import Any, ClassVar

from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.node_port.effects import NOTE, SEND, START, TICK, UNREACHABLE, Effects
from fencepost.clusters.simulation.host import SimulatedHost
from fencepost.clusters.simulation.network import STREAMED_FROM
from fencepost.clusters.simulation.world import World


@dataclass(slots=True)
class Ask:
    kind: ClassVar[int] = 50
    correlation: int
    words: str = ""


@dataclass(slots=True)
class Told:
    kind: ClassVar[int] = 51
    correlation: int
    words: str = ""


@dataclass(slots=True)
class Streamed:
    kind: ClassVar[int] = STREAMED_FROM
    correlation: int


@dataclass(slots=True)
class Toy:
    """Answers every Ask at once, unless it is to keep quiet; remembers what it got."""

    heard: list[tuple[int, int, Any]]
    quiet: bool = False

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        if kind != TICK:
            self.heard.append((now, kind, message))
        if kind == Ask.kind and not self.quiet:
            effects.append((SEND, source, Told(message.correlation, message.words)))


class Sleeper:
    """Has things to do at times, of which an Ask names one in ms; it says so to its alarm."""

    def __init__(self, *, honest: bool = True) -> None:
        self.alarm = Alarm()
        self.honest = honest
        self.due_ns: list[int] = []
        self.ticks: list[int] = []
        self.done: list[tuple[int, int]] = []
        """(when it was due, when it was done)."""

    def handle(self, now: int, _source: int, kind: int, message: Any, effects: Effects) -> None:
        if kind == Ask.kind:
            due_ns = int(message.words) * 1_000_000
            self.due_ns.append(due_ns)
            if self.honest:
                self.alarm.by(due_ns)
        elif kind == TICK:
            self.ticks.append(now)
            self.alarm.reset()
            for due_ns in [one for one in self.due_ns if one <= now]:
                self.due_ns.remove(due_ns)
                self.done.append((due_ns, now))
                effects.append((NOTE, "done", due_ns))
            for due_ns in self.due_ns if self.honest else ():
                self.alarm.by(due_ns)


class Stage:
    """Toys in a world, and what each heard."""

    def __init__(self, count: int = 2, *, quiet: tuple[int, ...] = (), **options: Any) -> None:
        self.world = World(7, **options)
        self.heard: dict[int, list[tuple[int, int, Any]]] = {n: [] for n in range(count)}
        self.hosts: list[SimulatedHost] = [
            self.world.add(
                n, f"toy-{n}", lambda n=n: Toy(self.heard[n], n in quiet), tick_ns=20_000_000
            )
            for n in range(count)
        ]
        for host in self.hosts:
            self.world.start(host)
        self.run(5)
        self.forget()

    def run(self, ms: int) -> None:
        self.world.run(self.world.now_ns + ms * 1_000_000)

    def do(self, number: int, *effects: tuple[Any, ...]) -> None:
        """Have a toy ask for these effects, now."""
        host = self.hosts[number]
        self.world._perform(host, self.world.now_ns, list(effects))

    def ask(self, number: int, target: int, correlation: int, words: str = "") -> Ask:
        message = Ask(correlation, words)
        self.do(number, (SEND, target, message))
        return message

    def forget(self) -> None:
        for heard in self.heard.values():
            heard.clear()

    def kinds(self, number: int) -> list[int]:
        return [kind for _, kind, _ in self.heard[number]]

    def words(self, number: int, kind: int = Ask.kind) -> list[str]:
        return [message.words for _, found, message in self.heard[number] if found == kind]


STARTED, REFUSED, ASKED, ANSWERED = START, UNREACHABLE, Ask.kind, Told.kind
