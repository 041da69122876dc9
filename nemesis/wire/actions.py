"""The actions of rules, each as its acts on a connection, whatever carries it (`RuledConnection`).

An ApiVersions response that offers less has a version number changed in place. It is not decoded
and written again: a field that some later release adds would be lost. Layout:
ApiVersionsResponse.json; its header is version 0 always, so that any client can read it.
"""

import struct
from typing import Final, assert_never

from fencepost.clusters.protocol.varints import VarintError, read_unsigned
from fencepost.nemesis.wire.answers import error_response
from fencepost.nemesis.wire.apis import API_KEYS
from fencepost.nemesis.wire.decoding.entities import is_version_0
from fencepost.nemesis.wire.frame import Frame
from fencepost.nemesis.wire.frames import behind_tags
from fencepost.nemesis.wire.pipe import HeldFrame, Pipe, RuledConnection
from fencepost.nemesis.wire.rulebook import LaidRule
from fencepost.nemesis.wire.rules import (
    Answer,
    Cut,
    Delay,
    Drop,
    Duplicate,
    Hold,
    LowerVersion,
    Reorder,
    Stall,
    Watch,
)
from fencepost.nemesis.wire.tape import FrameFate

_ERROR_END: Final = 10
"""The place behind length, correlation id and error."""
_ENTRY: Final = struct.Struct(">hhh")
_COUNT: Final = struct.Struct(">i")
_FLEXIBLE_FROM: Final = 3


def act(connection: RuledConnection, pipe: Pipe, frame: Frame, entry: LaidRule[HeldFrame]) -> None:
    """Do what the rule says to a frame that has just come."""
    rule = entry.rule.name
    match entry.rule.action:
        case Hold():
            _hold(connection, pipe, frame, entry)
        case Delay(min_ms=low, max_ms=high):
            # From its arrival on, so that frames that came together are late together.
            due_ns = frame.time_ns + round(entry.random.uniform(low, high) * 1e6)
            _stop(connection, pipe, frame, entry, FrameFate.DELAYED, due_ns=due_ns)
        case Reorder():
            _reorder(connection, pipe, frame, entry)
        case Stall():
            number = connection.send(pipe, frame, FrameFate.FORWARDED, rule=rule)
            fate = FrameFate.FORWARDED
            held = HeldFrame(connection, pipe, entry, frame, number=number, fate=fate, passed=True)
            connection.stop(held)
        case Drop():
            connection.keep_back(frame, FrameFate.DROPPED, rule=rule)
            connection.close()
        case Cut(passed_on=True):
            # Its receiver reads the frame, then that nothing follows; its answer goes nowhere.
            connection.send(pipe, frame, FrameFate.CUT, rule=rule)
            connection.close_behind(pipe)
        case Cut():
            connection.keep_back(frame, FrameFate.CUT, rule=rule)
            connection.close()
        case Duplicate():
            connection.send(pipe, frame, FrameFate.DUPLICATED, rule=rule)
            connection.again(frame, copy=True)
        case Answer(error=error):
            _answer(connection, frame, error, rule)
        case LowerVersion(api=api, max_version=max_version):
            data = lowered(frame, api, max_version)
            fate = FrameFate.FORWARDED if data == frame.data else FrameFate.REWRITTEN
            connection.send(pipe, frame, fate, rule=rule, data=data)
        case Watch() as action:
            raise AssertionError(action)  # It decides nothing: the book passes it over.
        case action:
            assert_never(action)


def let_go(held: HeldFrame, now_ns: int) -> None:
    """Pass on a frame that its rule holds, and go on behind it."""
    held.entry.let_go(held, delivered=held.connection.resume(held, now_ns))


def _hold(
    connection: RuledConnection, pipe: Pipe, frame: Frame, entry: LaidRule[HeldFrame]
) -> None:
    """Hold a frame; one of a session of ZooKeeper's only as long as the session does without pings.

    A rule that stops all messages, or the pings themselves, is meant to end the session.
    """
    bounded = entry.rule.match.api not in (None, "ping")
    limit_ns = connection.hold_ns_max if bounded else None
    due_ns = None if limit_ns is None else frame.time_ns + limit_ns
    _stop(connection, pipe, frame, entry, FrameFate.HELD, later=FrameFate.RELEASED, due_ns=due_ns)


def _stop(
    connection: RuledConnection,
    pipe: Pipe,
    frame: Frame,
    entry: LaidRule[HeldFrame],
    fate: FrameFate,
    *,
    later: FrameFate | None = None,
    due_ns: int | None = None,
) -> HeldFrame | None:
    """Have a frame wait; None: it was due already, and is passed on."""
    later = later or fate
    if due_ns is not None and due_ns <= connection.now_ns:
        connection.send(pipe, frame, later, rule=entry.rule.name)
        return None
    number = connection.keep_back(frame, fate, rule=entry.rule.name)
    held = HeldFrame(connection, pipe, entry, frame, number=number, fate=later, due_ns=due_ns)
    connection.stop(held)
    return held


def _reorder(
    connection: RuledConnection, pipe: Pipe, frame: Frame, entry: LaidRule[HeldFrame]
) -> None:
    overtaken = entry.overtaken.pop(frame.link, None)
    if overtaken is not None:
        connection.send(pipe, frame, FrameFate.FORWARDED, rule=entry.rule.name)
        let_go(overtaken, connection.now_ns)
    elif (held := _stop(connection, pipe, frame, entry, FrameFate.REORDERED)) is not None:
        entry.overtaken[frame.link] = held


def _answer(connection: RuledConnection, frame: Frame, error: str, rule: str) -> None:
    response = error_response(frame, error) if frame.header.answered else b""
    if response is None:
        connection.keep_back(frame, FrameFate.DROPPED, rule=rule)
        connection.give_up(f"rule {rule} cannot answer {frame}")
        return
    connection.keep_back(frame, FrameFate.ANSWERED, rule=rule)
    if response:
        connection.answer(frame, response, rule=rule)


def lowered(frame: Frame, api: str, max_version: int) -> bytes:
    """Return the ApiVersions response, offering `api` up to `max_version` only.

    Never below the lowest version that the target has, which would be one that it cannot read. A
    response that does not offer the API, or cannot be read, is as it was.
    """
    data = bytearray(frame.data)
    try:
        flexible = frame.header.api_version >= _FLEXIBLE_FROM
        flexible &= not is_version_0(frame.header, frame.data)
        place = _entry(frame.data, API_KEYS[api], flexible=flexible)
    except (struct.error, VarintError):
        place = None
    if place is not None:
        key, lowest, highest = _ENTRY.unpack_from(data, place)
        _ENTRY.pack_into(data, place, key, lowest, max(lowest, min(highest, max_version)))
    return bytes(data)


def _entry(data: bytes, api_key: int, *, flexible: bool) -> int | None:
    """Return the place at which the entry of this API begins, or None if it has no entry."""
    if flexible:
        coded, at = read_unsigned(data, _ERROR_END)
        count = coded - 1
    else:
        (count,), at = _COUNT.unpack_from(data, _ERROR_END), _ERROR_END + _COUNT.size
    for _ in range(count):
        if _ENTRY.unpack_from(data, at)[0] == api_key:
            return at
        at += _ENTRY.size
        if flexible:
            at = behind_tags(data, at)
    return None
