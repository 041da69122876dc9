"""kio's entities from plain values, whatever the version: a message is written down once.

An API's fields come and go with its versions. What is built here takes from the values the fields
that a version has; one that is not stated has its default or is empty. Values are plain: ints for
error codes and times in ms, bytes for records, `uuid.UUID` for ids, mappings for structs.
"""

import io
import struct
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, get_args, get_origin, get_type_hints

from kio.index import UnknownAPIKey, UnknownEntity, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32

from fencepost.clusters.protocol.defined_entities import (
    defined_request,
    defined_response,
    defined_versions,
)

Values = Mapping[str, Any]
_Maker = Callable[[Any], Any]
_Reader = Callable[[bytes, int], tuple[Any, int]]

_LENGTH: Final = struct.Struct(">i")
_MS: Final = timedelta(milliseconds=1)
_NO_TIME: Final = timedelta()
_EMPTY: Final[Mapping[type, Any]] = {
    bool: False,
    int: 0,
    float: 0.0,
    str: "",
    bytes: b"",
    timedelta: _NO_TIME,
    datetime: datetime.fromtimestamp(0, UTC),
}


class Unreadable(Exception):  # noqa: N818 -- what a peer sent, not what failed here
    """The bytes are not the message that they should be."""


@cache
def request_type(api_key: int, version: int) -> Any:
    """Return the class of a request. Raises Unreadable if the class does not exist."""
    if version in defined_versions(api_key):
        return defined_request(api_key, version)
    try:
        return load_request_schema(api_key, version)
    except (UnknownAPIKey, UnknownEntity) as error:
        raise Unreadable(f"no request of API {api_key} in version {version}") from error


@cache
def response_type(api_key: int, version: int) -> Any:
    """Return the class of a response. Raises Unreadable if the class does not exist."""
    if version in defined_versions(api_key):
        return defined_response(api_key, version)
    try:
        return load_response_schema(api_key, version)
    except (UnknownAPIKey, UnknownEntity) as error:
        raise Unreadable(f"no response of API {api_key} in version {version}") from error


def built(kind: Any, values: Values) -> Any:
    """An entity with these values."""
    return _maker(kind)(values)


def request_frame(kind: Any, values: Values, *, correlation_id: int, client_id: str) -> bytes:
    """A request as a whole frame."""
    header_type = kind.__header_schema__
    header = header_type(
        request_api_key=kind.__api_key__,
        request_api_version=kind.__version__,
        correlation_id=i32(correlation_id),
        client_id=client_id,
    )
    return _frame(header_type, header, kind, values)


def response_frame(kind: Any, values: Values, *, correlation_id: int) -> bytes:
    """A response as a whole frame."""
    header_type = kind.__header_schema__
    return _frame(header_type, header_type(correlation_id=i32(correlation_id)), kind, values)


def read(kind: Any, frame: bytes, *, at: int = 0) -> Any:
    """The message of a frame whose header begins `at` this byte. Raises Unreadable."""
    read_header, read_message = _readers(kind)
    # kio raises what its readers happen to run into: SerialError, ValueError, OverflowError, …
    try:
        _, size = read_header(frame, at)
        entity, _ = read_message(frame, at + size)
    except Exception as error:
        raise Unreadable(f"not a {kind.__name__} version {kind.__version__}: {error!r}") from error
    return entity


def default_of(one: Field[Any], hint: Any) -> Any:
    """Return the value of a field that is not stated: its default, else none, zero or empty."""
    return _empty(hint) if one.default is MISSING else one.default


@cache
def _readers(kind: Any) -> tuple[_Reader, _Reader]:
    return entity_reader(kind.__header_schema__), entity_reader(kind)


def _frame(header_type: Any, header: Any, kind: Any, values: Values) -> bytes:
    body = io.BytesIO()
    entity_writer(header_type)(body, header)
    entity_writer(kind)(body, built(kind, values))
    return _LENGTH.pack(body.tell()) + body.getvalue()


@cache
def _maker(kind: Any) -> _Maker:
    hints = get_type_hints(kind)
    makers = tuple(_field_maker(one, hints[one.name]) for one in fields(kind))

    def make(values: Values) -> Any:
        return kind(
            **{
                name: maker(values[name]) if name in values else default
                for name, maker, default in makers
            }
        )

    return make


def _field_maker(one: Field[Any], hint: Any) -> tuple[str, _Maker, Any]:
    """Return (name, the maker of its value from a plain one, its value where none is stated)."""
    maker = _value_maker(hint, nullable=type(None) in get_args(hint))
    return one.name, maker, default_of(one, hint)


def _value_maker(hint: Any, *, nullable: bool) -> _Maker:
    if nullable:
        own = next(part for part in get_args(hint) if part is not type(None))
        make = _value_maker(own, nullable=False)
        return lambda value: None if value is None else make(value)
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        make_item = _value_maker(item, nullable=type(None) in get_args(item))
        return lambda values: tuple([make_item(value) for value in values])
    if is_dataclass(hint):
        make_struct: _Maker = _maker(hint)  # type: ignore[arg-type]  # a class, and hashable
        return make_struct
    if hint is ErrorCode:
        return ErrorCode
    if issubclass(hint, timedelta):
        return lambda value: _MS * value if value else _NO_TIME
    if issubclass(hint, str):
        return lambda value: value or ""  # null is empty in versions that have no null
    return _same


def _same(value: Any) -> Any:
    return value


def _empty(hint: Any) -> Any:
    if type(None) in get_args(hint):
        return None
    if get_origin(hint) is tuple:
        return ()
    if is_dataclass(hint):
        return built(hint, {})
    if hint is ErrorCode:
        return ErrorCode.none
    # kio's own types are plain ones under other names, and are not made by calling them.
    return next(empty for plain, empty in _EMPTY.items() if issubclass(hint, plain))
