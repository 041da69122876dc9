"""The reaction of a voter to messages, each with the epoch that it speaks of.

An older epoch is refused with the one that holds now, a higher one is followed whoever says so. No
answer is trusted to be one: an answer counts if it was awaited, and what comes twice counts once.
"""

from collections.abc import Callable
from typing import Any, Final

from clusters.node_port.effects import SEND, Effects
from clusters.reference.nodes.errors import Error
from clusters.reference.nodes.messages.control import DescribeQuorumRequest, DescribeQuorumResponse
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
from clusters.reference.nodes.quorum.epochs import is_refused
from clusters.reference.nodes.quorum.leading import ReplicaProgress
from clusters.reference.nodes.quorum.quorum_state import Seat
from clusters.reference.nodes.quorum.snapshots import BEGINS_ANEW, Pieces
from clusters.reference.nodes.quorum.transitions import VoterState
from clusters.reference.nodes.rules import Rules

_NOT_LEADER: Final = int(Error.NOT_LEADER_OR_FOLLOWER)
_FENCED_LEADER_EPOCH: Final = int(Error.FENCED_LEADER_EPOCH)
_SNAPSHOT_NOT_FOUND: Final = int(Error.SNAPSHOT_NOT_FOUND)
_POSITION_OUT_OF_RANGE: Final = int(Error.POSITION_OUT_OF_RANGE)


