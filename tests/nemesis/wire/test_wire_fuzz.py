"""Whatever comes over a connection, the proxy stands, and others are served as before."""

import contextlib
import socket
import struct

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wire_doubles import (
    beat_request,
    beat_response,
    join_request,
    join_response,
    plain_request,
    plain_response,
)
from wire_stage import Peer, Stage, staged

from fencepost.history.failure import HarnessError
from fencepost.nemesis.wire.rules import (
    Action,
    Answer,
    Cut,
    Delay,
    Direction,
    Drop,
    Duplicate,
    Hold,
    LowerVersion,
    Match,
    Reorder,
    Stall,
    Watch,
)

numbers = st.integers(0, 3)
lengths = st.sampled_from([-(2**31), -1, 0, 3, 4, 9, 10, 15, 100, 2**20, 2**27, 2**31 - 1])
asked = st.one_of(
    st.builds(join_request, numbers),
    st.builds(beat_request, numbers),
    st.builds(plain_request, numbers, api_key=st.sampled_from([0, 1, 3, 18, 56, 58, 999])),
    st.builds(lambda length, rest: struct.pack(">i", length) + rest, lengths, st.binary()),
    st.binary(max_size=40),
)
told = st.one_of(
    st.builds(join_response, numbers),
    st.builds(beat_response, numbers),
    st.builds(plain_response, numbers),
    st.builds(lambda length, rest: struct.pack(">i", length) + rest, lengths, st.binary()),
    st.binary(max_size=40),
)
actions = st.sampled_from(
    [
        (Hold(), Direction.REQUEST),
        (Hold(), Direction.RESPONSE),
        (Delay(min_ms=0, max_ms=2), Direction.REQUEST),
        (Delay(min_ms=0, max_ms=2), Direction.RESPONSE),
        (Drop(), Direction.RESPONSE),
        (Cut(), Direction.REQUEST),
        (Duplicate(), Direction.REQUEST),
        (Reorder(), Direction.REQUEST),
        (Answer(error="NOT_CONTROLLER"), Direction.REQUEST),
        (LowerVersion(api="AlterPartition", max_version=1), Direction.RESPONSE),
        (Stall(), Direction.REQUEST),
        (Watch(), Direction.RESPONSE),
    ]
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), asked, st.integers(1, 64)),
        st.tuples(st.just("tell"), told, st.integers(1, 64)),
        st.tuples(
            st.sampled_from(
                (
                    "another",
                    "block",
                    "cut",
                    "far dies",
                    "far ends",
                    "half-close",
                    "near dies",
                    "near ends",
                    "release",
                    "unblock",
                )
            ),
            st.just(b""),
            st.just(0),
        ),
    ),
    max_size=12,
)


@settings(
    max_examples=3 * settings().max_examples // 2, suppress_health_check=[HealthCheck.too_slow]
)
@given(rules=st.lists(actions, max_size=3), steps=steps)
def test_no_bytes_in_any_order_stop_the_proxy(
    rules: list[tuple[Action, Direction]], steps: list[tuple[str, bytes, int]]
) -> None:
    with staged() as stage:
        for number, (action, direction) in enumerate(rules):
            match = Match(direction=direction, sources=(stage.links[0].source,))
            stage.lay(action, match, name=f"rule-{number}")
        near = stage.dial()
        far: Peer | None = None
        for what, data, size in steps:
            far = far or accepted(stage)
            if what == "another":
                near, far = stage.dial(), None
            elif what in ("ask", "tell"):
                speak(stage, near if what == "ask" else far, data, size)
            else:
                perform(stage, what, near, far)
            stage.proxy.step(timeout_s=0)
        stage.settle()
        for name, rule in stage.proxy.status().rules.items():
            assert rule.held_now <= rule.held_count
            with contextlib.suppress(HarnessError):
                stage.proxy.release(name)
        stage.proxy.unblock(None)
        serves_others(stage)
        stage.settle()


def accepted(stage: Stage) -> Peer | None:
    stage.proxy.step(timeout_s=0.001)
    return stage.accept() if stage.is_dialled() else None


def speak(stage: Stage, peer: Peer | None, data: bytes, size: int) -> None:
    """Send it in pieces, as far as there is anybody who can."""
    with contextlib.suppress(OSError):
        for at in range(0, len(data) if peer is not None else 0, size):
            assert peer is not None
            peer.socket.send(data[at : at + size])
            stage.proxy.step(timeout_s=0)


def perform(stage: Stage, what: str, near: Peer, far: Peer | None) -> None:
    link = (stage.links[0].source, stage.links[0].target)
    # A rule may be released before, a peer gone.
    with contextlib.suppress(OSError, HarnessError):
        match what:
            case "block":
                stage.proxy.block([link, link[::-1]])
            case "unblock":
                stage.proxy.unblock(None)
            case "cut":
                stage.proxy.cut([link])
            case "release":
                stage.proxy.release("rule-0")
            case "half-close":
                near.socket.shutdown(socket.SHUT_WR)
            case "near ends":
                near.socket.close()
            case "near dies":
                near.kill()
            case "far ends" if far is not None:
                far.socket.close()
            case "far dies" if far is not None:
                far.kill()


def serves_others(stage: Stage) -> None:
    """A connection of another broker works, among whatever is left of the others."""
    near = stage.dial(1)
    near.socket.send(beat_request(77))
    found: list[Peer] = []

    def arrived() -> bool:
        if stage.is_dialled():
            found.append(stage.accept())
        for peer in found:
            peer.look()
        return any(peer.received == beat_request(77) for peer in found)

    stage.until(arrived)
    [far] = [peer for peer in found if peer.received == beat_request(77)]
    far.socket.send(beat_response(77))
    stage.gets(near, beat_response(77))
