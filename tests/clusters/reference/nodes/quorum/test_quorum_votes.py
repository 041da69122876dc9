import pytest
from quorum_desk import OWN, Desk, disk

from fencepost.clusters.node_port.effects import CLOSE, UNREACHABLE
from fencepost.clusters.node_port.notes import QUORUM_LEADER, VOTED
from fencepost.clusters.node_port.storage import MetadataBatch
from fencepost.clusters.reference.nodes.configuration import MS, S
from fencepost.clusters.reference.nodes.messages.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    MetadataFetchRequest,
    VoteRequest,
    VoteResponse,
)
from fencepost.clusters.reference.nodes.quorum.transitions import (
    TRANSITIONS,
    VoterEvent,
    VoterState,
)
from fencepost.clusters.reference.nodes.records import NoOpRecord

_BATCH = MetadataBatch(0, 3, (NoOpRecord(), NoOpRecord()))


def _asks(epoch: int, candidate: int = 1002, *, last_epoch: int = 9, end: int = 9) -> VoteRequest:
    return VoteRequest(7, epoch, candidate, last_epoch, end)


def _candidate(*off: str, **bounds: int) -> tuple[Desk, list[VoteRequest]]:
    desk = Desk(*off, **bounds)
    desk.wait(400 * MS)
    return desk, desk.sync()


def _granted(request: VoteRequest, voter_id: int) -> VoteResponse:
    return VoteResponse(request.correlation, voter_id, request.epoch, -1, granted=True)


def test_a_voter_alone_leads_once_its_own_vote_is_durable() -> None:
    desk = Desk(voters=(OWN,), opened=False)
    desk.sync_one()
    assert (desk.part.state, desk.part.epoch) == (VoterState.CANDIDATE, 1)
    desk.sync_one()
    assert desk.part.is_leader
    assert (desk.part.epoch, desk.part.leader_id, desk.part.epoch_start) == (1, OWN, 0)
    assert desk.part.high_watermark == 0
    desk.sync_one()
    assert desk.part.high_watermark == 1


def test_before_its_disk_is_durable_a_voter_closes_what_it_is_asked() -> None:
    desk = Desk(opened=False)
    assert desk.give(_asks(1), source=1002) == []
    assert desk.performed(CLOSE) == [(1002,)]
    assert desk.wait(10 * S) == []
    desk.sync()
    assert desk.give(_asks(1)) == []
    assert [answer.granted for answer in desk.sync()] == [True]


@pytest.mark.parametrize(("off", "second"), [((), False), (("one_vote",), True)])
def test_one_vote_a_voter_votes_once_in_an_epoch(off: tuple[str, ...], *, second: bool) -> None:
    desk = Desk(*off)
    desk.give(_asks(1, 1002))
    assert [answer.granted for answer in desk.sync()] == [True]
    answers = desk.give(_asks(1, 1003), source=1003) + desk.sync()
    assert [answer.granted for answer in answers] == [second]


def test_a_vote_is_given_to_the_same_candidate_again() -> None:
    desk = Desk()
    for _ in range(2):
        desk.give(_asks(1))
        assert [answer.granted for answer in desk.sync()] == [True]


def test_a_vote_from_before_a_restart_holds() -> None:
    desk = Desk(contents=disk(epoch=4, voted_for=1002))
    assert desk.part.state is VoterState.VOTED
    answers = desk.give(_asks(4, 1003), source=1003)
    assert [answer.granted for answer in answers] == [False]


@pytest.mark.parametrize(("off", "early"), [((), 0), (("vote_synced",), 1)])
def test_vote_synced_a_vote_is_durable_before_it_is_answered(
    off: tuple[str, ...], early: int
) -> None:
    desk = Desk(*off)
    assert len(desk.give(_asks(1))) == early
    assert ((VOTED, 1, 1002) in desk.notes()) is bool(early)
    assert len(desk.sync()) == 1 - early


@pytest.mark.parametrize(("off", "asked"), [((), False), (("vote_synced",), True)])
def test_vote_synced_a_candidate_asks_once_its_own_vote_is_durable(
    off: tuple[str, ...], *, asked: bool
) -> None:
    desk = Desk(*off)
    assert bool(desk.wait(400 * MS)) is asked
    assert desk.part.state is VoterState.CANDIDATE


