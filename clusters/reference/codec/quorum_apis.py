"""The quorum's APIs (KIP-595, KIP-630): Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, snapshots.

Each names one partition, that of the metadata log. Fetch is the one that brokers know too; at a
controller's door it is about this log.
"""

from dataclasses import replace
from typing import Any, Final

from clusters.protocol.entities import Unreadable, Values
from clusters.protocol.message_decoder import DecodeError
from clusters.reference.codec.api import Api, Asked, Door, Labels, Traffic
from clusters.reference.codec.identifiers import METADATA_TOPIC, METADATA_TOPIC_ID, uuid_of
from clusters.reference.codec.layout import (
    DURATION,
    ERROR,
    NUMBERS,
    Conversion,
    Part,
    always,
    between_nodes,
    field,
    inside,
    read_only,
    write_only,
)
from clusters.reference.codec.metadata_log import batches_in, encoded_batch
from clusters.reference.nodes.messages.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    MetadataFetchRequest,
    MetadataFetchResponse,
    VoteRequest,
    VoteResponse,
)

__all__ = ["quorum_apis"]

_BYTES_MAX: Final = 1 << 26
_FETCH_VERSION: Final = 13
"""The first one with ids of topics."""
_CONTROLLERS: Final = (Door.CONTROLLER,)
_TOPIC: Final = uuid_of(METADATA_TOPIC_ID)
_NAMES: Final = dict.fromkeys(("topic_name", "name", "topic"), METADATA_TOPIC) | {
    "topic_id": _TOPIC
}
"""The log's topic, by all names that one of these APIs has for it."""
_NUMBERS: Final = dict.fromkeys(("partition_index", "partition", "index"), 0)


def quorum_apis(voters: tuple[int, ...]) -> tuple[Api, ...]:
    """Return the APIs; `voters`: who votes, which a fetch does not say of itself."""
    is_voter = read_only("is_voter", lambda _entity, found: found["replica_id"] in voters)
    fetch = between_nodes(
        "Fetch",
        1,
        (12, 15),
        _CONTROLLERS,
        request=MetadataFetchRequest,
        asks=(*_FETCH, is_voter),
        asked_in=_FETCH_VERSION,
        response=MetadataFetchResponse,
        traffic=Traffic.METADATA,
        answers=_FETCHED,
    )
    return fetch, *_ELECTIONS, _SNAPSHOTS


def _log(*parts: Part, at: str = "topics") -> Part:
    """Return the part of fields that an entity has in its one partition, that of the log."""

    def read(entity: Any, found: dict[str, Any], labels: Labels) -> None:
        one = _partition(getattr(entity, at))
        for part in parts:
            part.read(one, found, labels)

    def write(found: dict[str, Any], values: dict[str, Any], labels: Labels) -> None:
        partition: dict[str, Any] = dict(_NUMBERS)
        for part in parts:
            part.write(found, partition, labels)
        values[at] = [{**_NAMES, "partitions": [partition]}]

    return Part(tuple(name for one in parts for name in one.names), read, write)


