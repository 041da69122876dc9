"""A proxy in this very thread, with scripted peers on loopback sockets."""

import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from wire_doubles import BROKER, CONTROLLER, Notes

from fencepost.clusters.port import NodeName
from fencepost.history.clock import Clock
from fencepost.nemesis.wire.rules import Action, Link, Match, Rule
from fencepost.nemesis.wire.server import Proxy

_PATIENCE_S = 60.0
_STEPS_MAX = 1000
OTHER = NodeName("broker-2")


class Peer:
    """A plain socket that is read only when it is asked to."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.socket.setblocking(False)
        self.received = bytearray()
        self.ending: str | None = None

    def look(self) -> None:
        """Take what has come."""
        while self.ending is None:
            try:
                data = self.socket.recv(1 << 16)
            except BlockingIOError:
                return
            except ConnectionError:
                self.ending = "reset"
                return
            self.received += data
            if not data:
                self.ending = "end"

    def kill(self) -> None:
        """As if its process had died with unread bytes: RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()


class Stage:
    """The proxy on two links to one target, and who talks through it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.listener.setblocking(False)
        self.links = self.links_at(self.listener.getsockname()[1])
        self.notes = Notes()
        self.proxy = Proxy(self.links, journal=self.notes, clock=Clock.start())
        stack.callback(self.proxy.close)

    @staticmethod
    def links_at(port: int) -> list[Link]:
        return [
            Link(source=BROKER, target=CONTROLLER, address="127.77.1.1", port=port),
            Link(source=OTHER, target=CONTROLLER, address="127.77.2.1", port=port),
        ]

    def dial(self, link: int = 0) -> Peer:
        one = self.links[link]
        peer = Peer(socket.create_connection((one.address, one.port)))
        self._stack.callback(peer.socket.close)
        return peer

    def accept(self) -> Peer:
        """The proxy's connection to the target."""
        found: list[Peer] = []
        self.until(lambda: bool(found) or self._accept(found))
        return found[0]

    def is_dialled(self) -> bool:
        """Whether the proxy has connected to the target since the last `accept`."""
        return bool(select.select([self.listener], [], [], 0)[0])

    def _accept(self, found: list[Peer]) -> bool:
        if self.is_dialled():
            found.append(Peer(self.listener.accept()[0]))
            self._stack.callback(found[0].socket.close)
        return bool(found)

    def pair(self, link: int = 0) -> tuple[Peer, Peer]:
        """A connection: its dialler's end and its target's."""
        near = self.dial(link)
        return near, self.accept()

    def lay(self, action: Action, match: Match, *, name: str = "rule") -> None:
        self.proxy.add(Rule(name=name, action=action, match=match))

    def until(self, claim: Callable[[], bool]) -> None:
        """Let the proxy run until the claim is true."""
        deadline = time.monotonic() + _PATIENCE_S
        while not claim():
            assert time.monotonic() < deadline, "it never came true"
            self.proxy.step(timeout_s=0.01)

    def gets(self, peer: Peer, data: bytes) -> None:
        """Let the proxy run until the peer has received exactly this."""

        def has_it() -> bool:
            peer.look()
            return len(peer.received) >= len(data)

        self.until(has_it)
        assert peer.received == data

    def ends(self, peer: Peer) -> str:
        """Let the proxy run until the peer's connection has ended: "end" or "reset"."""

        def has_ended() -> bool:
            peer.look()
            return peer.ending is not None

        self.until(has_ended)
        assert peer.ending is not None
        return peer.ending

    def settle(self) -> None:
        """Let the proxy do all that there is to do: then it rests, whatever it holds."""
        for _ in range(_STEPS_MAX):
            if not self.proxy.step(timeout_s=0.005):
                return
        raise AssertionError("it is never done")

    def held(self, name: str = "rule") -> int:
        return self.proxy.status().rules[name].held_now


@contextmanager
def staged() -> Iterator[Stage]:
    with ExitStack() as stack:
        yield Stage(stack)
