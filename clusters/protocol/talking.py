"""Ask several nodes the same thing at once, each on a connection of its own, within a bound.

A client library would choose a node itself, and may choose the one that is paused. Here every node
is asked, and who has not answered within the bound is simply not in the result.
"""

import selectors
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Final, Protocol, TypeVar

from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.framing import FrameError

Address = tuple[str, int]
"""IPv4 address and port."""

Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)

_CHUNK: Final = 1 << 16


class Talk(Protocol[Answer_co]):
    """A question and its answer on one connection."""

    @property
    def outgoing(self) -> bytes:
        """The bytes of the question."""

    def feed(self, data: bytes) -> Answer_co | None:
        """Take bytes of the answer, b"" at its end; return it once it is whole.

        Raises FrameError for what cannot be one.
        """


def talk_to(
    addresses: Mapping[NodeName, Address],
    new_talk: Callable[[], Talk[Answer]],
    *,
    timeout_s: float,
    grace_s: float | None = None,
    opened: Callable[[], socket.socket] = socket.socket,
) -> dict[NodeName, Answer]:
    """Have a talk with each address, and return the answers that came, by name.

    It takes `timeout_s` at most; once one has answered, the others get `grace_s` more at most.
    `opened` opens a socket: where it belongs is where the questions come from.
    """
    answers: dict[NodeName, Answer] = {}
    deadline = time.monotonic() + timeout_s
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for name, address in addresses.items():
            connection = stack.enter_context(opened())
            connection.setblocking(False)
            connection.connect_ex(address)
            party = _Party(name, connection, new_talk())
            selector.register(connection, selectors.EVENT_WRITE, party)
        while selector.get_map() and (left_s := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left_s):
                key.data.step(selector, answers)
            if answers and grace_s is not None:
                deadline = min(deadline, time.monotonic() + grace_s)
                grace_s = None
    return answers


class _Party:
    """One connection: sends its question, then collects the answer."""

    def __init__(self, name: NodeName, connection: socket.socket, talk: Talk[Any]) -> None:
        self._name = name
        self._connection = connection
        self._talk = talk
        self._unsent = memoryview(talk.outgoing)

    def step(self, selector: selectors.BaseSelector, answers: dict[NodeName, Any]) -> None:
        """Do what the socket is ready for; unregister it when there is no more to do."""
        try:
            if self._unsent:
                self._unsent = self._unsent[self._connection.send(self._unsent) :]
                if not self._unsent:
                    selector.modify(self._connection, selectors.EVENT_READ, self)
                return
            received = self._connection.recv(_CHUNK)
            answer = self._talk.feed(received)
        except (OSError, FrameError):
            # Not up, just gone, or not a node: it has no answer, which is an answer.
            selector.unregister(self._connection)
            return
        if answer is not None:
            answers[self._name] = answer
        if answer is not None or not received:
            selector.unregister(self._connection)
