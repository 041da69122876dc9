"""One request at a time, within a bound, and never an answer to another request."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from broker_doubles import fake_broker, metadata
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse

from fencepost.clusters.kafka.connection import NoAnswerError, NodeConnection
from fencepost.clusters.protocol.talking import Address

REQUEST = MetadataRequest(
    topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False
)


def asked(connection: NodeConnection, *, timeout_s: float = 60.0) -> MetadataResponse:
    return connection.ask(REQUEST, MetadataResponse, timeout_s=timeout_s)


@contextmanager
def hanging_up() -> Iterator[Address]:
    """A node that closes every connection once it was asked something."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()
        thread.join()


def test_it_gives_the_answer_and_connects_anew_after_the_node_hung_up() -> None:
    # The double answers one request a connection and then does not listen any more.
    with (
        fake_broker(lambda _: metadata([1])) as node,
        NodeConnection(node.address, client_id="me") as connection,
    ):
        assert asked(connection) == metadata([1])
        with pytest.raises(NoAnswerError):
            asked(connection, timeout_s=0.1)
        assert asked(connection) == metadata([1])
    assert [request.correlation_id for request in node.requests] == [1, 3]
    assert {request.client_id for request in node.requests} == {"me"}


def test_silence_ends_at_the_bound_and_may_have_been_heard() -> None:
    with (
        fake_broker(lambda _: None) as node,
        NodeConnection(node.address, client_id="me") as connection,
        pytest.raises(NoAnswerError) as silence,
    ):
        asked(connection, timeout_s=0.1)
    assert (silence.value.reason, silence.value.sent) == ("REQUEST_TIMED_OUT", True)


def test_a_node_that_is_down_was_never_asked() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        connection = NodeConnection(reserved.getsockname(), client_id="me")
        with pytest.raises(NoAnswerError) as silence:
            asked(connection)
    assert (silence.value.reason, silence.value.sent) == ("NETWORK_EXCEPTION", False)


def test_a_node_that_hangs_up_may_have_heard() -> None:
    with (
        hanging_up() as address,
        NodeConnection(address, client_id="me") as connection,
        pytest.raises(NoAnswerError) as silence,
    ):
        asked(connection)
    assert (silence.value.reason, silence.value.sent) == ("NETWORK_EXCEPTION", True)
