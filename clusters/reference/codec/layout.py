"""Layouts: a node's message and an entity of Kafka's, each field described once for both ways.

A layout is made of parts. Each part reads some of a message's fields, by name, from an entity, and
writes them into an entity's plain values. A partition's `key` is two fields, `topic_id` and
`partition`. Values that the version of an entity has no field for are left out when the entity is
made of them (`entities`); a field that some versions lack states what stands for it (`missing`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from operator import itemgetter
from typing import Any, Final, NamedTuple

from fencepost.clusters.protocol.entities import Values
from fencepost.clusters.reference.codec.api import RequestTopics, ms_of, ns_of
from fencepost.clusters.reference.codec.identifiers import id_of_uuid, uuid_of

_Found = dict[str, Any]
"""A message's fields by name."""
_KEY: Final = ("topic_id", "partition")
_NEEDED: Final = object()
_ITSELF: Final = ""
"""The name of a structure's value where it is no structure but this value alone."""


class Conversion(NamedTuple):
    """One value in both directions: from an entity's to a message's, and back to a plain one."""

    read: Callable[[Any, RequestTopics], Any]
    write: Callable[[Any, RequestTopics], Any]


PLAIN: Final = Conversion(lambda value, _: value, lambda value, _: value)
NUMBERS: Final = Conversion(lambda value, _: tuple(value), lambda value, _: value)
FLAG: Final = Conversion(lambda value, _: bool(value), lambda value, _: int(value))
ERROR: Final = Conversion(lambda value, _: value.value, lambda value, _: value)
NAME: Final = Conversion(lambda value, _: value or "", lambda value, _: value or None)
"""A text that is empty here and null on the wire."""
DURATION: Final = Conversion(lambda value, _: ns_of(value), lambda value, _: ms_of(value))
TOPIC_ID: Final = Conversion(lambda value, _: id_of_uuid(value), lambda value, _: uuid_of(value))
TOPIC_NAME: Final = Conversion(
    lambda value, labels: labels.id_of(value), lambda value, labels: labels.name_of(value)
)
"""A topic's id here, its name on the wire."""


class Part(NamedTuple):
    """Some fields of a message, as an entity has them."""

    names: tuple[str, ...]
    read: Callable[[Any, _Found, RequestTopics], None]
    """(entity, fields to add to, labels). Raises Unreadable."""
    write: Callable[[_Found, dict[str, Any], RequestTopics], None]
    """(fields, values to add to, labels)."""


class Layout:
    """The fields that an entity and a message have in common.

    `into`: the message's dataclass. None: a tuple of the parts' fields in their order, or the value
    itself where there is but one.
    """

    __slots__ = ("_parts", "make", "take")

    def __init__(self, *parts: Part, into: type | None = None) -> None:
        self._parts = parts
        shape = _row([name for one in parts for name in one.names]) if into is None else _made(into)
        self.make, self.take = shape

    def read(self, entity: Any, labels: RequestTopics, given: _Found | None = None) -> Any:
        """Return the message; `given`: fields that were found elsewhere. Raises Unreadable."""
        found = {} if given is None else given
        for part in self._parts:
            part.read(entity, found, labels)
        return self.make(found)

    def write(self, message: Any, labels: RequestTopics) -> Values:
        """Return the entity's values."""
        return _written(self._parts, self.take(message), labels)


def _written(parts: Iterable[Part], found: _Found, labels: RequestTopics) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for part in parts:
        part.write(found, values, labels)
    return values


_Shape = tuple[Callable[[_Found], Any], Callable[[Any], _Found]]
"""The functions that make a message of its fields, and take it apart into them."""


def _made(kind: type) -> _Shape:
    names = tuple(one.name for one in fields(kind))
    if "key" not in names:
        return lambda found: kind(**found), lambda one: {name: getattr(one, name) for name in names}

    def make(found: _Found) -> Any:
        return kind(key=(found.pop("topic_id"), found.pop("partition")), **found)

    def take(message: Any) -> _Found:
        found = {name: getattr(message, name) for name in names}
        found["topic_id"], found["partition"] = found.pop("key")
        return found

    return make, take


