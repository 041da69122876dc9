"""Frames of a simulated wire: messages of the reference cluster, read as the wire reads bytes.

The codec says how a message is laid out in Kafka's protocol; the same values, unencoded, are an
entity, of which `nemesis.wire.decoding` makes columns and items. So a rule and the tape see of a
message what they would see of its frame between processes, and nothing is said of an API twice.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from fencepost.clusters.node_port.storage import Batch
from fencepost.clusters.protocol.columns import METADATA_TOPIC, METADATA_TOPIC_ID, Parts
from fencepost.clusters.protocol.entities import Unreadable, built, request_type, response_type
from fencepost.clusters.protocol.record_batches import BatchHeader, encoded_batch_header
from fencepost.clusters.reference.codec.api import Api, Asked, RequestTopics
from fencepost.clusters.reference.codec.broker_apis import (
    DIALECT,
    address_of,
    request_fields,
    response_fields,
)
from fencepost.clusters.reference.codec.codec import Codec, kraft_apis
from fencepost.clusters.reference.codec.identifiers import id_of_text, text_of
from fencepost.clusters.reference.codec.zk_apis import ZK_APIS
from fencepost.clusters.reference.nodes.messages.data import (
    FetchRequest,
    FetchResponse,
    ProduceRequest,
)
from fencepost.clusters.reference.nodes.messages.quorum import (
    MetadataFetchRequest,
    MetadataFetchResponse,
)
from fencepost.clusters.reference.traffic import traffic_by_kind
from fencepost.clusters.simulation.host import Channel
from fencepost.nemesis.simulated.parties import asked_as
from fencepost.nemesis.wire.apis import API_KEYS, FETCH
from fencepost.nemesis.wire.decoding import reference
from fencepost.nemesis.wire.decoding.entities import TAPED, Decoded, extracted
from fencepost.nemesis.wire.error_codes import name_by_code
from fencepost.nemesis.wire.frame import Frame, TopicNames
from fencepost.nemesis.wire.frames import Header
from fencepost.nemesis.wire.rules import Direction
from fencepost.nemesis.wire.rules import Link as WireLink

_LENGTH_BYTES: Final = 4
_ALL: Final = (*ZK_APIS, *kraft_apis(voters=()))
_APIS: Final[Mapping[int, Api]] = {one.kind: one for one in reversed(_ALL)}
"""By kind; of two with messages of one kind (Metadata, DescribeCluster) the first."""
TRAFFIC: Final = traffic_by_kind(_APIS.values())
"""The traffic of each request between nodes, by its kind."""
API_NAMES: Final[Mapping[int, str]] = {kind: one.name for kind, one in _APIS.items()} | DIALECT
"""Kafka's name of each request, by its kind."""
_KEYS: Final = {kind: API_KEYS[name] for kind, name in API_NAMES.items()}
TAPED_KINDS: Final = frozenset(
    one
    for kind, key in _KEYS.items()
    if key in TAPED or (key == FETCH and kind != FetchRequest.kind)
    for one in (kind, kind + 1)
)
"""Of data the tape has those fetches of followers that tell something new (`Fetches`)."""


@dataclass(frozen=True, kw_only=True)
class MessageFrame(Frame):
    """A frame that was never bytes; what it says is read when it is asked for."""

    message: Any
    request: Any
    """The request that the message answers; None of a request."""
    way: Channel
    """The link on which it was sent; of an answer of the wire's own, that of the request."""

    @property
    def payload(self) -> Any:
        """The frame itself."""
        return self

    def answered(self, response: bytes) -> "MessageFrame | None":
        """Return the frame of a response to this request; None: who asked cannot read it."""
        message = _read(self, response)
        if message is None:
            return None
        way = Direction.RESPONSE
        return replace(self, direction=way, data=response, message=message, request=self.message)

    def entity(self) -> Any:
        """Return what the codec would encode."""
        return _entity(self.message, self.request, self.names)

    @cached_property
    def decoded(self) -> Decoded:
        """The columns and items that the message states."""
        message, request, names = self.message, self.request, self.names
        if self.header.api_versions is not None:
            return Decoded(_of_dialect(message, request))
        if (quick := _QUICK.get(message.kind)) is not None:
            columns, items = quick(message)
            return Decoded(columns, tuple(items), _Later(lambda: _entity(message, request, names)))
        return extracted(
            self.header.api_key, self.direction, lambda: _entity(message, request, names)
        )


def frame_of(
    link: Channel, party: WireLink, message: Any, request: Any, *, time_ns: int, names: TopicNames
) -> MessageFrame:
    """Return the frame of a message on its way; `request`: what it answers, or None."""
    asked, asker = (message, link.sender) if request is None else (request, link.receiver)
    return MessageFrame(
        connection=link.connection,
        link=asked_as(party, asked.kind),
        direction=direction_of(link),
        header=header_of(asked, asker.name),
        data=b"",
        time_ns=time_ns,
        names=names,
        message=message,
        request=request,
        way=link,
    )


def header_of(asked: Any, client_id: str | None = None) -> Header:
    """Return the header of a request."""
    api_versions = address_of(asked) if asked.kind in DIALECT else None
    return Header(
        api_key=_KEYS[asked.kind],
        api_version=_APIS[asked.kind].version_of(asked)
        if api_versions is None
        else api_versions[1],
        correlation_id=asked.correlation,
        client_id=client_id,
        answered=asked.correlation >= 0,
        api_versions=api_versions,
    )


