from typing import Any

import pytest
from quorum_desk import OWN, Desk, disk

from fencepost.clusters.node_port.effects import ADVANCE, SYNC, TRUNCATE, UNREACHABLE, WRITE
from fencepost.clusters.node_port.notes import APPENDED_METADATA, COMMITTED_METADATA, RESIGNED
from fencepost.clusters.node_port.storage import (
    METADATA,
    SNAPSHOT,
    Contents,
    MetadataBatch,
    Snapshot,
)
from fencepost.clusters.reference.nodes.configuration import MS, S
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import DescribeQuorumRequest
from fencepost.clusters.reference.nodes.messages.quorum import (
    BeginQuorumEpochRequest,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    MetadataFetchRequest,
    MetadataFetchResponse,
    VoteRequest,
    VoteResponse,
)
from fencepost.clusters.reference.nodes.quorum.transitions import VoterState
from fencepost.clusters.reference.nodes.records import NoOpRecord

_NO_OP = NoOpRecord()


def _batch(base: int, epoch: int, count: int = 1) -> MetadataBatch:
    return MetadataBatch(base, epoch, (_NO_OP,) * count)


def _fetch(
    offset: int, last_epoch: int, *, epoch: int = 1, replica: int = 1002, wait: int = S
) -> MetadataFetchRequest:
    return MetadataFetchRequest(
        offset + 100, replica, epoch, offset, last_epoch, wait, is_voter=replica > 1000
    )


def _leader(*off: str, contents: Contents | None = None, **bounds: int) -> Desk:
    """A leader of three voters whose own log is durable up to its end."""
    bounds = {"quorum_fetch_timeout_ns": 60 * S, **bounds}
    desk = Desk(*off, contents=contents, **bounds)
    while not (requests := [one for one in desk.sync() if isinstance(one, VoteRequest)]):
        desk.wait(20 * MS)
    request = requests[0]
    desk.give(VoteResponse(request.correlation, 1002, request.epoch, -1, granted=True))
    assert desk.part.is_leader
    desk.sync()
    return desk


def _follower(*off: str, contents: Contents | None = None) -> tuple[Desk, MetadataFetchRequest]:
    """A follower of 1002 in epoch 4, and its first fetch."""
    desk = Desk(*off, contents=contents)
    sent = desk.give(BeginQuorumEpochRequest(1, 4, 1002))
    (request,) = (one for one in sent if isinstance(one, MetadataFetchRequest))
    return desk, request


def _observer(*off: str, contents: Contents | None = None) -> tuple[Desk, MetadataFetchRequest]:
    desk = Desk(*off, node_id=1, contents=contents, opened=False)
    (request,) = desk.sync()
    return desk, request


def _answer(
    request: MetadataFetchRequest,
    *batches: MetadataBatch,
    end: int = 0,
    epoch: int = 4,
    **more: int,
) -> MetadataFetchResponse:
    return MetadataFetchResponse(request.correlation, 0, epoch, 1002, end, batches, **more)


def _fetched(sent: list[Any]) -> list[MetadataFetchResponse]:
    return [one for one in sent if isinstance(one, MetadataFetchResponse)]


@pytest.mark.parametrize(("off", "committed"), [((), 0), (("commit_by_majority",), 1)])
def test_commit_by_majority_what_one_has_is_not_decided(
    off: tuple[str, ...], committed: int
) -> None:
    desk = _leader(*off)
    assert (desk.part.log.end, desk.part.high_watermark) == (1, committed)
    desk.give(_fetch(1, 1))
    assert desk.part.high_watermark == 1


@pytest.mark.parametrize(("off", "committed"), [((), 0), (("commit_in_own_epoch",), 2)])
def test_commit_in_own_epoch_older_records_wait_for_one_of_the_leaders_own(
    off: tuple[str, ...], committed: int
) -> None:
    desk = _leader(*off, contents=disk(_batch(0, 1, 2), epoch=1))
    assert desk.part.epoch_start == 2
    desk.give(_fetch(2, 1, epoch=2))
    assert desk.part.high_watermark == committed
    desk.give(_fetch(3, 2, epoch=2))
    assert desk.part.high_watermark == 3


@pytest.mark.parametrize(("off", "early"), [((), 1), (("append_synced",), 2)])
def test_append_synced_the_leaders_own_copy_counts_once_it_is_durable(
    off: tuple[str, ...], early: int
) -> None:
    desk = _leader(*off)
    desk.give(_fetch(1, 1))
    desk.call("append", desk.now, (_NO_OP,))
    desk.give(_fetch(2, 1))
    assert desk.part.high_watermark == early
    desk.sync()
    assert desk.part.high_watermark == 2


