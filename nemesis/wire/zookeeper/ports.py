"""Connections to ZooKeeper's three ports, sans-IO: where a message ends, and what heads it.

*The client port:* a session's requests, their answers, its events. A frame is its length (4 bytes)
and a jute record. The first one each way makes the session; then requests begin with their number
(xid) and type, answers with the xid, a zxid and an error. Some xids are fixed: -1 is an event of a
watch, -2 a ping, -4 and -8 are what a client says once more when it comes back. A connection that
begins with a four-letter word has no frames. A header's `client_id` is the session as ZooKeeper's
logs write it: "0x100000a2b3c0001".

Pings share the connection. A client that hears nothing for two thirds of its session's time-out
gives its server up, and it may have been idle for one third before the ping that is not answered:
so one third is the longest wait that surely ends no session (`ClientCnxn`).

*The election port:* two servers that elect. The one that dials says who it is, then both vote. The
greeting is the protocol's version (8 bytes, negative), the server's id (8), and its addresses
behind their length; in old releases the id alone. A vote is behind its length. Source:
`QuorumCnxManager.InitialMessage`, `FastLeaderElection`.

*The quorum port:* a follower's connection to its leader, packets without a length, read as a
stream. A `QuorumPacket` is its type (4 bytes), a zxid (8), a buffer, and a vector of pairs of
strings, so that it must be there whole before its size is known. Behind SNAP the leader sends its
tree as it lies in memory, without a length either. It ends with the path "/" and the word
"BenWasHere"; of its nodes nothing is read. (Data of a znode that held these very 19 bytes would be
taken for the end.)

A follower is brought up to date in packets that all matter: until UPTODATE everything is on the
tape. Afterwards each write takes a PROPOSAL, an ACK and a COMMIT, which are there if a rule asks.
"""

import struct
from collections.abc import Set as AbstractSet
from typing import Final

from fencepost.clusters.port import CLIENTS
from fencepost.clusters.protocol.framing import FRAME_BYTES_MAX, FrameError
from fencepost.clusters.protocol.zookeeper_records import head_of
from fencepost.nemesis.wire.exchanges import Exchanges
from fencepost.nemesis.wire.frames import BYTES, Header
from fencepost.nemesis.wire.rules import Link
from fencepost.nemesis.wire.zookeeper.messages import CLIENT, ELECTION, QUORUM, type_of

_LENGTH: Final = struct.Struct(">i")
_REQUEST: Final = head_of("RequestHeader", framed=True)
_ANSWER: Final = head_of("ReplyHeader", framed=True)
_CONNECT: Final = head_of("ConnectRequest", framed=True)
_CONNECTED: Final = head_of("ConnectResponse", framed=True)
_EVENT_XID: Final = -1
_TYPE_MAX: Final = 400
"""Far above all types that exist."""
_CREATE_SESSION: Final = CLIENT["createSession"]
_BASE: Final = _CREATE_SESSION - type_of(_CREATE_SESSION)
_NS: Final = 1_000_000
_SESSIONS: Final = frozenset((_CREATE_SESSION, CLIENT["closeSession"]))
_OF_NODES: Final = frozenset(CLIENT.values()) - {CLIENT["ping"]}
_GREETING: Final = struct.Struct(">qqi")
_ID: Final = struct.Struct(">q")
_VOTE: Final = struct.Struct(">iiqqq")
_VERSIONS: Final = (-65536, -65535)
_VOTE_BYTES: Final = range(_VOTE.size - 4, 1 << 19)
"""The sizes that a vote may have: `QuorumCnxManager.PACKETMAXSIZE`."""
_ADDRESS_BYTES_MAX: Final = 1 << 12
_CORRELATION_MASK: Final = 0x7FFFFFFF
_PACKET: Final = struct.Struct(head_of("QuorumPacket").format + "i")
"""Behind it the data, of so many bytes."""
_INT: Final = struct.Struct(">i")
_PACKET_TYPE_MAX: Final = 100
"""Far above all types that exist."""
_IDS_MAX: Final = 1000
_STRINGS_PER_ID: Final = 2
_TREE, _SNAP, _UPTODATE = (QUORUM[name] for name in ("TREE", "SNAP", "UPTODATE"))
_TREE_END: Final = b"\x00\x00\x00\x01/\x00\x00\x00\x0aBenWasHere"
_OF_WRITES: Final = frozenset(
    QUORUM[name]
    for name in ("REQUEST", "PROPOSAL", "ACK", "COMMIT", "PING", "REVALIDATE", "SYNC", "INFORM")
)


