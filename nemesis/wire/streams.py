"""The bytes of a proxied connection: where its frames are, and which of them are looked at.

A chunk is passed on whole but for wanted frames: those that a rule or the tape concerns.

The harness's own probes of a link (`Wire.probe`) are no frames of the source's: the tape does not
have them, and no rule concerns them. Only a partition does.
"""

from typing import Any

from fencepost.clusters.kafka.multi_node_requests import CLIENT_ID
from fencepost.clusters.kafka_port import Role
from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.clusters.port import CLIENTS
from fencepost.clusters.protocol.framing import FrameError
from fencepost.nemesis.wire.apis import API_VERSIONS, FETCH
from fencepost.nemesis.wire.effects import Side
from fencepost.nemesis.wire.exchanges import Exchanges
from fencepost.nemesis.wire.fetches import Fetches, said_by
from fencepost.nemesis.wire.frame import Frame
from fencepost.nemesis.wire.frames import BYTES, Header, Unread, Walker
from fencepost.nemesis.wire.pipe import Pipe
from fencepost.nemesis.wire.readers import reader_of
from fencepost.nemesis.wire.rules import Direction, Link
from fencepost.nemesis.wire.served import Served
from fencepost.nemesis.wire.sessions import Common, Session


def proxied(number: int, link: Link, common: Common, *, errand: bool = False) -> Session:
    """Return the session of a proxied connection."""
    return Session(number, link, common, _Stream, errand=errand)


class _Stream:
    """`Content`: what its two walkers find in bytes."""

    def __init__(self, session: Session) -> None:
        self._session = session
        link, common = session.link, session.common
        self._book, self._link = common.book, link
        self.exchanges = Exchanges()
        meant = common.meant if link.asks(Role.CONTROLLER) else None
        self._reader = reader_of(link, self.exchanges, meant=meant)
        self._taped = self._reader.taped
        follows = link.asks(Role.BROKER) and link.source.startswith(f"{Role.BROKER}-")
        self._fetches = Fetches() if follows and not session.errand else None
        """For a follower's own connection: the broker epoch that its leader was told."""
        asks = link.source == CLIENTS and link.asks(Role.BROKER)
        self._served = Served() if asks and not session.errand else None
        """For a client's connection: its requests of data that are on the tape."""

    @property
    def hold_ns_max(self) -> int | None:
        """The time for which its source can do without an answer; None: as long as it takes."""
        return self._reader.hold_ns_max

    def walker(self, direction: Direction) -> Walker | Unread:
        """Return the walk of a direction."""
        if self._link.protocol is LinkProtocol.BYTES:
            return Unread(lambda: self._wants_bytes(direction))
        if direction is Direction.REQUEST:
            return Walker(self._reader.read_request, self._wants_request)
        return Walker(self._reader.read_response, self._wants_response)

    def walk(self, pipe: Pipe, chunk: Any, arrived_ns: int) -> None:
        """Pass bytes on, and look at the wanted frames in them; a stopped pipe carries the rest."""
        session, walker = self._session, pipe.walker
        assert isinstance(walker, Walker | Unread)
        try:
            chunk = walker.joined(memoryview(chunk))
            at, end = 0, len(chunk)
            while at < end:
                step = walker.walk(chunk, at)
                if step.passed_to > at:
                    session.pass_bytes(pipe, chunk[at : step.passed_to])
                at = step.at
                if step.frame is not None:
                    self._meet(pipe, *step.frame, arrived_ns)
                if self.exchanges.made:
                    session.send_made()
                if pipe.discarding:
                    return
                if pipe.stopped:
                    if at < end:
                        pipe.carry_on(bytes(chunk[at:]), arrived_ns=arrived_ns)
                    return
        except FrameError as error:
            session.give_up(f"{pipe.direction}: {error}")

    def kept(self, chunk: Any) -> bytes:
        """Return a copy: the buffer is used again."""
        return bytes(chunk)

    def is_gone(self, side: Side) -> bool:  # noqa: ARG002
        """Return False: a socket's end is an event."""
        return False

    def _meet(self, pipe: Pipe, header: Header, data: bytes, arrived_ns: int) -> None:
        book, session = self._book, self._session
        requested = pipe.direction is Direction.REQUEST
        taped = header.api_key in self._taped or self._serves(header, requested=requested)
        fetches = self._fetches if header.api_key == FETCH and requested else None
        if fetches is not None:
            said = said_by(header, data)
            taped = fetches.tells(*said)
            if not (taped or (book.in_use and book.wants(self._link, pipe.direction, header))):
                # Fast path: most frames match no rule and are not recorded.
                session.pass_bytes(pipe, data)
                return
        frame = Frame(
            connection=session.number,
            link=self._link,
            direction=pipe.direction,
            header=header,
            data=data,
            time_ns=arrived_ns,
            names=session.common.names,
        )
        if session.meet(pipe, frame, taped=taped) and taped and fetches is not None:
            fetches.told(*said)

    def _serves(self, header: Header, *, requested: bool) -> bool:
        served = self._served
        if served is None or not header.answered:
            return False
        if not requested:
            return served.takes_response(header.correlation_id)
        return served.takes_request(header.api_key, header.correlation_id, self._session.now_ns)

    # Asked by walkers.

    def _wants_bytes(self, direction: Direction) -> bool:
        return self._book.in_use and self._book.wants(self._link, direction, BYTES)

    def _wants_request(self, header: Header) -> bool:
        if _is_probe(header):
            return False
        if header.api_key in self._taped or (self._fetches and header.api_key == FETCH):
            return True
        served, now_ns = self._served, self._session.now_ns
        if served and header.answered and served.wants_request(header.api_key, now_ns):
            return True
        return self._book.in_use and self._book.wants(self._link, Direction.REQUEST, header)

    def _wants_response(self, header: Header) -> bool:
        if _is_probe(header):
            return False
        if header.api_key in self._taped or self._session.errand:
            return True
        if self._served and self._served.wants_response(header.correlation_id):
            return True
        return self._book.in_use and self._book.wants(self._link, Direction.RESPONSE, header)


def _is_probe(header: Header) -> bool:
    return header.api_key == API_VERSIONS and header.client_id == CLIENT_ID
