"""The codec's reading of an RPC's table (`clusters.protocol.rpc`): parts of layouts, and an `Api`.

A table says what an RPC says to anybody. What is our nodes' own is stated with it here: the classes
of their messages, the versions that they speak, the doors at which it is asked, its traffic.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, Final, assert_never

from fencepost.clusters.protocol.api_keys import KEYS
from fencepost.clusters.protocol.entities import Unreadable, Values
from fencepost.clusters.protocol.rpc import (
    ITSELF,
    NEEDED,
    ByTopic,
    ByVersion,
    Converter,
    Entry,
    InLog,
    Inside,
    RpcField,
    RpcTable,
    Structures,
    Told,
    ValueKind,
)
from fencepost.clusters.reference.codec.api import Api, Asked, ListenerType, RequestTopics, Traffic
from fencepost.clusters.reference.codec.identifiers import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    uuid_of,
)
from fencepost.clusters.reference.codec.layout import (
    ERROR,
    FLAG,
    NAME,
    NUMBERS,
    PLAIN,
    TOPIC_ID,
    Conversion,
    Layout,
    Part,
    by_topic,
    each,
    field,
    inside,
    nullable,
    number,
)

_Into = Mapping[str, type]
"""The dataclasses of a message's items, by their fields' names; all others are tuples."""

_WAYS: Final[Mapping[ValueKind, Conversion]] = {
    ValueKind.PLAIN: PLAIN,
    ValueKind.NUMBERS: NUMBERS,
    ValueKind.NUMBERS_OR_NONE: nullable(NUMBERS),
    ValueKind.FLAG: FLAG,
    ValueKind.ERROR: ERROR,
    ValueKind.OWN_ERROR: PLAIN,
    ValueKind.NAME: NAME,
    ValueKind.TOPIC_ID: TOPIC_ID,
}
_TOPIC: Final = uuid_of(METADATA_TOPIC_ID)
_NAMES: Final = dict.fromkeys(("topic_name", "name", "topic"), METADATA_TOPIC) | {
    "topic_id": _TOPIC
}
"""The log's topic, by all names that one of these APIs has for it."""
_NUMBERS: Final = dict.fromkeys(("partition_index", "partition", "index"), 0)


def between_nodes(
    rpc: RpcTable,
    versions: tuple[int, int],
    doors: tuple[ListenerType, ...],
    *,
    request: type[Any],
    response: type[Any],
    into: _Into | None = None,
    answered_into: _Into | None = None,
    asked_in: int | None = None,
    traffic: str = Traffic.FORWARDED,
    lowered: Callable[[Any, int], Any] | None = None,
) -> Api:
    """Return an API that nodes ask each other. Its table may have parts of the codec's own.

    `into`, `answered_into`: the dataclasses of a request's and of a response's items.

    A request with a field `version` is asked in that version, others in `asked_in` (default: the
    highest). A response with a field `voter_id` has the id of the node that was asked in it.
    """
    asking = Layout(*_parts(rpc.asks, into or {}), into=request)
    answering = Layout(*_parts(rpc.answers, answered_into or {}), into=response)
    has_version = any(one.name == "version" for one in fields(request))
    has_voter = any(one.name == "voter_id" for one in fields(response))

    def asked(entity: Any, correlation: int, labels: RequestTopics) -> Any:
        version = {"version": int(entity.__version__)} if has_version else {}
        return asking.read(entity, labels, {"correlation": correlation, **version})

    def answer(message: Any, to: Asked) -> Values:
        return answering.write(message, to.labels)

    def answered(entity: Any, message: Any, node: int, labels: RequestTopics) -> Any:
        voter = {"voter_id": node} if has_voter else {}
        return answering.read(entity, labels, {"correlation": message.correlation, **voter})

    return Api(
        name=rpc.name,
        key=KEYS[rpc.name],
        kind=request.kind,
        versions=versions,
        doors=doors,
        asked=asked,
        answer=answer,
        ask=asking.write,
        answered=answered,
        asked_in=asked_in,
        traffic=traffic,
        lowered=lowered,
    )


def _parts(entries: Iterable[Entry | Part], into: _Into) -> tuple[Part, ...]:
    compiled = (one if isinstance(one, Part) else _part(one, into) for one in entries)
    return tuple(one for one in compiled if one is not None)


def _part(entry: Entry, into: _Into) -> Part | None:
    match entry:
        case RpcField():
            return _field(entry, into)
        case Inside():
            return inside(entry.at, *_parts(entry.fields, into))
        case InLog():
            return in_log(*_parts(entry.fields, into), at=entry.at)
        case ByVersion():
            read, write = entry.read, entry.write
            return Part(
                entry.names,
                lambda entity, found, _: read(entity, found),
                lambda found, values, _: write(found, values),
            )
        case Told():
            return None
    assert_never(entry)


def _field(entry: RpcField, into: _Into) -> Part | None:
    if not entry.name:
        return None
    if entry.at == ITSELF:
        return number(entry.name)
    way = _conversion(entry, into)
    if entry.missing is NEEDED:
        return field(entry.name, entry.at, way)
    return field(entry.name, entry.at, way, missing=entry.missing)


def _conversion(entry: RpcField, into: _Into) -> Conversion:
    way, kind = entry.way, into.get(entry.name)
    match way:
        case ValueKind():
            return _WAYS[way]
        case Converter():
            read, write = way
            return Conversion(lambda value, _: read(value), lambda value, _: write(value))
        case ByTopic():
            parts = _parts(way.fields, into)
            found = by_topic(_parts(way.topic, into), way.within, *parts, into=kind)
            return nullable(found) if way.nullable else found
        case Structures():
            return each(*_parts(way.fields, into), into=kind)
    assert_never(way)


def in_log(*parts: Part, at: str = "topics") -> Part:
    """Return the part of fields that an entity has in its one partition, that of the log."""

    def read(entity: Any, found: dict[str, Any], labels: RequestTopics) -> None:
        one = log_partition(getattr(entity, at))
        for part in parts:
            part.read(one, found, labels)

    def write(found: dict[str, Any], values: dict[str, Any], labels: RequestTopics) -> None:
        partition: dict[str, Any] = dict(_NUMBERS)
        for part in parts:
            part.write(found, partition, labels)
        values[at] = [{**_NAMES, "partitions": [partition]}]

    return Part(tuple(name for one in parts for name in one.names), read, write)


def log_partition(topics: Any) -> Any:
    """Return the one partition of a message about the metadata log. Raises Unreadable."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        raise Unreadable("a request of the quorum that is not about one partition")
    topic = topics[0]
    if not any(getattr(topic, name, None) == value for name, value in _NAMES.items()):
        named = next((getattr(topic, name) for name in _NAMES if hasattr(topic, name)), None)
        raise Unreadable(f"a request of the quorum about {named}")
    return topic.partitions[0]
