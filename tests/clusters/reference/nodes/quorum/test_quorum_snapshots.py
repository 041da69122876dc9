"""Snapshots come in pieces (KIP-630): over the wire, with losses, from one leader and another."""

from typing import Any

import pytest
from quorum_desk import Desk, disk
from wire_samples import image_with

from fencepost.clusters.node_port.effects import UNREACHABLE, WRITE
from fencepost.clusters.node_port.storage import SNAPSHOT, MetadataBatch, Snapshot
from fencepost.clusters.reference.codec.api import ListenerType
from fencepost.clusters.reference.codec.codec import Codec, kraft_apis
from fencepost.clusters.reference.codec.metadata_log import SnapshotBytes
from fencepost.clusters.reference.nodes.configuration import MS, S
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.quorum import (
    BeginQuorumEpochRequest,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    MetadataFetchRequest,
    VoteRequest,
    VoteResponse,
)
from fencepost.clusters.reference.nodes.quorum.snapshots import Pieces, SnapshotValues
from fencepost.clusters.reference.nodes.records import NoOpRecord, TopicRecord

_VOTERS = (1001, 1002, 1003)
_TOPICS = tuple(TopicRecord(f"topic-{one}", one) for one in range(1, 21))
_END = len(_TOPICS)
_BYTES = len(SnapshotBytes().encoded(Snapshot(end_offset=_END, epoch=1, records=_TOPICS)))
_PIECE = (_BYTES - 1) // 3
"""Three whole pieces and a rest, which end within records."""


class _Wire:
    """Both ends of a connection to a controller."""

    def __init__(self) -> None:
        image = image_with()
        self._codec = Codec(apis=kraft_apis(_VOTERS), image=lambda: image)

    def ask(self, leader: Desk, request: Any, source: int) -> Any:
        """Send a request as a frame; return its answer, which was one."""
        sent = self._codec.outgoing(request, correlation_id=5, client_id="1")
        came = self._codec.incoming(
            ListenerType.CONTROLLER, sent.frame[4:], correlation=request.correlation
        )
        (answer,) = leader.give(came.message, source=source)
        frame = came.answer(answer)[4:]
        return self._codec.answered(frame, request, version=sent.version, node=leader.own)


class _Leader(Desk):
    """A leader that has a snapshot of `_TOPICS` instead of its log."""

    def __init__(self, own: int, *, after: int = 0, piece: int = _PIECE) -> None:
        self.own = own
        contents = disk(MetadataBatch(0, 1, _TOPICS), epoch=after or 1)
        super().__init__(
            node_id=own,
            contents=contents,
            snapshots=SnapshotBytes(),
            quorum_fetch_timeout_ns=60 * S,
            snapshot_piece_max=piece,
        )
        while not (asked := [one for one in self.sync() if isinstance(one, VoteRequest)]):
            self.wait(20 * MS)
        other = next(one for one in _VOTERS if one != own)
        self.give(VoteResponse(asked[0].correlation, other, asked[0].epoch, -1, granted=True))
        assert self.part.is_leader
        self.sync()
        epoch, end = self.part.epoch, self.part.log.end
        self.give(MetadataFetchRequest(9, other, epoch, end, epoch, S, is_voter=True), source=other)
        self.call("snapshot", _END, 1, _TOPICS)
        self.sync()
        assert self.part.log.start == _END


def _observer(leader: _Leader, wire: _Wire) -> tuple[Desk, FetchSnapshotRequest]:
    """A new broker, and its request for the first piece."""
    desk = Desk(
        node_id=1,
        opened=False,
        snapshots=SnapshotBytes(),
        snapshot_piece_max=_PIECE,
    )
    (request,) = desk.sync()
    (wanted,) = desk.give(wire.ask(leader, request, source=1), source=leader.own)
    assert isinstance(wanted, FetchSnapshotRequest)
    return desk, wanted


def _fetched(desk: Desk, leader: _Leader, wire: _Wire, wanted: Any) -> list[int]:
    """Let it fetch to the end; the positions that it asked for."""
    positions = []
    while not desk.performed(WRITE):
        assert isinstance(wanted, FetchSnapshotRequest)
        positions.append(wanted.position)
        sent = desk.give(wire.ask(leader, wanted, source=1), source=leader.own)
        wanted = sent[0] if sent else None
    return positions


def _asked_next(desk: Desk) -> list[Any]:
    """Its next request, after a pause."""
    for _ in range(100):
        if sent := desk.wait(20 * MS):
            return sent
    raise AssertionError("it asks nothing")


def _topics_of(desk: Desk) -> tuple[Any, ...]:
    (written,) = desk.performed(WRITE)
    assert written[0] == SNAPSHOT
    found: tuple[Any, ...] = written[1].records
    return found


def test_k10_a_snapshot_of_several_pieces_is_put_together_and_then_durable() -> None:
    leader, wire = _Leader(1002), _Wire()
    desk, wanted = _observer(leader, wire)
    assert _fetched(desk, leader, wire, wanted) == [0, _PIECE, 2 * _PIECE, 3 * _PIECE]
    assert _topics_of(desk) == _TOPICS
    assert desk.part.log.start == 0
    (request,) = desk.sync()
    assert (desk.part.log.start, request.fetch_offset) == (_END, _END)