class Hearing:
    """The messages of a seat: `takes` has, by kind, what is done with one."""

    __slots__ = ("_piece_max", "_pieces", "_rules", "_seat", "takes")

    def __init__(self, seat: Seat, rules: Rules, *, pieces: Pieces, piece_max: int) -> None:
        self._pieces = pieces
        self._piece_max = piece_max
        self._seat = seat
        self._rules = rules
        self.takes: Final[dict[int, Callable[[int, int, Any, Effects], None]]] = {
            VoteRequest.kind: self.vote,
            VoteResponse.kind: self.voted,
            BeginQuorumEpochRequest.kind: self.begin,
            BeginQuorumEpochResponse.kind: self.begun,
            EndQuorumEpochRequest.kind: self.end,
            EndQuorumEpochResponse.kind: self.ended,
            MetadataFetchRequest.kind: self.fetch,
            MetadataFetchResponse.kind: self.fetched,
            FetchSnapshotRequest.kind: self.fetch_snapshot,
            FetchSnapshotResponse.kind: self.snapshot_fetched,
            DescribeQuorumRequest.kind: self.describe,
        }

    def vote(self, now: int, source: int, request: VoteRequest, effects: Effects) -> None:
        """Vote for a candidate, or say why not: by the epoch and leader that hold."""
        seat = self._seat
        if request.candidate_id in seat.others and not self._refuses(request.epoch):
            if request.epoch != seat.epoch:
                seat.detach(now, request.epoch, effects)
            if not seat.refuses_vote(request):
                seat.grant(now, source, request, effects)
                return
        answer = VoteResponse(
            request.correlation, seat.node_id, seat.epoch, seat.leader_id, granted=False
        )
        effects.append((SEND, source, answer))

    def voted(self, now: int, _source: int, response: VoteResponse, effects: Effects) -> None:
        """A voter answered this candidate."""
        seat = self._seat
        if response.epoch > seat.epoch or (
            response.epoch == seat.epoch and response.leader_id >= 0
        ):
            seat.heed(now, response.epoch, response.leader_id, effects)
        if response.epoch == seat.epoch:
            seat.take_vote(now, response, effects)

    def begin(
        self, now: int, source: int, request: BeginQuorumEpochRequest, effects: Effects
    ) -> None:
        """Follow the voter that says it leads, and answer it."""
        seat = self._seat
        if request.leader_id in seat.others and not self._refuses(request.epoch):
            seat.heed(now, request.epoch, request.leader_id, effects)
        answer = BeginQuorumEpochResponse(
            request.correlation, seat.node_id, seat.epoch, seat.leader_id
        )
        effects.append((SEND, source, answer))

    def begun(
        self, now: int, _source: int, response: BeginQuorumEpochResponse, effects: Effects
    ) -> None:
        """A voter heard that this one leads."""
        self._seat.announcer.begun(now, response.voter_id, response.correlation)
        self._heed_higher(now, response.epoch, response.leader_id, effects)

    def end(self, now: int, source: int, request: EndQuorumEpochRequest, effects: Effects) -> None:
        """The leader resigned."""
        seat = self._seat
        if request.leader_id in seat.others and not self._refuses(request.epoch):
            if request.epoch != seat.epoch:
                seat.detach(now, request.epoch, effects)
            if seat.leader_id in {-1, request.leader_id}:
                seat.succeed(now, request, effects)
        answer = EndQuorumEpochResponse(
            request.correlation, seat.node_id, seat.epoch, seat.leader_id
        )
        effects.append((SEND, source, answer))

    def ended(
        self, now: int, _source: int, response: EndQuorumEpochResponse, effects: Effects
    ) -> None:
        """A voter heard that this one resigned."""
        self._seat.announcer.ended(response.voter_id, response.correlation)
        self._heed_higher(now, response.epoch, response.leader_id, effects)

    def fetch(self, now: int, source: int, request: MetadataFetchRequest, effects: Effects) -> None:
        """A voter or observer fetches."""
        error = self._fetch_error(now, request.epoch, effects)
        leadership = self._seat.leadership
        if error or leadership is None:
            answer = MetadataFetchResponse(
                request.correlation, error, self._seat.epoch, self._seat.leader_id
            )
            effects.append((SEND, source, answer))
        else:
            leadership.fetch(now, source, request, effects)

    def fetched(
        self, now: int, _source: int, response: MetadataFetchResponse, effects: Effects
    ) -> None:
        """The leader answered a fetch."""
        seat = self._seat
        if not self._is_awaited(now, response, effects):
            return
        seat.heard(now)
        seat.fetcher.take(now, response, effects)
        seat.settle(now, effects)

    def fetch_snapshot(
        self, now: int, source: int, request: FetchSnapshotRequest, effects: Effects
    ) -> None:
        """A voter or observer fetches a snapshot, piece by piece."""
        seat = self._seat
        error = self._fetch_error(now, request.epoch, effects)
        answer = FetchSnapshotResponse(request.correlation, error, seat.epoch, seat.leader_id)
        if seat.leadership is not None and not error:
            seat.leadership.heard_of(now, request.replica_id)
            self._answer_piece(request, answer)
        effects.append((SEND, source, answer))

    def _answer_piece(self, request: FetchSnapshotRequest, answer: FetchSnapshotResponse) -> None:
        found = self._seat.log.latest_snapshot
        wanted = (request.end_offset, request.snapshot_epoch)
        if found is None or (found.end_offset, found.epoch) != wanted:
            answer.error = _SNAPSHOT_NOT_FOUND
            return
        size_max = min(request.size_max, self._piece_max)
        cut = self._pieces.cut(found, position=request.position, size_max=size_max)
        if cut is None:
            answer.error = _POSITION_OUT_OF_RANGE
        else:
            answer.size, answer.piece = cut
            answer.position = request.position

    def snapshot_fetched(
        self, now: int, _source: int, response: FetchSnapshotResponse, effects: Effects
    ) -> None:
        """The leader sent a piece of its snapshot, or has another one by now."""
        if response.error in BEGINS_ANEW:
            response = FetchSnapshotResponse(
                response.correlation, 0, response.epoch, response.leader_id
            )
        if self._is_awaited(now, response, effects):
            self._seat.heard(now)
            self._seat.fetcher.take_snapshot(now, response, effects)
            self._seat.poll(now, effects)

    def describe(
        self, now: int, source: int, request: DescribeQuorumRequest, effects: Effects
    ) -> None:
        """Answer how far all replicas are."""
        seat, leadership = self._seat, self._seat.leadership
        error = _NOT_LEADER if leadership is None else 0
        answer = DescribeQuorumResponse(
            request.correlation,
            error,
            seat.leader_id,
            seat.epoch,
            self._seat.log.high_watermark,
            (),
            (),
        )
        if leadership is not None:
            own = (seat.node_id, self._seat.log.end, now, now)
            answer.voters = tuple(sorted((own, *map(_described, leadership.voters.items()))))
            answer.observers = tuple(sorted(map(_described, leadership.seen(now).items())))
        effects.append((SEND, source, answer))

    def _refuses(self, epoch: int) -> bool:
        return is_refused(self._rules, epoch, own=self._seat.epoch)

    def _heed_higher(self, now: int, epoch: int, leader_id: int, effects: Effects) -> None:
        if epoch > self._seat.epoch:
            self._seat.heed(now, epoch, leader_id, effects)

    def _fetch_error(self, now: int, epoch: int, effects: Effects) -> int:
        """Follow a higher epoch; why a fetch is not answered here, or 0."""
        # An observer that has just started knows of no epoch.
        if epoch >= 0 and self._refuses(epoch):
            return _FENCED_LEADER_EPOCH
        self._heed_higher(now, epoch, -1, effects)
        return _NOT_LEADER if self._seat.leadership is None else 0

    def _is_awaited(
        self,
        now: int,
        response: MetadataFetchResponse | FetchSnapshotResponse,
        effects: Effects,
    ) -> bool:
        """Return whether the leader that this voter follows has answered its last fetch."""
        seat, exchange = self._seat, self._seat.fetcher.exchange
        if not exchange.is_answered(response.correlation):
            return False
        if self._refuses(response.epoch):
            exchange.pause(now)
            return False
        if seat.heed(now, response.epoch, response.leader_id, effects):
            return False
        if seat.state is not VoterState.FOLLOWER or response.error:
            exchange.pause(now)
            return False
        return True


def _described(one: tuple[int, ReplicaProgress]) -> tuple[int, int, int, int]:
    replica_id, progress = one
    return replica_id, progress.end, progress.fetched_at, progress.caught_up_at
