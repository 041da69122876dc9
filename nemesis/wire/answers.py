"""Responses with an error that a wire makes in the place of a target.

They are built from the request by introspection. The error stands where brokers state it: an error
of the whole request (a wrong controller, a stale broker epoch) in the message's own field, without
items; any other in each item, of which the response has those that the request named. A message
without a field of its own has every error in its items, one without items in its own field.

Both wires answer by `error_response`: a proxy sends the bytes, a simulated wire hands over what a
node reads of them.
"""

import io
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from functools import cache
from typing import Any, Final, get_args, get_origin, get_type_hints

from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_writer
from kio.static.primitive import i16, i32

from fencepost.clusters.protocol.defined_entities import defined_versions
from fencepost.clusters.protocol.entities import Unreadable, default_of
from fencepost.nemesis.wire.apis import API_KEYS
from fencepost.nemesis.wire.decoding.entities import entity_type
from fencepost.nemesis.wire.decoding.reference import error_frame
from fencepost.nemesis.wire.error_codes import error_code
from fencepost.nemesis.wire.frame import Frame
from fencepost.nemesis.wire.rules import Direction
from fencepost.nemesis.wire.zookeeper.messages import KEY_MIN

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
    "responses": ("topic_data", "topics", "topic_names", "resources"),
    "partition_responses": ("partition_data",),
    "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    "results_by_partition": ("partitions",),
    "results_by_transaction": ("transactions",),
    "topic_results": ("topics",),
    "markers": ("markers",),
    "directories": ("directories",),
    "replica_election_results": ("topic_partitions",),
    "partition_result": ("partitions",),
    "results": ("feature_updates", "topics", "resources", "groups_names", "creations"),
    "coordinators": ("coordinator_keys",),
    "groups": ("groups", "group_ids"),
    "transaction_states": ("transactional_ids",),
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
_OF_DRAFT: Final = frozenset(("error_code", "top_level_error_code"))
"""Errors that are numbers: those of the draft's responses, which are of the whole request here."""
_ALONE: Final[Mapping[str, type]] = {
    **dict.fromkeys(("partition_index", "partition", "index", "partition_id"), int),
    **dict.fromkeys(("name", "key", "group_id", "transactional_id"), str),
}
"""Fields that stand for a whole item of a request, which is a number or a name and no structure."""


def error_response(frame: Frame, error: str) -> bytes | None:
    """Return the response with this error to this request, as a whole frame.

    None if the request cannot be read, or its response has no place for the error.
    """
    header = frame.header
    if header.api_versions is not None:
        return error_frame(header, error)
    try:
        request = frame.entity()
        kind = entity_type(header.api_key, header.api_version, Direction.RESPONSE)
    except Unreadable:
        return None
    response = _response(kind, request, error_code(error))
    if not [*_own_errors(kind), *_erroneous(response)]:
        return None
    body = io.BytesIO()
    header_type = kind.__header_schema__
    entity_writer(header_type)(body, header_type(correlation_id=i32(header.correlation_id)))
    entity_writer(kind)(body, response)
    return _LENGTH.pack(body.tell()) + body.getvalue()


def why_no_answer(api: str) -> str | None:
    """Return why no request of this API can be answered with an error; None if it can."""
    key = API_KEYS[api]
    versions = {*schema_name_map.get(api_key_map.get(key, ""), ()), *defined_versions(key)}
    if key >= KEY_MIN or any(_has_place(key, version) for version in versions):
        return None
    return f"the wire knows no field for an error in the answer to {api}; drop the request instead"


def _has_place(api_key: int, version: int) -> bool:
    kinds = (entity_type(api_key, version, way) for way in (Direction.RESPONSE, Direction.REQUEST))
    return _has_error(*kinds)


def _has_error(kind: Any, asked: Any) -> bool:
    """Return whether there is a field for an error in a response, or in items that it mirrors."""
    return bool([*_own_errors(kind)]) or any(
        _has_error(nested, _item_type(_hints(asked)[name]))
        for one in fields(kind)
        if _is_structure(nested := _item_type(_hints(kind)[one.name]))
        for name in _MIRRORED.get(one.name, ())
        if _is_structure(asked) and name in _hints(asked)
    )


def _response(kind: Any, request: Any, error: ErrorCode) -> Any:
    built = _built(kind, request, error)
    own, items = [*_own_errors(kind)], [*_erroneous(built)]
    if not own or not items:
        return built
    if error in _OF_THE_REQUEST:
        return _with(built, dict.fromkeys(items, ()))
    hints = _hints(kind)
    return _with(built, {name: ErrorCode.none for name in own if hints[name] is ErrorCode})


def _own_errors(kind: Any) -> Iterator[str]:
    """Yield the fields of a structure that are errors of its own."""
    hints = _hints(kind) if _is_structure(kind) else {}
    yield from (name for name in hints if hints[name] is ErrorCode or name in _OF_DRAFT)


def _erroneous(response: Any) -> Iterator[str]:
    """Yield the fields of a response with items that have an error."""
    for one in fields(response):
        items = getattr(response, one.name) if one.name in _MIRRORED else ()
        if any([*_own_errors(type(item)), *_erroneous(item)] for item in items or ()):
            yield one.name


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
    nested = _item_type(hint)
    if _is_structure(nested) and one.name in _MIRRORED:
        return tuple(_built(nested, item, error) for item in _items(request, one.name))
    default = default_of(one, hint)
    if _is_structure(hint) or nested is not None:
        return default
    return _stated(one.name, request, default, nullable=type(None) in get_args(hint))


def _items(request: Any, name: str) -> Sequence[Any]:
    for asked in _MIRRORED[name]:
        if (items := getattr(request, asked, None)) is not None:
            return tuple(items)
    return ()


def _stated(name: str, request: Any, otherwise: Any, *, nullable: bool) -> Any:
    """Return what the request states for this field: a topic, a partition, an epoch."""
    if name in _ALONE and isinstance(request, _ALONE[name]):
        return request
    for asked in _SAME.get(name, (name,)):
        stated = getattr(request, asked, None)
        if stated is not None or (nullable and hasattr(request, asked)):
            return stated
    return otherwise


def _item_type(hint: Any) -> Any:
    """Return the type of a list's items; None if it is no list."""
    own = [part for part in get_args(hint) if part not in (type(None), Ellipsis)]
    if get_origin(hint) is tuple:
        return own[0]
    return _item_type(own[0]) if own else None


def _with(entity: Any, changes: Mapping[str, Any]) -> Any:
    values = {one.name: getattr(entity, one.name) for one in fields(entity)}
    return type(entity)(**{**values, **changes})


def _is_structure(hint: Any) -> bool:
    return is_dataclass(hint)


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind)