def _read(frame: MessageFrame, response: bytes) -> Any:
    """Return the message that a node reads of a response to its request; None: it cannot."""
    request, image = frame.message, _Known(frame.names)
    codec = Codec(apis=tuple(_APIS.values()), image=lambda: image)
    version = frame.header.api_version
    if request.kind not in DIALECT:
        api = _APIS[request.kind]
        if api.ask is None:
            return None
        api.ask(
            _in_bytes(request), RequestTopics(image)
        )  # so that topics have the ids that it meant
    try:
        return codec.answered(
            response[_LENGTH_BYTES:], request, version=version, node=frame.way.receiver.number
        )
    except Unreadable:
        return None


def direction_of(link: Channel) -> Direction:
    """Return the direction of the link: requests or answers go over it."""
    return Direction.REQUEST if link.answers is None else Direction.RESPONSE


def kinds_of(api: str | None, direction: Direction) -> Sequence[int]:
    """List the kinds of messages of an API, or of all."""
    more = 0 if direction is Direction.REQUEST else 1
    return [kind + more for kind, name in API_NAMES.items() if api is None or name == api]


def _of_dialect(message: Any, request: Any) -> Mapping[str, Any]:
    if request is None:
        return reference.request_columns(request_fields(message))
    return reference.response_columns(response_fields(address_of(request), message))


def _entity(message: Any, request: Any, names: TopicNames) -> Any:
    """Return what the codec would encode."""
    asked = message if request is None else request
    api, labels = _APIS[asked.kind], RequestTopics(_Known(names))
    version = api.version_of(asked)

    def question() -> Any:
        values = {} if api.ask is None else api.ask(_in_bytes(asked), labels)
        return built(request_type(api.key, version), values)

    if request is None:
        return question()
    to = Asked(api, version, _Later(question), labels, (), 0)
    return built(response_type(api.key, version), api.answer(_in_bytes(message), to))


def _in_bytes(message: Any) -> Any:
    """Return a message whose batches of records are bytes, as the codec has them."""
    if isinstance(message, ProduceRequest):
        partitions = tuple((key, _headed(batch)) for key, batch in message.partitions)
        return replace(message, partitions=partitions)
    if isinstance(message, FetchResponse):
        fetched = (
            replace(one, batches=tuple(map(_headed, one.batches))) for one in message.partitions
        )
        return replace(message, partitions=tuple(fetched))
    return message


def _headed(batch: Batch) -> Batch:
    """Return a batch with the bytes of its header for a payload, where that is values."""
    if isinstance(batch.payload, bytes):
        return batch
    base_offset = max(batch.base_offset, 0)  # a producer's batches have no offset yet
    header = BatchHeader(
        base_offset=base_offset,
        length=0,
        leader_epoch=batch.leader_epoch,
        magic=2,
        crc=0,
        attributes=0,
        last_offset_delta=batch.count - 1,
        base_timestamp_ms=0,
        max_timestamp_ms=0,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        record_count=batch.count,
        position=0,
    )
    return replace(batch, base_offset=base_offset, payload=encoded_batch_header(header, b""))


def _fetches_metadata(message: MetadataFetchRequest) -> Parts:
    columns = {"broker_id": message.replica_id, "session_epoch": -1}
    item = {**_LOG, "fetch_offset": message.fetch_offset, "leader_epoch": message.epoch}
    return columns | {"detail": "session 0 epoch -1"}, [item]


def _metadata_fetched(message: MetadataFetchResponse) -> Parts:
    said = [f"{sum(len(batch.records) for batch in message.batches)} records"]
    if message.diverging_epoch >= 0:
        end = message.diverging_end_offset
        said.append(f"diverging epoch {message.diverging_epoch} ends at {end}")
    if message.snapshot_end_offset >= 0:
        said.append(f"snapshot {message.snapshot_end_offset}-{message.snapshot_epoch}")
    led = {"leader_id": message.leader_id, "leader_epoch": message.epoch}
    item = {
        **_LOG,
        "error": name_by_code(message.error),
        "high_watermark": message.high_watermark,
        **(led if message.epoch >= 0 else {}),
        "detail": ", ".join(said),
    }
    return {"error": "NONE"}, [item]


_LOG: Final = {"topic_id": METADATA_TOPIC_ID, "topic": METADATA_TOPIC, "partition": 0}
_QUICK: Final[Mapping[int, Callable[[Any], Parts]]] = {
    MetadataFetchRequest.kind: _fetches_metadata,
    MetadataFetchResponse.kind: _metadata_fetched,
}
"""Half of all taped frames, read without an entity: by way of it a recorded run takes a fifth
longer. That both ways say the same is tested.
"""


class _Known:
    """`KnownTopics` of those whose names a wire was told; ids only of names that were asked for."""

    def __init__(self, names: TopicNames) -> None:
        self.topics: dict[str, int] = {}
        self.names: Mapping[int, str] = _NamesOfIds(names, self.topics)


class _NamesOfIds(Mapping[int, str]):
    """The names that a wire was told by their ids as numbers: a night has had 20,000 topics."""

    def __init__(self, names: TopicNames, asked_for: dict[str, int]) -> None:
        self._by_id = names.by_id
        self._asked_for = asked_for

    def __getitem__(self, identifier: int) -> str:
        name = self._by_id.get(text_of(identifier))
        self._asked_for[name or ""] = identifier
        if name is None:
            raise KeyError(identifier)  # it goes without a name
        return name

    def __iter__(self) -> Iterator[int]:
        return map(id_of_text, self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)


class _Later:
    """An entity that is made when it is looked at: few answers look back at their requests."""

    def __init__(self, made: Callable[[], Any]) -> None:
        self._made = made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made(), name)
