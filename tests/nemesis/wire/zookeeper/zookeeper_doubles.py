"""Messages of ZooKeeper, written by hand and by kazoo, as its servers and clients send them."""

import struct
from collections.abc import Sequence
from dataclasses import replace

from kazoo.protocol.serialization import Connect
from wire_doubles import LINK

from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.clusters.port import CLIENTS, NodeName

FOLLOWER, LEADER = NodeName("server-1"), NodeName("server-3")
_LINK = replace(LINK, source=FOLLOWER, target=LEADER)
QUORUM_LINK = replace(_LINK, protocol=LinkProtocol.ZOOKEEPER_QUORUM)
ELECTION_LINK = replace(_LINK, protocol=LinkProtocol.ZOOKEEPER_ELECTION)
CLIENT_LINK = replace(_LINK, source=CLIENTS, protocol=LinkProtocol.ZOOKEEPER_CLIENT)
BROKER_LINK = replace(CLIENT_LINK, source=NodeName("broker-1"))

SESSION = 0x100000A2B3C0001
TIMEOUT_MS = 6000
ACL = struct.pack(">ii", 1, 31) + b"\0\0\0\5world\0\0\0\6anyone"
STAT = struct.pack(">qqqqiiiqiiq", 1, 2, 3, 4, 7, 0, 0, 0, 1, 0, 1)
"""Of version 7."""


def text(value: str) -> bytes:
    return buffer(value.encode())


def buffer(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def connect(session: int = 0) -> bytes:
    return buffer(bytes(Connect(0, 5, TIMEOUT_MS, session, b"\0" * 16, False).serialize()))


def connected() -> bytes:
    return buffer(struct.pack(">iiq", 0, TIMEOUT_MS, SESSION) + buffer(b"\0" * 16) + b"\0")


def request(xid: int, number: int, body: bytes = b"") -> bytes:
    return buffer(struct.pack(">ii", xid, number) + body)


def answer(xid: int, zxid: int = 9, error: int = 0, body: bytes = b"") -> bytes:
    return buffer(struct.pack(">iqi", xid, zxid, error) + body)


def event(path: str) -> bytes:
    return answer(-1, -1, 0, struct.pack(">ii", 3, 3) + text(path))


def set_data(xid: int, path: str, *, version: int = -1) -> bytes:
    return request(xid, 5, text(path) + buffer(b"x") + struct.pack(">i", version))


PING, PONG = request(-2, 11), answer(-2)


def packet(
    number: int, zxid: int, data: bytes | None = None, ids: Sequence[str] | None = None
) -> bytes:
    named = struct.pack(">i", -1 if ids is None else len(ids))
    for one in ids or ():
        named += text("ip") + text(one)
    return struct.pack(">iq", number, zxid) + buffer(data) + named


def proposal(zxid: int, path: str) -> bytes:
    header = struct.pack(">qiqqi", SESSION, 1, zxid, 1000, 5)
    return packet(2, zxid, header + text(path) + buffer(b"x") + struct.pack(">i", 3))


def commit(zxid: int) -> bytes:
    return packet(4, zxid)


def ack(zxid: int) -> bytes:
    return packet(3, zxid)


LEARNER = struct.pack(">qiq", 1, 0x10000, 0)
TREE = struct.pack(">iqii", 1, SESSION, TIMEOUT_MS, 0) + b"".join(
    text(path) + buffer(b"BenWasHere") + bytes(68) for path in ("", "/a")
)
TREE_END = text("/") + text("BenWasHere")
JOINING = packet(11, 0, LEARNER) + packet(18, 7, struct.pack(">i", -1)) + ack(1 << 32)
TAKING_IN = (
    *(packet(17, 2 << 32, struct.pack(">i", 0x10000)), packet(15, 7), TREE, TREE_END),
    *(proposal(8, "/b"), commit(8), packet(10, 2 << 32), packet(12, -1)),
)
"""LEADERINFO, SNAP and its tree, a write, NEWLEADER, UPTODATE."""

_ADDRESS = b"127.0.0.1:3001"
GREETING = struct.pack(">qqi", -65536, 1, len(_ADDRESS)) + _ADDRESS


def vote(leader: int, *, election_round: int = 1) -> bytes:
    body = struct.pack(">iqqqqi", 0, leader, 1 << 32, election_round, 1, 2) + buffer(b"")
    return buffer(body)
