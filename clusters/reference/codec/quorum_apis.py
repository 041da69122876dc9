"""The quorum's APIs (KIP-595, KIP-630): Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, snapshots.

Each names one partition, that of the metadata log. Fetch is the one that brokers know too; at a
controller's door it is about this log.
"""

from dataclasses import replace
from typing import Any, Final

from fencepost.clusters.protocol.entities import Unreadable, Values
from fencepost.clusters.protocol.message_decoder import DecodeError
from fencepost.clusters.protocol.rpc import RpcTable
from fencepost.clusters.protocol.rpcs.quorum import (
    BEGIN_QUORUM_EPOCH,
    END_QUORUM_EPOCH,
    FETCH_SNAPSHOT,
    VOTE,
)
from fencepost.clusters.reference.codec.api import Api, Asked, ListenerType, RequestTopics, Traffic
from fencepost.clusters.reference.codec.layout import (
    DURATION,
    ERROR,
    Conversion,
    Part,
    always,
    field,
    inside,
    read_only,
    write_only,
)
from fencepost.clusters.reference.codec.metadata_log import batches_in, encoded_batch
from fencepost.clusters.reference.codec.tables import between_nodes, in_log, log_partition
from fencepost.clusters.reference.nodes.messages.quorum import (
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

_BYTES_MAX: Final = 1 << 26
_FETCH_VERSION: Final = 13
"""The first one with ids of topics."""
_CONTROLLERS: Final = (ListenerType.CONTROLLER,)


def quorum_apis(voters: tuple[int, ...]) -> tuple[Api, ...]:
    """Return the APIs; `voters`: who votes, which a fetch does not say of itself."""
    is_voter = read_only("is_voter", lambda _entity, found: found["replica_id"] in voters)
    fetch = between_nodes(
        RpcTable(name="Fetch", asks=(*_FETCH, is_voter), answers=_FETCHED),
        (12, 15),
        _CONTROLLERS,
        request=MetadataFetchRequest,
        asked_in=_FETCH_VERSION,
        response=MetadataFetchResponse,
        traffic=Traffic.METADATA,
    )
    return fetch, *_ELECTIONS, _SNAPSHOTS


def _batches(records: Any, _: RequestTopics) -> Any:
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
_BATCHES: Final = Conversion(_batches, lambda batches, _: b"".join(map(encoded_batch, batches)))
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
    in_log(
        field("epoch", "current_leader_epoch"),
        field("fetch_offset"),
        field("last_fetched_epoch"),
        always(partition_max_bytes=_BYTES_MAX),
    ),
)
_FETCHED: Final = (
    in_log(
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
_VERSIONS: Final = (0, 0)
_ELECTIONS: Final = (
    between_nodes(
        VOTE,
        _VERSIONS,
        _CONTROLLERS,
        request=VoteRequest,
        response=VoteResponse,
        traffic=Traffic.VOTES,
    ),
    between_nodes(
        BEGIN_QUORUM_EPOCH,
        _VERSIONS,
        _CONTROLLERS,
        request=BeginQuorumEpochRequest,
        response=BeginQuorumEpochResponse,
        traffic=Traffic.VOTES,
    ),
    between_nodes(
        END_QUORUM_EPOCH,
        _VERSIONS,
        _CONTROLLERS,
        request=EndQuorumEpochRequest,
        response=EndQuorumEpochResponse,
        traffic=Traffic.VOTES,
    ),
)
_NO_PIECE: Final = read_only(
    "piece", lambda _entity, found: None if found["error"] else found["piece"]
)
_PIECES: Final = between_nodes(
    replace(FETCH_SNAPSHOT, answers=(*FETCH_SNAPSHOT.answers, _OR_OF_ALL, _NO_PIECE)),
    _VERSIONS,
    _CONTROLLERS,
    request=FetchSnapshotRequest,
    response=FetchSnapshotResponse,
    traffic=Traffic.METADATA,
)


def _piece(response: FetchSnapshotResponse, asked: Asked) -> Values:
    """Write an answer, which names the snapshot that was asked for."""
    values = _PIECES.answer(response, asked)
    wanted = log_partition(asked.entity.topics).snapshot_id
    named = {"end_offset": wanted.end_offset, "epoch": wanted.epoch}
    values["topics"][0]["partitions"][0]["snapshot_id"] = named
    return values


_SNAPSHOTS: Final = replace(_PIECES, answer=_piece)
