"""Nodes in a simulated world, as tests drive them: messages are caught, cut off or fed by hand.

The world is that of `clusters.simulation`, with a network without luck: a frame takes LATENCY_NS. A
client is a host that asks once, over a connection of its own, and keeps what it hears.
"""

import itertools
from collections.abc import Callable, Container, Iterable
from typing import Any

from fencepost.clusters.node_port import effects as border
from fencepost.clusters.node_port.storage import META_PROPERTIES, MetaProperties
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.simulation.disk import Disk
from fencepost.clusters.simulation.host import Channel, ProcessState, SimulatedHost
from fencepost.clusters.simulation.kinds import KIND_COUNT
from fencepost.clusters.simulation.network import Latency, open_key
from fencepost.clusters.simulation.world import World as Simulation

CLUSTER = "test-cluster"
LATENCY_NS = 1 * MS
CLOSED = "closed"
BEGIN_NS = 1_000_000_000
_CLIENTS_FROM = 1 << 20
STEADY = Latency(delay_ns=LATENCY_NS, spread_ns=0)

Held = tuple[int, int, Any]
"""(source, target, message)."""


def formatted_disk(node_id: int) -> dict[str, Any]:
    """The files of a disk as the storage tool leaves it."""
    properties = MetaProperties(cluster_id=CLUSTER, node_id=node_id, directory_id=node_id)
    return {META_PROPERTIES: properties}


class Tapped:
    """A node whose effects are looked at before the world performs them."""

    def __init__(self, node: Any, tap: Callable[[border.Effects], None]) -> None:
        self.node, self.alarm = node, node.alarm
        self._tap = tap

    def handle(
        self, now: int, source: int, kind: int, message: Any, effects: border.Effects
    ) -> None:
        self.node.handle(now, source, kind, message, effects)
        self._tap(effects)


class Client:
    """A host that asks once, as it starts."""

    def __init__(self, target: int, request: Any, heard: Callable[[Any], None]) -> None:
        self._target, self._request, self._heard = target, request, heard

    def handle(
        self, _now: int, _source: int, kind: int, message: Any, effects: border.Effects
    ) -> None:
        if kind == border.START:
            effects.append((border.SEND, self._target, self._request))
        else:
            self._heard(CLOSED if kind == border.UNREACHABLE else message)


