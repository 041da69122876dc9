"""Fetches: followers' up to the log's end, consumers' up to the high watermark; and offsets.

A follower's fetch is its acknowledgement of everything below. One whose log does not continue the
leader's hears where they part, and counts for nothing; nor does one that comes late, from before
the follower's restart (KAFKA-15221).

ListOffsets and OffsetsForLeaderEpoch tell where a log begins, ends and changed hands. Batches are
opaque here, so that no offset is found by its time. What consumers call the latest offset is the
high watermark; a new leader does not know it before its followers have fetched, and says so, lest
the latest offset went back (KIP-320, KIP-207).
"""

from collections.abc import Mapping
from typing import Final

from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.data import (
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from fencepost.clusters.reference.nodes.replicas.leader import Leader
from fencepost.clusters.reference.nodes.replicas.log import NO_EPOCH
from fencepost.clusters.reference.nodes.replicas.remote import Remote
from fencepost.clusters.reference.nodes.replicas.replicas import Replicas
from fencepost.clusters.reference.nodes.replicas.waiting import ConsumerFetch
from fencepost.clusters.reference.nodes.situation import Situation

_NONE: Final = int(Error.NONE)
_OUT_OF_RANGE: Final = int(Error.OFFSET_OUT_OF_RANGE)
_NOT_LEADER: Final = int(Error.NOT_LEADER_OR_FOLLOWER)
_UNKNOWN: Final = int(Error.UNKNOWN_TOPIC_OR_PARTITION)
_FENCED_EPOCH: Final = int(Error.FENCED_LEADER_EPOCH)
_UNKNOWN_EPOCH: Final = int(Error.UNKNOWN_LEADER_EPOCH)

_Entry = tuple[PartitionKey, int, int, int]
_LATEST: Final = -1
_EARLIEST: Final = -2
_MAX_TIMESTAMP: Final = -3
_CONSUMER: Final = -1

_Leaders = Mapping[PartitionKey, Leader]
_Found = tuple[PartitionKey, int, int, int]


class Fetching:
    """A broker's fetches."""

    __slots__ = ("_fetch_epoch_checked", "_leaders", "_parked", "_replicas", "_situation")

    def __init__(self, situation: Situation, replicas: Replicas) -> None:
        self._situation = situation
        self._replicas = replicas
        self._leaders = replicas.leaders
        self._parked = replicas.fetches
        # Rule fetch_epoch_checked.
        self._fetch_epoch_checked = situation.rules.fetch_epoch_checked

    def follow(self, now: int, source: int, request: FetchRequest, effects: Effects) -> None:
        """Answer a follower, or park its fetch."""
        replica_id, replica_epoch = request.replica_id, request.replica_epoch
        refused: list[FetchedPartition] = []
        entries: list[tuple[Leader, Remote, int]] = []
        has_news = False
        for entry in request.partitions:
            key, offset, epoch, last_epoch = entry
            leader = self._leaders.get(key)
            remote = None if leader is None else leader.remotes.get(replica_id)
            if leader is None or remote is None or -1 < replica_epoch < remote.broker_epoch:
                refused.append(self._unled(key, epoch))
                continue
            log = leader.log
            end = log.end
            if (
                epoch != leader.leader_epoch
                or last_epoch != log.last_epoch
                or not 0 <= offset <= end
            ):
                refusal = self._refusal(leader, entry)
                if refusal is not None:
                    refused.append(refusal)
                    continue
            remote.fetch(now, offset, replica_epoch, end)
            if not remote.is_member:
                self._consider(now, leader, remote, effects)
            if log.high_watermark < end:
                leader.advance(now, effects)
            has_news = has_news or offset < end
            entries.append((leader, remote, offset))
        parked = self._parked.of_follower(replica_id)
        if parked.request is not None:
            parked.finish(effects)
        parked.source, parked.now, parked.request, parked.entries = source, now, request, entries
        if has_news or refused or request.max_wait_ns <= 0:
            parked.finish(effects, refused)
        else:
            self._situation.alarm.by(now + request.max_wait_ns)

    def consume(self, now: int, source: int, request: FetchRequest, effects: Effects) -> None:
        """Answer a consumer, or park its fetch."""
        found: list[FetchedPartition] = []
        entries: list[tuple[Leader, int]] = []
        has_news = request.max_wait_ns <= 0 or request.min_bytes <= 0
        for entry in request.partitions:
            key, offset, epoch, _ = entry
            leader = self._leaders.get(key)
            if leader is None:
                found.append(self._unled(key, epoch))
                has_news = True
                continue
            refusal = None
            if epoch not in (NO_EPOCH, leader.leader_epoch) or not 0 <= offset <= leader.log.end:
                refusal = self._refusal(leader, entry)
            if refusal is None:
                refusal = leader.fetched(offset, request.max_records, request.max_bytes)
                entries.append((leader, offset))
            found.append(refusal)
            has_news = has_news or bool(refusal.batches) or refusal.error != _NONE
        if has_news or not entries:
            effects.append((SEND, source, FetchResponse(request.correlation, _NONE, tuple(found))))
        else:
            self._parked.add(ConsumerFetch(now, source, request, entries))

    def _consider(self, now: int, leader: Leader, remote: Remote, effects: Effects) -> None:
        isr = leader.wanted_isr(remote)
        if isr is not None:
            self._replicas.proposals.propose(now, leader, isr, effects)

    def _refusal(self, leader: Leader, entry: _Entry) -> FetchedPartition | None:
        """Return why a fetch is not served: another leader epoch, or a log unlike this one."""
        key, offset, epoch, last_epoch = entry
        log = leader.log
        if epoch not in (NO_EPOCH, leader.leader_epoch) and self._fetch_epoch_checked:
            return _other_epoch(leader, epoch)
        if last_epoch != NO_EPOCH:
            known, end = log.end_of_epoch(last_epoch)
            if known == NO_EPOCH:
                return _out_of_range(leader, log.end if log.end < offset else 0)
            if known < last_epoch or end < offset:
                return FetchedPartition(
                    key, _NONE, leader.leader_epoch, log.high_watermark, 0, (), known, end
                )
        return None if 0 <= offset <= log.end else _out_of_range(leader, log.end)

    def _unled(self, key: PartitionKey, epoch: int) -> FetchedPartition:
        error = _NOT_LEADER if key in self._situation.image.partitions else _UNKNOWN
        return FetchedPartition(key, error, epoch, -1, -1, ())


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


def _other_epoch(leader: Leader, asked: int) -> FetchedPartition:
    """It names the epoch that was asked for: else who asked takes it for a late answer."""
    error = _FENCED_EPOCH if asked < leader.leader_epoch else _UNKNOWN_EPOCH
    return FetchedPartition(leader.key, error, asked, -1, 0, ())


def _out_of_range(leader: Leader, end: int) -> FetchedPartition:
    return FetchedPartition(
        leader.key, _OUT_OF_RANGE, leader.leader_epoch, -1, 0, (), diverging_end_offset=end
    )


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