class ClientPort:
    """One connection. Of clients the tape has their sessions, of nodes everything but pings."""

    def __init__(self, link: Link) -> None:
        self.taped: Final[AbstractSet[int]] = _SESSIONS if link.source == CLIENTS else _OF_NODES
        self.hold_ns_max: int | None = None
        """The time for which a hold leaves the session alive; None before there is a session."""
        self._session: str | None = None
        self._opened = False
        """It has asked for a session."""
        self._worded = False
        """It carries a four-letter word, and an answer without frames."""
        self._exchanges = Exchanges()
        self._fixed: dict[int, Header] = {}
        """The last request with each of the fixed xids."""

    def read_request(self, chunk: memoryview, at: int) -> tuple[int, Header] | None:
        """Return a request's whole size and header; None if the chunk ends first."""
        if self._worded or self._is_word(chunk, at):
            self._worded = True
            return len(chunk) - at, BYTES
        if not self._opened:
            return self._read_connect(chunk, at)
        if len(chunk) - at < _REQUEST.size:
            return None
        length, xid, number = _REQUEST.unpack_from(chunk, at)
        size = _whole(length)
        header = self._header(_BASE + number, xid)
        if xid < 0:
            self._fixed[xid] = header
        else:
            self._exchanges.ask(header)
        return size, header

    def read_response(self, chunk: memoryview, at: int) -> tuple[int, Header] | None:
        """Return an answer's whole size and its request's header; None if the chunk ends first."""
        if self._worded:
            return len(chunk) - at, BYTES
        if self.hold_ns_max is None:
            return self._read_connected(chunk, at)
        if len(chunk) - at < _ANSWER.size:
            return None
        length, xid, _, _ = _ANSWER.unpack_from(chunk, at)
        size = _whole(length)
        if xid == _EVENT_XID:
            return size, self._header(CLIENT["WatcherEvent"], xid)
        if xid >= 0:
            return size, self._exchanges.answer(xid)
        if xid not in self._fixed:
            raise FrameError(f"an answer to request {xid}, which was not sent")
        return size, self._fixed[xid]

    def _is_word(self, chunk: memoryview, at: int) -> bool:
        return not self._opened and bytes(chunk[at : at + _LENGTH.size]).isalpha()

    def _read_connect(self, chunk: memoryview, at: int) -> tuple[int, Header] | None:
        if len(chunk) - at < _CONNECT.size:
            return None
        length, _, _, _, session = _CONNECT.unpack_from(chunk, at)
        # A session that is taken up again has its number already.
        self._session = _named(session) if session else None
        self._opened = True
        return _whole(length), self._header(_CREATE_SESSION, 0)

    def _read_connected(self, chunk: memoryview, at: int) -> tuple[int, Header] | None:
        if len(chunk) - at < _CONNECTED.size:
            return None
        length, _, timeout_ms, session = _CONNECTED.unpack_from(chunk, at)
        self._session = _named(session)
        self.hold_ns_max = timeout_ms * _NS // 3
        return _whole(length), self._header(_CREATE_SESSION, 0)

    def _header(self, key: int, xid: int) -> Header:
        if abs(key - _BASE) > _TYPE_MAX:
            raise FrameError(f"a request of type {key - _BASE}: not ZooKeeper's protocol")
        return Header(key, -1, xid, self._session, answered=True, api_versions=(type_of(key), -1))


def _named(session: int) -> str:
    return f"0x{session & 0xFFFFFFFFFFFFFFFF:x}"


def _whole(length: int) -> int:
    if not 0 < length <= FRAME_BYTES_MAX:
        raise FrameError(f"a frame of {length} bytes: not ZooKeeper's protocol")
    return _LENGTH.size + length


