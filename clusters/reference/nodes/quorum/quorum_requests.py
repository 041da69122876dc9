"""The reaction of a voter to messages, each with the epoch that it speaks of.

An older epoch is refused with the one that holds now, a higher one is followed whoever says so. No
answer is trusted to be one: an answer counts if it was awaited, and what comes twice counts once.
"""

from collections.abc import Callable
from typing import Any, Final

from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)
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
from fencepost.clusters.reference.nodes.quorum.epochs import is_refused
from fencepost.clusters.reference.nodes.quorum.leading import ReplicaProgress
from fencepost.clusters.reference.nodes.quorum.quorum_state import QuorumStateMachine
from fencepost.clusters.reference.nodes.quorum.snapshots import BEGINS_ANEW, Pieces
from fencepost.clusters.reference.nodes.quorum.transitions import VoterState
from fencepost.clusters.reference.nodes.rules import Rules

_NOT_LEADER: Final = int(Error.NOT_LEADER_OR_FOLLOWER)
_FENCED_LEADER_EPOCH: Final = int(Error.FENCED_LEADER_EPOCH)
_SNAPSHOT_NOT_FOUND: Final = int(Error.SNAPSHOT_NOT_FOUND)
_POSITION_OUT_OF_RANGE: Final = int(Error.POSITION_OUT_OF_RANGE)