class Stage:
    """Add nodes, and start them. `watched`: the kinds of messages that are seen; all, if not told.

    Only what is seen can be held back or cut off here; a network's own blocks are for all.
    """

    STEP_NS = 0
    """The time between looks of `until`; 0: at every event."""

    def __init__(
        self,
        seed: int = 1,
        *,
        latency: Latency = STEADY,
        watched: Container[int] | None = None,
        witnessed: bool = False,
    ) -> None:
        self._seen = _table(range(KIND_COUNT) if watched is None else watched)
        self.simulation = Simulation(seed, latency=latency, digest=False, witnessed=witnessed)
        self.simulation.run(BEGIN_NS)
        self.simulation.network.intercept(self)
        self.ids: tuple[int, ...] = ()
        self.notes: list[tuple[Any, ...]] = []
        """(node id, subject, …)."""
        self.synced: list[tuple[Any, ...]] = []
        """(node id, names, token) of syncs that were asked for."""
        self.answers: dict[int, Any] = {}
        """What clients heard last, by client."""
        self.blocked: set[tuple[int, int]] = set()
        """(source, target) of ways on which all is lost."""
        self.catches: Callable[[int, int, Any], bool] | None = None
        """Messages to hold back: (source, target, message)."""
        self.held: list[Held] = []
        self.sent: list[Held] = []
        self._held_links: dict[int, Channel] = {}
        self._clients = itertools.count(_CLIENTS_FROM)

    def add(self, node_id: int, build: Callable[[], Any], *, formatted: bool = True) -> None:
        """Add a node that is down, on a disk that is formatted, or empty."""

        def tap(effects: border.Effects) -> None:
            for effect in effects:
                if effect[0] != border.SEND:
                    self.tap(node_id, effect)

        self.ids = (*self.ids, node_id)
        self.simulation.add(node_id, f"node-{node_id}", lambda: Tapped(build(), tap))
        if formatted:
            self.wipe(node_id)

    @property
    def now(self) -> int:
        return self.simulation.now_ns

    @property
    def nodes(self) -> dict[int, Any]:
        """The nodes that are up."""
        tapped = ((one, self.host(one).node) for one in self.ids)
        return {one: found.node for one, found in tapped if isinstance(found, Tapped)}

    @property
    def exits(self) -> dict[int, str]:
        """Why nodes ended by themselves."""
        hosts = ((one, self.host(one)) for one in self.ids)
        return {one: host.exit_reason for one, host in hosts if host.exit_reason is not None}

    def host(self, node_id: int) -> SimulatedHost:
        return self.simulation.hosts[node_id]

    def disk(self, node_id: int) -> Disk:
        return self.host(node_id).disk

    # Faults.

    def start(self, *node_ids: int) -> None:
        for one in node_ids:
            self.simulation.start(self.host(one))

    def kill(self, *node_ids: int, power: bool = False) -> None:
        """End processes at once; what they wrote stays, but for what a loss of power takes."""
        for one in map(self.host, node_ids):
            if one.state is not ProcessState.DOWN:
                (self.simulation.cut_power if power else self.simulation.kill)(one)

    def wipe(self, node_id: int) -> None:
        """Replace the disk by a new one, formatted."""
        self.disk(node_id).format(formatted_disk(node_id))

    def stop(self, node_id: int) -> None:
        self.simulation.stop(self.host(node_id))

    def cut(self, one: Iterable[int], other: Iterable[int]) -> None:
        """Let no message pass between these nodes."""
        pairs = list(itertools.product(one, other))
        self.blocked.update(pairs)
        self.blocked.update((target, source) for source, target in pairs)

    # Time.

    def run(self, duration_ns: int) -> None:
        """Let time pass."""
        self.simulation.run(self.now + duration_ns)

    def until(self, claim: Callable[[], Any], *, limit_ns: int = 20_000 * MS) -> Any:
        """Run until a claim holds; fails the test if it does not in time."""
        end = self.now + limit_ns
        while self.now <= end:
            if found := claim():
                return found
            step = self.STEP_NS
            self.simulation.run(self.now + step if step else self.simulation._heap[0][0])
        raise AssertionError(f"not within {limit_ns / 1e9} s: {claim}")

    # Messages.

    def wanted(self, _link: Channel) -> bytes:
        """Frames of these kinds pass by `take`: the stage is the network's interceptor."""
        return self._seen

    def take(self, link: Channel, message: Any, _request: Any) -> bool:
        """Lose or catch a frame, or let it pass."""
        found = (link.sender.number, link.receiver.number, message)
        self.sent.append(found)
        if found[:2] in self.blocked:
            return True
        if self.catches is None or not self.catches(*found):
            return False
        self.held.append(found)
        self._held_links[id(message)] = link
        return True

    def hold(self, kind: int) -> None:
        """Hold back all messages of a kind from now on, and see no others."""
        self._seen = _table((kind,))
        self.catches = lambda *_: True
        self.simulation.network.intercept(self)

    def left(self, link: Channel) -> None:
        """Let frames go that a host has given up with its connection: none is known by it."""

    def release(self) -> None:
        """Deliver what was held back, and hold nothing more."""
        self.catches = None
        held, self.held = self.held, []
        for _, _, message in held:
            self.simulation.network.transmit(self._held_links[id(message)], message)

    def feed(self, target: int, source: int, kind: int, message: Any) -> None:
        """Give a node an event now; a request is one that `source`, a node, has sent."""
        seen_as = source
        if kind > border.STOP and kind % 2 == 0 and source in self.ids:
            asking = self.host(source)
            link = asking.links.get(target) or self.simulation.network.link(asking, target)
            assert link is not None
            link.open[open_key(message)] = message
            seen_as = link.signed
        self.simulation.push(self.now, self.host(target), seen_as, kind, message)
        self.simulation.run(self.now)

    def perform(self, node_id: int, effects: border.Effects) -> None:
        """Perform what a node was made to ask for by hand."""
        for effect in effects:
            self.tap(node_id, effect)
        host = self.host(node_id)
        self.simulation._perform(host, self.now, effects)
        self.simulation._set_tick(host, self.now, self.now, border.NOTE)

    def ask(self, target: int, request: Any, *, limit_ns: int = 20_000 * MS) -> Any:
        """Ask as a client; return the answer, or CLOSED."""
        client = self.send(target, request)
        return self.until(lambda: self.answers.get(client), limit_ns=limit_ns)

    def send(self, target: int, request: Any) -> int:
        """Ask as a client, whose answer will be in `answers` under this number."""
        number = next(self._clients)

        def heard(answer: Any) -> None:
            self.answers[number] = answer

        asking = Client(target, request, heard)
        host = self.simulation.add(number, f"client-{number}", lambda: asking, tick_ns=0)
        self.simulation.start(host)
        return number

    def noted(self, subject: str, *, node: int | None = None) -> list[tuple[Any, ...]]:
        return [one for one in self.notes if one[1] == subject and node in (None, one[0])]

    def tap(self, node_id: int, effect: tuple[Any, ...]) -> None:
        """Look at an effect before it is performed."""
        if effect[0] == border.NOTE:
            self.notes.append((node_id, *effect[1:]))
        elif effect[0] == border.SYNC:
            self.synced.append((node_id, *effect[1:]))
        elif effect[0] == border.CLOSE and effect[1] < 0:
            client = self.simulation.network._numbers.get(effect[1], -1)
            if client >= _CLIENTS_FROM:
                # Behind all that was sent before it.
                after_ns = self.now + LATENCY_NS + 1
                self.simulation.call(after_ns, lambda: self._hears_of_the_end(client))

    def _hears_of_the_end(self, client: int) -> None:
        self.answers.setdefault(client, CLOSED)


def _table(kinds: Container[int]) -> bytes:
    return bytes(kind in kinds for kind in range(KIND_COUNT))
