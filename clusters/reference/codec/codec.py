"""Frames and messages: every request and response of a node, both ways. Sans-IO.

A `Codec` belongs to one node. A frame that comes in at a door becomes a message and what is needed
to answer it; what a node asks becomes a frame, and its answer is read with the request at hand.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from fencepost.clusters.protocol import dialect
from fencepost.clusters.protocol.entities import (
    Unreadable,
    Values,
    read,
    request_frame,
    request_type,
    response_frame,
    response_type,
)
from fencepost.clusters.protocol.varints import VarintError, read_unsigned
from fencepost.clusters.reference.codec.api import (
    Api,
    Asked,
    KnownTopics,
    ListenerType,
    RequestTopics,
)
from fencepost.clusters.reference.codec.broker_apis import (
    BROKER_APIS,
    DIALECT,
    address_of,
    request_fields,
    request_in,
    response_fields,
    response_in,
)
from fencepost.clusters.reference.codec.client_apis import (
    API_VERSIONS,
    API_VERSIONS_KNOWN,
    CLIENT_APIS,
    asking_versions,
    versions_offered,
)
from fencepost.clusters.reference.codec.data_apis import DATA_APIS
from fencepost.clusters.reference.codec.fetch_sessions import (
    FetchSessions,
    FollowerSession,
    OpenFetch,
)
from fencepost.clusters.reference.codec.operator_apis import OPERATOR_APIS
from fencepost.clusters.reference.codec.quorum_apis import quorum_apis
from fencepost.clusters.reference.codec.write_apis import WRITE_APIS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.client import ApiVersionsResponse
from fencepost.clusters.reference.nodes.messages.data import FetchRequest, ProduceRequest
from fencepost.clusters.reference.traffic import traffic_by_kind

_HEADER: Final = struct.Struct(">hhih")
_RESPONSE_HEADER: Final = struct.Struct(">i")
_LENGTH: Final = struct.Struct(">i")
_UNSUPPORTED: Final = int(Error.UNSUPPORTED_VERSION)
_DIALECT_OFFERED: Final = tuple(
    {"api_key": key, "min_version": version, "max_version": version}
    for key, version in (dialect.HEARTBEAT, dialect.HEARTBEAT_WITH_LOWEST)
)


class _NoNames:
    """`KnownTopics` of no topic."""

    def __init__(self) -> None:
        self.topics: dict[str, int] = {}
        self.names: dict[int, str] = {}


_NO_NAMES: Final = _NoNames()


def _as_it_is(values: Values) -> Values:
    return values


@dataclass(slots=True)
class Incoming:
    """A request that came in at a door."""

    message: Any
    """None where it is answered without the node."""
    expects_answer: bool
    """False of a produce with acks=0."""
    answer: Callable[[Any], bytes]
    """Returns its response (None where there is no message) to a whole frame."""


class Outgoing(NamedTuple):
    """A request to another node."""

    frame: bytes
    version: int
    """The version in which its answer will be read."""


def kraft_apis(voters: tuple[int, ...]) -> tuple[Api, ...]:
    """Return the APIs of nodes with a quorum of these voters."""
    return (
        *quorum_apis(voters),
        *BROKER_APIS,
        *WRITE_APIS,
        *OPERATOR_APIS,
        *DATA_APIS,
        *CLIENT_APIS,
    )


class Codec:
    """The codec of a node's messages. `image`: its metadata, at the time of each call.

    `sessions`: the fetch sessions that it remembers; by default there is room for none.
    """

    def __init__(
        self,
        *,
        apis: Sequence[Api],
        image: Callable[[], KnownTopics],
        wall_offset_ns: int = 0,
        sessions: FetchSessions | None = None,
    ) -> None:
        self._sessions = sessions or FetchSessions(slots=0, seed=0, now_ns=lambda: 0)
        self._image = image
        self._wall_offset_ns = wall_offset_ns
        self._by_key = {
            door: {one.key: one for one in apis if door in one.doors} for door in ListenerType
        }
        self._by_kind = {one.kind: one for one in apis if one.ask is not None}
        self._traffic = traffic_by_kind(apis)
        self._negotiated = {one.traffic: one.kind for one in apis if one.lowered is not None}

    def incoming(self, door: ListenerType, frame: bytes, *, correlation: int) -> Incoming:
        """A request's frame, without its length, as a message with this correlation.

        Raises Unreadable for what is no request that is understood at this door.
        """
        header = _request_header(frame)
        if door is ListenerType.CONTROLLER and dialect.is_dialect(header.api_key, header.version):
            return _dialect_incoming(frame, header, correlation)
        if header.api_key == API_VERSIONS and (own := self._own_versions(header, door)):
            return own
        api = self._by_key[door].get(header.api_key)
        if api is None:
            raise Unreadable(f"API {header.api_key} on a {door.value} listener")
        if not api.versions[0] <= header.version <= api.versions[1]:
            raise Unreadable(f"{api.name} version {header.version}, known are {api.versions}")
        entity = read(request_type(api.key, header.version), frame)
        if api.kind == FetchRequest.kind:
            return self._fetch(api, entity, header, correlation, door)
        return self._incoming(api, entity, header, correlation, door)

    def outgoing(
        self,
        request: Any,
        *,
        correlation_id: int,
        client_id: str,
        highest: int | None = None,
        session: FollowerSession | None = None,
    ) -> Outgoing:
        """Encode a request to another node, which offers its API up to version `highest`.

        None: its offer was not asked for. `session`: that of a connection for fetches. Raises
        Unreadable if it offers no version known here.
        """
        if request.kind in DIALECT:
            return _dialect_outgoing(request, correlation_id=correlation_id, client_id=client_id)
        api = self._by_kind[request.kind]
        if highest is not None and api.lowered is not None:
            request = api.lowered(request, highest)
        assert api.ask is not None
        version, values = api.version_of(request), api.ask(request, RequestTopics(self._image()))
        if session is not None and request.kind == FetchRequest.kind:
            values = session.reduced(values)
        kind = request_type(api.key, version)
        frame = request_frame(kind, values, correlation_id=correlation_id, client_id=client_id)
        return Outgoing(frame, version)

    def traffic_of(self, kind: int) -> str:
        """Return the traffic over which a kind of request is asked."""
        return self._traffic[kind]

    def negotiated(self, traffic: str) -> int | None:
        """Return the kind whose versions are asked for before anything else in this traffic."""
        return self._negotiated.get(traffic)

    def asking_versions(self, *, correlation_id: int, client_id: str) -> bytes:
        """The frame by which another node is asked what it offers."""
        kind = request_type(API_VERSIONS, API_VERSIONS_KNOWN[1])
        values = asking_versions()
        return request_frame(kind, values, correlation_id=correlation_id, client_id=client_id)

    def highest_offered(self, frame: bytes, kind: int) -> int:
        """Return up to which version a node's answer (to ApiVersions) offers this kind of request.

        -1: not at all. Raises Unreadable.
        """
        entity = read(response_type(API_VERSIONS, API_VERSIONS_KNOWN[1]), frame)
        key = self._by_kind[kind].key
        return next((int(one.max_version) for one in entity.api_keys if one.api_key == key), -1)

    def answered(
        self,
        frame: bytes,
        request: Any,
        *,
        version: int,
        node: int,
        session: FollowerSession | None = None,
    ) -> Any:
        """The response of another node to a request that it was asked in this version.

        Raises Unreadable.
        """
        if request.kind in DIALECT:
            # A response's header in flexible versions: the correlation, and no tags.
            body = frame[_RESPONSE_HEADER.size + 1 :]
            return response_in(request, dialect.decoded_response(*address_of(request), body))
        api = self._by_kind[request.kind]
        assert api.answered is not None
        entity = read(response_type(api.key, version), frame)
        if session is not None and request.kind == FetchRequest.kind:
            session.heard(entity)
        return api.answered(entity, request, node, RequestTopics(self._image()))

    def _fetch(
        self, api: Api, entity: Any, header: "_Header", correlation: int, door: ListenerType
    ) -> Incoming:
        opened = self._sessions.open(entity)
        if isinstance(opened, OpenFetch):
            return self._incoming(api, opened.entity, header, correlation, door, told=opened.answer)
        kind = response_type(api.key, header.version)
        values = {"error_code": int(opened)}
        frame = response_frame(kind, values, correlation_id=header.correlation_id)
        return Incoming(None, expects_answer=True, answer=lambda _: frame)

    def _incoming(
        self,
        api: Api,
        entity: Any,
        header: "_Header",
        correlation: int,
        door: ListenerType,
        *,
        told: Callable[[Values], Values] = _as_it_is,
    ) -> Incoming:
        # A controller names topics by itself.
        labels = RequestTopics(self._image() if door is ListenerType.BROKER else _NO_NAMES)
        offered = self._by_key[door].values()
        asked = Asked(api, header.version, entity, labels, offered, self._wall_offset_ns)
        message = api.asked(entity, correlation, labels)
        kind = response_type(api.key, header.version)

        def answer(response: Any) -> bytes:
            values = told(api.answer(response, asked))
            return response_frame(kind, values, correlation_id=header.correlation_id)

        silent = isinstance(message, ProduceRequest) and not message.acks
        return Incoming(message, not silent, answer)

    def _own_versions(self, header: "_Header", door: ListenerType) -> Incoming | None:
        """ApiVersions where the node need not be asked; None where it has to be.

        To a version too high the answer is one of version 0, which says what there is. A controller
        offers the same at every level.
        """
        lowest, highest = API_VERSIONS_KNOWN
        too_high = not lowest <= header.version <= highest
        if not too_high and door is ListenerType.BROKER:
            return None
        nothing_yet = ApiVersionsResponse(correlation=0, level=1, features=())
        values = dict(versions_offered(nothing_yet, self._by_key[door].values()))
        if door is ListenerType.CONTROLLER:
            values["api_keys"] = sorted([*values["api_keys"], *_DIALECT_OFFERED], key=_by_api_key)
        if too_high:
            values["error_code"] = _UNSUPPORTED
        kind = response_type(API_VERSIONS, 0 if too_high else header.version)
        frame = response_frame(kind, values, correlation_id=header.correlation_id)
        return Incoming(None, expects_answer=True, answer=lambda _: frame)


class _Header(NamedTuple):
    api_key: int
    version: int
    correlation_id: int
    begin: int
    """The position at which the message begins, in flexible versions."""


def correlation_of(frame: bytes) -> int:
    """Return which request a response's frame (without its length) answers. Raises Unreadable."""
    if len(frame) < _RESPONSE_HEADER.size:
        raise Unreadable(f"a response of {len(frame)} bytes")
    found: int = _RESPONSE_HEADER.unpack_from(frame)[0]
    return found