@pytest.mark.parametrize(("own", "asked"), [(7, _PIECE), (_PIECE, 7)])
def test_a_piece_is_no_larger_than_either_side_wants_it(own: int, asked: int) -> None:
    leader, wire = _Leader(1002, piece=own), _Wire()
    _, wanted = _observer(leader, wire)
    wanted.size_max = asked
    answer = wire.ask(leader, wanted, source=1)
    assert (len(answer.piece), answer.size, answer.position) == (7, _BYTES, 0)


def test_a_piece_that_was_lost_is_asked_for_again() -> None:
    leader, wire = _Leader(1002), _Wire()
    desk, wanted = _observer(leader, wire)
    (second,) = desk.give(wire.ask(leader, wanted, source=1))
    desk.event(UNREACHABLE, second, source=1002)
    (again,) = _asked_next(desk)
    positions = _fetched(desk, leader, wire, again)
    assert positions == [_PIECE, 2 * _PIECE, 3 * _PIECE]
    assert _topics_of(desk) == _TOPICS


def test_another_leaders_snapshot_begins_with_its_first_piece() -> None:
    leader, wire = _Leader(1002), _Wire()
    desk, wanted = _observer(leader, wire)
    (second,) = desk.give(wire.ask(leader, wanted, source=1))
    assert second.position == _PIECE
    successor = _Leader(1003, after=leader.part.epoch)
    epoch = successor.part.epoch
    assert epoch > leader.part.epoch
    deposed = FetchSnapshotResponse(
        second.correlation, int(Error.NOT_LEADER_OR_FOLLOWER), epoch, leader_id=-1
    )
    # The next leader has the snapshot of this end and epoch, too, and is asked for the rest.
    sent = desk.give(deposed) or _asked_next(desk)
    assert (sent[0].kind, sent[0].epoch, sent[0].position) == (second.kind, epoch, _PIECE)
    sent = desk.give(wire.ask(successor, sent[0], source=1), source=1003) or _asked_next(desk)
    assert isinstance(sent[0], MetadataFetchRequest)
    (wanted,) = desk.give(wire.ask(successor, sent[0], source=1), source=1003)
    assert _fetched(desk, successor, wire, wanted) == [0, _PIECE, 2 * _PIECE, 3 * _PIECE]
    assert _topics_of(desk) == _TOPICS


def test_a_voter_that_fetches_a_snapshot_keeps_its_leader() -> None:
    leader = _Leader(1002)
    request = FetchSnapshotRequest(1, 1003, leader.part.epoch, _END, 1, 0, _PIECE)
    for _ in range(3):
        leader.now += 59 * S
        leader.give(request, source=1003)
        leader.wait(20 * MS)
        assert leader.part.is_leader
    leader.now += 61 * S
    leader.wait(20 * MS)
    assert not leader.part.is_leader


def test_a_voter_goes_on_with_the_next_piece() -> None:
    leader, wire = _Leader(1002), _Wire()
    desk = Desk(node_id=1001, snapshots=SnapshotBytes(), snapshot_piece_max=_PIECE)
    epoch = leader.part.epoch
    sent = desk.give(BeginQuorumEpochRequest(1, epoch, 1002))
    (request,) = (one for one in sent if isinstance(one, MetadataFetchRequest))
    (wanted,) = desk.give(wire.ask(leader, request, source=1001))
    (second,) = desk.give(wire.ask(leader, wanted, source=1001))
    assert (wanted.position, second.position) == (0, _PIECE)


@pytest.mark.parametrize("position", [-1, _BYTES, _BYTES + 1])
def test_a_position_that_the_snapshot_does_not_have_is_refused(position: int) -> None:
    leader, wire = _Leader(1002), _Wire()
    desk, wanted = _observer(leader, wire)
    wanted.position = position
    answer = wire.ask(leader, wanted, source=1)
    assert (answer.error, answer.piece) == (Error.POSITION_OUT_OF_RANGE, None)
    sent = desk.give(answer) or _asked_next(desk)
    assert isinstance(sent[0], MetadataFetchRequest)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"position": 1}, id="another-position"),
        pytest.param({"piece": b""}, id="nothing"),
        pytest.param({"size": 3}, id="more-than-the-whole"),
        pytest.param({"piece": b"x" * _BYTES}, id="unreadable"),
    ],
)
def test_a_piece_that_does_not_fit_makes_it_ask_what_there_is(fields: dict[str, Any]) -> None:
    leader, wire = _Leader(1002), _Wire()
    desk, wanted = _observer(leader, wire)
    answer: FetchSnapshotResponse = wire.ask(leader, wanted, source=1)
    for name, value in fields.items():
        setattr(answer, name, value)
    sent = desk.give(answer) or _asked_next(desk)
    assert isinstance(sent[0], MetadataFetchRequest)
    assert not desk.performed(WRITE)


def test_an_empty_snapshot_has_one_piece() -> None:
    empty = Snapshot(end_offset=3, epoch=1, records=())
    assert Pieces(SnapshotValues()).cut(empty, position=0, size_max=9) == (0, ())
    some = Snapshot(end_offset=3, epoch=1, records=(NoOpRecord(),))
    assert Pieces(SnapshotValues()).cut(some, position=0, size_max=9) == (1, (NoOpRecord(),))
