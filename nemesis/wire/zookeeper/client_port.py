"""A connection of a client to a server, sans-IO: a session's requests, their answers, its events.

A frame is its length (4 bytes) and a jute record. The first one each way makes the session; then
requests begin with their number (xid) and type, answers with the xid, a zxid and an error. Some
xids are fixed: -1 is an event of a watch, -2 a ping, -4 and -8 are what a client says once more
when it comes back. A connection that begins with a four-letter word has no frames.

A header's `client_id` is the session as ZooKeeper's logs write it: "0x100000a2b3c0001".

Pings share the connection. A client that hears nothing for two thirds of its session's time-out
gives its server up, and it may have been idle for one third before the ping that is not answered:
so one third is the longest wait that surely ends no session (`ClientCnxn`).
"""

import struct
from collections.abc import Set as AbstractSet
from typing import Final

from clusters.port import CLIENTS
from clusters.protocol.framing import FRAME_BYTES_MAX, FrameError
from nemesis.wire.exchanges import Exchanges
from nemesis.wire.frames import BYTES, Header
from nemesis.wire.rules import Link
from nemesis.wire.zookeeper.messages import CLIENT, type_of

__all__ = ["ClientPort"]

_LENGTH: Final = struct.Struct(">i")
_REQUEST: Final = struct.Struct(">iii")
_ANSWER: Final = struct.Struct(">iiqi")
_CONNECT: Final = struct.Struct(">iiqiq")
_CONNECTED: Final = struct.Struct(">iiiq")
_EVENT_XID: Final = -1
_TYPE_MAX: Final = 400
"""Far above all types that exist."""
_CREATE_SESSION: Final = CLIENT["createSession"]
_BASE: Final = _CREATE_SESSION - type_of(_CREATE_SESSION)
_NS: Final = 1_000_000
_SESSIONS: Final = frozenset((_CREATE_SESSION, CLIENT["closeSession"]))
_OF_NODES: Final = frozenset(CLIENT.values()) - {CLIENT["ping"]}


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
            raise FrameError(f"an answer to request {xid}, which was not made")
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
        return Header(key, -1, xid, self._session, answered=True, spoken=(type_of(key), -1))


def _named(session: int) -> str:
    return f"0x{session & 0xFFFFFFFFFFFFFFFF:x}"


def _whole(length: int) -> int:
    if not 0 < length <= FRAME_BYTES_MAX:
        raise FrameError(f"a frame of {length} bytes: not ZooKeeper's protocol")
    return _LENGTH.size + length
