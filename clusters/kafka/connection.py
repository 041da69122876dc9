"""A connection to one node that is kept, and asks one thing at a time, each within a bound.

What a client library would add (choosing the node, trying again) is left out on purpose: who asked
which node, and how often, is what the records are about.
"""

import socket
import time
from typing import Any, Final, Self, TypeVar

from fencepost.clusters.protocol.framing import FrameError, RoundTrip
from fencepost.clusters.protocol.talking import Address

Response = TypeVar("Response")

_CHUNK: Final = 1 << 16


class NoAnswerError(Exception):
    """A request without an answer."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason: Final = reason
        """The reason in Kafka's words: "NETWORK_EXCEPTION" or "REQUEST_TIMED_OUT"."""
        self.sent: Final = sent
        """True if any byte of it may have reached the node: otherwise the node was never asked."""


class NodeConnection:
    """A context manager. Connects when first asked, and again after whatever went wrong."""

    def __init__(self, address: Address, *, client_id: str) -> None:
        self._address = address
        self._client_id = client_id
        self._socket: socket.socket | None = None
        self._asked_count = 0

    def ask(self, request: Any, response_type: type[Response], *, timeout_s: float) -> Response:
        """Send a kio request and return its response. NoAnswerError if none came in time.

        An answer that comes later is never taken for that of another request: the connection is
        given up with the request.
        """
        deadline = time.monotonic() + timeout_s
        self._asked_count += 1
        exchange = RoundTrip(
            request, response_type, client_id=self._client_id, correlation_id=self._asked_count
        )
        sent = False
        try:
            connection = self._connected(deadline)
            sent = True
            connection.settimeout(_left_s(deadline))
            connection.sendall(exchange.outgoing)
            return _answer(connection, exchange, deadline)
        except TimeoutError:
            self.close()
            raise NoAnswerError("REQUEST_TIMED_OUT", sent=sent) from None
        except (OSError, FrameError) as error:
            self.close()
            raise NoAnswerError("NETWORK_EXCEPTION", sent=sent) from error

    def close(self) -> None:
        """Close it; the next request connects anew. Idempotent."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connected(self, deadline: float) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=_left_s(deadline))
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket


def _answer(connection: socket.socket, exchange: RoundTrip[Response], deadline: float) -> Response:
    while True:
        connection.settimeout(_left_s(deadline))
        received = connection.recv(_CHUNK)
        if not received:
            raise ConnectionResetError("closed by the node")
        if (answer := exchange.feed(received)) is not None:
            return answer


def _left_s(deadline: float) -> float:
    """Return the time left, never 0: a socket takes 0 for "do not wait"."""
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s
