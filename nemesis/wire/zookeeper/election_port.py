"""A connection between two servers that elect, sans-IO: who dials says who it is, then both vote.

The greeting is the protocol's version (8 bytes, negative), the server's id (8), and its addresses
behind their length; in old releases the id alone. A vote is behind its length. Source:
`QuorumCnxManager.InitialMessage`, `FastLeaderElection`.
"""

import struct
from typing import Final

from clusters.protocol.framing import FrameError
from nemesis.wire.frames import BYTES, Header
from nemesis.wire.rules import Link
from nemesis.wire.zookeeper.messages import ELECTION, type_of

__all__ = ["ElectionPort"]

_GREETING: Final = struct.Struct(">qqi")
_ID: Final = struct.Struct(">q")
_VOTE: Final = struct.Struct(">iiqqq")
_VERSIONS: Final = (-65536, -65535)
_VOTE_BYTES: Final = range(_VOTE.size - 4, 1 << 19)
"""The sizes that a vote may have: `QuorumCnxManager.PACKETMAXSIZE`."""
_ADDRESS_BYTES_MAX: Final = 1 << 12
_CORRELATION_MASK: Final = 0x7FFFFFFF


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
    return Header(key, -1, number, None, answered=False, spoken=(type_of(key), -1))
