"""The quorum's APIs (KIP-595, KIP-630): Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, snapshots.

Each names one partition, that of the metadata log. Fetch is the one that brokers know too; at a
controller's door it is about this log.
"""

from collections.abc import Mapping
from typing import Any, Final

from clusters.protocol.message_decoder import DecodeError
from clusters.reference.codec.api import Api, Asked, Door, Labels, ms_of, ns_of
from clusters.reference.codec.entities import Unreadable, Values
from clusters.reference.codec.identifiers import METADATA_TOPIC, METADATA_TOPIC_ID, uuid_of
from clusters.reference.codec.metadata_log import (
    batches_in,
    encoded_batch,
)
from clusters.reference.nodes.errors import Error
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
_IDENTIFIERS_FROM: Final = 13
_TOPIC: Final = uuid_of(METADATA_TOPIC_ID)


def quorum_apis(voters: tuple[int, ...]) -> tuple[Api, ...]:
    """The APIs; `voters`: who votes, which a fetch does not say of itself."""

    def fetch_asked(entity: Any, correlation: int, _: Labels) -> MetadataFetchRequest:
        return _fetch_asked(entity, correlation, voters)

    return (
        Api(
            name="Fetch",
            key=1,
            kind=MetadataFetchRequest.kind,
            versions=(12, 15),
            doors=(Door.CONTROLLER,),
            asked=fetch_asked,
            answer=_fetch_answer,
            ask=_fetch_ask,
            answered=_fetch_answered,
        ),
        *_ELECTIONS,
        _SNAPSHOTS,
    )


def _vote_asked(entity: Any, correlation: int, _: Labels) -> VoteRequest:
    one = _partition(entity.topics)
    return VoteRequest(
        correlation, one.replica_epoch, one.replica_id, one.last_offset_epoch, one.last_offset
    )


def _vote_ask(request: VoteRequest, _: Labels) -> tuple[int, Values]:
    return 0, _of_log(
        {
            "partition_index": 0,
            "replica_epoch": request.epoch,
            "replica_id": request.candidate_id,
            "last_offset_epoch": request.last_epoch,
            "last_offset": request.end_offset,
        }
    )


def _vote_answer(response: VoteResponse, _: Asked) -> Values:
    return _of_log(
        {
            "partition_index": 0,
            "error_code": Error.NONE,
            "leader_id": response.leader_id,
            "leader_epoch": response.epoch,
            "vote_granted": response.granted,
        }
    )


def _vote_answered(entity: Any, request: VoteRequest, node: int, _: Labels) -> VoteResponse:
    one = _partition(entity.topics)
    return VoteResponse(
        request.correlation, node, one.leader_epoch, one.leader_id, one.vote_granted
    )


def _begin_asked(entity: Any, correlation: int, _: Labels) -> BeginQuorumEpochRequest:
    one = _partition(entity.topics)
    return BeginQuorumEpochRequest(correlation, one.leader_epoch, one.leader_id)


def _begin_ask(request: BeginQuorumEpochRequest, _: Labels) -> tuple[int, Values]:
    return 0, _of_log(_leader(request.leader_id, request.epoch))


def _heard(response: BeginQuorumEpochResponse | EndQuorumEpochResponse, _: Asked) -> Values:
    return _of_log(_leader(response.leader_id, response.epoch) | {"error_code": Error.NONE})


def _begin_answered(
    entity: Any, request: BeginQuorumEpochRequest, node: int, _: Labels
) -> BeginQuorumEpochResponse:
    one = _partition(entity.topics)
    return BeginQuorumEpochResponse(request.correlation, node, one.leader_epoch, one.leader_id)


def _end_asked(entity: Any, correlation: int, _: Labels) -> EndQuorumEpochRequest:
    one = _partition(entity.topics)
    successors = tuple(one.preferred_successors)
    return EndQuorumEpochRequest(correlation, one.leader_epoch, one.leader_id, successors)


