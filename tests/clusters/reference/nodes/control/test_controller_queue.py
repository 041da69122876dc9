"""Features, producer ids, requests that wait, and snapshots of the image."""

from typing import Any

import pytest
from desk import FEATURES, LEASE, Desk

from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.configuration import S
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.image import MetadataImage
from fencepost.clusters.reference.nodes.messages.control import (
    AllocateProducerIdsRequest,
    AlterConfigsRequest,
    AlterReassignmentsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewTopic,
    UpdateFeaturesRequest,
)


def _desk(*off: str, level: int = 2, count: int = 3, **settings: Any) -> Desk:
    desk = Desk(*off, level=level, **settings)
    desk.brokers(*range(1, count + 1))
    return desk


def test_a_level_goes_up_once_every_broker_supports_it() -> None:
    desk = Desk(level=1)
    desk.brokers(1)
    desk.register(2, features=(("metadata.version", 1, 2),))
    asked = UpdateFeaturesRequest(0, (("metadata.version", 3),))
    refused = desk.ask(asked)
    assert refused.error == Error.INVALID_UPDATE_VERSION
    assert "broker 2" in refused.words
    desk.outlast(1)
    desk.register(2, incarnation_id=2, features=FEATURES)
    assert desk.ask(asked, source=-9) is None
    assert desk.image.level == 3
    desk.catch_up(1)
    assert desk.answer_to(-9).error == Error.NONE


@pytest.mark.parametrize(
    "update",
    [("metadata.version", 1), ("metadata.version", 4), ("kraft.version", 1)],
    ids=["back", "unsupported", "unknown"],
)
def test_an_impossible_level_is_refused(update: tuple[str, int]) -> None:
    desk = _desk(level=2)
    answer = desk.ask(UpdateFeaturesRequest(0, (("metadata.version", 3), update)))
    assert answer.error == Error.INVALID_UPDATE_VERSION
    assert desk.image.level == 2


def _blocks(desk: Desk) -> list[int]:
    blocks: list[int] = []
    for broker_id in (1, 2):
        request = AllocateProducerIdsRequest(0, broker_id, desk.broker(broker_id).broker_epoch)
        answer = desk.ask(request, source=broker_id)
        blocks += range(answer.start, answer.start + answer.length)
    return blocks


@pytest.mark.rule("producer_ids_unique")
def test_no_producer_id_is_given_away_twice() -> None:
    desk = _desk()
    blocks = _blocks(desk)
    desk.depose()
    desk.elect()
    blocks += _blocks(desk)
    assert len(set(blocks)) == len(blocks) == 4_000


def test_without_producer_ids_unique_they_are() -> None:
    blocks = _blocks(_desk("producer_ids_unique"))
    assert len(set(blocks)) < len(blocks)


def test_a_broker_of_another_epoch_gets_no_producer_ids() -> None:
    answer = _desk().ask(AllocateProducerIdsRequest(0, 1, 0))
    assert (answer.error, answer.length) == (Error.STALE_BROKER_EPOCH, 0)


def test_requests_wait_in_their_order_and_each_sees_what_the_one_before_did() -> None:
    desk = _desk()
    desk.commits = False
    first = CreateTopicsRequest(0, (NewTopic("t", 1, 1),), S)
    assert desk.ask(first, source=-8) is None
    assert desk.ask(first, source=-9) is None
    desk.commit()
    errors = {source: answer.topics[0][2] for source, answer in desk.answers() if source < -7}
    assert errors == {-8: Error.NONE, -9: Error.TOPIC_ALREADY_EXISTS}


def test_the_queue_is_bounded_and_so_is_the_time_in_it() -> None:
    desk = _desk(request_timeout_ns=5 * S)
    desk.commits = False
    request = DeleteTopicsRequest(0, (("n", -1),), S)
    desk.ask(CreateTopicsRequest(0, (NewTopic("t", 1, 1),), S), source=-8)
    for number in range(1_000):
        assert desk.ask(request, source=-100 - number) is None
    assert desk.ask(request, source=-9).topics[0][2] == Error.REQUEST_TIMED_OUT
    desk.pass_time(5 * S)
    assert desk.answer_to(-100).topics[0][2] == Error.REQUEST_TIMED_OUT
    assert desk.answer_to(-1_099).topics[0][2] == Error.REQUEST_TIMED_OUT
    # What was appended may hold: nobody says that it does not.
    assert desk.answer_to(-8) is None


def test_a_snapshot_adds_up_to_the_image_that_it_was_taken_of() -> None:
    desk = _desk()
    key = desk.topic((1, 2))
    desk.ask(AlterConfigsRequest(0, ((2, "t", "retention.ms", "5"), (4, "", "a", "b"))))
    _blocks(desk)
    desk.pass_time(LEASE - 1)
    desk.heartbeat(2, BrokerState.PENDING_CONTROLLED_SHUTDOWN)
    desk.ask(AlterReassignmentsRequest(0, (("t", 0, (1, 3)),)))
    desk.pass_time(1)
    image = desk.image
    assert image.brokers[1].fenced
    assert desk.partition(key).leader == -1
    again = MetadataImage.of_snapshot(image.records(), end_offset=image.offset, epoch=image.epoch)
    assert again == image


def test_a_heartbeat_waits_for_the_registration_that_it_may_belong_to() -> None:
    """Without answer_after_commit a broker has its epoch before the quorum has it."""
    desk = Desk("answer_after_commit")
    desk.commits = False
    epoch = desk.register(1).broker_epoch
    assert desk.heartbeat(1, epoch=epoch, offset=epoch + 1) is None
    desk.commits = True
    desk.settle()
    assert [answer.error for _, answer in desk.answers()][-1] != Error.STALE_BROKER_EPOCH
    assert desk.heartbeat(1).next_state == BrokerState.RUNNING
