"""Ask several brokers the same thing at once, each on a connection of its own, within a bound.

A client library would choose a broker itself, and may choose the one that is paused. Here every
broker is asked, and who has not answered within the bound is simply not in the result.
"""

import selectors
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Final, TypeVar

from kio.schema.api_versions.v0.request import ApiVersionsRequest
from kio.schema.api_versions.v0.response import ApiVersionsResponse

from clusters.port import NodeName
from clusters.protocol.framing import Exchange, FrameError

__all__ = ["CLIENT_ID", "Address", "ask", "is_answered"]

Address = tuple[str, int]
"""IPv4 address and port."""

Response = TypeVar("Response")

CLIENT_ID: Final = "fencepost"
"""The name by which a node, and a proxy before it, recognises these requests."""
_CHUNK: Final = 1 << 16


def ask(
    addresses: Mapping[NodeName, Address],
    request: Any,
    response_type: type[Response],
    *,
    timeout_s: float,
    grace_s: float | None = None,
    opened: Callable[[], socket.socket] = socket.socket,
) -> dict[NodeName, Response]:
    """Send a kio request to each address, and return the responses that came, by name.

    It takes `timeout_s` at most; once one has answered, the others get `grace_s` more at most.
    `opened` opens a socket: where it belongs is where the questions come from.
    """
    answers: dict[NodeName, Response] = {}
    deadline = time.monotonic() + timeout_s
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for name, address in addresses.items():
            connection = stack.enter_context(opened())
            connection.setblocking(False)
            connection.connect_ex(address)
            exchange = Exchange(request, response_type, client_id=CLIENT_ID)
            talk = _Talk(name, connection, exchange)
            selector.register(connection, selectors.EVENT_WRITE, talk)
        while selector.get_map() and (left_s := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left_s):
                key.data.step(selector, answers)
            if answers and grace_s is not None:
                deadline = min(deadline, time.monotonic() + grace_s)
                grace_s = None
    return answers


def is_answered(
    node: NodeName,
    address: Address,
    *,
    timeout_s: float,
    opened: Callable[[], socket.socket] = socket.socket,
) -> bool:
    """Check whether an ApiVersions request to this address gets its answer in time."""
    request = ApiVersionsRequest()
    found = ask({node: address}, request, ApiVersionsResponse, timeout_s=timeout_s, opened=opened)
    return bool(found)


class _Talk:
    """One connection: sends its request, then collects the answer."""

    def __init__(self, name: NodeName, connection: socket.socket, exchange: Exchange[Any]) -> None:
        self._name = name
        self._connection = connection
        self._exchange = exchange
        self._unsent = memoryview(exchange.outgoing)

    def step(self, selector: selectors.BaseSelector, answers: dict[NodeName, Any]) -> None:
        """Do what the socket is ready for; unregister it when there is no more to do."""
        try:
            if self._unsent:
                self._unsent = self._unsent[self._connection.send(self._unsent) :]
                if not self._unsent:
                    selector.modify(self._connection, selectors.EVENT_READ, self)
                return
            received = self._connection.recv(_CHUNK)
            answer = self._exchange.feed(received)
        except (OSError, FrameError):
            # Not up, just gone, or not a broker: it has no answer, which is an answer.
            selector.unregister(self._connection)
            return
        if answer is not None:
            answers[self._name] = answer
        if answer is not None or not received:
            selector.unregister(self._connection)