def _end_ask(request: EndQuorumEpochRequest, _: Labels) -> tuple[int, Values]:
    leader = _leader(request.leader_id, request.epoch)
    return 0, _of_log(leader | {"preferred_successors": request.successors})


def _end_answered(
    entity: Any, request: EndQuorumEpochRequest, node: int, _: Labels
) -> EndQuorumEpochResponse:
    one = _partition(entity.topics)
    return EndQuorumEpochResponse(request.correlation, node, one.leader_epoch, one.leader_id)


def _fetch_asked(entity: Any, correlation: int, voters: tuple[int, ...]) -> MetadataFetchRequest:
    one = _partition(entity.topics)
    state = getattr(entity, "replica_state", entity)
    return MetadataFetchRequest(
        correlation,
        replica_id=state.replica_id,
        epoch=one.current_leader_epoch,
        fetch_offset=one.fetch_offset,
        last_fetched_epoch=one.last_fetched_epoch,
        max_wait_ns=ns_of(entity.max_wait),
        is_voter=state.replica_id in voters,
    )


def _fetch_ask(request: MetadataFetchRequest, _: Labels) -> tuple[int, Values]:
    partition = {
        "partition": 0,
        "current_leader_epoch": request.epoch,
        "fetch_offset": request.fetch_offset,
        "last_fetched_epoch": request.last_fetched_epoch,
        "partition_max_bytes": _BYTES_MAX,
    }
    return _FETCH_VERSION, {
        "replica_id": request.replica_id,
        "max_wait": ms_of(request.max_wait_ns),
        "min_bytes": 0,
        "max_bytes": _BYTES_MAX,
        "topics": [{"topic_id": _TOPIC, "partitions": [partition]}],
    }


def _fetch_answer(response: MetadataFetchResponse, asked: Asked) -> Values:
    records = b"".join(encoded_batch(one) for one in response.batches)
    partition = {
        "partition_index": 0,
        "error_code": response.error,
        "high_watermark": response.high_watermark,
        "last_stable_offset": response.high_watermark,
        "diverging_epoch": {
            "epoch": response.diverging_epoch,
            "end_offset": response.diverging_end_offset,
        },
        "current_leader": {"leader_id": response.leader_id, "leader_epoch": response.epoch},
        "snapshot_id": {
            "end_offset": response.snapshot_end_offset,
            "epoch": response.snapshot_epoch,
        },
        "aborted_transactions": None,
        "records": records,
    }
    named = (
        {"topic_id": _TOPIC} if asked.version >= _IDENTIFIERS_FROM else {"topic": METADATA_TOPIC}
    )
    return {"responses": [{**named, "partitions": [partition]}]}


def _fetch_answered(
    entity: Any, request: MetadataFetchRequest, _node: int, _: Labels
) -> MetadataFetchResponse:
    one = _partition(entity.responses)
    try:
        batches = batches_in(bytes(one.records or b""))
    except DecodeError as error:
        raise Unreadable(str(error)) from error
    return MetadataFetchResponse(
        request.correlation,
        error=entity.error_code.value or one.error_code.value,
        epoch=one.current_leader.leader_epoch,
        leader_id=one.current_leader.leader_id,
        high_watermark=one.high_watermark,
        batches=batches,
        diverging_epoch=one.diverging_epoch.epoch,
        diverging_end_offset=one.diverging_epoch.end_offset,
        snapshot_end_offset=one.snapshot_id.end_offset,
        snapshot_epoch=one.snapshot_id.epoch,
    )


def _snapshot_asked(entity: Any, correlation: int, _: Labels) -> FetchSnapshotRequest:
    one = _partition(entity.topics)
    return FetchSnapshotRequest(
        correlation,
        replica_id=entity.replica_id,
        epoch=one.current_leader_epoch,
        end_offset=one.snapshot_id.end_offset,
        snapshot_epoch=one.snapshot_id.epoch,
        position=one.position,
        size_max=entity.max_bytes,
    )


