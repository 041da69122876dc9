"""A reserved port belongs to the run, whether its server is up or down."""

import socket

import pytest

from fencepost.clusters.hosts.ports import ReservedPorts
from fencepost.history.failure import UsageError

LOOPBACK = "127.0.0.1"


def serve(port: int) -> socket.socket:
    """Listen as a JVM does: with SO_REUSEADDR."""
    return socket.create_server((LOOPBACK, port))


def test_free_ports_are_all_different_and_a_server_may_listen_on_each() -> None:
    ports = ReservedPorts(LOOPBACK)
    taken = ports.take(20)
    assert len(set(taken)) == 20
    for port in taken:
        serve(port).close()
        serve(port).close()
    ports.close()


def test_a_reserved_port_is_refused_to_another_run() -> None:
    ours, theirs = ReservedPorts(LOOPBACK), ReservedPorts(LOOPBACK)
    [port] = ours.take(1)
    with pytest.raises(UsageError, match=f"port {port} on 127.0.0.1 cannot be used"):
        theirs.take(1, base=port)
    ours.close()
    assert theirs.take(1, base=port) == (port,)
    theirs.close()


def test_a_port_of_a_server_that_has_ended_is_held_while_its_connections_wait() -> None:
    """As they do for a minute at the side that closed first."""
    listening = serve(0)
    port = listening.getsockname()[1]
    client = socket.create_connection((LOOPBACK, port))
    served, _ = listening.accept()
    for one in (served, listening, client):
        one.close()
    ours, theirs = ReservedPorts(LOOPBACK), ReservedPorts(LOOPBACK)
    with pytest.raises(UsageError):
        ours.take(1, base=port)
    ours.hold([port])
    serve(port).close()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((LOOPBACK, port))
    theirs.hold([port])  # and what cannot be had is left to its server
    theirs.close()
    ours.close()
    with serve(port):
        ours.hold([port])
        assert socket.create_connection((LOOPBACK, port)).close() is None
    ours.close()


def test_nobody_connects_while_the_server_is_down() -> None:
    ports = ReservedPorts(LOOPBACK)
    [port] = ports.take(1)
    with socket.socket() as client:
        assert client.connect_ex((LOOPBACK, port)) != 0
    ports.close()


def test_a_taken_port_is_named_with_the_range_and_the_way_out() -> None:
    with socket.socket() as other:
        other.bind((LOOPBACK, 0))
        taken = other.getsockname()[1]
        ports = ReservedPorts(LOOPBACK)
        with pytest.raises(UsageError) as raised:
            ports.take(3, base=taken)
    assert str(raised.value) == (
        f"port {taken} on 127.0.0.1 cannot be used: Address already in use. Ports {taken} to "
        f"{taken + 2} are needed; choose another port base, or none to use any free ports"
    )


@pytest.mark.parametrize("base", [0, -1, 65535, 70000])
def test_ports_that_do_not_exist_are_refused(base: int) -> None:
    with pytest.raises(UsageError, match=f"there are no 2 ports from {base} on"):
        ReservedPorts(LOOPBACK).take(2, base=base)
