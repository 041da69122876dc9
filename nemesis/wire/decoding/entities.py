"""The content of a frame, as columns of the table `wire`: kio's entities, by API, both directions.

A frame has columns that all of it shares, and items (a partition of an AlterPartition, a marker)
that add to them or override them. A frame that cannot be decoded (an API or a version that kio does
not know, a field of a later release, nonsense) has a header alone, and a `detail` that says so.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from fencepost.clusters.protocol.columns import Parts
from fencepost.clusters.protocol.entities import Unreadable, read, request_type, response_type
from fencepost.clusters.protocol.jute import JuteError
from fencepost.clusters.protocol.rpcs.every import EVERY_RPC
from fencepost.nemesis.wire.apis import API_KEYS, API_VERSIONS, FETCH
from fencepost.nemesis.wire.decoding import (
    brokers,
    clients,
    quorum,
    reference,
)
from fencepost.nemesis.wire.decoding.tables import extractors
from fencepost.nemesis.wire.frames import Header
from fencepost.nemesis.wire.rules import Direction
from fencepost.nemesis.wire.zookeeper.columns import content
from fencepost.nemesis.wire.zookeeper.messages import KEY_MIN, KEYS

_LENGTH_BYTES: Final = 4
_ERROR: Final = slice(8, 10)
"""The error of an ApiVersions response, whose header is always version 0."""
_UNSUPPORTED_VERSION: Final = struct.pack(">h", 35)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A frame's columns and items, and the entity that they are from."""

    columns: Mapping[str, Any]
    items: tuple[Mapping[str, Any], ...] = ()
    entity: Any = None
    """The decoded entity; None: it could not be decoded."""

    @property
    def rows(self) -> tuple[Mapping[str, Any], ...]:
        """Return a row for each item, with the columns that it shares; one row without items."""
        return tuple({**self.columns, **item} for item in self.items or ({},))


class _Extractor(Protocol):
    def __call__(self, entity: Any, /) -> Parts: ...


_EXTRACTORS: Final[Mapping[tuple[str, Direction], _Extractor]] = {
    **extractors(EVERY_RPC),
    **brokers.EXTRACTORS,
    **quorum.EXTRACTORS,
    **clients.EXTRACTORS,
}
_BY_KEY: Final = {
    (API_KEYS[name], direction): extract for (name, direction), extract in _EXTRACTORS.items()
}
TAPED: Final = frozenset(key for key, _ in _BY_KEY) - {FETCH, API_KEYS["Produce"]}
"""The APIs whose every frame is on the tape: all that are read, but for data."""


def is_read(api: str) -> bool:
    """Return whether more than the headers of its frames is read."""
    return (api, Direction.REQUEST) in _EXTRACTORS or api in KEYS


def decoded(header: Header, direction: Direction, data: bytes) -> Decoded:
    """Decode a whole frame. A response is decoded by the header of its request."""
    if header.api_key >= KEY_MIN:
        return _decoded_zookeeper(header, direction, data)
    if direction is Direction.RESPONSE and is_version_0(header, data):
        header = header._replace(api_version=0)
    if header.api_versions is not None:
        return _decoded_dialect(header, direction, data)
    try:
        return extracted(header.api_key, direction, lambda: entity_of(header, direction, data))
    except Unreadable as error:
        return Decoded({"detail": f"not decoded: {error}"})


def extracted(api_key: int, direction: Direction, entity: Callable[[], Any]) -> Decoded:
    """Return what an entity says, which is made if its API is read at all."""
    extract = _BY_KEY.get((api_key, direction))
    if extract is None:
        return Decoded({})
    found = entity()
    columns, items = extract(found)
    return Decoded(columns, tuple(items), found)


def _decoded_zookeeper(header: Header, direction: Direction, data: bytes) -> Decoded:
    try:
        columns, items = content(header, direction, data)
    except JuteError as error:
        return Decoded({"detail": f"not decoded: {error}"})
    return Decoded(columns, tuple(items))


def _decoded_dialect(header: Header, direction: Direction, data: bytes) -> Decoded:
    try:
        columns, items = reference.parts(header, direction, data)
    except Unreadable as error:
        return Decoded({"detail": f"not decoded: {error}"})
    return Decoded(columns, tuple(items))


def entity_of(header: Header, direction: Direction, data: bytes) -> Any:
    """Return the frame's message as a kio entity; raise Unreadable if it cannot be decoded."""
    kind = entity_type(header.api_key, header.api_version, direction)
    return read(kind, data, at=_LENGTH_BYTES)


def entity_type(api_key: int, api_version: int, direction: Direction) -> Any:
    """Return the class of a message; raise Unreadable if there is none."""
    of = request_type if direction is Direction.REQUEST else response_type
    return of(api_key, api_version)


def is_version_0(header: Header, response: bytes) -> bool:
    """Return whether a target too old for the version answered ApiVersions as version 0."""
    return header.api_key == API_VERSIONS and response[_ERROR] == _UNSUPPORTED_VERSION
