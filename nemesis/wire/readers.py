"""Readers of connections, by protocol: where the messages begin and end, and what heads them."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, Protocol

from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.nemesis.wire.exchanges import Exchanges
from fencepost.nemesis.wire.frames import Header, read_correlation_id, read_request_header
from fencepost.nemesis.wire.rules import Link
from fencepost.nemesis.wire.tape import taped_apis
from fencepost.nemesis.wire.zookeeper.ports import ClientPort, ElectionPort, QuorumPort


class FrameReader(Protocol):
    """The reader of one connection: what its walkers ask, and what its session wants to know."""

    @property
    def taped(self) -> AbstractSet[int]:
        """The keys of the messages that go on the tape now."""

    @property
    def hold_ns_max(self) -> int | None:
        """The time for which a held message ends no session; None: there is no such bound."""

    def read_request(self, chunk: memoryview, at: int) -> tuple[int, Header] | None:
        """Return a message's whole size and header; None until more is there. FrameError."""

    def read_response(self, chunk: memoryview, at: int) -> tuple[int, Header] | None:
        """Return the same of the other direction."""


class _Kafka:
    """The reader of Kafka's requests and of the responses to them."""

    hold_ns_max: Final = None

    def __init__(
        self, link: Link, exchanges: Exchanges, meant: Callable[[Header], Header] | None
    ) -> None:
        self.taped: Final = taped_apis(link)
        self._exchanges = exchanges
        self._meant = meant

    def read_request(self, chunk: memoryview, at: int) -> tuple[int, Header] | None:
        """Read a request's header, and expect its response."""
        found = read_request_header(chunk, at)
        if found is None:
            return None
        if self._meant is not None:
            found = (found[0], self._meant(found[1]))
        self._exchanges.ask(found[1])
        return found

    def read_response(self, chunk: memoryview, at: int) -> tuple[int, Header] | None:
        """Read a response's header, and return that of its request."""
        found = read_correlation_id(chunk, at)
        return None if found is None else (found[0], self._exchanges.answer(found[1]))


_PORTS: Final[Mapping[LinkProtocol, Callable[[Link], FrameReader]]] = {
    LinkProtocol.ZOOKEEPER_CLIENT: ClientPort,
    LinkProtocol.ZOOKEEPER_QUORUM: QuorumPort,
    LinkProtocol.ZOOKEEPER_ELECTION: ElectionPort,
}
"""The readers of ZooKeeper's ports."""


def reader_of(
    link: Link, exchanges: Exchanges, *, meant: Callable[[Header], Header] | None
) -> FrameReader:
    """Return the reader of a new connection on this link.

    Of Kafka's, `exchanges` keeps what was asked, and `meant` translates the requests of a dialect.
    """
    port = _PORTS.get(link.protocol)
    return _Kafka(link, exchanges, meant) if port is None else port(link)