def test_a_record_that_two_others_have_is_committed_before_the_leaders_disk_has_it() -> None:
    desk = _leader()
    desk.call("append", desk.now, (_NO_OP,))
    desk.give(_fetch(2, 1))
    desk.give(_fetch(2, 1, replica=1003), source=1003)
    assert desk.part.high_watermark == 2


@pytest.mark.parametrize(("off", "early"), [((), 0), (("append_synced",), 1)])
def test_append_synced_a_follower_fetches_again_once_its_copy_is_durable(
    off: tuple[str, ...], early: int
) -> None:
    desk, request = _follower(*off)
    assert len(desk.give(_answer(request, _batch(0, 4)))) == early
    sent = desk.sync()
    assert [one.fetch_offset for one in sent] == [1] * (1 - early)
    assert desk.part.log.end == 1


def test_one_sync_at_a_time_covers_what_was_appended_meanwhile() -> None:
    desk = _leader()
    desk.call("append", desk.now, (_NO_OP,))
    assert len(desk.performed(SYNC)) == 1
    desk.call("append", desk.now, (_NO_OP,))
    assert not desk.performed(SYNC)
    desk.sync_one()
    assert len(desk.performed(SYNC)) == 1
    desk.sync()
    desk.give(_fetch(3, 1))
    assert desk.part.high_watermark == 3


def test_a_leader_notes_what_it_appends_and_what_is_committed() -> None:
    desk = _leader()
    desk.give(_fetch(1, 1))
    assert desk.notes() == [(COMMITTED_METADATA, 1)]
    desk.call("append", desk.now, (_NO_OP, _NO_OP))
    assert (APPENDED_METADATA, 1, 1, (_NO_OP, _NO_OP)) in desk.notes()


def test_a_parked_fetch_is_answered_by_records_by_the_high_watermark_and_at_its_bound() -> None:
    desk = _leader()
    (first,) = desk.give(_fetch(1, 1, replica=1))
    assert (first.batches, first.high_watermark) == ((), 0)
    assert desk.give(_fetch(1, 1, replica=1)) == []
    told = desk.give(_fetch(1, 1))
    assert [one.high_watermark for one in told] == [1, 1]
    assert desk.give(_fetch(1, 1, replica=1)) == []
    (records,) = desk.call("append", desk.now, (_NO_OP,))
    assert [batch.base_offset for batch in records.batches] == [1]
    assert desk.give(_fetch(2, 1, replica=1, wait=100 * MS)) == []
    assert not _fetched(desk.wait(80 * MS))
    (empty,) = _fetched(desk.wait(20 * MS))
    assert (empty.batches, empty.error) == ((), Error.NONE)


def test_a_fetch_that_is_repeated_answers_the_one_that_was_parked() -> None:
    desk = _leader()
    desk.give(_fetch(1, 1, replica=1))
    parked = _fetch(1, 1, replica=1)
    parked.correlation = 500
    assert desk.give(parked) == []
    (answer,) = desk.give(_fetch(1, 1, replica=1))
    assert answer.correlation == 500


def test_an_answer_has_as_many_records_as_are_allowed_and_one_batch_at_least() -> None:
    desk = _leader(fetch_records_max=2)
    for count in (3, 1, 1, 1):
        desk.call("append", desk.now, (_NO_OP,) * count)
    ends = []
    for _ in range(4):
        offset = ends[-1] if ends else 0
        (answer,) = desk.give(_fetch(offset, 1 if offset else 0, replica=1))
        ends.append(answer.batches[-1].end_offset)
    assert ends == [1, 4, 6, 7]


def test_a_leader_that_hears_of_a_higher_epoch_tells_whoever_waits() -> None:
    desk = _leader()
    desk.give(_fetch(1, 1, replica=1))
    assert desk.give(_fetch(1, 1, replica=1)) == []
    sent = desk.give(BeginQuorumEpochRequest(1, 7, 1003), source=1003)
    (told,) = (one for one in sent if isinstance(one, MetadataFetchResponse))
    assert (told.error, told.epoch, told.leader_id) == (Error.NOT_LEADER_OR_FOLLOWER, 7, 1003)
    assert (RESIGNED, 1) in desk.notes()
    assert desk.part.state is VoterState.FOLLOWER


@pytest.mark.parametrize("off", [(), ("stale_epoch_refused",)], ids=["kept", "off"])
def test_stale_epoch_refused_a_fetch_of_an_older_epoch_acknowledges_nothing(
    off: tuple[str, ...],
) -> None:
    desk = _leader(*off, contents=disk(_batch(0, 4), epoch=4))
    (answer,) = desk.give(_fetch(2, 5, epoch=3))
    assert answer.error == (Error.NONE if off else Error.FENCED_LEADER_EPOCH)
    assert desk.part.high_watermark == (2 if off else 0)


