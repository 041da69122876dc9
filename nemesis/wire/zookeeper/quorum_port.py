"""A follower's connection to its leader, sans-IO: packets without a length, read as a stream.

A `QuorumPacket` is its type (4 bytes), a zxid (8), a buffer, and a vector of pairs of strings, so
that it must be there whole before its size is known. Behind SNAP the leader sends its tree as it
lies in memory, without a length either. It ends with the path "/" and the word "BenWasHere"; of its
nodes nothing is read. (Data of a znode that held these very 19 bytes would be taken for the end.)

A follower is brought up to date in packets that all matter: until UPTODATE everything is on the
tape. Afterwards each write takes a PROPOSAL, an ACK and a COMMIT, which are there if a rule asks.
"""

import struct
from typing import Final

from clusters.protocol.framing import FRAME_BYTES_MAX, FrameError
from nemesis.wire.frames import Header
from nemesis.wire.rules import Link
from nemesis.wire.zookeeper.messages import QUORUM, type_of

__all__ = ["TREE_END", "QuorumPort"]

_PACKET: Final = struct.Struct(">iqi")
_INT: Final = struct.Struct(">i")
_TYPE_MAX: Final = 100
"""Far above all types that exist."""
_IDS_MAX: Final = 1000
_STRINGS_PER_ID: Final = 2
_TREE, _SNAP, _UPTODATE = (QUORUM[name] for name in ("TREE", "SNAP", "UPTODATE"))
_BASE: Final = _TREE
TREE_END: Final = b"\x00\x00\x00\x01/\x00\x00\x00\x0aBenWasHere"
_OF_WRITES: Final = frozenset(
    QUORUM[name]
    for name in ("REQUEST", "PROPOSAL", "ACK", "COMMIT", "PING", "REVALIDATE", "SYNC", "INFORM")
)
_CORRELATION_MASK: Final = 0x7FFFFFFF


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
        end = rest.find(TREE_END)
        self._in_tree = end < 0
        # Its end may be cut by the end of the chunk.
        size = len(rest) - len(TREE_END) + 1 if end < 0 else end + len(TREE_END)
        return (size, _header(_TREE, 0)) if size > 0 else None


def _packet(chunk: memoryview, at: int) -> tuple[int, Header] | None:
    if len(chunk) - at < _PACKET.size:
        return None
    number, zxid, size = _PACKET.unpack_from(chunk, at)
    if not 0 < number <= _TYPE_MAX or not -1 <= size <= FRAME_BYTES_MAX:
        raise FrameError(
            f"a packet of type {number} with {size} bytes: not the protocol of ZooKeeper's quorums"
        )
    end = _behind_ids(chunk, at + _PACKET.size + max(size, 0))
    return None if end is None else (end - at, _header(_BASE + number, zxid))


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


def _header(key: int, zxid: int) -> Header:
    # What is said of one transaction has one number: its proposal, its acknowledgement, its commit.
    number = zxid & _CORRELATION_MASK
    return Header(key, -1, number, None, answered=False, spoken=(type_of(key), -1))