def _row(names: Sequence[str]) -> _Shape:
    if len(names) == 1:
        return itemgetter(names[0]), lambda one: {names[0]: one}
    if tuple(names[:2]) != _KEY:
        return itemgetter(*names), lambda one: dict(zip(names, one, strict=True))
    own = names[2:]
    return (
        lambda found: ((found["topic_id"], found["partition"]), *[found[name] for name in own]),
        lambda one: dict(zip(names, (*one[0], *one[1:]), strict=True)),
    )


def field(name: str, at: str = "", way: Conversion = PLAIN, *, missing: Any = _NEEDED) -> Part:
    """Return the part of one field, which has the entity's name `at` (default: the same).

    `missing`: its value in versions that lack it.
    """
    attribute = at or name

    def read(entity: Any, found: _Found, labels: RequestTopics) -> None:
        if missing is _NEEDED or hasattr(entity, attribute):
            found[name] = way.read(getattr(entity, attribute), labels)
        else:
            found[name] = missing

    def write(found: _Found, values: dict[str, Any], labels: RequestTopics) -> None:
        values[attribute] = way.write(found[name], labels)

    return Part((name,), read, write)


def number(name: str) -> Part:
    """Return the part of a field that has no structure around it: a partition by its index."""

    def read(entity: Any, found: _Found, _: RequestTopics) -> None:
        found[name] = entity

    def write(found: _Found, values: dict[str, Any], _: RequestTopics) -> None:
        values[_ITSELF] = found[name]

    return Part((name,), read, write)


def always(**stated: Any) -> Part:
    """Return a part that is written the same always, and not read."""
    return Part(
        (), lambda _entity, _found, _: None, lambda _found, values, _: values.update(stated)
    )


def read_only(name: str, of: Callable[[Any, _Found], Any]) -> Part:
    """Return the part of a field that follows from the entity and the fields read before."""

    def read(entity: Any, found: _Found, _: RequestTopics) -> None:
        found[name] = of(entity, found)

    return Part((name,), read, lambda _found, _values, _: None)


def write_only(of: Callable[[_Found], Values]) -> Part:
    """Return the part of values that follow from the fields, and are not read."""
    return Part(
        (),
        lambda _entity, _found, _: None,
        lambda found, values, _: values.update(of(found)),
    )


def inside(at: str, *parts: Part) -> Part:
    """Return the part of fields that an entity has in a structure of its own."""

    def read(entity: Any, found: _Found, labels: RequestTopics) -> None:
        for part in parts:
            part.read(getattr(entity, at), found, labels)

    def write(found: _Found, values: dict[str, Any], labels: RequestTopics) -> None:
        values[at] = _written(parts, found, labels)

    return Part(tuple(name for one in parts for name in one.names), read, write)


def nullable(way: Conversion) -> Conversion:
    """Return the conversion of a value that may be None on both sides."""
    return Conversion(
        lambda value, labels: None if value is None else way.read(value, labels),
        lambda value, labels: None if value is None else way.write(value, labels),
    )


def each(*parts: Part, into: type | None = None) -> Conversion:
    """Return the conversion of several structures, which are as in a `Layout`."""
    layout = Layout(*parts, into=into)
    return Conversion(
        lambda entities, labels: tuple([layout.read(one, labels) for one in entities]),
        lambda items, labels: [layout.write(one, labels) for one in items],
    )


def by_topic(
    topic: Sequence[Part], within: str, *parts: Part, into: type | None = None
) -> Conversion:
    """Return the conversion of items that stand in one row here, and by topic in an entity.

    `topic`: the parts of an item that its topic's structure has; `parts`: those of the structures
    in its field `within`. Topics and items keep the order in which they come.
    """
    layout = Layout(*topic, *parts, into=into)

    def read(topics: Any, labels: RequestTopics) -> Any:
        items = []
        for entity in topics:
            shared: _Found = {}
            for part in topic:
                part.read(entity, shared, labels)
            for one in getattr(entity, within):
                found = shared.copy()
                for part in parts:
                    part.read(one, found, labels)
                items.append(layout.make(found))
        return tuple(items)

    def write(items: Any, labels: RequestTopics) -> Any:
        topics: dict[tuple[Any, ...], dict[str, Any]] = {}
        for item in items:
            found = layout.take(item)
            head = _written(topic, found, labels)
            of = topics.setdefault(tuple(head.values()), head | {within: []})
            values = _written(parts, found, labels)
            of[within].append(values.get(_ITSELF, values))
        return list(topics.values())

    return Conversion(read, write)
