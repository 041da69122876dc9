"""A host: one node after the other on one disk, by one clock; and its ways to other hosts.

Slotted and mutable, since the loop of the world touches these a million times a second. What they
mean is here; what changes them is in `world` and `network`.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

from fencepost.clusters.node_port.alarm import NEVER_NS, Alarm
from fencepost.clusters.node_port.effects import Effects, Node, Woken
from fencepost.clusters.simulation.clock import HostClock
from fencepost.clusters.simulation.disk import Disk

EVERY_TICK: Final = Alarm()
"""The alarm of a node which does not say when it needs its next tick: it is always due."""

Build = Callable[[], Node]
"""Makes the node of a new incarnation, which knows nothing but its configuration."""

Handle = Callable[[int, int, int, Any, Effects], None]
"""(now, source, kind, message, effects): a node's own `handle`."""


class ProcessState(StrEnum):
    """The state of a host's process, which says whether it takes events."""

    RUNNING = "running"
    PAUSED = "paused"
    """Its process stands still; what comes waits in its kernel."""
    DOWN = "down"


def _nobody(_now: int, _source: int, _kind: int, _message: Any, _effects: Effects) -> None:
    raise AssertionError("a host that is down takes no event")


class SimulatedHost:
    """A place for the incarnations of one node. `tick_ns` 0: it gets no ticks of its own."""

    __slots__ = (
        "alarm",
        "alias",
        "build",
        "clock",
        "disk",
        "due_ns",
        "exit_reason",
        "handle",
        "incarnation",
        "incoming",
        "links",
        "name",
        "node",
        "number",
        "outgoing",
        "silent",
        "state",
        "stopped",
        "synced_ns",
        "tick_at_ns",
        "tick_ns",
        "ticked_ns",
        "waiting",
    )

    def __init__(
        self, number: int, name: str, build: Build, *, tick_ns: int, disk: Disk, clock: HostClock
    ) -> None:
        self.number = number
        self.name = name
        self.build = build
        self.tick_ns = tick_ns
        self.ticked_ns = 0
        """The time of the last tick; those to come are multiples of `tick_ns` after it."""
        self.tick_at_ns = NEVER_NS
        """The time of the next tick, the only one in the heap that counts."""
        self.alarm = EVERY_TICK
        self.due_ns = 0
        """The alarm's time when the next tick was chosen."""
        self.disk = disk
        self.clock = clock
        self.node: Node | None = None
        self.handle: Handle = _nobody
        self.state = ProcessState.DOWN
        self.stopped = False
        """True if it is paused: an attribute of its own, since every event asks for it."""
        self.silent = False
        """Down without power: no other host learns that it is gone."""
        self.exit_reason: str | None = None
        """The reason why the last incarnation exited of its own accord; None if it did not."""
        self.incarnation = 0
        """Counts starts and ends: what is under way to another one never arrives."""
        self.alias = 0
        """The number by which others answer this incarnation."""
        self.links: dict[int, Channel] = {}
        """Ways to others: to hosts by their numbers, back to askers by their aliases."""
        self.outgoing: list[Channel] = []
        """The links of `links` by which it asks."""
        self.incoming: list[Channel] = []
        """The ways by which others ask this incarnation, and the one before."""
        self.waiting: list[tuple[int, int, Any]] = []
        """(source, kind, message) of what came while it was paused."""
        self.synced_ns = 0
        """The time at which the last requested sync is done."""

    def __repr__(self) -> str:
        return f"{self.name} ({self.state})"

    def begin(self) -> None:
        """A new incarnation runs."""
        self.incarnation += 1
        self.node = self.build()
        self.handle = self.node.handle
        self.state = ProcessState.RUNNING
        self.exit_reason = None

    def end(self) -> None:
        """The incarnation is gone, and what waited for it."""
        self.incarnation += 1
        self.state = ProcessState.DOWN
        self.stopped = False
        self.node, self.handle = None, _nobody
        self.waiting.clear()

    def begin_ticks(self, first_ns: int) -> None:
        """A new node, whose first tick is then."""
        self.alarm = self.node.alarm if isinstance(self.node, Woken) else EVERY_TICK
        self.due_ns = self.alarm.due_ns
        self.ticked_ns, self.tick_at_ns = first_ns - self.tick_ns, first_ns

    def next_tick(self, now_ns: int, from_ns: int) -> int:
        """Return its first tick after now and not before `from_ns`; NEVER_NS: it has none."""
        if not self.tick_ns:
            return NEVER_NS
        begun = (now_ns - self.ticked_ns) // self.tick_ns + 1
        awaited = -((self.ticked_ns - from_ns) // self.tick_ns)
        return self.ticked_ns + max(1, begun, awaited) * self.tick_ns

    def takes_tick(self, at_ns: int) -> bool:
        """Return whether this tick of its own counts; it is not awaited any more then."""
        if at_ns != self.tick_at_ns:
            return False
        self.tick_at_ns = NEVER_NS
        return True


class Channel:
    """A way from one host to another: a connection's requests, or the answers to them.

    A connection ends with either of its ends, so links are of one incarnation of the asker; and
    their frames come in the order in which they were sent, unless the network reorders.
    """

    __slots__ = (
        "answers",
        "connection",
        "delay_ns",
        "last_ns",
        "open",
        "receiver",
        "sender",
        "signed",
        "spread_ns",
        "table",
        "wanted",
    )

    def __init__(
        self, sender: SimulatedHost, receiver: SimulatedHost, *, signed: int, connection: int
    ) -> None:
        self.sender = sender
        self.receiver = receiver
        self.signed = signed
        """The number by which the receiver sees the sender."""
        self.connection = connection
        self.answers: Channel | None = None
        """The link whose requests this one answers; None: it is one of requests."""
        self.open: dict[int, Any] = {}
        """Requests without an answer, by correlation and kind."""
        self.last_ns = 0
        """The time at which the last frame arrives."""
        self.delay_ns = 0
        self.spread_ns = 0
        self.table: bytes | bytearray = b""
        """The marks, by kind, of what the interceptor wants to see."""
        self.wanted: bytes | bytearray = b""
        """By kind, whether the network has to look at it (all, where something is not as usual).

        `network.SEEN`: a watcher is only told of it.
        """
