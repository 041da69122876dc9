"""The connections of a simulated cluster that rules act on.

A link of the simulated network carries all that one host asks another. Between processes each kind
of traffic has connections of its own, and one that is given up is followed by another (`traffic`).
Which message is behind which matters only where something waits. So a connection is told apart from
the moment a rule acts on it until nothing waits in it; until then all requests that are open in its
traffic count as its own.

A node that repeats a request which has no answer yet has given its connection up, and a client of
the cluster likewise; but a producer has many requests open at once, and says when it connects anew.
What is held in a connection that was given up stays there, as bytes on their way do.
"""

from collections.abc import Iterator
from typing import Any, Final

from fencepost.clusters.reference.codec.api import Traffic
from fencepost.clusters.reference.nodes.messages.data import InitProducerIdRequest, ProduceRequest
from fencepost.clusters.simulation.host import Channel
from fencepost.clusters.simulation.network import open_key
from fencepost.nemesis.simulated.data_frames import DataFrames
from fencepost.nemesis.simulated.frames import API_NAMES, TRAFFIC, MessageFrame, header_of
from fencepost.nemesis.wire.effects import Side
from fencepost.nemesis.wire.exchanges import Exchanges
from fencepost.nemesis.wire.frames import Header
from fencepost.nemesis.wire.pipe import HeldFrame, Pipe
from fencepost.nemesis.wire.rulebook import Judgement
from fencepost.nemesis.wire.rules import Direction
from fencepost.nemesis.wire.rules import Link as WireLink
from fencepost.nemesis.wire.sessions import Common, Session

_OF_CLIENT: Final = "client"
"""The traffic of clients: one connection for all that they ask a broker."""
_MANY: Final = frozenset({ProduceRequest.kind, InitProducerIdRequest.kind})
"""The requests of which a client has several open at a time."""
_KEY_BITS: Final = 16
Sent = tuple[MessageFrame, bool, DataFrames | None]
"""A frame, whether the tape wants it, and what is to be told if it is passed on untouched."""


class _Whole:
    """The walk over messages, which come whole."""

    attentive = False
    inside: Final = False

    def rest(self) -> bytes:
        """Return nothing."""
        return b""


class Messages:
    """`Content`: the messages of one connection, and its requests that have no answer yet."""

    hold_ns_max: Final = None

    def __init__(self, session: Session, link: Channel) -> None:
        self._session = session
        self.link: Final = link
        """The link of its requests."""
        self._hosts = {Side.NEAR: link.sender, Side.FAR: link.receiver}
        self._incarnations = {side: host.incarnation for side, host in self._hosts.items()}
        self.exchanges = Exchanges(_number_of)
        self.unanswered: dict[int, Any] = {}
        """Requests whose answers were not passed on, by key."""
        self._returned: set[int] = set()
        """The keys of those whose answers have come, and may wait here."""

    def ask(self, message: Any) -> None:
        """Take note of a request that goes over this connection."""
        self.unanswered[open_key(message)] = message
        self.exchanges.ask(header_of(message))

    def begin(self, frame: MessageFrame, judgement: Judgement[HeldFrame], *, taped: bool) -> None:
        """Do to the frame for which this connection is told apart what was judged."""
        session = self._session
        session.now_ns = frame.time_ns
        pipe = session.requests if frame.request is None else session.responses
        self._come(frame)
        session.obey(pipe, frame, judgement, taped=taped)
        session.send_made()

    def repeats(self, kind: int) -> bool:
        """Return whether a request of this kind has no answer yet."""
        return any(one.kind == kind for one in self.unanswered.values())

    def walker(self, direction: Direction) -> _Whole:  # noqa: ARG002
        """Return the walk of a direction."""
        return _Whole()

    def walk(self, pipe: Pipe, chunk: Sent, arrived_ns: int) -> None:  # noqa: ARG002
        """Look at a frame."""
        frame, taped, data = chunk
        self._come(frame)
        if self._session.meet(pipe, frame, taped=taped) and taped and data is not None:
            data.told(frame.message)
        if self.exchanges.made:
            self._session.send_made()

    def _come(self, frame: MessageFrame) -> None:
        if frame.request is not None:
            self.exchanges.answer(_number_of(frame.header))

    def kept(self, chunk: Sent) -> Sent:
        """Return it: no host changes a message."""
        return chunk

    def passed_back(self, request: Any) -> None:
        """Take note that the answer to a request was passed on."""
        self.unanswered.pop(open_key(request), None)

    def broken_off(self) -> list[Any]:
        """Return the requests that will not be answered any more, and forget them.

        Those whose receiver has ended were given back by the network.
        """
        lost = [
            one
            for key, one in self.unanswered.items()
            if key in self.link.open or key in self._returned
        ]
        self.unanswered.clear()
        return lost

    def returned(self, request: Any) -> None:
        """Take note that an answer to a request has come, which may wait here."""
        self._returned.add(open_key(request))

    def is_gone(self, side: Side) -> bool:
        """Return whether the incarnation has ended that was connected."""
        return self._hosts[side].incarnation != self._incarnations[side]

    def sent_to(self, side: Side) -> int:
        """Return the incarnation to which messages go."""
        return self._incarnations[side]