@pytest.mark.parametrize(
    ("last_epoch", "end", "granted"),
    [(3, 2, True), (3, 1, False), (2, 9, False), (4, 1, True)],
)
def test_vote_for_longest_who_is_behind_gets_no_vote(
    last_epoch: int, end: int, *, granted: bool
) -> None:
    for off in ((), ("vote_for_longest",)):
        desk = Desk(*off, contents=disk(_BATCH, epoch=3))
        answers = desk.give(_asks(5, last_epoch=last_epoch, end=end)) + desk.sync()
        assert [answer.granted for answer in answers] == [granted or bool(off)]


@pytest.mark.parametrize("off", [(), ("stale_epoch_refused",)], ids=["kept", "off"])
def test_stale_epoch_refused_a_deposed_leader_is_not_followed(off: tuple[str, ...]) -> None:
    desk = Desk(*off, contents=disk(epoch=6))
    answers = desk.give(BeginQuorumEpochRequest(1, 5, 1002))
    followed = bool(off)
    assert desk.part.leader_id == (1002 if followed else -1)
    assert [a.epoch for a in answers if isinstance(a, BeginQuorumEpochResponse)] == [
        5 if followed else 6
    ]


def test_a_higher_epoch_is_followed_though_the_vote_is_refused() -> None:
    desk = Desk(contents=disk(_BATCH, epoch=3))
    (answer,) = desk.give(_asks(9, last_epoch=0, end=0))
    assert (answer.granted, answer.epoch, desk.part.epoch) == (False, 9, 9)


def test_who_follows_a_leader_votes_for_nobody_else_in_that_epoch() -> None:
    desk = Desk()
    desk.give(BeginQuorumEpochRequest(1, 4, 1002))
    (answer,) = desk.give(_asks(4, 1003), source=1003)
    assert (answer.granted, answer.leader_id) == (False, 1002)


def test_a_stranger_is_neither_voted_for_nor_followed() -> None:
    desk = Desk()
    (answer,) = desk.give(_asks(5, 77), source=77)
    assert (answer.granted, desk.part.epoch) == (False, 0)
    desk.give(BeginQuorumEpochRequest(1, 5, 77))
    assert (desk.part.epoch, desk.part.leader_id) == (0, -1)


def test_a_majority_of_votes_makes_a_leader_and_each_voter_counts_once() -> None:
    five = (1001, 1002, 1003, 1004, 1005)
    desk = Desk(voters=five)
    desk.wait(400 * MS)
    requests = desk.sync()
    assert [request.kind for request in requests] == [VoteRequest.kind] * 4
    for _ in range(3):
        desk.give(_granted(requests[0], 1002))
    assert not desk.part.is_leader
    desk.give(_granted(requests[1], 1003))
    assert desk.part.is_leader
    assert (QUORUM_LEADER, 1) in desk.notes()


def test_votes_of_an_earlier_election_do_not_count() -> None:
    desk, requests = _candidate()
    desk.wait(2 * S)
    desk.sync()
    assert desk.part.epoch > requests[0].epoch
    desk.give(_granted(requests[0], 1002))
    assert not desk.part.is_leader


def test_a_candidate_that_hears_of_a_leader_follows_it() -> None:
    desk, _ = _candidate()
    sent = desk.give(BeginQuorumEpochRequest(1, desk.part.epoch, 1003), source=1003)
    assert desk.part.state is VoterState.FOLLOWER
    assert MetadataFetchRequest.kind in {message.kind for message in sent}


def test_nobody_leads_twice_in_one_epoch_also_after_a_restart() -> None:
    for state in ({"voted_for": OWN}, {"voted_for": OWN, "leader_id": OWN}):
        desk = Desk(contents=disk(epoch=4, **state))
        assert desk.part.state is VoterState.VOTED
        desk.wait(400 * MS)
        assert {request.epoch for request in desk.sync()} == {5}


def test_a_refused_candidate_stands_again_after_a_pause_that_is_bounded() -> None:
    desk, requests = _candidate()
    epochs = {requests[0].epoch}
    for _ in range(12):
        for request in requests:
            voter_id = 1002 if request is requests[0] else 1003
            desk.give(VoteResponse(request.correlation, voter_id, request.epoch, -1, granted=False))
        desk.wait(desk.configuration.election_backoff_max_ns + 20 * MS)
        requests = desk.sync()
        epochs |= {request.epoch for request in requests}
    assert len(epochs) == 13


