"""A node's connections to other nodes: one for each node and each kind of traffic (`traffic`).

A connection for AlterPartition begins with ApiVersions, and what is proposed over it is in a
version that the controller offers (KIP-903). So does one by which a leader is fetched from; it ends
when that leader offers the APIs of another metadata.version, and the next one begins with what it
offers then. All else that nodes say to each other is gated by the metadata.version alone: where it
is in force, every registered broker speaks it. A connection for fetches has one session (KIP-227).

A connection answers in order. One that breaks, or has not answered for too long, returns what was
asked over it.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from fencepost.clusters.protocol.entities import Unreadable
from fencepost.clusters.protocol.framing import FrameBuffer, FrameError
from fencepost.clusters.reference.codec.api import Traffic
from fencepost.clusters.reference.codec.codec import Codec, correlation_of
from fencepost.clusters.reference.codec.fetch_sessions import FollowerSession

_CONNECT_S_MAX: Final = 10.0
_VERSIONS: Final = 0
"""The correlation id of ApiVersions, before all others of a connection."""
_UNSENT: Final = -1
"""The version of what waits for the answer to that."""

Address = tuple[str, int]


@dataclass(slots=True)
class _Asked:
    request: Any
    version: int
    due_ns: int
    """The time when it has waited too long for its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingPort:
    """The services that connections need of their node's process."""

    codec: Codec
    client_id: Callable[[str], str]
    """The name that the node gives itself in this traffic."""
    address_of: Callable[[int, str], Awaitable[Address | None]]
    """The address of another node for this traffic; None: it is not known."""
    answered: Callable[[int, Any], None]
    """(node, response): hand it to the node."""
    unreachable: Callable[[int, Any], None]
    """(node, request): it came back."""
    now_ns: Callable[[], int]
    timeout_ns: Callable[[int], int]
    """The longest time that a request of this kind may wait for its answer."""
    broken: Callable[[str], None]
    """Take note of what a node said that cannot be read."""


class OutgoingConnections:
    """The connections that this node dials."""

    def __init__(self, surroundings: OutgoingPort) -> None:
        self._surroundings = surroundings
        self._links: dict[tuple[int, str], _Link] = {}

    def send(self, node: int, request: Any) -> None:
        """Ask another node; its answer, or the request itself, comes back later."""
        traffic = self._surroundings.codec.traffic_of(request.kind)
        link = self._links.get((node, traffic))
        if link is not None and traffic != Traffic.FORWARDED and link.waits_for(request.kind):
            link.give_up()
            link = None
        if link is None or link.is_over:
            link = self._links[node, traffic] = _Link(node, traffic, self._surroundings)
        link.send(request)

    def look(self) -> None:
        """Give up the connections that have not answered in time."""
        now = self._surroundings.now_ns()
        for key, link in list(self._links.items()):
            if link.is_over:
                del self._links[key]
            elif link.is_late(now):
                link.fail()

    def close(self) -> None:
        """Give up all of them; what was sent is still sent."""
        for link in self._links.values():
            link.give_up()
        self._links.clear()


class _Link(asyncio.Protocol):
    """A connection, from its first request to its end."""

    def __init__(self, node: int, traffic: str, surroundings: OutgoingPort) -> None:
        self._node = node
        self._traffic = traffic
        self._surroundings = surroundings
        self._correlations = itertools.count(1)
        self._asked: dict[int, _Asked] = {}
        self._unsent: list[bytes] = []
        self._incoming = FrameBuffer()
        self._transport: asyncio.Transport | None = None
        self._negotiated = surroundings.codec.negotiated(traffic)
        self._negotiates = self._negotiated is not None
        """True if what the node offers is not known yet, and has to be."""
        self._highest: int | None = None
        self._session = FollowerSession() if traffic == Traffic.REPLICATION else None
        self.is_over = False
        self._task = asyncio.get_running_loop().create_task(self._connect())

    def send(self, request: Any) -> None:
        """Ask, as soon as there is a connection, and it is known what may be asked."""
        around = self._surroundings
        correlation_id = next(self._correlations)
        due_ns = around.now_ns() + around.timeout_ns(request.kind)
        self._asked[correlation_id] = _Asked(request, _UNSENT, due_ns)
        if not self._negotiates:
            self._write(correlation_id)

    def waits_for(self, kind: int) -> bool:
        """Return whether a request of this kind has no answer yet."""
        return any(one.request.kind == kind for one in self._asked.values())

    def is_late(self, now: int) -> bool:
        """Return whether an answer has been waited for too long."""
        return any(one.due_ns <= now for one in self._asked.values())

    def give_up(self) -> None:
        """End it without a word to the node; what is on its way stays there."""
        self._asked.clear()
        self._end()

    def fail(self) -> None:
        """End it, and give back what has no answer."""
        asked, self._asked = self._asked, {}
        self._end()
        for one in asked.values():
            self._surroundings.unreachable(self._node, one.request)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send what has waited for it."""
        assert isinstance(transport, asyncio.Transport)
        if self.is_over and not self._unsent:
            transport.close()
            return
        self._transport = transport
        if self._negotiates:
            around = self._surroundings
            client_id = around.client_id(self._traffic)
            transport.write(
                around.codec.asking_versions(correlation_id=_VERSIONS, client_id=client_id)
            )
        transport.write(b"".join(self._unsent))
        self._unsent.clear()
        if self.is_over:
            transport.close()

    def data_received(self, data_: bytes) -> None:
        """Hand whole answers to the node."""
        if self.is_over:
            return
        self._incoming.feed(data_)
        try:
            while not self.is_over and (frame := self._incoming.next_frame()) is not None:
                self._answered(frame)
        except (FrameError, Unreadable) as error:
            self._surroundings.broken(f"an answer of node {self._node}: {error}")
            self.fail()

    def connection_lost(self, _: Exception | None) -> None:
        """The other side ended it, or the network did."""
        if not self.is_over:
            self.fail()

    def _write(self, correlation_id: int) -> None:
        asked, around = self._asked[correlation_id], self._surroundings
        sent = around.codec.outgoing(
            asked.request,
            correlation_id=correlation_id,
            client_id=around.client_id(self._traffic),
            highest=self._highest,
            session=self._session,
        )
        asked.version = sent.version
        if self._transport is None:
            self._unsent.append(sent.frame)
        else:
            self._transport.write(sent.frame)

    def _answered(self, frame: bytes) -> None:
        if self._negotiates:
            self._offered(frame)
            return
        asked = self._asked.pop(correlation_of(frame), None)
        if asked is None:
            raise Unreadable("response with an unknown correlation id")
        around = self._surroundings
        response = around.codec.answered(
            frame,
            asked.request,
            version=asked.version,
            node=self._node,
            session=self._session,
        )
        around.answered(self._node, response)

    def _offered(self, frame: bytes) -> None:
        """The node says what it offers: what has waited for that is asked."""
        assert self._negotiated is not None
        self._highest = self._surroundings.codec.highest_offered(frame, self._negotiated)
        self._negotiates = False
        for correlation_id in list(self._asked):
            self._write(correlation_id)

    def _end(self) -> None:
        self.is_over = True
        if self._transport is not None:
            self._transport.close()

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_CONNECT_S_MAX):
                address = await self._surroundings.address_of(self._node, self._traffic)
                if address is None:
                    raise ConnectionRefusedError(f"node {self._node} is not known")
                await loop.create_connection(lambda: self, *address)
        except OSError:
            self.fail()