class QuorumRequests:
    """The handlers of a voter's messages, in `takes` by the kind of message."""

    __slots__ = ("_piece_max", "_pieces", "_quorum", "_rules", "takes")

    def __init__(
        self, quorum: QuorumStateMachine, rules: Rules, *, pieces: Pieces, piece_max: int
    ) -> None:
        self._pieces = pieces
        self._piece_max = piece_max
        self._quorum = quorum
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
        quorum = self._quorum
        if request.candidate_id in quorum.others and not self._refuses(request.epoch):
            if request.epoch != quorum.epoch:
                quorum.detach(now, request.epoch, effects)
            if not quorum.refuses_vote(request):
                quorum.grant(now, source, request, effects)
                return
        answer = VoteResponse(
            request.correlation, quorum.node_id, quorum.epoch, quorum.leader_id, granted=False
        )
        effects.append((SEND, source, answer))

    def voted(self, now: int, _source: int, response: VoteResponse, effects: Effects) -> None:
        """A voter answered this candidate."""
        quorum = self._quorum
        if response.epoch > quorum.epoch or (
            response.epoch == quorum.epoch and response.leader_id >= 0
        ):
            quorum.heed(now, response.epoch, response.leader_id, effects)
        if response.epoch == quorum.epoch:
            quorum.take_vote(now, response, effects)

    def begin(
        self, now: int, source: int, request: BeginQuorumEpochRequest, effects: Effects
    ) -> None:
        """Follow the voter that says it leads, and answer it."""
        quorum = self._quorum
        if request.leader_id in quorum.others and not self._refuses(request.epoch):
            quorum.heed(now, request.epoch, request.leader_id, effects)
        answer = BeginQuorumEpochResponse(
            request.correlation, quorum.node_id, quorum.epoch, quorum.leader_id
        )
        effects.append((SEND, source, answer))

    def begun(
        self, now: int, _source: int, response: BeginQuorumEpochResponse, effects: Effects
    ) -> None:
        """A voter heard that this one leads."""
        self._quorum.announcer.begun(now, response.voter_id, response.correlation)
        self._heed_higher(now, response.epoch, response.leader_id, effects)

    def end(self, now: int, source: int, request: EndQuorumEpochRequest, effects: Effects) -> None:
        """The leader resigned."""
        quorum = self._quorum
        if request.leader_id in quorum.others and not self._refuses(request.epoch):
            if request.epoch != quorum.epoch:
                quorum.detach(now, request.epoch, effects)
            if quorum.leader_id in {-1, request.leader_id}:
                quorum.succeed(now, request, effects)
        answer = EndQuorumEpochResponse(
            request.correlation, quorum.node_id, quorum.epoch, quorum.leader_id
        )
        effects.append((SEND, source, answer))

    def ended(
        self, now: int, _source: int, response: EndQuorumEpochResponse, effects: Effects
    ) -> None:
        """A voter heard that this one resigned."""
        self._quorum.announcer.ended(response.voter_id, response.correlation)
        self._heed_higher(now, response.epoch, response.leader_id, effects)

    def fetch(self, now: int, source: int, request: MetadataFetchRequest, effects: Effects) -> None:
        """A voter or observer fetches."""
        error = self._fetch_error(now, request.epoch, effects)
        leadership = self._quorum.leadership
        if error or leadership is None:
            answer = MetadataFetchResponse(
                request.correlation, error, self._quorum.epoch, self._quorum.leader_id
            )
            effects.append((SEND, source, answer))
        else:
            leadership.fetch(now, source, request, effects)

    def fetched(
        self, now: int, _source: int, response: MetadataFetchResponse, effects: Effects
    ) -> None:
        """The leader answered a fetch."""
        quorum = self._quorum
        if not self._is_awaited(now, response, effects):
            return
        quorum.heard(now)
        quorum.fetcher.take(now, response, effects)
        quorum.settle(now, effects)

    def fetch_snapshot(
        self, now: int, source: int, request: FetchSnapshotRequest, effects: Effects
    ) -> None:
        """A voter or observer fetches a snapshot, piece by piece."""
        quorum = self._quorum
        error = self._fetch_error(now, request.epoch, effects)
        answer = FetchSnapshotResponse(request.correlation, error, quorum.epoch, quorum.leader_id)
        if quorum.leadership is not None and not error:
            quorum.leadership.heard_of(now, request.replica_id)
            self._answer_piece(request, answer)
        effects.append((SEND, source, answer))

    def _answer_piece(self, request: FetchSnapshotRequest, answer: FetchSnapshotResponse) -> None:
        found = self._quorum.log.latest_snapshot
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
            self._quorum.heard(now)
            self._quorum.fetcher.take_snapshot(now, response, effects)
            self._quorum.poll(now, effects)

    def describe(
        self, now: int, source: int, request: DescribeQuorumRequest, effects: Effects
    ) -> None:
        """Answer how far all replicas are."""
        quorum, leadership = self._quorum, self._quorum.leadership
        error = _NOT_LEADER if leadership is None else 0
        answer = DescribeQuorumResponse(
            request.correlation,
            error,
            quorum.leader_id,
            quorum.epoch,
            self._quorum.log.high_watermark,
            (),
            (),
        )
        if leadership is not None:
            own = (quorum.node_id, self._quorum.log.end, now, now)
            answer.voters = tuple(sorted((own, *map(_described, leadership.voters.items()))))
            answer.observers = tuple(sorted(map(_described, leadership.seen(now).items())))
        effects.append((SEND, source, answer))

    def _refuses(self, epoch: int) -> bool:
        return is_refused(self._rules, epoch, own=self._quorum.epoch)

    def _heed_higher(self, now: int, epoch: int, leader_id: int, effects: Effects) -> None:
        if epoch > self._quorum.epoch:
            self._quorum.heed(now, epoch, leader_id, effects)

    def _fetch_error(self, now: int, epoch: int, effects: Effects) -> int:
        """Follow a higher epoch; why a fetch is not answered here, or 0."""
        # An observer that has just started knows of no epoch.
        if epoch >= 0 and self._refuses(epoch):
            return _FENCED_LEADER_EPOCH
        self._heed_higher(now, epoch, -1, effects)
        return _NOT_LEADER if self._quorum.leadership is None else 0

    def _is_awaited(
        self,
        now: int,
        response: MetadataFetchResponse | FetchSnapshotResponse,
        effects: Effects,
    ) -> bool:
        """Return whether the leader that this voter follows has answered its last fetch."""
        quorum, exchange = self._quorum, self._quorum.fetcher.exchange
        if not exchange.is_answered(response.correlation):
            return False
        if self._refuses(response.epoch):
            exchange.pause(now)
            return False
        if quorum.heed(now, response.epoch, response.leader_id, effects):
            return False
        if quorum.state is not VoterState.FOLLOWER or response.error:
            exchange.pause(now)
            return False
        return True


def _described(one: tuple[int, ReplicaProgress]) -> tuple[int, int, int, int]:
    replica_id, progress = one
    return replica_id, progress.end, progress.fetched_at, progress.caught_up_at
