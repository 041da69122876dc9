"""The effects of a rule on a frame, one action after the other, and responses that the proxy makes.

An error response, in a target's place, is built from the request by introspection. The error stands
where clients look for it: an error of the whole request (a wrong controller, a stale broker epoch)
in the message's own field; any other in each item, of which the response has those that the request
named. A message without items always has it in its own field.

An ApiVersions response that offers less has a version number changed in place. It is not decoded
and written again: a field that some later release adds would be lost. Layout:
ApiVersionsResponse.json; its header is version 0 always, so that any client can read it.
"""

import io
import struct
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final, assert_never, get_args, get_origin, get_type_hints

from kio.index import UnknownAPIKey, UnknownEntity
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer
from kio.static.primitive import i16, i32

from clusters.protocol.varints import VarintError, read_unsigned
from nemesis.wire.apis import API_KEYS
from nemesis.wire.decoding.entities import UnreadableFrame, entity_of, entity_type, is_version_0
from nemesis.wire.decoding.reference import error_frame
from nemesis.wire.effects import Errand, Wake
from nemesis.wire.error_codes import error_code
from nemesis.wire.frame import Frame
from nemesis.wire.frames import behind_tags
from nemesis.wire.pipe import HeldFrame, Pipe
from nemesis.wire.rulebook import LaidRule
from nemesis.wire.rules import (
    Answer,
    Cut,
    Delay,
    Direction,
    Drop,
    Duplicate,
    Hold,
    LowerVersion,
    Reorder,
    Stall,
    Watch,
)
from nemesis.wire.tape import FrameFate

__all__ = ["act_on", "error_response", "lowered"]

_LENGTH: Final = struct.Struct(">i")
_OF_THE_REQUEST: Final = frozenset(
    error_code(name)
    for name in (
        "BROKER_ID_NOT_REGISTERED",
        "CLUSTER_AUTHORIZATION_FAILED",
        "DUPLICATE_BROKER_REGISTRATION",
        "FETCH_SESSION_ID_NOT_FOUND",
        "FETCH_SESSION_TOPIC_ID_ERROR",
        "INCONSISTENT_CLUSTER_ID",
        "INVALID_FETCH_SESSION_EPOCH",
        "INVALID_REQUEST",
        "NOT_CONTROLLER",
        "REQUEST_TIMED_OUT",
        "STALE_BROKER_EPOCH",
        "THROTTLING_QUOTA_EXCEEDED",
        "UNSUPPORTED_VERSION",
    )
)
_MIRRORED: Final[Mapping[str, Sequence[str]]] = {
    "topics": ("topics", "topic_data"),
    "partitions": ("partitions", "partition_indexes"),
    "responses": ("topic_data", "topics", "topic_names"),
    "partition_responses": ("partition_data",),
    "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    "results_by_partition": ("partitions",),
    "results_by_transaction": ("transactions",),
    "topic_results": ("topics",),
    "markers": ("markers",),
    "directories": ("directories",),
    "replica_election_results": ("topic_partitions",),
    "partition_result": ("partitions",),
    "results": ("feature_updates",),
}
"""Items of responses, and the items of requests that they answer."""
_SAME: Final[Mapping[str, Sequence[str]]] = {
    "partition_index": ("partition_index", "partition", "index"),
    "partition": ("partition", "partition_index"),
    "index": ("index", "partition"),
    "name": ("name", "topic", "topic_name"),
    "topic": ("topic", "name"),
    "partition_id": ("partition_index",),
}
"""Fields that identify an item, where requests and responses name them differently."""
_EMPTY: Final[Mapping[type, Any]] = {
    bool: False,
    int: 0,
    float: 0.0,
    str: "",
    bytes: b"",
    timedelta: timedelta(),
    datetime: datetime.fromtimestamp(0, UTC),
}
_OF_DRAFT: Final = frozenset(("error_code", "top_level_error_code"))
"""Errors that are numbers: those of the draft's responses, which are of the whole request here."""
_NUMBERS: Final = frozenset(("partition_index", "partition", "index", "partition_id"))
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