def test_votes_are_asked_for_again_when_the_request_came_back_with_growing_pauses() -> None:
    desk, requests = _candidate(election_timeout_ns=200 * MS, quorum_request_timeout_ns=30 * S)
    request = requests[0]
    pauses = []
    for _ in range(2):
        before = desk.now
        desk.event(UNREACHABLE, request, source=1002)
        while not (sent := desk.wait(20 * MS)):
            assert desk.now < before + S
        (request,) = sent
        pauses.append(desk.now - before)
    assert pauses[0] < pauses[1]


def test_a_new_leader_tells_the_others_until_they_fetch() -> None:
    desk, requests = _candidate(quorum_fetch_timeout_ns=2 * S)
    sent = desk.give(_granted(requests[0], 1002))
    begins = [one for one in sent if isinstance(one, BeginQuorumEpochRequest)]
    assert len(begins) == 2
    desk.give(BeginQuorumEpochResponse(begins[0].correlation, 1002, 1, OWN))
    again = [one for one in desk.wait(100 * MS) if isinstance(one, BeginQuorumEpochRequest)]
    assert len(again) == 1, "who has answered is left alone, who has not is told again"
    fetch = MetadataFetchRequest(1, 1003, 1, 0, 0, S, is_voter=True)
    desk.give(fetch, source=1003)
    assert not [one for one in desk.wait(500 * MS) if isinstance(one, BeginQuorumEpochRequest)]


def test_a_leader_without_a_majority_of_fetches_resigns() -> None:
    desk, requests = _candidate()
    desk.give(_granted(requests[0], 1002))
    desk.wait(380 * MS)
    assert desk.part.is_leader
    sent = desk.wait(40 * MS)
    assert not desk.part.is_leader
    assert desk.part.leader_id == -1
    assert {one.kind for one in sent} == {EndQuorumEpochRequest.kind}


def test_a_leader_that_stood_still_resigns_before_it_takes_what_waited() -> None:
    desk, requests = _candidate()
    desk.give(_granted(requests[0], 1002))
    desk.call("look", desk.now)
    assert desk.part.is_leader
    sent = desk.call("look", desk.now + 4000 * MS)
    assert not desk.part.is_leader
    assert {one.kind for one in sent} == {EndQuorumEpochRequest.kind}


def test_a_leader_that_resigns_names_who_has_most_of_its_log_first() -> None:
    desk, requests = _candidate()
    desk.give(_granted(requests[0], 1002))
    desk.sync()
    desk.give(MetadataFetchRequest(1, 1003, 1, 1, 1, 0, is_voter=True), source=1003)
    desk.give(MetadataFetchRequest(1, 1002, 1, 0, 0, 0, is_voter=True))
    sent = desk.call("resign", desk.now)
    ends = [one for one in sent if isinstance(one, EndQuorumEpochRequest)]
    assert [one.successors for one in ends] == [(1003, 1002)] * 2
    assert desk.part.state is VoterState.RESIGNED


def test_the_first_successor_stands_at_once_and_the_next_a_little_later() -> None:
    for place, successors in enumerate([(OWN, 1003), (1003, OWN)]):
        desk = Desk()
        desk.give(BeginQuorumEpochRequest(1, 4, 1002))
        answers = desk.give(EndQuorumEpochRequest(2, 4, 1002, successors))
        assert EndQuorumEpochResponse.kind in {answer.kind for answer in answers}
        assert desk.part.state is (VoterState.UNATTACHED if place else VoterState.CANDIDATE)
        desk.wait(100 * MS)
        assert desk.part.state is VoterState.CANDIDATE


def test_every_state_is_reached_and_left_and_events_have_one_outcome_in_each() -> None:
    assert set(TRANSITIONS.values()) == set(VoterState)
    assert {state for state, _ in TRANSITIONS} == set(VoterState)
    assert {event for _, event in TRANSITIONS} == set(VoterEvent)
    into_leader = [pair for pair, state in TRANSITIONS.items() if state is VoterState.LEADER]
    assert into_leader == [(VoterState.CANDIDATE, VoterEvent.ELECTED)]