class ElectionPort:
    """One connection."""

    hold_ns_max: Final = None

    def __init__(self, _link: Link) -> None:
        self.taped: Final = frozenset(ELECTION.values())
        self._greeted = False
        self._foreign = False
        """It began with what no server says: it is a probe."""

    def read_request(self, chunk: memoryview, at: int) -> tuple[int, Header] | None:
        """Return the whole size and header of what the server that dialled says; None if cut."""
        if self._foreign:
            return len(chunk) - at, BYTES
        return _vote(chunk, at) if self._greeted else self._greeting(chunk, at)

    def read_response(self, chunk: memoryview, at: int) -> tuple[int, Header] | None:
        """Return those of what the other one says."""
        return (len(chunk) - at, BYTES) if self._foreign else _vote(chunk, at)

    def _greeting(self, chunk: memoryview, at: int) -> tuple[int, Header] | None:
        if len(chunk) - at < _ID.size:
            return None
        (version,) = _ID.unpack_from(chunk, at)
        size = _ID.size
        if version < 0 and version not in _VERSIONS:
            self._foreign = True
            return len(chunk) - at, BYTES
        if version < 0:
            if len(chunk) - at < _GREETING.size:
                return None
            length = _GREETING.unpack_from(chunk, at)[2]
            if not 0 <= length <= _ADDRESS_BYTES_MAX:
                raise FrameError(f"an address of {length} bytes: not ZooKeeper's elections")
            size = _GREETING.size + length
        self._greeted = True
        return size, _header("InitialMessage", 0)


def _vote(chunk: memoryview, at: int) -> tuple[int, Header] | None:
    if len(chunk) - at < _VOTE.size:
        return None
    length, _, _, _, election_round = _VOTE.unpack_from(chunk, at)
    if length not in _VOTE_BYTES:
        raise FrameError(f"a vote of {length} bytes: not ZooKeeper's elections")
    return 4 + length, _header("Notification", election_round)


def _header(name: str, election_round: int) -> Header:
    key = ELECTION[name]
    number = election_round & _CORRELATION_MASK
    return Header(key, -1, number, None, answered=False, api_versions=(type_of(key), -1))


class QuorumPort:
    """One connection."""

    hold_ns_max: Final = None

    def __init__(self, _link: Link) -> None:
        self.taped: Final = set(QUORUM.values()) - {_TREE}
        self._in_tree = False

    def read_request(self, chunk: memoryview, at: int) -> tuple[int, Header] | None:
        """Return the whole size and header of a packet of the follower's; None if it is cut."""
        return _packet(chunk, at)

    def read_response(self, chunk: memoryview, at: int) -> tuple[int, Header] | None:
        """Return those of a packet of the leader's, or of a piece of its tree."""
        if self._in_tree:
            return self._piece_of_tree(chunk, at)
        found = _packet(chunk, at)
        if found is not None and found[1].api_key == _SNAP:
            self._in_tree = True
        elif found is not None and found[1].api_key == _UPTODATE:
            self.taped.difference_update(_OF_WRITES)
        return found

    def _piece_of_tree(self, chunk: memoryview, at: int) -> tuple[int, Header] | None:
        rest = bytes(chunk[at:])
        end = rest.find(_TREE_END)
        self._in_tree = end < 0
        # Its end may be cut by the end of the chunk.
        size = len(rest) - len(_TREE_END) + 1 if end < 0 else end + len(_TREE_END)
        return (size, _packet_header(_TREE, 0)) if size > 0 else None


def _packet(chunk: memoryview, at: int) -> tuple[int, Header] | None:
    if len(chunk) - at < _PACKET.size:
        return None
    number, zxid, size = _PACKET.unpack_from(chunk, at)
    if not 0 < number <= _PACKET_TYPE_MAX or not -1 <= size <= FRAME_BYTES_MAX:
        raise FrameError(
            f"a packet of type {number} with {size} bytes: not the protocol of ZooKeeper's quorums"
        )
    end = _behind_ids(chunk, at + _PACKET.size + max(size, 0))
    return None if end is None else (end - at, _packet_header(_TREE + number, zxid))


def _behind_ids(chunk: memoryview, at: int) -> int | None:
    """Return the place behind the vector that begins here, or None if the chunk ends first."""
    count = _int(chunk, at)
    if count is None:
        return None
    if not -1 <= count <= _IDS_MAX:
        raise FrameError(f"a packet with {count} ids: not the protocol of ZooKeeper's quorums")
    at += _INT.size
    for _ in range(count * _STRINGS_PER_ID):
        size = _int(chunk, at)
        if size is None:
            return None
        at += _INT.size + max(size, 0)
    return at if at <= len(chunk) else None


def _int(chunk: memoryview, at: int) -> int | None:
    if len(chunk) - at < _INT.size:
        return None
    value: int = _INT.unpack_from(chunk, at)[0]
    return value


def _packet_header(key: int, zxid: int) -> Header:
    # The proposal, acknowledgement and commit of a transaction have one number.
    number = zxid & _CORRELATION_MASK
    return Header(key, -1, number, None, answered=False, api_versions=(type_of(key), -1))
