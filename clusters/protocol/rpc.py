"""An RPC's table: what its request and its response say, each field told once.

A field has a name of its own, a place in Kafka's message, and, where the tape shows it, a column of
the table `wire`. Two things are made of a table: the reference cluster's codec
(`clusters.reference.codec.tables`), which reads and writes the fields of the versions that its
nodes speak, and the tape's columns (`nemesis.wire.decoding.tables`), which are those of any
version: what a version lacks is left out.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, NamedTuple

Columns = Mapping[str, Any]
NEEDED: Final = object()
"""A field without a value that stands for it where a version lacks it."""
ITSELF: Final = "."
"""The place of a field that has no structure around it: a partition by its number."""


class ValueKind(Enum):
    """The ways in which a value is told: by the message's, by the entity's and by the tape."""

    PLAIN = auto()
    NUMBERS = auto()
    NUMBERS_OR_NONE = auto()
    FLAG = auto()
    """A number of one bit."""
    ERROR = auto()
    """Its code, kio's error, its name."""
    OWN_ERROR = auto()
    """Its code, since Kafka does not have all of them; its name on the tape."""
    NAME = auto()
    """A text that is empty in a message and null on the wire."""
    TOPIC_ID = auto()


class Converter(NamedTuple):
    """A way of one field alone: functions from an entity's value to a message's, and back."""

    read: Callable[[Any], Any]
    write: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class RpcField:
    """A value, or with `ByTopic` or `Structures` as its way several of them."""

    name: str
    """The message's; empty: no node of ours says it, but the tape shows it."""
    at: str
    """The entity's."""
    way: "ValueKind | Converter | ByTopic | Structures" = ValueKind.PLAIN
    missing: Any = NEEDED
    """The value that stands for it in versions that lack it."""
    column: str | Callable[[Any], Columns] | None = None
    """The tape's, or the columns that the entity's value makes; None: it is not on the tape."""


@dataclass(frozen=True, slots=True)
class Inside:
    """Fields that an entity has in a structure of its own."""

    at: str
    fields: tuple["Entry", ...]


@dataclass(frozen=True, slots=True)
class InLog:
    """Fields that an entity has in its one partition, that of the metadata log."""

    at: str
    fields: tuple["Entry", ...]


@dataclass(frozen=True, slots=True)
class ByVersion:
    """Fields that versions lay out differently.

    `read` puts those that a version has into a mapping by name, `write` takes them from one. The
    tape has columns of the same names.
    """

    names: tuple[str, ...]
    read: Callable[[Any, dict[str, Any]], None]
    write: Callable[[Mapping[str, Any], dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Told:
    """Columns of the tape that are made of several fields."""

    of: Callable[[Any], Columns]


Entry = RpcField | Inside | InLog | ByVersion | Told
Partitions = Iterator[tuple[dict[str, Any], Any]]


@dataclass(frozen=True, slots=True)
class ByTopic:
    """Partitions, which stand in one row in a message, and by topic in an entity.

    `topic`: the fields that the topic's structure has; `fields`: those of the structures in its
    field `within`. On the tape each partition is an item, with topic and number.
    """

    topic: tuple[RpcField, ...]
    within: str
    fields: tuple[Entry, ...]
    nullable: bool = False
    older: Callable[[Any], Partitions] | None = None
    """Yields (columns of topic and partition, the partition) of versions that lack the field."""


@dataclass(frozen=True, slots=True)
class Structures:
    """Structures, which a message has as they are. On the tape each is an item, if it says much."""

    fields: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcTable:
    """An RPC by Kafka's name."""

    name: str
    asks: tuple[Any, ...]
    """The entries of the request; for the codec alone there may be others."""
    answers: tuple[Any, ...]


def field(
    name: str,
    at: str = "",
    way: ValueKind | Converter | ByTopic | Structures = ValueKind.PLAIN,
    **missing: Any,
) -> RpcField:
    """Return a field that is not on the tape; `at` is its name if left out."""
    return RpcField(name, at or name, way, **missing)


def taped(
    name: str,
    at: str = "",
    way: ValueKind | Converter = ValueKind.PLAIN,
    *,
    column: str | Callable[[Any], Columns] = "",
    **missing: Any,
) -> RpcField:
    """Return a field that is on the tape; `column` is its name if left out."""
    return RpcField(name, at or name, way, column=column or name, **missing)


def rows(
    name: str, at: str, topic: tuple[RpcField, ...], within: str, *entries: Entry, **more: Any
) -> RpcField:
    """Return the field of partitions (`ByTopic`)."""
    return RpcField(name, at, ByTopic(topic, within, entries, **more))


def structures(name: str, at: str, *entries: Entry) -> RpcField:
    """Return the field of structures."""
    return RpcField(name, at, Structures(entries))


def in_log(*entries: Entry) -> InLog:
    """Return the fields of the log's partition."""
    return InLog("topics", entries)