def error_response(frame: Frame, error: str) -> bytes | None:
    """Return the response with this error to this request, as a whole frame.

    None if the request cannot be read or its response cannot be written.
    """
    header = frame.header
    if header.spoken is not None:
        return error_frame(header, error)
    try:
        request = entity_of(header, Direction.REQUEST, frame.data)
        kind = entity_type(header.api_key, header.api_version, Direction.RESPONSE)
    except (UnreadableFrame, UnknownAPIKey, UnknownEntity):
        return None
    body = io.BytesIO()
    header_type = kind.__header_schema__
    entity_writer(header_type)(body, header_type(correlation_id=i32(header.correlation_id)))
    entity_writer(kind)(body, _response(kind, request, error_code(error)))
    return _LENGTH.pack(body.tell()) + body.getvalue()


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


def _response(kind: Any, request: Any, error: ErrorCode) -> Any:
    built = _built(kind, request, error)
    if error not in _OF_THE_REQUEST and _item_count(built):
        own = [one.name for one in fields(kind) if _hints(kind)[one.name] is ErrorCode]
        built = _with(built, dict.fromkeys(own, ErrorCode.none))
    return built


def _item_count(response: Any) -> int:
    """Return the number of items with an error of their own."""
    return sum(
        len(items)
        for one in fields(response)
        if one.name in _MIRRORED and (items := getattr(response, one.name))
    )


def _built(kind: Any, request: Any, error: ErrorCode) -> Any:
    return kind(
        **{one.name: _value(kind, one, request=request, error=error) for one in fields(kind)}
    )


def _value(kind: Any, one: Field[Any], *, request: Any, error: ErrorCode) -> Any:
    hint = _hints(kind)[one.name]
    if hint is ErrorCode:
        return error
    if one.name in _OF_DRAFT:
        return i16(error.value)
    if one.name == "error_message":
        return None
    arguments = [part for part in get_args(hint) if part is not Ellipsis]
    nested = arguments[0] if get_origin(hint) is tuple else None
    if is_dataclass(nested) and one.name in _MIRRORED:
        return tuple(_built(nested, item, error) for item in _items(request, one.name))
    default = _empty(hint) if one.default is MISSING else one.default
    if is_dataclass(hint) or any(get_origin(one) is tuple for one in (hint, *get_args(hint))):
        return default
    return _stated(one.name, request, default, nullable=type(None) in get_args(hint))


def _items(request: Any, name: str) -> Sequence[Any]:
    for asked in _MIRRORED[name]:
        if (items := getattr(request, asked, None)) is not None:
            return tuple(items)
    return ()


def _stated(name: str, request: Any, otherwise: Any, *, nullable: bool) -> Any:
    """Return what the request states for this field: a topic, a partition, an epoch."""
    if name in _NUMBERS and isinstance(request, int):
        return request
    if name == "name" and isinstance(request, str):
        return request
    for asked in _SAME.get(name, (name,)):
        stated = getattr(request, asked, None)
        if stated is not None or (nullable and hasattr(request, asked)):
            return stated
    return otherwise


def _empty(hint: Any) -> Any:
    """Return the value of a field that the request does not state: None, zero, an empty list."""
    if type(None) in get_args(hint):
        return None
    if get_origin(hint) is tuple:
        return ()
    if is_dataclass(hint):
        return _default(hint)
    # kio's own types are plain ones under other names, and are not made by calling them.
    return next(empty for plain, empty in _EMPTY.items() if issubclass(hint, plain))


def _default(kind: Any) -> Any:
    hints = _hints(kind)
    return kind(
        **{
            one.name: _empty(hints[one.name]) if one.default is MISSING else one.default
            for one in fields(kind)
        }
    )


def _with(entity: Any, changes: dict[str, Any]) -> Any:
    values = {one.name: getattr(entity, one.name) for one in fields(entity)}
    return type(entity)(**values | changes)


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind)


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
