"""What a server says of itself is read from `srvr`; a sign of life is read on any port."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address
from fencepost.clusters.zookeeper.four_letter_words import ask_servers, is_answered_on, state_of
from fencepost.clusters.zookeeper.view import ServerState

ONE, TWO = NodeName("server-1"), NodeName("server-2")
SERVING = """Zookeeper version: 3.9.5-293c895a8d966a3ecb92872be4a1daf87d725da2, built on 2026
Latency min/avg/max: 0/0.0/0
Received: 2
Sent: 1
Connections: 1
Outstanding: 0
Zxid: 0x10000002a
Mode: leader
Node count: 5
Proposal sizes last/min/max: -1/-1/-1
"""
LOOKING = "This ZooKeeper instance is not currently serving requests\n"


@contextmanager
def answering(text: str | None) -> Iterator[Address]:
    """A server that takes what comes, says `text` and ends; None: it says nothing and stays."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        held: list[socket.socket] = []

        def serve() -> None:
            connection, _ = listener.accept()
            held.append(connection)
            connection.recv(16)
            if text is not None:
                connection.sendall(text.encode())
                connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()
        thread.join(timeout=10)
        for connection in held:
            connection.close()


def test_a_server_says_its_mode_and_its_last_transaction() -> None:
    assert state_of(SERVING) == ServerState(mode="leader", zxid=0x10000002A)


def test_a_server_without_a_quorum_serves_nothing() -> None:
    assert state_of(LOOKING) == ServerState(mode=None, zxid=None)


@pytest.mark.parametrize(
    "text", ["", "HTTP/1.1 400 Bad Request\n", "Mode: leader\n", "Zxid: 0x1\n"]
)
def test_anything_else_is_no_answer(text: str) -> None:
    assert state_of(text) is None


def test_each_server_is_asked_itself() -> None:
    with answering(SERVING) as one, answering(LOOKING) as two:
        found = ask_servers({ONE: one, TWO: two})
    assert found == {ONE: state_of(SERVING), TWO: state_of(LOOKING)}


def test_one_that_is_silent_holds_no_other_up_beyond_the_bound() -> None:
    with answering(SERVING) as one, answering(None) as two:
        found = ask_servers({ONE: one, TWO: two}, timeout_s=30.0, grace_s=0.05)
    assert list(found) == [ONE]


def test_an_election_port_answers_by_ending_the_connection() -> None:
    with answering("") as address:
        assert is_answered_on(())(ONE, address, timeout_s=10.0)


def test_a_client_port_answers_with_words() -> None:
    with answering(LOOKING) as address:
        assert is_answered_on({address[1]})(ONE, address, timeout_s=10.0)


def test_silence_and_a_refused_connection_are_no_answers() -> None:
    with answering(None) as address:
        assert not is_answered_on(())(ONE, address, timeout_s=0.05)
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        assert not is_answered_on(())(ONE, reserved.getsockname(), timeout_s=10.0)
