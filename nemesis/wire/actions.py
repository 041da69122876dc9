"""The effects of a rule on a frame, one action after the other.

An ApiVersions response that offers less has a version number changed in place. It is not decoded
and written again: a field that some later release adds would be lost. Layout:
ApiVersionsResponse.json; its header is version 0 always, so that any client can read it.
"""

import struct
from typing import TYPE_CHECKING, Final, assert_never

from clusters.protocol.varints import VarintError, read_unsigned
from nemesis.wire.answers import error_response
from nemesis.wire.apis import API_KEYS
from nemesis.wire.decoding.entities import is_version_0
from nemesis.wire.effects import Errand, Wake
from nemesis.wire.frame import Frame
from nemesis.wire.frames import behind_tags
from nemesis.wire.pipe import HeldFrame, Pipe
from nemesis.wire.rulebook import LaidRule
from nemesis.wire.rules import (
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
from nemesis.wire.tape import FrameFate

__all__ = ["act_on", "lowered"]

_ERROR_END: Final = 10
"""The place behind length, correlation id and error."""
_ENTRY: Final = struct.Struct(">hhh")
_COUNT: Final = struct.Struct(">i")
_FLEXIBLE_FROM: Final = 3


if TYPE_CHECKING:
    from nemesis.wire.sessions import Session


def act_on(session: "Session", pipe: Pipe, frame: Frame, entry: LaidRule[HeldFrame]) -> None:
    """Do what the rule says to a frame that has just come."""
    rule = entry.rule.name
    match entry.rule.action:
        case Hold():
            _hold(session, pipe, frame, entry)
        case Delay(min_ms=low, max_ms=high):
            _delay(session, pipe, frame, entry, delay_ms=entry.random.uniform(low, high))
        case Reorder():
            _reorder(session, pipe, frame, entry)
        case Stall():
            number = session.pass_on(pipe, frame, FrameFate.FORWARDED, rule=rule)
            session.wait(
                HeldFrame(
                    session=session,
                    pipe=pipe,
                    entry=entry,
                    frame=frame,
                    number=number,
                    fate=FrameFate.FORWARDED,
                    passed=True,
                )
            )
        case Drop():
            session.common.tape.record(frame, FrameFate.DROPPED, forwarded_ns=None, rule=rule)
            session.cut()
        case Cut(passed_on=True):
            # Its receiver reads the frame, then that nothing follows; its answer goes nowhere.
            session.pass_on(pipe, frame, FrameFate.CUT, rule=rule)
            session.close_behind(pipe)
        case Cut():
            session.common.tape.record(frame, FrameFate.CUT, forwarded_ns=None, rule=rule)
            session.cut()
        case Duplicate():
            session.pass_on(pipe, frame, FrameFate.DUPLICATED, rule=rule)
            session.common.act(session, Errand(frame, copy=True))
        case Answer(error=error):
            _answer(session, frame, error, rule)
        case LowerVersion(api=api, max_version=max_version):
            data = lowered(frame, api, max_version)
            fate = FrameFate.FORWARDED if data == frame.data else FrameFate.REWRITTEN
            session.pass_on(pipe, frame, fate, rule=rule, data=data)
        case Watch() as action:
            raise AssertionError(action)  # It decides nothing: the book passes it over.
        case action:
            assert_never(action)


def _hold(session: "Session", pipe: Pipe, frame: Frame, entry: LaidRule[HeldFrame]) -> None:
    """Hold a frame; one of a session of ZooKeeper's only as long as the session does without pings.

    A rule that stops all messages, or the pings themselves, is meant to end the session.
    """
    bounded = entry.rule.match.api not in (None, "ping")
    limit_ns = session.hold_ns_max if bounded else None
    if limit_ns is None:
        _wait(session, pipe, frame, entry, now=FrameFate.HELD, later=FrameFate.RELEASED)
        return
    now, later = FrameFate.HELD, FrameFate.RELEASED
    _wait_until(session, pipe, frame, entry, now=now, later=later, due_ns=frame.time_ns + limit_ns)


def _wait(
    session: "Session",
    pipe: Pipe,
    frame: Frame,
    entry: LaidRule[HeldFrame],
    *,
    now: FrameFate,
    later: FrameFate,
    due_ns: int | None = None,
) -> HeldFrame:
    waiting = HeldFrame(
        session=session,
        pipe=pipe,
        entry=entry,
        frame=frame,
        number=session.common.tape.record(frame, now, forwarded_ns=None, rule=entry.rule.name),
        fate=later,
        due_ns=due_ns,
    )
    session.wait(waiting)
    return waiting


def _delay(
    session: "Session", pipe: Pipe, frame: Frame, entry: LaidRule[HeldFrame], *, delay_ms: float
) -> None:
    """Delay a frame from its arrival on, so that frames that came together are late together."""
    late, due_ns = FrameFate.DELAYED, frame.time_ns + round(delay_ms * 1e6)
    _wait_until(session, pipe, frame, entry, now=late, later=late, due_ns=due_ns)


def _wait_until(
    session: "Session",
    pipe: Pipe,
    frame: Frame,
    entry: LaidRule[HeldFrame],
    *,
    now: FrameFate,
    later: FrameFate,
    due_ns: int,
) -> None:
    if due_ns <= session.now_ns:
        session.pass_on(pipe, frame, later, rule=entry.rule.name)
        return
    _wait(session, pipe, frame, entry, now=now, later=later, due_ns=due_ns)
    session.common.act(session, Wake(due_ns))


def _reorder(session: "Session", pipe: Pipe, frame: Frame, entry: LaidRule[HeldFrame]) -> None:
    link = session.link
    overtaken = entry.overtaken.pop(link, None)
    if overtaken is None:
        entry.overtaken[link] = _wait(
            session, pipe, frame, entry, now=FrameFate.REORDERED, later=FrameFate.REORDERED
        )
        return
    session.pass_on(pipe, frame, FrameFate.FORWARDED, rule=entry.rule.name)
    delivered = overtaken.session.deliver(overtaken, session.now_ns)
    entry.let_go(overtaken, delivered=delivered)


def _answer(session: "Session", frame: Frame, error: str, rule: str) -> None:
    response = error_response(frame, error) if frame.header.answered else b""
    if response is None:
        session.common.tape.record(frame, FrameFate.DROPPED, forwarded_ns=None, rule=rule)
        session.give_up(f"rule {rule} cannot answer {frame}")
        return
    session.common.tape.record(frame, FrameFate.ANSWERED, forwarded_ns=None, rule=rule)
    if response:
        session.answer(frame, response, rule=rule)


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
