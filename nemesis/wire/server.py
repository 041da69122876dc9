"""The proxy: listens for every link, runs every connection, keeps rules and blocks.

One process and one loop: more processes would have nothing to divide, since what costs is going
frame by frame, and the machine is shared with the cluster.
"""

import contextlib
import heapq
import itertools
import resource
import select
import socket
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError
from fencepost.nemesis.wire.actions import let_go
from fencepost.nemesis.wire.connection import ProxyConnection
from fencepost.nemesis.wire.decoding.reference import meant
from fencepost.nemesis.wire.effects import (
    Broken,
    Effect,
    Finish,
    ProxyRequest,
    Reset,
    Resumed,
    Send,
    Wake,
)
from fencepost.nemesis.wire.frame import TopicNames
from fencepost.nemesis.wire.pipe import HeldFrame
from fencepost.nemesis.wire.rulebook import LaidRule, Rulebook
from fencepost.nemesis.wire.rules import Flow, Link, Rule
from fencepost.nemesis.wire.sessions import Common, Session
from fencepost.nemesis.wire.status import Delivery, WireStatus
from fencepost.nemesis.wire.streams import proxied
from fencepost.nemesis.wire.tape import Journal, Tape

_BUFFER_BYTES: Final = 256 << 10
_PENDING_MAX: Final = 128
"""Connections that wait to be accepted, for each link."""
_NOTES_MAX: Final = 100