class SimulatedConnections:
    """The connections in which something waits, and those that led to them."""

    def __init__(self) -> None:
        self._present: dict[tuple[int, str], tuple[Session, Messages]] = {}
        """By link and traffic: the connection over which a next request goes."""
        self._alive: dict[Session, Messages] = {}

    def concern(self, link: Channel) -> bool:
        """Return whether messages of this link may be behind others."""
        return bool(self._alive) and any(
            one.link.connection == link.connection for one in self._alive.values()
        )

    def of_request(self, link: Channel, message: Any, *, of_client: bool) -> Session | None:
        """Return the connection over which a request goes; None: one in which nothing waits."""
        place = _place(link, message.kind, of_client=of_client)
        session, messages = self._present.get(place, _NONE)
        if session is None or messages is None:
            return None
        if messages.unanswered.get(open_key(message)) is message:
            return session  # It was open already, and waited where its link was blocked.
        pipelined = message.kind in _MANY if of_client else place[1] == Traffic.FORWARDED
        if not pipelined and messages.repeats(message.kind):
            del self._present[place]
            return None
        if message.correlation >= 0:
            messages.ask(message)
        return session

    def of_answer(self, request: Any) -> Session | None:
        """Return the connection over which a request went; None: one in which nothing waits."""
        key = open_key(request)
        for session, messages in self._alive.items():
            if messages.unanswered.get(key) is request:
                messages.returned(request)
                return session
        return None

    def begun(
        self, link: Channel, party: WireLink, common: Common, request: Any, *, of_client: bool
    ) -> Messages:
        """Begin to tell a connection apart: that of this request, which is open or answered now."""
        made: list[Messages] = []

        def content(session: Session) -> Messages:
            made.append(Messages(session, link))
            return made[0]

        session = Session(link.connection, party, common, content)
        (messages,) = made
        place = _place(link, request.kind, of_client=of_client)
        if request.correlation >= 0 and open_key(request) not in link.open:
            messages.ask(request)
            messages.returned(request)
        for one in link.open.values():
            if one.kind in API_NAMES and _place(link, one.kind, of_client=of_client) == place:
                messages.ask(one)
        self._present[place] = session, messages
        self._alive[session] = messages
        return messages

    def leave(self, link: Channel) -> None:
        """Take note that the next request of a client goes over another connection."""
        self._present.pop((link.connection, _OF_CLIENT), None)

    def end(self, session: Session) -> None:
        """Take note that a connection is closed: the next request goes over another one."""
        for place, (one, _) in tuple(self._present.items()):
            if one is session:
                del self._present[place]

    def ended(self) -> Iterator[Messages]:
        """Forget the connections in which nothing waits any more, and yield them."""
        for session in [one for one in self._alive if one.is_idle]:
            self.end(session)
            yield self._alive.pop(session)

    def content(self, session: Session) -> Messages:
        """Return the messages of a connection that is told apart."""
        return self._alive[session]


_NONE: Final = None, None


def _place(link: Channel, kind: int, *, of_client: bool) -> tuple[int, str]:
    return link.connection, _OF_CLIENT if of_client else TRAFFIC.get(kind, Traffic.FORWARDED)


def _number_of(header: Header) -> int:
    return header.correlation_id << _KEY_BITS | header.api_key
