"""An API of Kafka's protocol as this cluster speaks it: its versions, and its four conversions.

Requests come in by `asked` and are answered by `answer`. `ask` and `answered` are for what nodes
ask each other, and for frames of a simulated wire. Clients name topics where the core has ids:
`RequestTopics` are the topics that one request names. A name that the node does not know gets a
negative id, which is no topic's.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, Final, Protocol, TypeVar

from fencepost.clusters.protocol.entities import Values

_NS_OF_MS: Final = 1_000_000


class ListenerType(Enum):
    """The kind of listener by which a request comes in."""

    BROKER = "broker"
    CONTROLLER = "controller"


class Traffic:
    """The kinds of traffic of a node, each with connections of its own."""

    VOTES: Final = "votes"
    METADATA: Final = "metadata"
    HEARTBEATS: Final = "heartbeats"
    ALTER_PARTITION: Final = "alter-partition"
    REPLICATION: Final = "replication"
    CONTROLLER: Final = "controller"
    ISR_CHANGE: Final = "isr-change"
    FORWARDED: Final = "forwarded"


class KnownTopics(Protocol):
    """The topics of a metadata image, by id and by name."""

    @property
    def topics(self) -> Mapping[str, int]:
        """The ids by name."""

    @property
    def names(self) -> Mapping[int, str]:
        """The names by id."""


class RequestTopics:
    """The topics of one request, by name and by id."""

    __slots__ = ("_image", "_own", "_unknown")

    def __init__(self, image: KnownTopics) -> None:
        self._image = image
        self._own: dict[int, str] = {}
        self._unknown = 0

    def id_of(self, name: str) -> int:
        """The topic's id; of one that is not known, a negative number of its own."""
        found = self._image.topics.get(name)
        if found is None:
            self._unknown -= 1
            found = self._unknown
        self._own[found] = name
        return found

    def name_of(self, topic_id: int) -> str:
        """The topic's name, as the request named it or as it is known; else it is empty."""
        return self._own.get(topic_id) or self._image.names.get(topic_id, "")


@dataclass(slots=True)
class Asked:
    """A request that came: what is needed to answer it."""

    api: "Api"
    version: int
    entity: Any
    """kio's, or the fields by name where the definition is our own."""
    labels: RequestTopics
    offered: Iterable["Api"]
    """The APIs that exist at this door."""
    wall_offset_ns: int
    """The lead of the wall clock (ns since 1970) over the node's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One API. Entities are kio's, of whatever version; values are as `entities` takes them."""

    name: str
    key: int
    kind: int
    """The kind of the request's message."""
    versions: tuple[int, int]
    """The lowest and the highest that are understood."""
    doors: tuple[ListenerType, ...]
    asked: Callable[[Any, int, RequestTopics], Any]
    """(entity, correlation, labels) to a request. Raises Unreadable."""
    answer: Callable[[Any, Asked], Values]
    """(response, what it answers) to values."""
    ask: Callable[[Any, RequestTopics], Values] | None = None
    """(request, labels) to values."""
    answered: Callable[[Any, Any, int, RequestTopics], Any] | None = None
    """(entity, request, node that was asked, labels) to a response. Raises Unreadable."""
    asked_in: int | None = None
    """The version in which it is asked where a request states none; None: the highest."""

    traffic: str = Traffic.FORWARDED
    """The connection over which nodes ask it."""
    lowered: Callable[[Any, int], Any] | None = None
    """(request, the highest version that is offered) to a request in that version; None: the
    version is not negotiated. Raises Unreadable if it is too low."""

    def version_of(self, request: Any) -> int:
        """Return the version in which a request is asked."""
        own = self.versions[1] if self.asked_in is None else self.asked_in
        stated: int = getattr(request, "version", own)
        return stated


def ns_of(duration: timedelta) -> int:
    """A duration of kio's in ns."""
    seconds = duration.days * 86_400 + duration.seconds
    return seconds * 1_000_000_000 + duration.microseconds * 1_000


def ms_of(duration_ns: int) -> int:
    """A duration in whole ms, as the wire has it; at most what fits there."""
    return min(duration_ns // _NS_OF_MS, (1 << 31) - 1)


Item = TypeVar("Item")


def grouped(items: Iterable[tuple[Any, Item]]) -> Mapping[Any, list[Item]]:
    """Return items by their topic, in the order in which topics and items come."""
    found: dict[Any, list[Item]] = {}
    for topic, item in items:
        found.setdefault(topic, []).append(item)
    return found
