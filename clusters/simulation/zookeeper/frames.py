"""Frames between a client and its server, and of requests between servers.

A connection is a stream, so its frames are numbered each way, and taken in that order whatever the
network does to them: what is late holds up all behind it, and what is dropped ends the connection,
since nothing behind it is taken in time. The end of a server is seen by the `Connect`, a request
that is never answered: it comes back UNREACHABLE.

How servers agree is specified (`quorum`), and not told by frames. What they tell each other has to
do with clients: requests that only a leader can carry out, and how far its log is committed.
Answers have the kind of their request plus one; all other frames that are no requests have the
correlation -1.
"""

from dataclasses import dataclass
from typing import ClassVar

from fencepost.clusters.node_port.zookeeper import CloseSession, WatchEvent, ZkRequest, ZkResponse
from fencepost.clusters.simulation.zookeeper.entries import Change


@dataclass(slots=True)
class SetWatches:
    """The watches that a client had on its last connection: what they missed fires at once."""

    correlation: int
    """Always -1: no node has asked for it."""
    zxid: int
    """The last one that the client has seen."""
    data: tuple[str, ...]
    exists: tuple[str, ...]
    children: tuple[str, ...]


Body = ZkRequest | SetWatches | CloseSession


@dataclass(slots=True)
class Connect:
    """Begin a connection. It has the sequence number 0."""

    kind: ClassVar[int] = 100
    correlation: int
    client: int
    """The number of the client's host, to which the server pushes."""
    connection: int
    """A number that no other connection of any client has."""
    session: int
    """0: make one."""
    timeout_ms: int
    zxid: int
    """The last one that the client has seen: no server that lacks it serves it."""


@dataclass(slots=True)
class Call:
    """A request of a session."""

    kind: ClassVar[int] = 102
    correlation: int
    connection: int
    sequence: int
    body: Body


@dataclass(slots=True)
class Reply:
    """The answer to a `Call`."""

    kind: ClassVar[int] = 103
    correlation: int
    connection: int
    sequence: int
    response: ZkResponse


@dataclass(slots=True)
class Ping:
    """A sign of life of a client that asks nothing."""

    kind: ClassVar[int] = 104
    correlation: int
    connection: int
    sequence: int


@dataclass(slots=True)
class Pong:
    """The answer to a `Ping`."""

    kind: ClassVar[int] = 105
    correlation: int
    connection: int
    sequence: int


@dataclass(slots=True)
class Connected:
    """The connection serves a session; 0: the one that was asked for has expired."""

    kind: ClassVar[int] = 106
    correlation: int
    connection: int
    sequence: int
    session: int
    timeout_ms: int
    """The time-out that the server grants."""


@dataclass(slots=True)
class Watched:
    """A watch of this connection has fired."""

    kind: ClassVar[int] = 108
    correlation: int
    connection: int
    sequence: int
    event: WatchEvent


@dataclass(slots=True)
class Commit:
    """A leader tells a follower how many entries are committed."""

    kind: ClassVar[int] = 110
    correlation: int
    epoch: int
    count: int


@dataclass(slots=True)
class Forwarded:
    """A client's request to a follower that only the leader can carry out.

    `change` None: to see that the session lives, and to make the connection the one that serves it;
    an empty one: a sync, done once the follower has applied all that the leader then had.
    """

    session: int
    connection: int
    xid: int
    """The number of the request in the connection; 0: the connection itself."""
    change: Change | None


@dataclass(slots=True)
class Forward:
    """A client's request goes from a follower to its leader.

    `stream`: a number that is new each time that the follower begins to follow.
    """

    kind: ClassVar[int] = 112
    correlation: int
    server: int
    epoch: int
    stream: int
    sequence: int
    forwarded: Forwarded


@dataclass(slots=True)
class Granted:
    """A leader has taken a forward that changes nothing when its log had `position` entries."""

    kind: ClassVar[int] = 114
    correlation: int
    epoch: int
    position: int
    connection: int
    xid: int