def test_who_does_not_lead_says_who_does() -> None:
    desk, _ = _follower()
    (answer,) = desk.give(_fetch(0, 0, epoch=-1, replica=1))
    assert (answer.error, answer.epoch, answer.leader_id) == (6, 4, 1002)


@pytest.mark.parametrize(
    ("offset", "last_epoch", "shared"),
    [(5, 3, (1, 2)), (3, 1, (1, 2)), (9, 5, (5, 4)), (3, 2, (1, 2)), (4, 6, (5, 4))],
)
def test_metadata_divergence_found_by_the_epoch_before_the_offset(
    offset: int, last_epoch: int, shared: tuple[int, int]
) -> None:
    contents = disk(_batch(0, 1, 2), _batch(2, 4), epoch=4)
    desk = _leader(contents=contents)
    (answer,) = desk.give(_fetch(offset, last_epoch, epoch=5))
    assert (answer.diverging_epoch, answer.diverging_end_offset) == shared
    assert desk.part.high_watermark == 0
    desk = _leader("metadata_divergence_found", contents=contents)
    answers = desk.give(_fetch(offset, last_epoch, epoch=5))
    assert all(answer.diverging_end_offset in {-1, 4} for answer in answers)


def test_metadata_divergence_found_a_follower_cuts_its_log_to_what_both_share() -> None:
    desk, request = _follower(contents=disk(_batch(0, 1, 2), _batch(2, 3, 3), epoch=3))
    assert (request.fetch_offset, request.last_fetched_epoch) == (5, 3)
    diverging = _answer(request, end=9, diverging_epoch=2, diverging_end_offset=3)
    (request,) = desk.give(diverging)
    assert desk.performed(TRUNCATE) == [(METADATA, 2)]
    assert (request.fetch_offset, request.last_fetched_epoch) == (2, 1)
    assert desk.part.high_watermark == 0, "the logs are still apart for all that it knows"


def test_a_batch_that_does_not_fit_is_not_appended_and_asked_for_after_a_pause() -> None:
    desk, request = _follower()
    assert desk.give(_answer(request, _batch(5, 4))) == []
    assert desk.part.log.end == 0
    (again,) = desk.wait(20 * MS)
    assert again.fetch_offset == 0


def test_an_answer_that_comes_twice_or_was_not_asked_for_changes_nothing() -> None:
    desk, request = _follower()
    desk.give(_answer(request, _batch(0, 4)))
    desk.give(_answer(request, _batch(1, 4)))
    assert desk.part.log.end == 1


def test_an_answer_of_an_older_epoch_is_not_appended() -> None:
    desk, request = _follower()
    desk.give(_answer(request, _batch(0, 3), epoch=3))
    assert desk.part.log.end == 0


def test_a_follower_that_fetches_in_vain_stands_for_election() -> None:
    desk, request = _follower()
    desk.event(UNREACHABLE, request, source=1002)
    desk.wait(380 * MS)
    assert desk.part.state is VoterState.FOLLOWER
    desk.wait(40 * MS)
    assert desk.part.state is VoterState.CANDIDATE


def test_a_fetch_that_vanished_is_repeated_before_the_leader_is_given_up() -> None:
    desk, _ = _follower()
    (again,) = desk.wait(300 * MS)
    assert desk.part.state is VoterState.FOLLOWER
    desk.give(_answer(again))
    desk.wait(300 * MS)
    assert desk.part.state is VoterState.FOLLOWER


@pytest.mark.rule("replay_committed_only")
@pytest.mark.parametrize(("off", "exposed"), [((), 1), (("replay_committed_only",), 2)])
def test_replay_committed_only_an_observer_shows_its_log_up_to_the_high_watermark(
    off: tuple[str, ...], exposed: int
) -> None:
    desk, request = _observer(*off)
    desk.give(_answer(request, _batch(0, 4), _batch(1, 4), end=1))
    assert desk.part.high_watermark == exposed
    assert (COMMITTED_METADATA, exposed) in desk.notes()


def test_an_observer_asks_the_voters_in_turn_and_goes_where_it_is_sent() -> None:
    desk, request = _observer()
    assert (request.epoch, request.is_voter) == (-1, False)
    sent = desk.event(UNREACHABLE, request, source=1002) or desk.wait(40 * MS)
    (request,) = sent
    refusal = MetadataFetchResponse(request.correlation, 6, 8, 1001)
    (request,) = desk.give(refusal)
    assert (desk.part.leader_id, desk.part.epoch, request.epoch) == (1001, 8, 8)


def test_observers_that_two_voters_send_to_each_other_ask_with_pauses() -> None:
    desk, request = _observer()
    sent = 0
    for _ in range(50):
        other = 1001 + sent % 2
        answers = desk.give(MetadataFetchResponse(request.correlation, 6, 8, other))
        answers = answers or desk.wait(20 * MS)
        if answers:
            request = answers[0]
            sent += 1
    assert desk.now > 20 * 20 * MS