class Proxy:
    """Every link of a cluster. Single-threaded: its caller runs in its loop.

    `dialect`: the nodes are those of the reference cluster, with messages of their own.
    """

    def __init__(
        self, links: Sequence[Link], *, journal: Journal, clock: Clock, dialect: bool = False
    ) -> None:
        """Listen on every link; raise HarnessError, with the address, if that fails."""
        self.now_ns = clock.now_ns  # Asked for each chunk, hence without another call in between.
        self._loop = _EventLoop(clock)
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._numbers = itertools.count()
        self._connections: dict[Session, ProxyConnection] = {}
        self._effects: deque[tuple[Session, Effect]] = deque()
        self._touched: dict[Session, None] = {}
        self._blocked: set[Flow] = set()
        self._broken: deque[str] = deque(maxlen=_NOTES_MAX)
        self._broken_count = 0
        self._book: Rulebook[HeldFrame] = Rulebook()
        self._names = TopicNames()
        self._common = Common(
            book=self._book,
            tape=Tape(journal),
            names=self._names,
            act=lambda session, effect: self._effects.append((session, effect)),
            meant=meant if dialect else None,
        )
        self._listeners: list[socket.socket] = []
        _allow_many_descriptors()
        for link in links:
            self._listen(link)

    def step(self, *, timeout_s: float | None = None) -> bool:
        """Wait for something to happen, and do what follows; return False if nothing did."""
        return self._loop.step(timeout_s=timeout_s)

    def close(self) -> None:
        """Close every socket. Idempotent."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        self._loop.close()

    # Called from outside.

    def add(self, rule: Rule) -> None:
        """Lay a rule; raise HarnessError if one of its name is laid."""
        if rule.name in self._book:
            raise HarnessError(f"a rule named {rule.name} is active already")
        self._book.add(rule)

    def release(self, name: str) -> Delivery:
        """Remove a rule and deliver what it holds, in order; raise HarnessError if not laid."""
        entry = self._removed(name)
        before = entry.delivered_count, entry.undeliverable_count
        for waiting in tuple(entry.held):
            let_go(waiting, self.now_ns())
            self._settle()
        return Delivery(
            delivered=entry.delivered_count - before[0],
            undeliverable=entry.undeliverable_count - before[1],
        )

    def discard(self, name: str) -> int:
        """Remove a rule, drop what it holds, and cut those connections; return how many frames."""
        entry = self._removed(name)
        dropped = entry.forget()
        for waiting in dropped:
            waiting.connection.discard(waiting)
        self._settle()
        return len(dropped)

    def block(self, flows: Collection[Flow]) -> None:
        """Pass nothing on in these flows."""
        self._blocked.update(flows)
        self._set_blocked(flows, blocked=True)

    def unblock(self, flows: Collection[Flow] | None) -> None:
        """Pass on, in its order, what waited; None: in all flows."""
        lifted = self._blocked if flows is None else self._blocked.intersection(flows)
        self._blocked = self._blocked - lifted
        for connection in self._connections.values():
            connection.dial()
        self._set_blocked(lifted, blocked=False)

    def cut(self, pairs: Collection[Flow]) -> int:
        """Close all connections from source to target of these pairs; return how many."""
        cut = [
            session
            for session in self._connections
            if (session.link.source, session.link.target) in pairs
        ]
        for session in cut:
            session.close()
            self.touch(session)
        self._settle()
        return len(cut)

    def name_topics(self, names: Mapping[str, str]) -> None:
        """Take the names of topics: names by id, as Kafka's tools write it."""
        self._names.by_id.update(names)

    def status(self) -> WireStatus:
        """Return the status of the wire."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return WireStatus(
            rules=self._book.statuses(),
            withheld_bytes={
                flow: sum(one.withheld_bytes(flow) for one in self._connections.values())
                for flow in sorted(self._blocked)
            },
            connection_count=Counter(
                (session.link.source, session.link.target) for session in self._connections
            ),
            broken=tuple(self._broken),
            broken_count=self._broken_count,
            cpu_s=usage.ru_utime + usage.ru_stime,
        )

    # Called by connections.

    @property
    def buffer(self) -> memoryview:
        """The buffer to receive into; shared by all."""
        return self._buffer

    def watch(self, descriptor: int, mask: int, handler: Callable[[int], None]) -> None:
        """Call `handler` when something of `mask`, or an error, is there; do what follows."""

        def handle(mask: int) -> None:
            handler(mask)
            self._settle()

        self._loop.watch(descriptor, mask, handle)

    def change(self, descriptor: int, mask: int) -> None:
        """Watch for something else."""
        self._loop.change(descriptor, mask)

    def forget(self, descriptor: int) -> None:
        """Watch no more."""
        self._loop.forget(descriptor)

    def is_blocked(self, flow: Flow) -> bool:
        """Return whether this flow is blocked now."""
        return flow in self._blocked

    def wake(self, at_ns: int, handler: Callable[[], None]) -> None:
        """Call `handler` at this time; do what follows."""

        def handle() -> None:
            handler()
            self._settle()

        self._loop.wake(at_ns, handle)

    def touch(self, session: Session) -> None:
        """Bring the connection of this session up to date: something of the session changed."""
        self._touched[session] = None

    def _listen(self, link: Link) -> None:
        listener = socket.socket()
        self._listeners.append(listener)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((link.address, link.port))
            listener.listen(_PENDING_MAX)
        except OSError as error:
            self.close()
            raise HarnessError(
                f"the proxy cannot listen on {link.address}:{link.port}, for the link from "
                f"{link.source} to {link.target}: {error.strerror}"
            ) from error
        listener.setblocking(False)
        self.watch(listener.fileno(), select.EPOLLIN, lambda _: self._accept(listener, link))

    def _accept(self, listener: socket.socket, link: Link) -> None:
        with contextlib.suppress(OSError):  # It was there, and is gone again.
            near, _ = listener.accept()
            self._connect(proxied(next(self._numbers), link, self._common), near)

    def _connect(self, session: Session, near: socket.socket | None) -> None:
        self._connections[session] = ProxyConnection(session, near, self)

    def _settle(self) -> None:
        """Do all effects that sessions have asked for, and what follows from them."""
        while self._effects or self._touched:
            while self._effects:
                session, effect = self._effects.popleft()
                if not isinstance(effect, Send):
                    self._do(session, effect)
                elif (connection := self._connections.get(session)) is not None:
                    connection.send(effect.side, effect.data)
            if not self._touched:
                return
            session, _ = self._touched.popitem()
            connection = self._connections.get(session)
            if connection is not None:
                connection.update()
                if connection.over:
                    del self._connections[session]

    def _do(
        self, session: Session, effect: Finish | Reset | Wake | Resumed | ProxyRequest | Broken
    ) -> None:
        """Do any effect but Send, which is most frequent and takes a shorter way."""
        match effect:
            case Resumed():
                self.touch(session)
            case Wake(at_ns=at_ns):
                self._loop.wake(at_ns, lambda: self._wake_up(session))
            case ProxyRequest(frame=frame, copy=copy):
                runner = proxied(next(self._numbers), session.link, self._common, errand=True)
                self._connect(runner, None)
                runner.run_errand(frame, self.now_ns(), copy=copy)
            case Broken(reason=reason):
                self._note(session, reason)
            case _:
                if (connection := self._connections.get(session)) is not None:
                    connection.close_side(effect)

    def _wake_up(self, session: Session) -> None:
        session.due(self.now_ns())
        self._settle()

    def _set_blocked(self, flows: Collection[Flow], *, blocked: bool) -> None:
        for session, connection in tuple(self._connections.items()):
            for flow in flows:
                connection.set_blocked(flow, blocked=blocked)
            self.touch(session)
            self._settle()

    def _removed(self, name: str) -> LaidRule[HeldFrame]:
        entry = self._book.remove(name)
        if entry is None:
            raise HarnessError(self._book.why_not_active(name))
        return entry

    def _note(self, session: Session, reason: str) -> None:
        link = session.link
        self._broken_count += 1
        self._broken.append(
            f"{self.now_ns() / 1e9:.3f} s: {link.source} → {link.target}, connection "
            f"{session.number}, cut: {reason}"
        )


def _allow_many_descriptors() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class _EventLoop:
    """A loop that calls the handlers of ready descriptors and of times that have come."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def watch(self, descriptor: int, mask: int, handler: Callable[[int], None]) -> None:
        """Call `handler` when something of `mask`, or an error, is there."""
        self._handlers[descriptor] = handler
        self._epoll.register(descriptor, mask)

    def change(self, descriptor: int, mask: int) -> None:
        """Watch for something else."""
        self._epoll.modify(descriptor, mask)

    def forget(self, descriptor: int) -> None:
        """Watch no more."""
        del self._handlers[descriptor]
        self._epoll.unregister(descriptor)

    def wake(self, at_ns: int, handler: Callable[[], None]) -> None:
        """Call `handler` at this time."""
        heapq.heappush(self._timers, (at_ns, next(self._numbers), handler))

    def step(self, *, timeout_s: float | None = None) -> bool:
        """Wait until something is there, or for `timeout_s`, and call whom it concerns.

        False if nothing was there, and no time had come.
        """
        ready = [
            (descriptor, mask, self._handlers[descriptor])
            for descriptor, mask in self._epoll.poll(self._patience_s(timeout_s))
        ]
        for descriptor, mask, handler in ready:
            # A handler before it may have closed it, or even given its number to another.
            if self._handlers.get(descriptor) is handler:
                handler(mask)
        happened = bool(ready)
        while self._timers and self._timers[0][0] <= self._clock.now_ns():
            happened = True
            heapq.heappop(self._timers)[2]()
        return happened

    def close(self) -> None:
        """Wait for nothing any more."""
        self._epoll.close()

    def _patience_s(self, timeout_s: float | None) -> float | None:
        if not self._timers:
            return timeout_s
        until_s = max(0.0, (self._timers[0][0] - self._clock.now_ns()) / 1e9)
        return until_s if timeout_s is None else min(until_s, timeout_s)
