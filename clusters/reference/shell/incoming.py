"""The connections by which others ask a node: their requests, and the answers in order.

Clients take the answers of a connection to be in the order of its requests, whatever their
correlation ids: an answer waits for those before it. Requests that come meanwhile are handed on at
once, within a bound.
"""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from fencepost.clusters.protocol.entities import Unreadable
from fencepost.clusters.protocol.framing import FrameBuffer, FrameError
from fencepost.clusters.reference.codec.api import ListenerType
from fencepost.clusters.reference.codec.codec import Codec, Incoming

_OPEN_MAX: Final = 1000
"""Requests of one connection without an answer; then it is not read on."""


@dataclass(slots=True, kw_only=True)
class Connections:
    """The connections that others dialled, by the number that stands for each as a source.

    `asked`: (door, source, request) to the node; `broken`: takes note of what cannot be read.
    """

    codec: Codec
    asked: Callable[[ListenerType, int, Any], None]
    broken: Callable[[str], None]
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(-1, -1))
    _open: dict[int, "_Connection"] = field(default_factory=dict)

    def at(self, door: ListenerType) -> Callable[[], asyncio.Protocol]:
        """Return a function that makes a connection at this door."""
        return lambda: _Connection(self, door)

    def answer(self, source: int, response: Any) -> None:
        """A response of the node; to who is gone, it is dropped."""
        connection = self._open.get(source)
        if connection is not None:
            connection.answer(response)

    def close(self, source: int) -> None:
        """End a connection whose request is not answered."""
        connection = self._open.get(source)
        if connection is not None:
            connection.end()

    def close_all(self) -> None:
        """End all of them; what was answered is still sent."""
        for connection in list(self._open.values()):
            connection.end()


class _Connection(asyncio.Protocol):
    """A dialled connection, from its begin to its end."""

    def __init__(self, connections: Connections, door: ListenerType) -> None:
        self._connections = connections
        self._door = door
        self._source = next(connections._numbers)  # noqa: SLF001 -- two halves of one thing
        self._incoming = FrameBuffer()
        self._correlations = itertools.count(1)
        self._open: dict[int, Incoming] = {}
        """Without an answer, by correlation, in their order."""
        self._ready: dict[int, bytes] = {}
        """Answers that wait for those before them."""
        self._transport: asyncio.Transport | None = None
        self._is_full = False
        self._is_slow = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note that the connection begins."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections._open[self._source] = self  # noqa: SLF001

    def data_received(self, data: bytes) -> None:
        """Hand on whole requests."""
        self._incoming.feed(data)
        try:
            while self._transport is not None:
                frame = self._incoming.next_frame()
                if frame is None:
                    break
                self._ask(frame)
        except (FrameError, Unreadable) as error:
            self._connections.broken(f"a request: {error}")
            self.end()

    def connection_lost(self, _: Exception | None) -> None:
        """Note that the asker is gone; what the node still answers goes nowhere."""
        self._transport = None
        self._connections._open.pop(self._source, None)  # noqa: SLF001

    def pause_writing(self) -> None:
        """Stop reading from an asker that does not read its answers."""
        self._is_slow = True
        self._read_or_not()

    def resume_writing(self) -> None:
        """Read again from an asker that reads its answers again."""
        self._is_slow = False
        self._read_or_not()

    def answer(self, response: Any) -> None:
        """Send an answer, or keep it until its turn."""
        asked = self._open.get(response.correlation)
        if asked is not None:
            self._ready[response.correlation] = asked.answer(response)
            self._flush()

    def end(self) -> None:
        """Close it, once what was answered is sent."""
        if self._transport is not None:
            transport, self._transport = self._transport, None
            self._connections._open.pop(self._source, None)  # noqa: SLF001
            transport.close()

    def _ask(self, frame: bytes) -> None:
        correlation = next(self._correlations)
        asked = self._connections.codec.incoming(self._door, frame, correlation=correlation)
        if asked.expects_answer:
            self._open[correlation] = asked
        if asked.message is None:
            self._ready[correlation] = asked.answer(None)
            self._flush()
        else:
            self._connections.asked(self._door, self._source, asked.message)
        self._read_or_not()

    def _flush(self) -> None:
        """Send the answers whose turn it is."""
        frames = []
        while self._open and (correlation := next(iter(self._open))) in self._ready:
            frames.append(self._ready.pop(correlation))
            del self._open[correlation]
        if frames and self._transport is not None:
            self._transport.write(b"".join(frames))
            self._read_or_not()

    def _read_or_not(self) -> None:
        full = self._is_slow or len(self._open) >= _OPEN_MAX
        if full is self._is_full or self._transport is None:
            return
        self._is_full = full
        if full:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
