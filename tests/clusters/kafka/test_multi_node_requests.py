"""Every broker is asked at once, and those that do not answer hold nobody up beyond the bound."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from broker_doubles import fake_broker, metadata

from fencepost.clusters.kafka.observation import ask_metadata
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address

ONE, TWO, THREE = (NodeName(f"broker-{number}") for number in (1, 2, 3))


@pytest.fixture
def silent() -> Iterator[Address]:
    """Where a paused broker listens: the kernel accepts for it, and nothing comes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()


@pytest.fixture
def down() -> Iterator[Address]:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()


def test_each_broker_gives_its_own_answer() -> None:
    with (
        fake_broker(lambda _: metadata([1])) as one,
        fake_broker(lambda _: metadata([1, 2])) as two,
    ):
        answers = ask_metadata({ONE: one.address, TWO: two.address})
    assert answers == {ONE: metadata([1]), TWO: metadata([1, 2])}
    assert [request.request_api_key for request in one.requests] == [3]


def test_brokers_that_are_down_or_silent_are_left_out_within_the_grace(
    silent: Address, down: Address
) -> None:
    started = time.monotonic()
    with fake_broker(lambda _: metadata([1])) as one:
        answers = ask_metadata(
            {THREE: down, TWO: silent, ONE: one.address}, timeout_s=600, grace_s=0.1
        )
    assert list(answers) == [ONE]
    assert time.monotonic() - started < 300


def test_a_broker_that_is_slow_but_within_the_grace_is_heard() -> None:
    def slowly(_: object) -> object:
        time.sleep(0.05)
        return metadata([2])

    with fake_broker(lambda _: metadata([1])) as one, fake_broker(slowly) as two:
        answers = ask_metadata({ONE: one.address, TWO: two.address}, timeout_s=30, grace_s=20)
    assert set(answers) == {ONE, TWO}


def test_without_any_answer_it_ends_at_the_bound(silent: Address) -> None:
    started = time.monotonic()
    assert ask_metadata({ONE: silent}, timeout_s=0.1) == {}
    assert 0.1 <= time.monotonic() - started < 60


def test_nobody_to_ask_is_no_answer_at_once(down: Address) -> None:
    started = time.monotonic()
    assert ask_metadata({}, timeout_s=600) == {}
    assert ask_metadata({ONE: down}, timeout_s=600) == {}
    assert time.monotonic() - started < 300


def test_what_does_not_speak_kafka_has_no_answer() -> None:
    def shout(web: socket.socket) -> None:
        connection, _ = web.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as web:
        thread = threading.Thread(target=shout, args=(web,))
        thread.start()
        assert ask_metadata({ONE: web.getsockname()}) == {}
        thread.join()
