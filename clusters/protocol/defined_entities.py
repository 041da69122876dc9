"""Messages that kio does not have, as kio would write them, so that its readers take them.

Those that Kafka 4.0 has given up are of controllers that keep their state in ZooKeeper
(LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown), and AlterPartition 0 and 1, which
name topics: `messages/` has their definitions as they lie in the jars of Kafka 3.9.2, without
comments. Beside them are MetadataHeartbeat and IsrChange as the draft "Controller heartbeats" lays
them out, and IsrChange 1, which adds the incarnation of each member. Entity types are made of the
definitions once they are asked for.

ControlledShutdown 0 is left out: Kafka before 0.9 sent it, with a header of its own.
"""

import re
import uuid
from collections.abc import Mapping
from dataclasses import field, make_dataclass
from functools import cache
from importlib.resources import files
from types import GenericAlias
from typing import Any, Final

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v1.header import RequestHeader as RequestHeader1
from kio.schema.request_header.v2.header import RequestHeader as RequestHeader2
from kio.schema.response_header.v0.header import ResponseHeader as ResponseHeader0
from kio.schema.response_header.v1.header import ResponseHeader as ResponseHeader1
from kio.static.constants import EntityType
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64

from fencepost.clusters.protocol.api_keys import GIVEN_UP, OF_DRAFT
from fencepost.clusters.protocol.message_definitions import Field, Message, parsed_message

_ALTER_PARTITION: Final = {"AlterPartition": 56}
_NAMES: Final = {key: name for name, key in {**_ALTER_PARTITION, **GIVEN_UP, **OF_DRAFT}.items()}
"""The APIs with messages that are defined here, by their keys."""

_TYPES: Final[Mapping[str, Any]] = {
    "bool": bool,
    "int8": i8,
    "int16": i16,
    "int32": i32,
    "int64": i64,
    "string": str,
    "uuid": uuid.UUID | None,
}
_BY_NAME: Final[Mapping[str, tuple[str, str, Any]]] = {
    "errorCode": ("error_code", "error_code", ErrorCode),
    "throttleTimeMs": ("throttle_time", "timedelta_i32", i32Timedelta),
}
"""Fields that kio writes in another way than their type says: name, type and class.

Errors of the draft are numbers, since Kafka does not have all of them.
"""
_HEADERS: Final = {
    (EntityType.request, False): RequestHeader1,
    (EntityType.request, True): RequestHeader2,
    (EntityType.response, False): ResponseHeader0,
    (EntityType.response, True): ResponseHeader1,
}


def defined_versions(api_key: int) -> range:
    """Return the versions of an API that are defined here; none of all others."""
    name = _NAMES.get(api_key)
    if name is None:
        return range(0)
    versions = _definition(name, EntityType.request).versions
    return range(versions.first, versions.last + 1)


def defined_request(api_key: int, version: int) -> Any:
    """Return the class of a request that is defined here, as kio's are."""
    return _entity_type(api_key, version, EntityType.request)


def defined_response(api_key: int, version: int) -> Any:
    """Return the class of a response that is defined here, as kio's are."""
    return _entity_type(api_key, version, EntityType.response)


@cache
def _entity_type(api_key: int, version: int, kind: EntityType) -> Any:
    message = _definition(_NAMES[api_key], kind)
    flexible = version in message.flexible
    shared = {
        "__version__": i16(version),
        "__flexible__": flexible,
        "__api_key__": i16(api_key),
        "__header_schema__": _HEADERS[kind, flexible],
    }
    return _made(message.name, message.fields, shared, kind=kind)


@cache
def _definition(api: str, kind: EntityType) -> Message:
    folder = files("fencepost.clusters.protocol") / "messages"
    place = folder / f"{api}{kind.name.capitalize()}.json"
    return parsed_message(place.read_text(encoding="utf-8"))


def _made(
    name: str, members: tuple[Field, ...], shared: Mapping[str, Any], *, kind: EntityType
) -> Any:
    stated = [_member(one, shared) for one in members if shared["__version__"] in one.versions]
    own = {**shared, "__type__": kind}
    return make_dataclass(name, stated, namespace=own, frozen=True, slots=True, kw_only=True)


def _member(one: Field, shared: Mapping[str, Any]) -> tuple[str, Any, Any]:
    version = shared["__version__"]
    if one.fields:
        inner = _made(one.type, one.fields, shared, kind=EntityType.nested)
        return _snake(one.name), _tuple_of(inner), field()
    by_name = {} if shared["__api_key__"] in OF_DRAFT.values() else _BY_NAME
    name, kafka_type, plain = by_name.get(one.name, (_snake(one.name), one.type, _TYPES[one.type]))
    metadata: dict[str, Any] = {"kafka_type": kafka_type}
    if version in one.tagged:
        # A tag is left out where its field has the default, which is zero in all of these.
        return name, plain, field(metadata=metadata | {"tag": one.tag}, default=plain(0))
    hint = _tuple_of(plain) if one.array else plain
    return name, hint | None if version in one.nullable else hint, field(metadata=metadata)


def _tuple_of(kind: Any) -> Any:
    return GenericAlias(tuple, (kind, ...))


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