def _partition(topics: Any) -> Any:
    """Return the one partition of a message about the metadata log. Raises Unreadable."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        raise Unreadable("a request of the quorum that is not about one partition")
    topic = topics[0]
    if not any(getattr(topic, name, None) == value for name, value in _NAMES.items()):
        named = next((getattr(topic, name) for name in _NAMES if hasattr(topic, name)), None)
        raise Unreadable(f"a request of the quorum about {named}")
    return topic.partitions[0]


def _batches(records: Any, _: Labels) -> Any:
    try:
        return batches_in(bytes(records or b""))
    except DecodeError as error:
        raise Unreadable(str(error)) from error


_LEADER: Final = (field("epoch", "leader_epoch"), field("leader_id"))
_LED: Final = inside("current_leader", *_LEADER)
_ERROR: Final = field("error", "error_code", ERROR)
_OR_OF_ALL: Final = read_only(
    "error", lambda entity, found: entity.error_code.value or found["error"]
)
"""The error of the whole response goes before that of the partition."""
_AT_MOST: Final = Conversion(lambda value, _: value, lambda value, _: min(value, _BYTES_MAX))
_BATCHES: Final = Conversion(_batches, lambda batches, _: b"".join(map(encoded_batch, batches)))
_PIECE: Final = Conversion(lambda value, _: bytes(value), lambda value, _: value or b"")

_FETCH: Final = (
    Part(
        ("replica_id",),
        lambda entity, found, _: found.update(
            replica_id=getattr(entity, "replica_state", entity).replica_id
        ),
        lambda found, values, _: values.update(replica_id=found["replica_id"]),
    ),
    field("max_wait_ns", "max_wait", DURATION),
    always(min_bytes=0, max_bytes=_BYTES_MAX),
    _log(
        field("epoch", "current_leader_epoch"),
        field("fetch_offset"),
        field("last_fetched_epoch"),
        always(partition_max_bytes=_BYTES_MAX),
    ),
)
_FETCHED: Final = (
    _log(
        _ERROR,
        field("high_watermark"),
        write_only(lambda found: {"last_stable_offset": found["high_watermark"]}),
        inside(
            "diverging_epoch",
            field("diverging_epoch", "epoch"),
            field("diverging_end_offset", "end_offset"),
        ),
        _LED,
        inside(
            "snapshot_id",
            field("snapshot_end_offset", "end_offset"),
            field("snapshot_epoch", "epoch"),
        ),
        field("batches", "records", _BATCHES),
        at="responses",
    ),
    _OR_OF_ALL,
)
_ELECTIONS: Final = (
    between_nodes(
        "Vote",
        52,
        (0, 0),
        _CONTROLLERS,
        request=VoteRequest,
        asks=(
            _log(
                field("epoch", "replica_epoch"),
                field("candidate_id", "replica_id"),
                field("last_epoch", "last_offset_epoch"),
                field("end_offset", "last_offset"),
            ),
        ),
        response=VoteResponse,
        traffic=Traffic.VOTES,
        answers=(_log(*_LEADER, field("granted", "vote_granted")),),
    ),
    between_nodes(
        "BeginQuorumEpoch",
        53,
        (0, 0),
        _CONTROLLERS,
        request=BeginQuorumEpochRequest,
        asks=(_log(*_LEADER),),
        response=BeginQuorumEpochResponse,
        traffic=Traffic.VOTES,
        answers=(_log(*_LEADER),),
    ),
    between_nodes(
        "EndQuorumEpoch",
        54,
        (0, 0),
        _CONTROLLERS,
        request=EndQuorumEpochRequest,
        asks=(_log(*_LEADER, field("successors", "preferred_successors", NUMBERS)),),
        response=EndQuorumEpochResponse,
        traffic=Traffic.VOTES,
        answers=(_log(*_LEADER),),
    ),
)
_PIECES: Final = between_nodes(
    "FetchSnapshot",
    59,
    (0, 0),
    _CONTROLLERS,
    request=FetchSnapshotRequest,
    asks=(
        field("replica_id"),
        field("size_max", "max_bytes", _AT_MOST),
        _log(
            field("epoch", "current_leader_epoch"),
            inside("snapshot_id", field("end_offset"), field("snapshot_epoch", "epoch")),
            field("position"),
        ),
    ),
    response=FetchSnapshotResponse,
    traffic=Traffic.METADATA,
    answers=(
        _log(
            _ERROR,
            _LED,
            field("size"),
            field("position"),
            field("piece", "unaligned_records", _PIECE),
        ),
        _OR_OF_ALL,
        read_only("piece", lambda _entity, found: None if found["error"] else found["piece"]),
    ),
)


def _piece(response: FetchSnapshotResponse, asked: Asked) -> Values:
    """Write an answer, which names the snapshot that was asked for."""
    values = _PIECES.answer(response, asked)
    wanted = _partition(asked.entity.topics).snapshot_id
    named = {"end_offset": wanted.end_offset, "epoch": wanted.epoch}
    values["topics"][0]["partitions"][0]["snapshot_id"] = named
    return values


_SNAPSHOTS: Final = replace(_PIECES, answer=_piece)
