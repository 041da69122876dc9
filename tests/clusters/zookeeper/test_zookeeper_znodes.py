"""Znodes are read over one session that goes from server to server, each look behind a sync."""

import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

import pytest

from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address
from fencepost.clusters.zookeeper.znodes import ZnodeReader, children_of, data_of
from fencepost.history.failure import HarnessError

TREE: Final[Mapping[str, bytes]] = {"/a": b"one", "/b": b""}
CHILDREN: Final = ("a", "b")
STAT: Final = struct.pack(">qqqqiiiqiiq", 0x1_0000_0007, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0)
NO_NODE: Final = -101
ONE, TWO = NodeName("server-1"), NodeName("server-2")


class Server:
    """A server of one tree. `expired`: sessions that it does not know any more."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.sessions: list[int] = []
        self.expired: set[int] = set()
        self.types: list[int] = []
        self.refuses = False

    @property
    def address(self) -> Address:
        host, port = self.listener.getsockname()
        return (host, port)

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                with connection, suppress(OSError, EOFError):
                    self.talk(connection)

    def talk(self, connection: socket.socket) -> None:
        if self.refuses:
            return
        _, _, _, session, _ = struct.unpack_from(">iqiqi", frame(connection))
        self.sessions.append(session)
        known = session not in self.expired
        send(connection, struct.pack(">iiqi", 0, 10_000 * known, session or 77, 16) + bytes(16))
        while known:
            request = frame(connection)
            xid, kind, length = struct.unpack_from(">iii", request)
            self.types.append(kind)
            path = request[12 : 12 + length].decode()
            send(connection, answer(xid, kind, path))


def answer(xid: int, kind: int, path: str) -> bytes:
    match kind:
        case 4 if path not in TREE:
            return struct.pack(">iqi", xid, 9, NO_NODE)
        case 4:
            body = struct.pack(">i", len(TREE[path])) + TREE[path] + STAT
        case 8:
            names = b"".join(struct.pack(">i", len(one)) + one.encode() for one in CHILDREN)
            body = struct.pack(">i", len(CHILDREN)) + names
        case _:
            body = struct.pack(">i", len(path)) + path.encode()
    return struct.pack(">iqi", xid, 9, 0) + body


def frame(connection: socket.socket) -> bytes:
    (length,) = struct.unpack(">i", exactly(connection, 4))
    return exactly(connection, length)


def exactly(connection: socket.socket, count: int) -> bytes:
    found = connection.recv(count, socket.MSG_WAITALL)
    if len(found) < count:
        raise EOFError
    return found


def send(connection: socket.socket, body: bytes) -> None:
    connection.sendall(struct.pack(">i", len(body)) + body)


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.listener.shutdown(socket.SHUT_RDWR)
        server.listener.close()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as one:
        yield one


@pytest.fixture
def other() -> Iterator[Server]:
    with serving() as one:
        yield one


def test_data_and_children_are_read_in_order_behind_a_sync(server: Server) -> None:
    reader = ZnodeReader(lambda: {ONE: server.address})
    found, names, missing = reader.read([data_of("/a"), children_of("/"), data_of("/c")])
    reader.close()
    assert found is not None
    assert (found.data, found.czxid, found.version) == (b"one", 0x1_0000_0007, 3)
    assert names is not None
    assert names.children == CHILDREN
    assert missing is None
    assert server.types[0] == 9


def test_one_session_does_for_all_looks(server: Server) -> None:
    reader = ZnodeReader(lambda: {ONE: server.address})
    for _ in range(3):
        reader.read([data_of("/b")])
    reader.close()
    assert server.sessions == [0]


def test_a_server_that_runs_no_more_is_left_with_the_session(server: Server, other: Server) -> None:
    running = {ONE: server.address}
    reader = ZnodeReader(lambda: running)
    reader.read([data_of("/a")])
    running.clear()
    running[TWO] = other.address
    assert reader.read([data_of("/a")])[0] is not None
    reader.close()
    assert other.sessions == [77]


def test_a_server_that_closes_is_left_for_the_next(server: Server, other: Server) -> None:
    server.refuses = True
    reader = ZnodeReader(lambda: {ONE: server.address, TWO: other.address})
    assert reader.read([data_of("/a")])[0] is not None
    reader.close()


def test_an_expired_session_is_followed_by_a_new_one(server: Server, other: Server) -> None:
    running = {ONE: server.address}
    reader = ZnodeReader(lambda: running)
    reader.read([data_of("/a")])
    running.clear()
    running[TWO] = other.address
    other.expired.add(77)
    with pytest.raises(HarnessError, match="the session has expired"):
        reader.read([data_of("/a")])
    assert reader.read([data_of("/a")])[0] is not None
    reader.close()
    assert other.sessions == [77, 0]


def test_no_server_is_no_answer() -> None:
    reader = ZnodeReader(dict)
    with pytest.raises(HarnessError, match="none runs"):
        reader.read([data_of("/a")])