def _request_header(frame: bytes) -> _Header:
    if len(frame) < _HEADER.size:
        raise Unreadable(f"a request of {len(frame)} bytes")
    api_key, version, correlation_id, client_size = _HEADER.unpack_from(frame)
    # The client's name, and behind it the header's tags, of which there are none.
    return _Header(api_key, version, correlation_id, _HEADER.size + max(client_size, 0))


def _dialect_incoming(frame: bytes, header: _Header, correlation: int) -> Incoming:
    address = (header.api_key, header.version)
    try:
        tag_count, begin = read_unsigned(frame, header.begin)
    except VarintError as error:
        raise Unreadable(f"no header: {error}") from error
    if tag_count:
        raise Unreadable("tags in the header of a request between nodes")
    message = request_in(address, dialect.decoded_request(*address, frame[begin:]), correlation)

    def answer(response: Any) -> bytes:
        body = dialect.encoded_response(*address, response_fields(address, response))
        return _framed(_RESPONSE_HEADER.pack(header.correlation_id) + b"\x00" + body)

    return Incoming(message, expects_answer=True, answer=answer)


def _dialect_outgoing(request: Any, *, correlation_id: int, client_id: str) -> Outgoing:
    key, version = address_of(request)
    name = client_id.encode()
    head = _HEADER.pack(key, version, correlation_id, len(name)) + name + b"\x00"
    body = dialect.encoded_request(key, version, request_fields(request))
    return Outgoing(_framed(head + body), version)


def _framed(content: bytes) -> bytes:
    return _LENGTH.pack(len(content)) + content


def _by_api_key(one: Mapping[str, int]) -> int:
    return one["api_key"]
