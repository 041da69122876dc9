"""ListOffsets and OffsetsForLeaderEpoch: where a partition's log begins, ends and changed hands.

Batches are opaque here, so that no offset is found by its time. What consumers call the latest
offset is the high watermark; a new leader does not know it before its followers have fetched, and
says so, lest the latest offset went back (KIP-320, KIP-207).
"""

from collections.abc import Mapping
from typing import Final

from clusters.node_port.storage import PartitionKey
from clusters.reference.nodes.errors import Error
from clusters.reference.nodes.messages.data import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from clusters.reference.nodes.replicas.leader import Leader
from clusters.reference.nodes.situation import Situation

__all__ = ["epoch_ends", "listed"]

_NONE: Final = int(Error.NONE)
_LATEST: Final = -1
_EARLIEST: Final = -2
_MAX_TIMESTAMP: Final = -3
_CONSUMER: Final = -1

_Leaders = Mapping[PartitionKey, Leader]
_Found = tuple[PartitionKey, int, int, int]


def listed(
    request: ListOffsetsRequest, *, leaders: _Leaders, situation: Situation
) -> ListOffsetsResponse:
    """Return (key, error, offset, leader epoch) for each partition."""
    found: list[_Found] = []
    for key, epoch, timestamp in request.partitions:
        leader = leaders.get(key)
        error = _error(key, epoch, leader, situation)
        if leader is None or error:
            found.append((key, error, -1, -1))
        else:
            found.append((key, *_listed(leader, timestamp, request.replica_id)))
    return ListOffsetsResponse(request.correlation, tuple(found))


def epoch_ends(
    request: OffsetsForLeaderEpochRequest, *, leaders: _Leaders, situation: Situation
) -> OffsetsForLeaderEpochResponse:
    """The largest leader epoch up to the one that was asked for, and where it ends."""
    found: list[_Found] = []
    for key, current, epoch in request.partitions:
        leader = leaders.get(key)
        error = _error(key, current, leader, situation)
        if leader is None or error:
            found.append((key, error, -1, -1))
        else:
            found.append((key, _NONE, *leader.log.end_of_epoch(epoch)))
    return OffsetsForLeaderEpochResponse(request.correlation, tuple(found))


def _listed(leader: Leader, timestamp: int, replica_id: int) -> tuple[int, int, int]:
    log = leader.log
    if timestamp == _EARLIEST:
        return _NONE, 0, log.batches[0].leader_epoch if log.batches else -1
    if timestamp not in (_LATEST, _MAX_TIMESTAMP):
        return int(Error.INVALID_REQUEST), -1, -1
    is_consumer = replica_id == _CONSUMER
    end = leader.readable_end() if is_consumer else log.end
    if is_consumer and end < leader.epoch_start:
        return int(Error.OFFSET_NOT_AVAILABLE), -1, -1
    return _NONE, end if timestamp == _LATEST else end - 1, leader.leader_epoch


def _error(key: PartitionKey, epoch: int, leader: Leader | None, situation: Situation) -> int:
    if leader is None:
        known = key in situation.image.partitions
        no_leader = Error.NOT_LEADER_OR_FOLLOWER
        return int(no_leader if known else Error.UNKNOWN_TOPIC_OR_PARTITION)
    if epoch in (-1, leader.leader_epoch):
        return _NONE
    older = epoch < leader.leader_epoch
    return int(Error.FENCED_LEADER_EPOCH if older else Error.UNKNOWN_LEADER_EPOCH)