def _snapshot_ask(request: FetchSnapshotRequest, _: Labels) -> tuple[int, Values]:
    partition = {
        "partition": 0,
        "current_leader_epoch": request.epoch,
        "snapshot_id": {"end_offset": request.end_offset, "epoch": request.snapshot_epoch},
        "position": request.position,
    }
    return 0, {
        "replica_id": request.replica_id,
        "max_bytes": min(request.size_max, _BYTES_MAX),
        "topics": [{"name": METADATA_TOPIC, "partitions": [partition]}],
    }


def _snapshot_answer(response: FetchSnapshotResponse, asked: Asked) -> Values:
    wanted = _partition(asked.entity.topics).snapshot_id
    partition = {
        "index": 0,
        "error_code": response.error,
        "snapshot_id": {"end_offset": wanted.end_offset, "epoch": wanted.epoch},
        "current_leader": {"leader_id": response.leader_id, "leader_epoch": response.epoch},
        "size": response.size,
        "position": response.position,
        "unaligned_records": b"" if response.piece is None else response.piece,
    }
    return {"topics": [{"name": METADATA_TOPIC, "partitions": [partition]}]}


def _snapshot_answered(
    entity: Any, request: FetchSnapshotRequest, _node: int, _: Labels
) -> FetchSnapshotResponse:
    one = _partition(entity.topics)
    error = entity.error_code.value or one.error_code.value
    return FetchSnapshotResponse(
        request.correlation,
        error=error,
        epoch=one.current_leader.leader_epoch,
        leader_id=one.current_leader.leader_id,
        size=one.size,
        position=one.position,
        piece=None if error else bytes(one.unaligned_records),
    )


def _partition(topics: Any) -> Any:
    """The one partition of a message about the metadata log. Raises Unreadable."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        raise Unreadable("a request of the quorum that is not about one partition")
    topic = topics[0]
    named = getattr(topic, "topic_name", None) or getattr(topic, "name", None)
    named = named or getattr(topic, "topic", None)
    if named != METADATA_TOPIC and getattr(topic, "topic_id", None) != _TOPIC:
        raise Unreadable(f"a request of the quorum about {named}")
    return topic.partitions[0]


def _of_log(partition: Mapping[str, Any]) -> Values:
    return {"topics": [{"topic_name": METADATA_TOPIC, "partitions": [partition]}]}


def _leader(leader_id: int, epoch: int) -> dict[str, Any]:
    return {"partition_index": 0, "leader_id": leader_id, "leader_epoch": epoch}


_ELECTIONS: Final = (
    Api(
        name="Vote",
        key=52,
        kind=VoteRequest.kind,
        versions=(0, 0),
        doors=(Door.CONTROLLER,),
        asked=_vote_asked,
        answer=_vote_answer,
        ask=_vote_ask,
        answered=_vote_answered,
    ),
    Api(
        name="BeginQuorumEpoch",
        key=53,
        kind=BeginQuorumEpochRequest.kind,
        versions=(0, 0),
        doors=(Door.CONTROLLER,),
        asked=_begin_asked,
        answer=_heard,
        ask=_begin_ask,
        answered=_begin_answered,
    ),
    Api(
        name="EndQuorumEpoch",
        key=54,
        kind=EndQuorumEpochRequest.kind,
        versions=(0, 0),
        doors=(Door.CONTROLLER,),
        asked=_end_asked,
        answer=_heard,
        ask=_end_ask,
        answered=_end_answered,
    ),
)
_SNAPSHOTS: Final = Api(
    name="FetchSnapshot",
    key=59,
    kind=FetchSnapshotRequest.kind,
    versions=(0, 0),
    doors=(Door.CONTROLLER,),
    asked=_snapshot_asked,
    answer=_snapshot_answer,
    ask=_snapshot_ask,
    answered=_snapshot_answered,
)