def test_an_observer_whose_leader_is_silent_asks_another_voter() -> None:
    desk, request = _observer()
    desk.give(_answer(request))
    assert desk.part.leader_id == 1002
    desk.wait(S)
    assert desk.part.leader_id == -1


def test_who_is_below_the_log_start_fetches_the_snapshot_and_begins_at_it() -> None:
    leader = _leader(contents=disk(_batch(0, 1, 2), _batch(2, 1), epoch=1))
    leader.give(_fetch(4, 2, epoch=2))
    leader.call("snapshot", 3, 1, (_NO_OP,))
    assert leader.part.log.start == 3
    assert not leader.performed(ADVANCE)
    leader.sync()
    assert leader.performed(ADVANCE) == [(METADATA, 3)]

    desk, request = _observer()
    request.epoch = 2
    (answer,) = leader.give(request, source=1)
    assert (answer.snapshot_end_offset, answer.snapshot_epoch) == (3, 1)
    (wanted,) = desk.give(answer)
    assert isinstance(wanted, FetchSnapshotRequest)
    (answer,) = leader.give(wanted, source=1)
    desk.give(answer)
    assert (desk.part.log.start, desk.performed(ADVANCE)) == (0, [])
    (request,) = desk.sync()
    assert desk.performed(ADVANCE) == [(METADATA, 3)]
    assert (desk.part.log.start, desk.part.high_watermark, request.fetch_offset) == (3, 3, 3)
    (answer,) = leader.give(request, source=1)
    assert [batch.base_offset for batch in answer.batches] == [3]


def test_a_snapshot_that_the_leader_has_replaced_is_asked_for_anew() -> None:
    desk, request = _observer()
    (wanted,) = desk.give(_answer(request, snapshot_end_offset=3, snapshot_epoch=1))
    gone = FetchSnapshotResponse(wanted.correlation, int(Error.SNAPSHOT_NOT_FOUND), 4, 1002)
    sent = desk.give(gone) or desk.wait(40 * MS)
    assert [one.kind for one in sent] == [MetadataFetchRequest.kind]


def test_no_snapshot_is_taken_while_the_leaders_arrives() -> None:
    desk, request = _follower(contents=disk(_batch(0, 1), epoch=1))
    (wanted,) = desk.give(_answer(request, snapshot_end_offset=3, snapshot_epoch=2))
    found = Snapshot(end_offset=3, epoch=2, records=())
    desk.give(FetchSnapshotResponse(wanted.correlation, 0, 4, 1002, piece=()))
    assert desk.performed(WRITE) == [(SNAPSHOT, found)]
    desk.call("snapshot", 1, 1, ())
    assert not desk.effects


def test_a_log_that_leaves_the_snapshots_branch_is_dropped_for_it() -> None:
    desk, request = _follower(contents=disk(_batch(0, 1), _batch(1, 3, 5), epoch=3))
    (wanted,) = desk.give(_answer(request, snapshot_end_offset=3, snapshot_epoch=2))
    desk.give(FetchSnapshotResponse(wanted.correlation, 0, 4, 1002, piece=()))
    (request,) = desk.sync()
    assert desk.part.log.batches(0, 99) == []
    assert (request.fetch_offset, request.last_fetched_epoch) == (3, 2)


def test_describing_the_quorum_shows_how_far_each_replica_is() -> None:
    desk = _leader()
    desk.give(_fetch(1, 1))
    desk.give(_fetch(0, 0, replica=1))
    (answer,) = desk.give(DescribeQuorumRequest(1))
    assert (answer.error, answer.leader_id, answer.epoch, answer.high_watermark) == (0, OWN, 1, 1)
    assert [(one[0], one[1]) for one in answer.voters] == [(1001, 1), (1002, 1), (1003, -1)]
    assert [(one[0], one[1]) for one in answer.observers] == [(1, 0)]
    follower, _ = _follower()
    (answer,) = follower.give(DescribeQuorumRequest(1))
    assert (answer.error, answer.leader_id) == (Error.NOT_LEADER_OR_FOLLOWER, 1002)


def test_an_observer_that_is_long_silent_is_not_described() -> None:
    desk = _leader(quorum_fetch_timeout_ns=1_000 * S)
    desk.give(_fetch(1, 1, replica=1))
    desk.now += 301 * S
    (answer,) = desk.give(DescribeQuorumRequest(1))
    assert answer.observers == ()


def test_other_peoples_syncs_and_messages_are_left_alone() -> None:
    desk = Desk()
    assert desk.event(2, ("replicas", 1)) == []
    assert desk.event(22, None) == []
    assert desk.part.state is VoterState.UNATTACHED
