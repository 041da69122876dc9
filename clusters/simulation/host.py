"""A host: one node after the other on one disk, by one clock; and its ways to other hosts.

Slotted and mutable, since the loop of the world touches these a million times a second. What they
mean is here; what changes them is in `world` and `network`.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from clusters.reference.effects import Effects, Node
from clusters.simulation.clock import Clock
from clusters.simulation.disk import Disk

__all__ = ["Build", "Handle", "Host", "HostState", "Link"]

Build = Callable[[], Node]
"""Makes the node of a new incarnation, which knows nothing but its configuration."""

Handle = Callable[[int, int, int, Any, Effects], None]
"""(now, source, kind, message, effects): a node's own `handle`."""


class HostState(StrEnum):
    """Whether a host's process takes events."""

    RUNNING = "running"
    PAUSED = "paused"
    """Its process stands still; what comes waits in its kernel."""
    DOWN = "down"


def _nobody(_now: int, _source: int, _kind: int, _message: Any, _effects: Effects) -> None:
    raise AssertionError("a host that is down takes no event")


class Host:
    """A place for the incarnations of one node. `tick_ns` 0: it gets no ticks of its own."""

    __slots__ = (
        "alias",
        "build",
        "clock",
        "disk",
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
        "tick_ns",
        "waiting",
    )

    def __init__(
        self, number: int, name: str, build: Build, *, tick_ns: int, disk: Disk, clock: Clock
    ) -> None:
        self.number = number
        self.name = name
        self.build = build
        self.tick_ns = tick_ns
        self.disk = disk
        self.clock = clock
        self.node: Node | None = None
        self.handle: Handle = _nobody
        self.state = HostState.DOWN
        self.stopped = False
        """Whether it is paused: an attribute of its own, since every event asks for it."""
        self.silent = False
        """Down without power: nobody hears that it is gone."""
        self.exit_reason: str | None = None
        """Why the last incarnation ended by itself; None if it did not."""
        self.incarnation = 0
        """Counts starts and ends: what is under way to another one never arrives."""
        self.alias = 0
        """By what number others answer this incarnation."""
        self.links: dict[int, Link] = {}
        """Ways to others: to hosts by their numbers, back to askers by their aliases."""
        self.outgoing: list[Link] = []
        """Those of `links` by which it asks."""
        self.incoming: list[Link] = []
        """The ways by which others ask this incarnation, and the one before."""
        self.waiting: list[tuple[int, int, Any]] = []
        """(source, kind, message) of what came while it was paused."""
        self.synced_ns = 0
        """When the last sync that was asked for is done."""

    def __repr__(self) -> str:
        return f"{self.name} ({self.state})"


class Link:
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

    def __init__(self, sender: Host, receiver: Host, *, signed: int, connection: int) -> None:
        self.sender = sender
        self.receiver = receiver
        self.signed = signed
        """As what the receiver sees the sender."""
        self.connection = connection
        self.answers: Link | None = None
        """The link whose requests this one answers; None: it is one of requests."""
        self.open: dict[int, Any] = {}
        """Requests without an answer, by correlation and kind."""
        self.last_ns = 0
        """When the last frame arrives."""
        self.delay_ns = 0
        self.spread_ns = 0
        self.table: bytes | bytearray = b""
        """By kind, whether the interceptor wants to see it."""
        self.wanted: bytes | bytearray = b""
        """By kind, whether the network has to look at it (all, where something is not as usual).

        `network.SEEN`: somebody is only told of it.
        """
