"""A link whose protocol is not read: bytes pass as they come, and rules concern them as such."""

import select
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import until
from wire_doubles import LINK, Line, Notes

from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.clusters.port import NodeName
from fencepost.history.clock import Clock
from fencepost.nemesis.wire.carried import why_not_carried
from fencepost.nemesis.wire.effects import Wake
from fencepost.nemesis.wire.rules import (
    Action,
    Answer,
    Clause,
    Delay,
    Direction,
    Drop,
    Duplicate,
    Hold,
    Link,
    Match,
    Operator,
    Reorder,
    Rule,
    Stall,
)
from fencepost.nemesis.wire.server import Proxy

BYTES = {LinkProtocol.BYTES}
OPAQUE = replace(
    LINK, source=NodeName("server-1"), target=NodeName("server-2"), protocol=LinkProtocol.BYTES
)
MS = 1_000_000
NO_FRAME = b"\xff" * 8
"""What Kafka's protocol cannot be: a frame of -1 bytes."""


@given(st.lists(st.binary(min_size=1)), st.lists(st.binary(min_size=1)))
def test_any_bytes_pass_both_ways_and_none_is_taped(asked: list[bytes], told: list[bytes]) -> None:
    line = Line(OPAQUE)
    for piece in asked:
        line.ask(piece)
    for piece in told:
        line.tell(piece)
    assert (line.far, line.near) == (b"".join(asked), b"".join(told))
    assert line.notes.rows == []
    assert line.others == []


def test_what_is_no_frame_breaks_no_connection() -> None:
    line = Line(OPAQUE)
    line.ask(NO_FRAME)
    assert line.far == NO_FRAME
    assert line.others == []


def test_a_blocked_direction_passes_nothing_on_and_then_all() -> None:
    line = Line(OPAQUE)
    line.session.block(Direction.REQUEST)
    line.ask(b"vote")
    line.ask(b" for me")
    line.tell(b"no")
    assert (line.far, line.near) == (b"", b"no")
    line.session.unblock(Direction.REQUEST, 9)
    assert line.far == b"vote for me"


def test_bytes_are_late_by_as_much_as_a_delay_says_and_keep_their_order() -> None:
    line = Line(OPAQUE, Rule(name="slow", action=Delay(min_ms=10, max_ms=10), match=Match()))
    line.ask(b"one", now_ns=0)
    line.ask(b"two", now_ns=4 * MS)
    assert line.others == [Wake(10 * MS)]
    line.session.due(10 * MS)
    assert line.far == b"one"
    line.session.due(14 * MS)
    assert line.far == b"onetwo"
    assert [(row["api"], row["action"], row["size_bytes"]) for row in line.notes.rows] == [
        ("bytes", "delayed", 3),
        ("bytes", "delayed", 3),
    ]
    line.tell(b"back")
    assert line.near == b"back", "the rule is about requests"


def test_bytes_from_another_node_are_not_late() -> None:
    elsewhere = Match(sources=(NodeName("server-3"),))
    line = Line(OPAQUE, Rule(name="slow", action=Delay(min_ms=10, max_ms=10), match=elsewhere))
    line.ask(b"one")
    assert line.far == b"one"


def test_held_bytes_wait_for_their_release() -> None:
    line = Line(OPAQUE, Rule(name="kept", action=Hold(), match=Match()))
    line.ask(b"one")
    line.ask(b"two")
    assert line.far == b""
    entry = line.book.remove("kept")
    assert entry is not None
    (waiting,) = entry.held
    assert line.session.resume(waiting, 9)
    assert line.far == b"onetwo"


@pytest.mark.parametrize(
    ("action", "match", "why"),
    [
        (Hold(), Match(api="AlterPartition"), "there are no APIs to name"),
        (Drop(), Match(version_min=3), "there are no APIs to name"),
        (Hold(), Match(client_id="x"), "it finds no frames"),
        (Hold(), Match(times=1), "it finds no frames"),
        (Hold(), Match(skip=1), "it finds no frames"),
        (
            Hold(),
            Match(where=(Clause(field="isr", operator=Operator.INCLUDES, value=2),)),
            "it finds no frames",
        ),
        (Duplicate(), Match(), "bytes can only be late or lost"),
        (Reorder(), Match(), "bytes can only be late or lost"),
        (Answer(error="NONE"), Match(), "bytes can only be late or lost"),
    ],
)
def test_a_rule_that_takes_frames_is_refused_with_the_reason(
    action: Action, match: Match, why: str
) -> None:
    refusal = why_not_carried(action, match, BYTES)
    assert refusal is not None
    assert why in refusal


@pytest.mark.parametrize("action", [Delay(min_ms=1, max_ms=2), Hold(), Drop(), Stall()])
def test_a_rule_about_bytes_is_not(action: Action) -> None:
    assert why_not_carried(action, Match(sources=(NodeName("server-1"),)), BYTES) is None


@contextmanager
def proxied(*, redials_s: float) -> Iterator[tuple[Proxy, Link, socket.socket]]:
    """A proxy before a port that is bound, on which nothing listens yet."""
    with socket.socket() as target:
        target.bind(("127.0.0.1", 0))
        port = target.getsockname()[1]
        link = replace(OPAQUE, address="127.78.1.1", port=port, redials_s=redials_s)
        with closing(Proxy([link], journal=Notes(), clock=Clock.start())) as proxy:
            yield proxy, link, target


def step_until(proxy: Proxy, claim: Callable[[], bool]) -> None:
    def stepped() -> bool:
        proxy.step(timeout_s=0.01)
        return claim()

    assert until(stepped)


def test_a_target_that_listens_a_moment_later_is_dialled_again() -> None:
    with (
        proxied(redials_s=30.0) as (proxy, link, target),
        socket.create_connection((link.address, link.port)) as source,
    ):
        source.sendall(b"follow")
        step_until(proxy, lambda: proxy.status().connection_count != {})
        for _ in range(20):
            proxy.step(timeout_s=0.01)
        target.listen()
        target.setblocking(False)
        step_until(proxy, lambda: bool(select.select([target], [], [], 0)[0]))
        far, _ = target.accept()
        with far:
            far.setblocking(False)
            step_until(proxy, lambda: bool(select.select([far], [], [], 0)[0]))
            assert far.recv(100) == b"follow"


@pytest.mark.parametrize("redials_s", [0.0, 0.1])
def test_one_that_goes_on_refusing_ends_the_connection(redials_s: float) -> None:
    with (
        proxied(redials_s=redials_s) as (proxy, link, _),
        socket.create_connection((link.address, link.port)) as source,
    ):
        source.setblocking(False)
        step_until(proxy, lambda: bool(select.select([source], [], [], 0)[0]))
        with pytest.raises(ConnectionResetError):
            source.recv(100)


def test_a_source_that_is_gone_is_dialled_for_no_more() -> None:
    with proxied(redials_s=30.0) as (proxy, link, _):
        with socket.create_connection((link.address, link.port)):
            step_until(proxy, lambda: proxy.status().connection_count != {})
        step_until(proxy, lambda: proxy.status().connection_count == {})
